"""Noise taken away from head vectors: what is left is what it says."""

import numpy as np
import pytest
import torch

from effects.texts import PARAGRAPHS, units_for
from headscope.corpus import Document
from headscope.effects.change import run
from headscope.effects.cleaning import (
    FEWEST,
    PositionMeans,
    common_mode,
    directions,
    half,
    positions,
)
from headscope.effects.loss import Loss
from headscope.units import read_units


@pytest.fixture(scope="module")
def units(specimen):
    return units_for(specimen, 5, window=50)


@pytest.fixture
def z(units):
    torch.manual_seed(0)
    longest = max(len(unit) for unit in units) + 3
    return torch.randn(len(units), 12, longest, 16) + 2


def test_without_its_mean_a_text_adds_up_to_nothing(units, z):
    cleaned = common_mode().apply(z, 0, units)
    for row, unit in enumerate(units):
        own = cleaned[row, :, : len(unit)]
        assert own.mean(1).abs().max() < 1e-6
        assert torch.equal(cleaned[row, :, len(unit) :], z[row, :, len(unit) :])  # padding
        gone = z[row, :, : len(unit)] - own
        assert torch.allclose(gone, gone[:, :1].expand_as(gone), atol=1e-6)


def test_at_random_a_vector_as_long_is_taken_away(units, z):
    own, random = (common_mode(3, random=one).apply(z, 4, units) for one in (False, True))
    for row, unit in enumerate(units):
        there = slice(0, len(unit))
        mean, other = ((z - one)[row, :, there].mean(1) for one in (own, random))
        assert torch.allclose(mean.norm(dim=-1), other.norm(dim=-1), rtol=1e-4)
        cosine = torch.nn.functional.cosine_similarity(mean, other, dim=-1)
        assert cosine.abs().max() < 0.95
    alone = common_mode(3, random=True).apply(z[1:2], 4, units[1:2])
    assert torch.allclose(alone, random[1:2])  # whatever it is read with


@pytest.mark.parametrize("kept", [1, 3, 16])
def test_the_first_directions_are_those_of_the_singular_values(units, z, kept):
    cleaned = directions(kept).apply(z, 0, units)
    for row, unit in enumerate(units):
        Z = z[row, 5, : len(unit)].double().numpy()
        U, s, Vt = np.linalg.svd(Z, full_matrices=False)
        expected = (U[:, :kept] * s[:kept]) @ Vt[:kept]
        assert cleaned[row, 5, : len(unit)].numpy() == pytest.approx(expected, abs=1e-5)
    random = directions(kept, random=True).apply(z, 0, units)
    rank = np.linalg.matrix_rank(random[0, 5, : len(units[0])].numpy(), tol=1e-4)
    assert rank == kept
    less = (random**2).sum() <= (cleaned**2).sum() * (1 + 1e-5)
    assert less  # no other directions hold more


def test_the_mean_of_a_position_is_that_of_the_other_half_of_the_documents(specimen):
    sentences = [part for text in PARAGRAPHS for part in text.split(". ") if part][:40]
    units = [
        read_units(n, Document(text, "a text"), specimen.tokenizer, 24, "en")[0]
        for n, text in enumerate(sentences)
    ]
    means = PositionMeans(specimen, 24)
    asked = Loss(specimen).ask(units)
    means.add(units, asked.ids, asked.there)
    seen = {}
    specimen.observe_batch(
        asked.ids, asked.there, lambda outputs: seen.setdefault(outputs.site.layer, outputs.z)
    )
    known, beyond = 0, 0
    for unit in units:
        rows = [row for row, other in enumerate(units) if half(other) != half(unit)]
        reach = [sum(len(units[row]) > place for row in rows) for place in range(24)]
        rest = [
            seen[7][row, :, place]
            for row in rows
            for place in range(len(units[row]))
            if reach[place] < FEWEST
        ]
        found = means.of(unit, 7)
        for place in range(len(unit)):
            own = [seen[7][row, :, place] for row in rows if len(units[row]) > place]
            known, beyond = known + (reach[place] >= FEWEST), beyond + (0 < reach[place] < FEWEST)
            if reach[place]:
                expected = torch.stack(own if reach[place] >= FEWEST else rest).mean(0)
                assert torch.allclose(found[:, place], expected, atol=1e-5)
    assert known > 100
    assert beyond > 10
    row, unit = 2, units[2]
    cleaned = positions(means).apply(seen[7], 7, units)
    there = slice(0, len(unit))
    expected = seen[7][row, :, there] - means.of(unit, 7)
    assert torch.allclose(cleaned[row, :, there], expected, atol=1e-6)


