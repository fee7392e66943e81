"""A head's couplings warmed: at which temperature its communities dissolve.

States s_i of q kinds with the probability exp(−E / T), drawn by a heat bath: one token after
another takes a state by what the others would pay. Temperatures run side by side and exchange
their states now and then, so that cold ones are not caught where they began. As in
superparamagnetic clustering (Blatt, Wiseman and Domany, 1996), the order is m = (q n − 1)/(q − 1),
n the share of tokens in the most frequent state, and the susceptibility S var(m) / T has its peak
where order is lost.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

STATES = 10  # q
TEMPERATURES = tuple(np.geomspace(0.02, 1.0, 12).tolist())
SWEEPS, WARM_UP = 120, 30  # a sweep asks every token once; those of the warm-up do not count


@dataclass(frozen=True, slots=True, eq=False)
class Warmed:
    """What several heads do at several temperatures, each (heads, temperatures)."""

    temperatures: Values  # (temperatures,), in units of `unit`
    energy: Values  # mean E / (S · unit)
    order: Values  # mean m
    susceptibility: Values  # S var(m) / T

    @property
    def transition(self) -> Values:
        """The temperature (heads,) at which the susceptibility is largest."""
        return peak(self.temperatures, self.susceptibility)


def unit(J: Values) -> Values:
    """The temperature that is called 1, of couplings (…, S, S): the mean over i of Σ_j |J_ij|."""
    found: Values = np.abs(J).sum(axis=-1).mean(axis=-1)
    return found


def peak(temperatures: Values, values: Values) -> Values:
    """Where values (…, temperatures) are largest: the top of the parabola through the highest.

    In the logarithm of the temperature; a peak at either end stays there. NaN without values.
    """
    logs = np.log(temperatures)
    known = np.asarray(np.isfinite(values).all(axis=-1))
    values = np.where(known[..., None], values, 0)
    best = np.clip(values.argmax(axis=-1), 1, len(temperatures) - 2)
    left, here, right = (
        np.take_along_axis(values, best[..., None] + step, -1)[..., 0] for step in (-1, 0, 1)
    )
    bend = left - 2 * here + right
    step = np.divide(0.5 * (left - right), bend, out=np.zeros_like(bend), where=bend < 0)
    top = logs[best] + np.clip(step, -1, 1) * (logs[1] - logs[0])
    found = np.exp(np.where(bend < 0, top, logs[values.argmax(axis=-1)]))
    return np.where(known, found, np.nan)


def warm(
    J: Values,
    random: np.random.Generator,
    temperatures: Values | None = None,
    states: int = STATES,
    sweeps: int = SWEEPS,
    warm_up: int = WARM_UP,
) -> Warmed:
    """Run the heat bath on couplings (heads, S, S) at evenly spaced logarithms of temperature."""
    given = np.array(TEMPERATURES) if temperatures is None else temperatures
    heads, size, _ = J.shape
    scale = unit(J)
    flat = scale <= 0  # couplings that are all 0
    run = _Run(J / np.where(flat, 1, scale)[:, None, None], given, states, random)
    sums = np.zeros((3, heads, len(given)))
    for sweep in range(warm_up + sweeps):
        run.sweep()
        run.exchange()
        if sweep >= warm_up:
            order = run.order()
            sums += np.stack([run.energies(), order, order**2])
    energy, order, square = sums / sweeps
    susceptibility = size * np.maximum(square - order**2, 0) / given
    lost = np.where(flat, np.nan, 1.0)[:, None]
    return Warmed(given, lost * energy / size, lost * order, lost * susceptibility)


class _Run:
    """Chains (heads, temperatures) and the field that every token feels from each state."""

    def __init__(
        self, J: Values, temperatures: Values, states: int, random: np.random.Generator
    ) -> None:
        heads, size, _ = J.shape
        self.J, self.T, self.random = J, temperatures, random
        self.shape = (heads, len(temperatures))
        self.states = random.integers(states, size=(*self.shape, size))
        kinds = np.arange(states)[:, None]
        same = (self.states[:, :, None] == kinds).astype(np.float64)  # (heads, T, q, S)
        self.fields = same @ J[:, None]  # (heads, T, q, S)

    def sweep(self) -> None:
        """Ask every token once."""
        for token in range(self.states.shape[-1]):
            inverse = self.fields[..., token] / self.T[:, None]  # (heads, T, q)
            weights = np.exp(inverse - inverse.max(axis=-1, keepdims=True)).cumsum(axis=-1)
            drawn = self.random.random(self.shape) * weights[..., -1]
            new = np.minimum((weights <= drawn[..., None]).sum(axis=-1), weights.shape[-1] - 1)
            old = self.states[..., token]
            head, chain = np.nonzero(new != old)
            pull = self.J[head, token]  # (changed, S)
            self.fields[head, chain, old[head, chain]] -= pull
            self.fields[head, chain, new[head, chain]] += pull
            self.states[head, chain, token] = new[head, chain]

    def exchange(self) -> None:
        """Let neighbouring temperatures exchange their states, as their energies allow."""
        energies, inverse = self.energies(), 1 / self.T
        for low in range(len(self.T) - 1):
            gain = (inverse[low] - inverse[low + 1]) * (energies[:, low] - energies[:, low + 1])
            swap = np.flatnonzero(self.random.random(len(gain)) < np.exp(np.minimum(gain, 0)))
            for kept in (self.states, self.fields, energies):
                kept[swap, low], kept[swap, low + 1] = kept[swap, low + 1], kept[swap, low].copy()

    def energies(self) -> Values:
        """E of each chain: (heads, temperatures)."""
        own = np.take_along_axis(self.fields, self.states[:, :, None], axis=2)[:, :, 0]
        summed: Values = -own.sum(axis=-1) / 2
        return summed

    def order(self) -> Values:
        """m of each chain: (heads, temperatures)."""
        kinds = self.fields.shape[2]
        counts = np.stack([(self.states == kind).sum(axis=-1) for kind in range(kinds)])
        share = counts.max(axis=0) / self.states.shape[-1]
        order: Values = (kinds * share - 1) / (kinds - 1)
        return order
