"""Agreement of heads, held against sums written out pair by pair."""

import itertools
import math

import numpy as np
import pytest
import torch

from effects.texts import units_for
from headscope.effects.alike import (
    ROWS,
    AgreementSums,
    attention_distances,
    compared_rows,
    hsic,
    replicates_for,
    shared_pairs,
)
from headscope.effects.head_map import clusters, plane
from headscope.effects.together import seen_together
from headscope.study.bootstrap import document_weights
from headscope.study.told import View


def unbiased_hsic(one, other):
    """Song et al. 2012, equation 5, with matrices whose diagonal is 0, in loops."""
    n = len(one)
    K, L = one @ one.T, other @ other.T
    trace = rows = 0.0
    for i, j in itertools.permutations(range(n), 2):
        trace += K[i, j] * L[j, i]
    sum_k = sum(K[i, j] for i, j in itertools.permutations(range(n), 2))
    sum_l = sum(L[i, j] for i, j in itertools.permutations(range(n), 2))
    for i in range(n):
        of_k = sum(K[i, j] for j in range(n) if j != i)
        of_l = sum(L[i, j] for j in range(n) if j != i)
        rows += of_k * of_l
    whole = trace + sum_k * sum_l / ((n - 1) * (n - 2)) - 2 * rows / (n - 2)
    return whole / (n * (n - 3))


def test_hsic_is_the_unbiased_estimate_written_in_loops():
    torch.manual_seed(0)
    layers = [torch.randn(2, 9, 4) + 3, torch.randn(3, 9, 6) * 5]
    heads = [z.double().numpy() for layer in layers for z in layer]
    expected = [[unbiased_hsic(one, other) for other in heads] for one in heads]
    assert hsic(layers) == pytest.approx(np.array(expected), rel=1e-4, abs=1e-3)
    other = hsic(layers[:1], layers[1:])
    assert other == pytest.approx(np.array(expected)[:2, 2:], rel=1e-4, abs=1e-3)


def test_hsic_of_a_long_text_comes_in_tiles(monkeypatch):
    from headscope.effects import alike

    torch.manual_seed(0)
    layers = [torch.randn(3, 50, 4)]
    whole = hsic(layers)
    monkeypatch.setattr(alike, "AT_ONCE", 700)
    assert hsic(layers) == pytest.approx(whole, rel=1e-5)


def test_permuted_tokens_agree_by_nothing_on_average():
    """The estimate is debiased: its mean over all orders of five tokens is 0."""
    torch.manual_seed(0)
    one, other = torch.randn(1, 5, 3), torch.randn(1, 5, 3)
    orders = list(itertools.permutations(range(5)))
    found = [hsic([one], [other[:, list(order)]])[0, 0] for order in orders]
    assert np.std(found) > 0.1
    assert np.mean(found) == pytest.approx(0, abs=1e-5)


def test_a_rotated_and_stretched_head_agrees_fully_and_a_random_one_not_at_all():
    torch.manual_seed(0)
    sums = AgreementSums(3, replicates=20)
    turn = torch.linalg.qr(torch.randn(8, 8)).Q
    (unit,) = fake_units(1)
    for _ in range(60):
        z = torch.randn(40, 8)
        layer = torch.stack([z, 7 * z @ turn + 2, torch.randn(40, 8)])
        sums.add(unit, {"hsic": hsic([layer])})
    first, second = sums.pairs
    cka = dict(zip(zip(first, second, strict=True), sums.similarity()[0], strict=True))
    assert cka[0, 0] == pytest.approx(1)
    assert cka[0, 1] == pytest.approx(1, abs=1e-4)
    assert abs(cka[0, 2]) < 0.02


def fake_units(number):
    import headscope as hs

    return units_for(hs.load(), number)


def test_documents_add_up_and_weigh_as_in_a_study():
    units = fake_units(3)
    torch.manual_seed(1)
    texts = [torch.randn(4, 12, 5) for _ in units]
    sums = AgreementSums(4, seed=5, replicates=30)
    for unit, z in zip(units, texts, strict=True):
        sums.add(unit, {"hsic": hsic([z])})
    weight = np.stack([document_weights(unit.identity, 5, 30) for unit in units])
    summed = np.einsum("ur,uab->rab", weight, np.stack([hsic([z]) for z in texts]))
    for place, (a, b) in enumerate(zip(*sums.pairs, strict=True)):
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = summed[:, a, b] / np.sqrt(summed[:, a, a] * summed[:, b, b])
        assert sums.similarity()[:, place] == pytest.approx(expected, nan_ok=True)


def test_shared_pairs_are_those_in_both_lists(monkeypatch):
    from headscope.effects import alike

    random = np.random.default_rng(0)
    everything = list(itertools.combinations(range(12), 2))
    sets = [
        {everything[n] for n in random.choice(len(everything), 9, replace=False)} for _ in range(5)
    ]
    first = np.array([[i for i, _ in sorted(one)] for one in sets])
    second = np.array([[j for _, j in sorted(one)] for one in sets])
    expected = np.array([[len(one & other) for other in sets] for one in sets])
    assert (shared_pairs(first, second, 12) == expected).all()
    monkeypatch.setattr(alike, "AT_ONCE", 40)
    assert (shared_pairs(first, second, 12) == expected).all()


def test_overlap_is_the_share_of_shared_pairs():
    (unit,) = fake_units(1)
    sums = AgreementSums(2, replicates=20)
    shared = np.array([[10.0, 4], [4, 10]])
    sums.add(unit, {"shared": shared, "own": np.array(10.0), "shared_chance": np.array(1.0)})
    found, chance = sums.overlap()
    assert found[0] == pytest.approx([1, 4 / 16, 1])
    assert chance[0] == pytest.approx([1 / 19])