def test_the_mean_of_the_corpus_is_left_where_that_is_wanted(specimen, units, z):
    asked = Loss(specimen).ask(units)
    means = PositionMeans(specimen, 50)
    means.add(units, asked.ids, asked.mask)
    seen = []
    specimen.observe_batch(asked.ids, asked.mask, lambda outputs: seen.append(outputs.z))
    texts = common_mode(left=means).apply(z, 7, units)
    places = positions(means, left=True).apply(z, 7, units)
    bare = positions(means).apply(z, 7, units)
    for row, unit in enumerate(units):
        there = slice(0, len(unit))
        others = [
            seen[7][place, :, : len(other)]
            for place, other in enumerate(units)
            if half(other) != half(unit)
        ]
        mean = torch.cat(others, 1).mean(1)  # (heads, d)
        assert torch.allclose(texts[row, :, there].mean(1), mean, atol=1e-5)
        left = places[row, :, there] - bare[row, :, there]
        assert torch.allclose(left, mean[:, None].expand_as(left), atol=1e-5)


def test_where_there_is_no_room_the_positions_beyond_share_a_mean(specimen, monkeypatch):
    from headscope.effects import cleaning

    texts = [f"{n}. {PARAGRAPHS[0]}" for n in range(12)]
    units = [
        read_units(n, Document(text, "a text"), specimen.tokenizer, 24 + n, "en")[0]
        for n, text in enumerate(texts)
    ]
    monkeypatch.setattr(cleaning, "FEWEST", 1)
    monkeypatch.setattr(cleaning, "ROOM", 2 * 12 * 12 * 16 * 20)
    asked = Loss(specimen).ask(units)
    means = PositionMeans(specimen, None)
    assert means.reach == 20
    means.add(units, asked.ids, asked.mask)
    seen = {}
    specimen.observe_batch(
        asked.ids, asked.mask, lambda outputs: seen.setdefault(outputs.site.layer, outputs.z)
    )
    unit = units[0]
    others = [(row, other) for row, other in enumerate(units) if half(other) != half(unit)]
    at = [seen[3][row, :, 7] for row, other in others if len(other) > 7]
    beyond = [seen[3][row, :, place] for row, other in others for place in range(20, len(other))]
    found = means.of(unit, 3)
    assert torch.allclose(found[:, 7], torch.stack(at).mean(0), atol=1e-5)
    for place in (20, 22):
        assert torch.allclose(found[:, place], torch.stack(beyond).mean(0), atol=1e-5)


def test_what_is_put_back_is_read_by_the_layers_above(specimen, units):
    asked = Loss(specimen).ask(units)
    cleaning = common_mode()
    seen, plain = {}, {}
    specimen.observe_batch(
        asked.ids, asked.mask, lambda outputs: plain.setdefault(outputs.site.layer, outputs.z)
    )
    change = cleaning.change(units, "encoder")

    def see(outputs):
        changed = change(outputs)
        seen[outputs.site.layer] = (outputs.z, changed)
        return changed

    hidden = run(specimen, asked, see)
    assert torch.equal(seen[0][0], plain[0])
    assert not torch.allclose(seen[1][0], plain[1], atol=1e-3)
    assert torch.equal(seen[5][1], cleaning.apply(seen[5][0], 5, units))
    assert torch.equal(run(specimen, asked, change), hidden)
    nothing = run(specimen, asked, directions(16).change(units, "encoder"))
    assert torch.allclose(nothing, run(specimen, asked), atol=1e-3)  # all directions kept
