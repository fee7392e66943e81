"""What a study says of heads whose vectors were cleaned, by the same measures and the same claims.

The model reads as it is: only what is seen of it is cleaned. What comes of putting cleaned vectors
back into it is another question, and is asked of its loss.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from headscope.capture import HeadOutputs, Observe
from headscope.effects.cleaning import Cleaning
from headscope.measures.base import Values
from headscope.measures.registry import MEASURES
from headscope.models import LoadedModel
from headscope.observed import ObservedModel
from headscope.pairs import parse_rule
from headscope.study.bootstrap import Group
from headscope.study.claims import CLAIMS
from headscope.study.estimates import quantities
from headscope.study.evidence import CONTRAST, Evidence
from headscope.study.modes import SimilarityKind
from headscope.study.observe import Observer
from headscope.study.sums import Chunked, Totals, key_of
from headscope.study.told import View
from headscope.study.verdicts import surest
from headscope.units import Padding, Unit

CLEANED = "cleaned"  # a mode of its own, so that types are not counted
OF_PAIRS = tuple(claim for claim in CLAIMS if claim.about_pairs)
NUMBERS = (
    ("noise", "snr"),
    ("noise", "unrelated"),
    ("size", "contrast"),
    ("size", "common_mode"),
    ("size", "effective_rank"),
)


class CleanedModel(ObservedModel):
    """A model that runs as it is, and whose heads are seen with their z cleaned."""

    def __init__(
        self,
        loaded: LoadedModel,
        silenced: frozenset[tuple[int, int]],
        cleaning: Cleaning | None,
    ) -> None:
        super().__init__(loaded, silenced)
        self.cleaning = cleaning
        self.units: Sequence[Unit] = ()  # those that are read at the moment

    def observe_batch(
        self, ids: Tensor, mask: Tensor | None, observe: Observe, **options: Any
    ) -> Any:
        """As that of the model, with z cleaned."""

        def cleaned(seen: HeadOutputs) -> None:
            cleaning = self.cleaning
            if cleaning is not None and self.units and seen.site.stack == self.shape.stack:
                seen = replace(seen, z=cleaning.apply(seen.z, seen.site.layer, self.units))
            observe(seen)

        return super().observe_batch(ids, mask, cleaned, **options)


class Measured:
    """The measures of pairs of a model whose heads are seen cleaned, in the view that is told."""

    def __init__(
        self,
        scope: ObservedModel,
        cleaning: Cleaning | None,
        view: View,
        padding: Padding,
        seed: int,
        replicates: int,
        group: Group,
    ) -> None:
        self.model = CleanedModel(scope.loaded, scope.silenced, cleaning)
        # Whether the pairs of a head stand out is asked of raw similarities.
        readings = dict.fromkeys((view.reading, "raw"))
        kinds = [SimilarityKind(one, view.special) for one in readings]  # type: ignore[arg-type]
        self.observer = Observer(self.model, kinds, (parse_rule(view.rule),), seed, padding)
        self.observer.no_focus = "attention is not looked at: it is as it was"
        self.totals = Totals(replicates, seed, group=group)
        self.view = view
        self.vocabulary = max(len(scope.tokenizer), int(scope.tokenizer.vocab_size))

    def add(self, units: Sequence[Unit]) -> None:
        """Take in a batch of windows."""
        self.model.units = units
        chunk = Chunked(len(units))
        seen = self.observer.see(units, "real")
        chunk.see(self.vocabulary, CLEANED, range(len(units)), *seen)
        self.totals.close(units, chunk, self.vocabulary)

    def numbers(self) -> dict[str, Values]:
        """Numbers of the model and statistics of its claims: (replicates + 1,); SNR and noise by
        layer too: (replicates + 1, layers)."""
        evidence = Evidence(self.totals, CLEANED, self.view)
        found: dict[str, Values] = {}
        for measure, name in NUMBERS:
            found[name] = self._of(measure, name, "model")[:, 0, 0]
        raw = View("raw", self.view.special, self.view.rule)
        found["standing_out"] = (self._of("size", "contrast", "head", raw) >= CONTRAST).mean((1, 2))
        for claim in OF_PAIRS:
            found[claim.name] = surest(claim, claim.value(evidence))[0]
        return found

    def by_layer(self) -> dict[str, Values]:
        """SNR and noise of each layer: (replicates + 1, layers)."""
        return {name: self._of("noise", name, "layer")[:, :, 0] for name in ("snr", "unrelated")}

    def by_head(self) -> Values:
        """The SNR of each head: (replicates + 1, layers, heads)."""
        return self._of("noise", "snr", "head")

    def _of(self, measure: str, name: str, level: str, view: View | None = None) -> Values:
        seen = view or self.view
        key = key_of(MEASURES[measure], CLEANED, seen.reading, seen.special, seen.rule)
        return quantities(self.totals, key, level)[name].value