def test_the_distance_of_attention_is_jensen_and_shannons():
    random = np.random.default_rng(0)
    A, B = (random.dirichlet(np.ones(7) / 3, (3, 5)) for _ in range(2))
    found = attention_distances(torch.from_numpy(A).float(), torch.from_numpy(B).float())
    for a, b in itertools.combinations(range(3), 2):
        distances = []
        for p, q in zip(A[a], B[b], strict=True):
            m = (p + q) / 2
            bits = sum(
                0.5 * x * math.log2(x / y)
                for one in (p, q)
                for x, y in zip(one, m, strict=True)
                if x > 0
            )
            distances.append(math.sqrt(bits))
        assert found[a, b] == pytest.approx(np.mean(distances), rel=1e-4)
    apart = torch.eye(4)[None].expand(2, 4, 4).clone()
    apart[1] = apart[1].roll(1, 0)
    assert attention_distances(apart, apart)[0, 1] == pytest.approx(1)
    assert attention_distances(apart[:1].expand(2, 4, 4), apart[:1].expand(2, 4, 4))[0, 1] == 0


@pytest.mark.parametrize("tokens", [3, 16, 40, 512])
def test_compared_rows_are_few_and_spread_over_the_text(tokens):
    seen = np.zeros(tokens)
    for start in np.linspace(0, 1, 200, endpoint=False):
        rows = range(tokens)[compared_rows(tokens, start)]
        assert min(tokens, ROWS) <= len(rows) <= 2 * ROWS
        seen[list(rows)] += 1
    assert seen.min() > 0


def test_heads_that_agree_are_joined_and_others_stay_apart():
    blocks = np.full((6, 6), 0.1)
    blocks[1:4, 1:4] = 0.8
    blocks[4:, 4:] = 0.9
    np.fill_diagonal(blocks, 1)
    assert clusters(blocks).tolist() == [3, 1, 1, 1, 2, 2]
    assert clusters(blocks, least=0.05).tolist() == [1] * 6
    # A chain: 0–1 and 1–2 agree, 0–2 do not; joined at 0.8, (0.8 + 0) / 2 is not enough.
    chain = np.array([[1, 0.8, 0.0], [0.8, 1, 0.7], [0.0, 0.7, 1]])
    assert clusters(chain).tolist() == [1, 1, 2]


def test_the_plane_keeps_distances_where_it_can():
    corners = np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 1, 0], [-1, 0, 0]])
    places, share = plane(corners @ corners.T)
    assert share == pytest.approx(1)
    for a, b in itertools.combinations(range(4), 2):
        apart = np.linalg.norm(corners[a] - corners[b])
        assert np.linalg.norm(places[a] - places[b]) == pytest.approx(apart)
    again, _ = plane(corners[::-1] @ corners[::-1].T)
    assert again[::-1] == pytest.approx(places)


def test_a_model_of_very_many_heads_has_fewer_replicates():
    assert replicates_for(144) == 200
    assert 20 <= replicates_for(2000) < replicates_for(1000) < 200


@pytest.mark.parametrize("special", ["kept", "left_out"])
def test_what_a_text_says_of_two_heads_is_what_its_reading_says(specimen, special):
    """By what a person would do with a reading: its vectors, high pairs and attention."""
    (unit,) = units_for(specimen, 1)
    view = View("raw", special, "quantile(0.02)")
    found = seen_together(specimen, unit, view, seed=0)
    reading = specimen.read(unit.tokens.text)
    assert len(reading) == len(unit)
    rows = compared_rows(len(unit), unit.random(0, "rows").random())
    kept = ~unit.tokens.special | (special == "kept")
    for (layer, head), (other_layer, other_head) in [((1, 2), (5, 7)), ((12, 1), (12, 12))]:
        a, b = (layer - 1) * 12 + head - 1, (other_layer - 1) * 12 + other_head - 1
        one = reading.head_vectors(layer, head)[kept].astype(float)
        other = reading.head_vectors(other_layer, other_head)[kept].astype(float)
        one, other = one - one.mean(0), other - other.mean(0)
        scale = np.sqrt((one**2).sum(1).mean() * (other**2).sum(1).mean())
        expected = kept.sum() * unbiased_hsic(one, other)
        assert found["hsic"][a, b] == pytest.approx(expected, abs=1e-5 * kept.sum() * scale**2)
        pairs = [
            {(p.first, p.second) for p in reading.high_pairs(*at, view.rule, special=special)}
            for at in ((layer, head), (other_layer, other_head))
        ]
        assert found["shared"][a, b] == len(pairs[0] & pairs[1])
        assert found["own"] == len(pairs[0])
        A, B = (
            torch.from_numpy(reading.attention(*at)[rows]).float()
            for at in ((layer, head), (other_layer, other_head))
        )
        expected = attention_distances(torch.stack([A, B]), torch.stack([A, B]))[0, 1]
        assert found["distance"][a, b] == pytest.approx(expected, abs=1e-4)
    assert found["shared_chance"] == found["own"] ** 2 / (kept.sum() * (kept.sum() - 1) // 2)


def test_two_tokens_are_too_few_to_compare_heads(specimen):
    from headscope.corpus import Document
    from headscope.units import read_units

    (unit,) = read_units(0, Document("Yes.", "a text"), specimen.tokenizer, 512, "en")
    assert seen_together(specimen, unit, View("raw", "left_out", "quantile(0.01)"), 0) is None
