"""Entropy by layer: what each layer would answer if it were the last, and how far that is right.

The model is asked as for its loss: masked tokens, or every next one. Each layer's hidden state goes
through the model's own language head (`lens.py`), and the answers are added up by document: how
sure they are, how far from the truth, and of which types of token they are right (the accuracy per
token of Tzach, Gross, Rosner, Kanter 2025, arXiv 2509.03407).
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.effects.confusions import Confusions
from headscope.effects.lens import Lens
from headscope.effects.loss import Asked, Loss
from headscope.effects.sums import ReplicateSums
from headscope.errors import CannotObserve
from headscope.measures.base import ratio
from headscope.study.bootstrap import Values
from headscope.words import WordClass

AT_ONCE = 2**24  # probabilities that are made at once
CLASSES = (WordClass.CONTENT, WordClass.FUNCTION, WordClass.PUNCTUATION)
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What every layer, the embeddings first, answers to each question: (layers + 1, answers)."""

    entropy: Values  # −Σ p ln p, in nats
    loss: Values  # −ln p of the true token
    log_rank: Values  # ln of 1 + the tokens that are likelier than the true one
    right: NDArray[np.bool_]  # the likeliest is the true one
    given: Counts  # the likeliest token


def answers(loss: Loss, lens: Lens, asked: Asked) -> Answers:
    """What each layer answers to the questions about a batch."""
    if loss.metric is not None:
        raise CannotObserve("Entropy by layer needs a language head, and a metric has none.")
    layers = [_answers(loss, state, asked.truth) for state in lens.answering(asked)]
    entropy, off, log_rank, right, given = (
        torch.stack(one).numpy() for one in zip(*layers, strict=True)
    )
    return Answers(entropy, off, log_rank, right, given)


@torch.no_grad()
def _answers(loss: Loss, states: Tensor, truth: Tensor) -> list[Tensor]:
    """The five numbers of `Answers`, each (answers,), from states (answers, size)."""
    wanted = truth.to(states.device)
    found = []
    first = loss.head(states[:1])  # how many tokens there are to choose from
    rows = max(1, AT_ONCE // first.shape[-1])
    for some, right in zip(states.split(rows), wanted.split(rows), strict=True):
        log_p = loss.head(some).float().log_softmax(-1)  # (rows, vocabulary)
        true = log_p.gather(1, right[:, None])  # (rows, 1)
        given = log_p.argmax(-1)
        rank = 1 + (log_p > true).sum(-1)
        entropy = torch.special.entr(log_p.exp()).sum(-1)
        found.append((entropy, -true[:, 0], rank.float().log(), given == right, given))
    # Not every device has float64.
    *numbers, is_right, token = (torch.cat(one).cpu() for one in zip(*found, strict=True))
    return [*(number.double() for number in numbers), is_right, token]


NUMBERS = ("entropy", "loss", "log_rank", "accuracy")


class AnswerSums:
    """What layers answer to the questions about a corpus, added up over documents.

    `truths` says how often each token is asked for, known before anything is answered; the
    `number` of them that are asked for most are told one by one.
    """

    def __init__(self, truths: Counts, number: int, held: ReplicateSums, *, causal: bool = False):
        self.truths, self.held, self.causal = truths, held, causal
        order = np.argsort(-truths, kind="stable")[:number]
        self.types = order[truths[order] > 0]  # the most frequent first, of equals the first
        self.given = np.zeros((0, len(truths)), np.int64)  # answers of each layer, by token
        self.confused = Confusions()  # of the last layer

    def add(self, asked: Asked, found: Answers) -> None:
        """Take in the answers about a batch."""
        whose = np.equal.outer(np.arange(len(asked.units)), asked.texts.numpy()).astype(float)
        truth, right = asked.truth.numpy(), found.right.astype(np.float64)
        numbers = np.stack([found.entropy, found.loss, found.log_rank, right])
        classes = self._classes(asked).astype(np.float64)  # (classes, answers)
        of_type = np.equal.outer(self.types, truth).astype(np.float64)  # (types, answers)

        def by_text(of_layers: Values, kinds: Values) -> Values:
            """(texts, layers + 1, kinds), from (layers + 1, answers) and (kinds, answers)."""
            summed: Values = np.einsum("ta,la,ka->tlk", whose, of_layers, kinds, optimize=True)
            return summed

        self.held.add(
            asked.units,
            answers=whose.sum(1),
            numbers=np.einsum("ta,nla->tln", whose, numbers, optimize=True),
            of_class=whose @ classes.T,
            class_right=by_text(right, classes),
            of_type=whose @ of_type.T,
            type_right=by_text(right, of_type),
        )
        given = np.stack([np.bincount(one, minlength=len(self.truths)) for one in found.given])
        self.given = given + self.given if len(self.given) else given
        wrong = ~found.right[-1]
        self.confused.add(truth[wrong], found.given[-1][wrong])

    def _classes(self, asked: Asked) -> NDArray[np.bool_]:
        """Whether the token asked for is of each class of word: (classes, answers)."""
        own = np.zeros(len(asked.truth), np.int64)
        for row, unit in enumerate(asked.units):
            at = (asked.texts == row).numpy()
            own[at] = unit.tokens.word_classes[asked.places.numpy()[at] + self.causal]
        found: NDArray[np.bool_] = np.equal.outer(np.array([int(one) for one in CLASSES]), own)
        return found

    def quantities(self) -> dict[str, Values]:
        """Every number of each layer: (replicates + 1, layers + 1)."""
        means = ratio(self.held["numbers"], self.held["answers"][:, None, None])
        entropy, loss, log_rank, accuracy = (means[..., at] for at in range(len(NUMBERS)))
        by_class = ratio(self.held["class_right"], self.held["of_class"][:, None])
        return {
            "answer_entropy": entropy,
            "answer_loss": loss,
            "answer_rank": np.exp(log_rank),
            "accuracy": accuracy,
            **{
                f"accuracy_{kind.name.lower()}": by_class[..., at]
                for at, kind in enumerate(CLASSES)
            },
            "accuracy_per_type": self._mean_of_types(),
        }

    def by_type(self) -> Values:
        """The accuracy of each type that is told: (replicates + 1, layers + 1, types)."""
        return ratio(self.held["type_right"], self.held["of_type"][:, None])

    def _mean_of_types(self) -> Values:
        by_type = self.by_type()
        known = np.isfinite(by_type)
        return ratio(np.where(known, by_type, 0).sum(-1), known.sum(-1))

    def chance(self) -> dict[str, float]:
        """The numbers of one who knows how often each token is asked for, and nothing else."""
        counts = np.sort(self.truths[self.truths > 0])[::-1]
        share = counts / counts.sum()
        surprise = float(-(share * np.log(share)).sum())
        return {
            "answer_entropy": surprise,
            "answer_loss": surprise,
            "answer_rank": float(np.exp((share * np.log(1 + np.arange(len(share)))).sum())),
            "accuracy": float(share[0]),
            "accuracy_per_type": 1 / len(self.types),
        }
