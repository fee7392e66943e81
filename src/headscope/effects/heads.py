"""The verb `effects`: what silencing each head costs the model's own loss.

Every head is silenced in turn, on the same texts with the same questions, so the difference is
paired; beside it stands the cheap first look, from the gradient of the loss.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headscope.effects.adding import Adding
from headscope.effects.claims import findings_of
from headscope.effects.correlations import columns_of, correlation_table
from headscope.effects.gradient import derivatives
from headscope.effects.loss import Asked, Loss, LossKind, Metric
from headscope.effects.ranks import rank_correlation
from headscope.effects.replacing import TO, Replacing, To
from headscope.effects.rerun import Runner, runner_for
from headscope.effects.sample import Reads
from headscope.effects.sums import ReplicateSums
from headscope.effects.tables import quantity_table, replicate_table
from headscope.effects.verb import Verb
from headscope.errors import NotPossible
from headscope.measures.base import Definition, Quantity, Values, ratio
from headscope.observed import ObservedModel
from headscope.study.folder import Study
from headscope.study.progress import Progress

AT_ONCE = 2**13  # tokens that run together, in copies of a batch with other heads changed

VERB = Verb(
    "effects",
    "what silencing each head costs the model's own loss",
    {
        "effects": (
            Definition(
                "loss",
                "Σ loss / answers, of the model as it is: its own, masked or causal, or the "
                "metric that was given",
                "nats per answer",
                "number",
                "the model is surprised more",
                "",
                "ours",
            ),
            *(
                Definition(
                    f"{name}_effect",
                    f"loss with all z of the head put to {says}, minus loss as it is, on the same "
                    "texts with the same questions",
                    "nats per answer",
                    "number",
                    "silencing the head costs more; below 0 the model does better without it",
                    "",
                    "ours",
                )
                for name, says in TO.items()
            ),
            Definition(
                "gradient",
                "Σ |Σ_i z_i · ∂loss/∂z_i| / answers: the first sum over texts, the second over "
                "tokens; what silencing a head would change, either way, if the loss were a "
                "straight line (Michel et al., 2019)",
                "nats per answer",
                "number",
                "the loss hangs more on the head",
                "",
                "ours",
            ),
            Definition(
                "gradient_agreement",
                "Spearman's ρ, over all heads, of gradient and the effect of putting z to zero",
                "",
                "number",
                "the gradient ranks heads as silencing them does",
                "",
                "ours",
            ),
        ),
    },
    told=tuple(f"{name}_effect" for name in TO),
    other_tables=("effect_replicates", "effect_correlations", "effect_findings"),
)


def effects(
    scope: ObservedModel,
    source: str | Path | Iterable[Any],
    out: str | Path,
    reads: Reads | None = None,
    *,
    loss: LossKind | Metric | None = None,
    to: Sequence[To] = ("zero",),
    progress: Progress | None = None,
) -> Study:
    """Add to a study what silencing each head costs the loss of its model."""
    for one in to or ("nothing",):
        if one not in TO:
            raise NotPossible(f"z is put to one of {', '.join(TO)}, not {one!r}.")
    asking = Loss(scope, loss, seed=(reads or Reads()).seed)
    adding = Adding(VERB, scope, source, out, reads, progress)
    runner, how = runner_for(scope, asking.ask(adding.first(2)))
    replacing = Replacing(to, adding.reads.seed)
    if replacing.needs_pass:
        for units in adding.batches():
            asked = asking.ask(units, adding.length(units))
            runner.plain(asked)
            replacing.see(runner, asked)
        replacing.read_donors(runner, asking)
    sums = adding.sums()
    for units in adding.batches():
        asked = asking.ask(units, adding.length(units))
        sums.add(units, answers=asked.counts, **losses_without(asking, runner, replacing, asked))
        if asking.metric is None:
            sums.add(units, gradient=np.abs(derivatives(asking, asked)))
    found = _quantities(sums, to, gradient=asking.metric is None)
    tables = {"effects": quantity_table(found), "effect_replicates": replicate_table(found)}
    tables |= what_predicts(adding.study, found[f"{to[0]}_effect"].value, sums["answers"])
    return adding.finish(tables, loss=asking.kind, to=", ".join(to), run=how)


def what_predicts(study: Study, effect: Values, answers: Values) -> dict[str, pa.Table]:
    """What goes along with the effect of all heads, and the claims about it."""
    columns = list(columns_of(study))
    spread = float(np.var(answers[1:]))
    groups = float(answers[0]) ** 2 / spread if spread > 0 else 1.0
    return {
        "effect_correlations": correlation_table(columns, effect),
        "effect_findings": findings_of(study, columns, effect, groups),
    }


def losses_without(
    asking: Loss, runner: Runner, replacing: Replacing, asked: Asked
) -> dict[str, Values]:
    """The loss of each text, and its change by each head: (texts, layers, heads)."""
    plain = runner.plain(asked)
    own = asking.sums(plain, asked, plain)
    shape, silenced = asking.scope.shape, asking.scope.silenced
    found: dict[str, Values] = {"loss": own}
    step = max(1, AT_ONCE // asked.ids.numel())
    for to in replacing.to:
        effect = np.zeros((len(asked.units), shape.layers, shape.heads))
        for layer in range(shape.layers):
            values = replacing.values(to, runner, asked, layer)
            heads = [h for h in range(shape.heads) if (shape.numbers[layer], h + 1) not in silenced]
            for at in range(0, len(heads), step):
                some = heads[at : at + step]
                hidden = runner.changed(layer, [{head: values[head]} for head in some])
                effect[:, layer, some] = (asking.sums(hidden, asked, plain) - own).T
        found[f"{to}_effect"] = effect
    return found


def _quantities(sums: ReplicateSums, to: Sequence[To], *, gradient: bool) -> dict[str, Quantity]:
    answers = sums["answers"]
    found = {"loss": Quantity(ratio(sums["loss"], answers))}
    for name in [f"{one}_effect" for one in to] + ["gradient"] * gradient:
        found[name] = Quantity(ratio(sums[name], answers[:, None, None]))
    if gradient and "zero" in to:
        both = (found[name].value.reshape(len(answers), -1) for name in ("gradient", "zero_effect"))
        found["gradient_agreement"] = Quantity(rank_correlation(*both))
    return found
