"""Communities as states of least energy, held against every way to cut up to nine tokens."""

import sys

import numpy as np
import pytest

from effects.enumerated import energies, partitions, thermal
from headscope.effects.potts import couplings as potts
from headscope.effects.potts.thermal import peak, unit, warm
from headscope.errors import NotPossible


def matrix(seed: int, size: int = 9, columns: int = 4) -> np.ndarray:
    """A similarity matrix with negative entries, of some vectors with something in common."""
    z = np.random.default_rng(seed).normal(size=(size, columns)) + 0.3
    return z @ z.T


def test_there_are_as_many_ways_as_bell_counted() -> None:
    assert [len(partitions(size)) for size in range(1, 10)] == [
        1, 2, 5, 15, 52, 203, 877, 4140, 21147,
    ]  # fmt: skip


def test_the_null_keeps_the_sums_of_rows_of_either_sign() -> None:
    C = matrix(0)
    np.fill_diagonal(C, 0)
    null = potts.configuration_null(C)
    assert (C < 0).any()
    np.testing.assert_allclose(null.sum(axis=1), C.sum(axis=1))
    positive = np.maximum(C, 0)
    degrees = positive.sum(axis=1)
    for i in range(9):  # of one sign alone it is Newman's
        for j in range(9):
            expected = degrees[i] * degrees[j] / degrees.sum()
            assert potts.configuration_null(positive)[i, j] == pytest.approx(expected)


def test_energy_is_the_sum_over_pairs_in_one_state() -> None:
    J = potts.couplings(matrix(1), 0.7)
    ways = partitions(9)[::501]
    np.testing.assert_allclose([potts.energy(J, way) for way in ways], energies(J, ways))
    assert potts.energy(J, np.arange(9)) == 0


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_leiden_finds_the_least_energy_there_is(gamma: float) -> None:
    ways = partitions(9)
    for seed in range(12):
        J = potts.couplings(matrix(seed), gamma)
        states = potts.communities(J, runs=16)
        assert potts.energy(J, states) == pytest.approx(energies(J, ways).min(), abs=1e-9)


def test_two_groups_that_repel_each_other_are_found_in_the_order_of_their_size() -> None:
    side = np.array([1, 0, 0, 1, 0, 0, 1, 0])
    C = np.where(side[:, None] == side, 1.0, -1.0)
    assert potts.communities(potts.couplings(C)).tolist() == side.tolist()


def test_what_only_repels_stays_alone_and_what_is_all_alike_stays_together() -> None:
    assert potts.communities(-np.ones((5, 5)) + np.eye(5)).tolist() == [0, 1, 2, 3, 4]
    assert potts.communities(potts.couplings(np.ones((6, 6)))).tolist() == [0] * 6
    assert potts.communities(np.zeros((1, 1))).tolist() == [0]
    assert potts.communities(np.zeros((0, 0))).tolist() == []


def test_the_same_seed_finds_the_same_communities_and_leaves_randomness_alone() -> None:
    import random

    J = potts.couplings(matrix(5, size=80, columns=10))
    random.seed(7)
    expected = random.random()
    random.seed(7)
    first = potts.communities(J, seed=3)
    assert random.random() == expected
    assert potts.communities(J, seed=3).tolist() == first.tolist()


def test_a_finer_resolution_makes_more_communities() -> None:
    C = matrix(6, size=60, columns=8) + 2
    numbers = [potts.communities(potts.couplings(C, gamma)).max() + 1 for gamma in potts.GAMMAS]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


def test_a_resolution_that_is_no_number_is_refused() -> None:
    for gamma in (-1.0, np.nan, np.inf):
        with pytest.raises(NotPossible, match="gamma is a number from 0 on"):
            potts.couplings(matrix(0), gamma)


def test_without_igraph_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(NotPossible, match=r"pip install 'headscope\[potts\]'"):
        potts.communities(matrix(0))


def test_averages_over_the_heat_bath_are_those_of_every_way_weighed() -> None:
    J = np.stack([potts.couplings(matrix(seed, size=7)) for seed in (0, 1)])
    temperatures = np.geomspace(0.05, 0.5, 5)
    found = warm(J, np.random.default_rng(0), temperatures, states=4, sweeps=6000, warm_up=100)
    for head, own in enumerate(J / unit(J)[:, None, None]):
        for place, temperature in enumerate(temperatures):
            energy, order, susceptibility = thermal(own, temperature, 4)
            assert found.energy[head, place] * 7 == pytest.approx(energy, abs=0.03)
            assert found.order[head, place] == pytest.approx(order, abs=0.02)
            assert found.susceptibility[head, place] == pytest.approx(susceptibility, rel=0.12)


def test_stronger_couplings_dissolve_at_the_same_multiple_of_their_strength() -> None:
    J = potts.couplings(matrix(2, size=20))[None]
    one = warm(J, np.random.default_rng(1), sweeps=50)
    other = warm(7 * J, np.random.default_rng(1), sweeps=50)
    np.testing.assert_allclose(one.susceptibility, other.susceptibility)
    assert one.order[0, 0] > 2 * one.order[0, -1]
    assert np.isnan(warm(0 * J, np.random.default_rng(1), sweeps=2).transition).all()


def test_a_ferromagnet_loses_its_order_where_mean_field_says() -> None:
    """All tokens coupled alike: T_c = (q − 2) / (2 (q − 1) ln(q − 1)) of the unit, as S grows."""
    size, states = 60, 10
    J = (np.ones((size, size)) - np.eye(size))[None]
    temperatures = np.geomspace(0.08, 0.5, 14)
    found = warm(J, np.random.default_rng(0), temperatures, states, sweeps=300, warm_up=100)
    expected = (states - 2) / (2 * (states - 1) * np.log(states - 1))
    assert found.transition[0] == pytest.approx(expected, rel=0.15)


def test_a_peak_is_found_between_the_temperatures_looked_at() -> None:
    temperatures = np.geomspace(0.1, 1, 9)
    curve = -((np.log(temperatures) - np.log(0.33)) ** 2)
    assert peak(temperatures, curve[None])[0] == pytest.approx(0.33)
    assert peak(temperatures, temperatures[None])[0] == pytest.approx(1)
