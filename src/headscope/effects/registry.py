"""Every verb that adds to a study. A new one is a file beside this one and a line here."""

from headscope.effects import agreement, denoise, entropy, heads, prune
from headscope.effects.potts import communities
from headscope.effects.structure import verb as structure
from headscope.effects.verb import Verb
from headscope.measures import registry
from headscope.measures.base import Definition
from headscope.study.placed.measures import DEFINITIONS as OF_PLACES

VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        heads.VERB,
        prune.VERB,
        entropy.VERB,
        agreement.VERB,
        denoise.VERB,
        communities.VERB,
        structure.VERB,
    )
}

DEFINITIONS: dict[str, Definition] = {
    **registry.DEFINITIONS,
    **OF_PLACES,
    **{name: one for verb in VERBS.values() for name, one in verb.definitions.items()},
}
"""What every quantity means, of all measures and of the verbs, by its name."""
