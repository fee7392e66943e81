"""The attention statistics written down plainly: the whole matrix A in float64."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headscope.attention.statistics import ROW_SUMS, AttentionStatistics, Scores, from_sums
from headscope.pairs.batch import TokenBatch
from headscope.pairs.statistics import Values
from headscope.pairs.tokens import Ints


def attention(
    query: Tensor, key: Tensor, scores: Scores, mask: Tensor | None, sink: Tensor | None
) -> Values:
    """The attention matrix A (S, S) of one head: query (S, d), key (S, d), mask (S, S)."""
    s = scores.scaling * query.double() @ key.double().T  # (S, S)
    if scores.softcap is not None:
        s = scores.softcap * torch.tanh(s / scores.softcap)
    if mask is not None:
        s = s.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else s + mask
    position = torch.arange(len(s), device=s.device)
    ahead = position[None, :] - position[:, None]  # (S, S) j - i
    if scores.causal:
        s = s.masked_fill(ahead > 0, -torch.inf)
    if scores.window is not None:
        s = s.masked_fill(ahead.abs() >= scores.window, -torch.inf)
    if sink is not None:
        s = torch.cat([s, sink.double().expand(len(s), 1)], 1)  # (S, S + 1)
    A: Values = torch.softmax(s, -1)[:, : len(query)].cpu().numpy()  # (S, S)
    return A


def attention_statistics(
    query: Tensor,
    key: Tensor,
    batch: TokenBatch,
    classes: Sequence[Ints],
    number_of_classes: int,
    scores: Scores,
    mask: Tensor | None,
    sinks: Tensor | None,
    layer: str | None,
) -> AttentionStatistics:
    """Sum up the attention of every head of every text, from the dense matrices."""
    B, H, G, K = len(batch), query.shape[1], key.shape[1], number_of_classes
    S = int(max(batch.lengths, default=0))
    if mask is not None:
        mask = mask.expand(B, H, *mask.shape[-2:])  # (B, H, S, S)
    rows, mass = np.zeros((B, K), np.int64), np.zeros((B, H, K, K))
    sums, columns = np.zeros((B, H, len(ROW_SUMS), K)), np.zeros((B, H, S))
    for b, text in enumerate(batch.texts):
        n = len(text)
        member = np.eye(K)[classes[b]]  # (S, K) 1 where a token is of a class
        rows[b] = member.sum(0)
        sentence = text.sentences
        inside = (sentence[:, None] == sentence[None, :]) & (sentence[:, None] >= 0)  # (S, S)
        inside |= np.eye(n, dtype=bool)
        for h in range(H):
            own_mask = None if mask is None else mask[b, h, :n, :n]
            sink = None if sinks is None else sinks[h]
            A = attention(query[b, h, :n], key[b, h * G // H, :n], scores, own_mask, sink)
            mass[b, h] = member.T @ A @ member
            surprise = np.log(A, out=np.zeros_like(A), where=A > 0)  # (S, S)
            by_row = [
                -(A * surprise).sum(1),
                A.max(1),
                np.diag(A),
                np.append(0, np.diag(A, -1)) if n else np.zeros(0),
                np.append(np.diag(A, 1), 0) if n else np.zeros(0),
                (A * inside).sum(1),
            ]
            for number, values in enumerate(by_row):
                sums[b, h, number] = member.T @ values
            columns[b, h, :n] = A.sum(0)
    return from_sums(rows, mass, sums, columns)
