"""What one attention call shows of its heads, and where in the model it stands."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headscope.errors import CannotObserve


@dataclass(frozen=True, slots=True)
class Site:
    """Where in a model an attention call stands."""

    stack: str  # "encoder", "decoder", "cross", "vision", "audio"; more of one kind by their paths
    layer: int  # 0-based: the module's own number among all layers, with heads or without
    path: str  # of the module that made the call (ALBERT makes every call from one module)


@dataclass(frozen=True, slots=True, eq=False)
class HeadOutputs:
    """What one attention call computed, for every head.

    `q`, `k`, `v` and `mask` are None where the family is seen through its output projection.
    """

    site: Site
    z: Tensor  # (batch, heads, tokens, head size): the head vectors, before the output projection
    q: Tensor | None = None  # (batch, heads, tokens, head size)
    k: Tensor | None = None  # (batch, key heads, keys, head size); fewer heads where grouped
    v: Tensor | None = None  # (batch, key heads, keys, head size)
    mask: Tensor | None = None  # as the model made it; None where nothing is masked, or causal
    scaling: float | None = None
    attend: Callable[[Tensor, slice], Tensor] | None = None  # the model's own, given other v
    normaliser: Tensor | None = None  # (batch, heads, tokens) log Σ exp of the rows, if it was made

    def weigh(self, columns: Tensor) -> Tensor:
        """Σ_j A_ij columns_j by the model's own attention function, without making A.

        `columns` is (keys, c); the result is (batch, heads, tokens, c). An indicator column of a
        class of tokens gives the attention mass on that class; columns of the identity give A.
        """
        size = self._values().shape[-1]
        return torch.cat([self._weigh(block) for block in columns.split(size, dim=1)], dim=-1)

    def near(self) -> Tensor:
        """A_ij for the previous, the own and the next token j of each i: (batch, heads, tokens, 3).

        Blocks of rows, each weighing the columns of the identity around it: as much work as one
        attention call. Where there is no such token the mass is 0.
        """
        tokens, keys, size = self.z.shape[2], *self._values().shape[2:]
        step = size - 2
        found = []
        for start in range(0, tokens, step):
            rows = slice(start, min(start + step, tokens))
            count = rows.stop - start
            columns = torch.zeros(keys, count + 2)
            for c in range(count + 2):
                if 0 <= start - 1 + c < keys:
                    columns[start - 1 + c, c] = 1
            block = self._weigh(columns, rows)  # (batch, heads, rows, rows + 2)
            found.append(
                torch.stack([block.diagonal(offset, -2, -1) for offset in range(3)], dim=-1)
            )
        return torch.cat(found, dim=2)

    def weights(self, rows: slice) -> Tensor:
        """A_ij of some rows, which may have a step between them: (batch, heads, rows, keys).

        By the columns of the identity, as many at once as a head is wide.
        """
        keys, size = self._values().shape[2:]
        blocks = []
        for start in range(0, keys, size):
            columns = torch.zeros(keys, min(size, keys - start))
            columns[start : start + size] = torch.eye(columns.shape[1])
            blocks.append(self._weigh(columns, rows))
        return torch.cat(blocks, dim=-1)

    def _weigh(self, columns: Tensor, rows: slice = slice(None)) -> Tensor:
        """Weigh at most head-size columns, for some rows of attention or for all."""
        v = self._values()
        assert self.attend is not None
        values = torch.zeros(v.shape[-2:], dtype=v.dtype, device=v.device)
        values[:, : columns.shape[1]] = columns
        return self.attend(values.expand_as(v), rows)[..., : columns.shape[1]]

    def where_statistics_are(self) -> "HeadOutputs":
        """The same on the CPU, unless it is there or on CUDA: no statistic knows another device.

        Apple's, for one, has no float64. What the model's own function weighs goes there and back.
        """
        if self.z.device.type in ("cpu", "cuda"):
            return self
        device, attend = self.z.device, self.attend
        tensors = ("z", "q", "k", "v", "mask", "normaliser")
        here = {name: value.cpu() for name in tensors if (value := getattr(self, name)) is not None}

        def there_and_back(values: Tensor, rows: slice) -> Tensor:
            assert attend is not None
            return attend(values.to(device), rows).cpu()

        return replace(self, **here, attend=attend and there_and_back)

    def _values(self) -> Tensor:
        if self.attend is None or self.v is None:
            raise CannotObserve(
                f"The attention weights of {self.site.path} are out of sight: this family does not "
                "go through transformers' attention interface, so only head vectors can be seen."
            )
        return self.v
