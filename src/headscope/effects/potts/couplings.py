"""A head's similarities as couplings of a Potts model, and the communities of tokens they make.

Every token i has a state s_i, and the energy is E = −Σ_{i<j} J_ij δ(s_i, s_j): two tokens in one
state are paid for by how much more alike they are than a null expects (Reichardt and Bornholdt,
2006). The states of least energy are the communities; igraph's Leiden looks for them.
"""

import random
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from headscope.errors import NotPossible

Values = NDArray[np.float64]
States = NDArray[np.int64]

RUNS = 4  # of Leiden, from tokens alone and from random states: the lowest energy counts
ITERATIONS = 10  # of a run; asked to go on until nothing changes, it need not come to an end
GAMMAS = (0.5, 0.7, 1.0, 1.4, 2.0)  # resolutions of a sweep


def configuration_null(C: Values) -> Values:
    """What a pair's coupling would be if only the sums of the rows were kept: (S, S).

    Positive and negative couplings apart, each k_i k_j / 2m, and the difference of the two (Gómez,
    Jensen and Arenas, 2009): of one kind alone this is the null of Newman's modularity.
    """
    null = np.zeros_like(C)
    for sign in (1, -1):
        part = np.maximum(sign * _hollow(C), 0)
        sums = part.sum(axis=1)  # (S,)
        if sums.sum() > 0:
            null += sign * np.outer(sums, sums) / sums.sum()
    return null


def couplings(C: Values, gamma: float = 1.0) -> Values:
    """J = C − γ · null, with nothing on the diagonal: a token is no pair with itself."""
    if not (np.isfinite(gamma) and gamma >= 0):
        raise NotPossible(f"gamma is a number from 0 on, not {gamma!r}.")
    return _hollow(C - gamma * configuration_null(C))


def energy(J: Values, states: States) -> float:
    """E = −Σ_{i<j} J_ij δ(s_i, s_j)."""
    together = states[:, None] == states[None, :]
    return -float(np.triu(J, 1)[together].sum())


def strength(C: Values) -> float:
    """Σ_{i<j} |C_ij|, what energies are told in units of, so that heads can be compared."""
    return float(np.abs(np.triu(C, 1)).sum())


def communities(J: Values, seed: int = 0, runs: int = RUNS) -> States:
    """The community of each token, 0 being the largest: the lowest energy of a few runs."""
    igraph = _igraph()
    size = len(J)
    first, second = np.triu_indices(size, 1)
    weights = J[first, second].tolist()
    graph = igraph.Graph.Full(size)
    found = []
    try:
        for run in range(runs if size > 1 else 0):
            drawn = random.Random(f"{seed} {run}")
            igraph.set_random_number_generator(drawn)
            # The null is in the weights, which may be negative, so there is nothing left for the
            # resolution to take away, and every token weighs 1: what is maximised is −E.
            clusters = graph.community_leiden(
                "CPM",
                weights=weights,
                resolution=0,
                n_iterations=ITERATIONS,
                node_weights=[1] * size,
                initial_membership=[drawn.randrange(2 + run % 3) for _ in range(size)]
                if run
                else None,
            )
            found.append(np.array(clusters.membership, np.int64))
    finally:
        igraph.set_random_number_generator(random)  # as igraph has it
    alone = np.zeros(size, np.int64) if size < 2 else np.arange(size)
    return by_size(min([alone, *found], key=lambda states: energy(J, states)))


def by_size(states: States) -> States:
    """The same communities numbered by their size; of equal ones the first comes first."""
    _, first, inverse, counts = np.unique(
        states, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -counts))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    numbered: States = ranks[inverse]
    return numbered


def _hollow(C: Values) -> Values:
    return C - np.diag(np.diag(C))


def _igraph() -> ModuleType:
    try:
        import igraph
    except ImportError:
        raise NotPossible(
            "Communities of tokens are looked for by igraph, which is one more package: "
            "pip install 'headscope[potts]'"
        ) from None
    found: ModuleType = igraph
    return found
