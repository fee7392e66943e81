"""The verb `entropy`: what each layer of a model would answer if it were the last."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from torch import Tensor

from headscope.effects.adding import Adding
from headscope.effects.answers import CLASSES, AnswerSums, answers
from headscope.effects.lens import Lens
from headscope.effects.loss import Loss, LossKind
from headscope.effects.sample import Reads
from headscope.effects.tables import quantity_table, table_of
from headscope.effects.verb import Verb
from headscope.errors import CannotObserve
from headscope.measures.base import Definition, Quantity, ratio
from headscope.observed import ObservedModel
from headscope.study.bootstrap import interval
from headscope.study.folder import Study
from headscope.study.progress import Progress

TYPES = 100  # tokens whose accuracy is told one by one
MIXED_UP = 5  # answers listed for each of them

EMBEDDINGS = "embeddings"  # a level of its own
BY_FREQUENCY = "one who knows how often each token is asked for, and nothing of the text"
LENS = "of the layer's state put through the model's own language head, its last norm before it"


def _of_answers(name: str, says: str, unit: str, more: str, chance: str = "") -> Definition:
    show = "percent" if unit == "share of answers" else "number"
    return Definition(name, says, unit, show, more, chance, "summary")  # type: ignore[arg-type]


VERB = Verb(
    "entropy",
    "what each layer of a model, and its embeddings, would answer if it were the last",
    {
        "entropy": (
            _of_answers(
                "answer_entropy",
                f"mean over answers of −Σ_t p(t) ln p(t), p the answer {LENS}",
                "nats",
                "the layer is less sure of its answers",
                BY_FREQUENCY,
            ),
            _of_answers(
                "answer_loss",
                f"mean over answers of −ln p(true token), p the answer {LENS}",
                "nats",
                "the answers are further from the truth",
                BY_FREQUENCY,
            ),
            _of_answers(
                "answer_rank",
                "geometric mean of 1 + how many tokens are likelier than the true one",
                "",
                "the answers are further from the truth",
                BY_FREQUENCY,
            ),
            _of_answers(
                "accuracy",
                "share of the answers whose likeliest token is the true one",
                "share of answers",
                "more is right",
                f"{BY_FREQUENCY}: always the most frequent token",
            ),
            *(
                _of_answers(
                    f"accuracy_{kind.name.lower()}",
                    f"accuracy where a piece of {kind.label} is asked for",
                    "share of answers",
                    "more is right",
                )
                for kind in CLASSES
            ),
            _of_answers(
                "accuracy_per_type",
                f"accuracy of each of the {TYPES} types asked for most, and the mean of these, "
                "each type alike (APT, arXiv 2509.03407)",
                "share of answers",
                "more is right, of rare types too",
                "always the most frequent token",
            ),
            _of_answers(
                "entropy_gain",
                "answer_entropy of the layer before − that of the layer",
                "nats",
                "the layer makes answers surer",
            ),
            _of_answers(
                "loss_gain",
                "answer_loss of the layer before − that of the layer",
                "nats",
                "the layer brings answers nearer to the truth",
            ),
        ),
    },
    other_tables=("token_types", "confusions"),
)


TYPE_COLUMNS = {
    "type": pa.string(),
    "rank": pa.int32(),
    "asked": pa.int64(),
    "layer": pa.int32(),
    **dict.fromkeys(("accuracy", "low", "high", "chance"), pa.float64()),
}
CONFUSION_COLUMNS = {
    "type": pa.string(),
    "asked": pa.int64(),
    "rank": pa.int32(),
    "answer": pa.string(),
    "count": pa.int64(),
    "lacking": pa.int64(),
    **dict.fromkeys(("share", "chance", "lift"), pa.float64()),
}


def entropy(
    scope: ObservedModel,
    source: str | Path | Iterable[Any],
    out: str | Path,
    reads: Reads | None = None,
    *,
    loss: LossKind | None = None,
    progress: Progress | None = None,
) -> Study:
    """Add to a study how sure and how right each layer of its model is."""
    try:
        asking = Loss(scope, loss, seed=(reads or Reads()).seed)
    except CannotObserve as error:
        said = str(error).split(", so ")[0]
        raise CannotObserve(
            f"{said}, so its layers answer nothing and have no entropy. Its heads can be compared "
            "and cleaned all the same (agreement, denoise)."
        ) from error
    if asking.metric is not None:
        raise CannotObserve(
            "Entropy by layer is of a language head's answers: the loss has to be masked or "
            f"causal, not {asking.kind}."
        )
    adding = Adding(VERB, scope, source, out, reads, progress)
    lens = Lens(scope)
    vocabulary = len(cast(Tensor, scope.model.get_input_embeddings().weight))
    truths = np.zeros(vocabulary, np.int64)
    for units in adding.batches():  # the model is not run: which types are asked for most
        truths += np.bincount(asking.ask(units).truth.numpy(), minlength=vocabulary)
    sums = AnswerSums(truths, TYPES, adding.sums(), causal=asking.kind == "causal")
    for units in adding.batches():
        asked = asking.ask(units, adding.length(units))
        sums.add(asked, answers(asking, lens, asked))
    tables = {
        "entropy": entropy_table(sums),
        "token_types": type_table(sums, scope.tokenizer),
        "confusions": confusion_table(sums, scope.tokenizer),
    }
    return adding.finish(tables, loss=asking.kind)


def entropy_table(sums: AnswerSums) -> pa.Table:
    """Every quantity of the embeddings, which are no layer, and of each layer."""
    found, chance = sums.quantities(), sums.chance()
    quantities = {
        name: Quantity(value, np.full_like(value, chance[name]) if name in chance else None)
        for name, value in found.items()
    }
    for gain, of in (("entropy_gain", "answer_entropy"), ("loss_gain", "answer_loss")):
        value = np.full_like(found[of], np.nan)
        value[:, 1:] = found[of][:, :-1] - found[of][:, 1:]
        quantities[gain] = Quantity(value)
    table = quantity_table(quantities)
    depth = [layer - 1 for layer in table["layer"].to_pylist()]
    levels = pa.array(["layer" if layer else EMBEDDINGS for layer in depth], pa.string())
    layers = pa.array([layer or None for layer in depth], pa.int32())
    return table.set_column(0, "level", levels).set_column(1, "layer", layers)


def type_table(sums: AnswerSums, tokenizer: Any) -> pa.Table:
    """How often each of the types asked for most is answered right, layer by layer."""
    accuracy = sums.by_type()  # (replicates + 1, layers + 1, types)
    low, high = interval(accuracy)
    given = sums.given / sums.truths.sum()  # (layers + 1, vocabulary): of all answers
    rows = [
        {
            "type": _name(tokenizer, one),
            "rank": at + 1,
            "asked": int(sums.truths[one]),
            "layer": layer or None,
            "accuracy": accuracy[0, layer, at],
            "low": low[layer, at],
            "high": high[layer, at],
            "chance": given[layer, one],
        }
        for at, one in enumerate(sums.types)
        for layer in range(len(given))
    ]
    return table_of(rows, TYPE_COLUMNS)


def confusion_table(sums: AnswerSums, tokenizer: Any) -> pa.Table:
    """What the last layer answers most where it is wrong, for the types asked for most."""
    given = sums.given[-1] / sums.truths.sum()
    rows = []
    for one in sums.types:
        asked = int(sums.truths[one])
        for rank, (answer, count) in enumerate(sums.confused.of(int(one), MIXED_UP), 1):
            share, chance = count / asked, float(given[answer])
            rows.append(
                {
                    "type": _name(tokenizer, one),
                    "asked": asked,
                    "rank": rank,
                    "answer": _name(tokenizer, answer),
                    "count": count,
                    "lacking": sums.confused.short,
                    "share": share,
                    "chance": chance,
                    "lift": float(ratio(share, chance)),
                }
            )
    return table_of(rows, CONFUSION_COLUMNS)


def _name(tokenizer: Any, token: int) -> str:
    return str(tokenizer.convert_ids_to_tokens(int(token)))
