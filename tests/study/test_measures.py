"""Every measure against a version of it with double loops, and however the texts are cut."""

from dataclasses import replace

import brute
import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capture import HeadOutputs
from headscope.corpus import Document
from headscope.measures import anchor, repetition
from headscope.pairs import TokenBatch, pair_statistics, peak, quantile, reference
from headscope.pairs.statistics import joined
from headscope.study.estimates import quantities
from headscope.study.modes import SimilarityKind
from headscope.study.observe import Observer
from headscope.study.sums import Chunked, Counted, Key, Totals
from headscope.units import Unit, read_units

SHARE = 0.07
REPLICATES = 8


def observer(scope: hs.Scope, special: str = "kept") -> Observer:
    return Observer(scope, [SimilarityKind("raw", special)], [quantile(SHARE)], seed=0)


def added(seen_by: Observer, batches: list[list[Unit]], mode: str = "real") -> Totals:
    """The totals of some batches, each its own chunk."""
    totals = Totals(REPLICATES, seed=0)
    vocabulary = len(seen_by.scope.tokenizer)
    for units in batches:
        chunk = Chunked(len(units))
        chunk.see(vocabulary, mode, range(len(units)), *seen_by.see(units, mode))
        totals.close(units, chunk, vocabulary)
    return totals


def dense(scope: hs.Scope, units: list[Unit], special: str) -> list[list[list[brute.Text]]]:
    """Texts by layer, head and number, from dense matrices."""
    layers, heads = scope.shape.layers, scope.shape.heads
    found = [[[] for _ in range(heads)] for _ in range(layers)]
    for unit in units:
        tokens, marks = unit.tokens, unit.marks
        added = tokens.special.tolist()
        numbers = brute.word_numbers(tokens.text, tokens.starts.tolist(), added)
        spans = brute.words(tokens.text)
        word_texts = [  # a special token is its own word
            symbol if number < 0 else tokens.text[slice(*spans[number])]
            for number, symbol in zip(numbers, tokens.symbols, strict=True)
        ]
        weights: list[np.ndarray] = []

        def observe(seen: HeadOutputs) -> None:
            scores = (seen.q.double() @ seen.k.double().mT) * seen.scaling
            weights.append(scores.softmax(-1)[0].numpy())  # noqa: B023

        scope.observe(tokens, observe)
        vectors = scope.head_vectors(tokens)
        for layer in range(layers):
            for head in range(heads):
                found[layer][head].append(
                    brute.Text(
                        z=vectors[layer][head].double().numpy(),
                        A=weights[layer][head],
                        sentences=marks.sentences.tolist(),
                        ids=marks.ids.tolist(),
                        word_numbers=numbers,
                        word_texts=[word.casefold() for word in word_texts],
                        special=added,
                        classes=tokens.classes.tolist(),
                        word_classes=[brute.word_class(word) for word in word_texts],
                        share=SHARE,
                        keep_special=special == "kept",
                    )
                )
    return found


@pytest.mark.parametrize("special", ["kept", "left_out"])
def test_every_measure_agrees_with_double_loops(tiny, units, special):
    totals = added(observer(tiny, special), [[unit] for unit in units])
    texts = dense(tiny, units, special)
    loops = {
        "sentence": brute.sentence,
        "repetition": brute.repetition,
        "range": brute.distance,
        "noise": brute.noise,
        "size": brute.size,
        "selection": brute.selection,
        "focus": brute.focus,
    }
    assert any(text.unrelated(pair) for text in texts[0][0] for pair in text.high)
    assert any(pair[1] - pair[0] > 128 for text in texts[0][0] for pair in text.pairs)
    compared = 0
    for measure, by_hand in loops.items():
        key = next(key for key in totals.sums if key.measure == measure)
        found = quantities(totals, key)
        for layer in range(tiny.shape.layers):
            for head in range(tiny.shape.heads):
                for name, (value, chance) in by_hand(texts[layer][head]).items():
                    where = f"{measure} {name} of layer {layer + 1}, head {head + 1}"
                    got = found[name]
                    assert got.value[0, layer, head] == pytest.approx(
                        value, rel=3e-5, abs=3e-6, nan_ok=True
                    ), where
                    if chance is not None:
                        assert got.chance[0, layer, head] == pytest.approx(
                            chance, rel=3e-5, abs=3e-6
                        ), where
                    compared += 1
    assert compared > 25 * 12


@pytest.mark.parametrize("kind", ["token", "word"])
@pytest.mark.parametrize("special", ["kept", "left_out"])
def test_anchors_agree_with_double_loops(tiny, units, special, kind):
    totals = added(observer(tiny, special), [[unit] for unit in units])
    key = next(key for key in totals.sums if key.measure == "anchor")
    found = quantities(totals, key)
    texts = dense(tiny, units, special)
    unmoved = [[range(len(unit))] for unit in units]
    permuted = [anchor.permutations(unit, 0) for unit in units]
    value, chance = (brute.anchor(texts, kind, orders) for orders in (unmoved, permuted))
    for name in value:
        assert found[f"{kind}_{name}"].value[0] == pytest.approx(value[name], abs=2e-6), name
        assert found[f"{kind}_{name}"].chance[0] == pytest.approx(chance[name], abs=2e-6), name


def test_chance_permutes_the_tokens_and_leaves_special_ones(units):
    unit = max(units, key=len)
    orders = anchor.permutations(unit, seed=0)
    assert len(orders) == anchor.DRAWS > 1
    assert not np.array_equal(*orders[:2])
    for order in orders:
        assert sorted(order) == list(range(len(unit)))
        assert (order == np.arange(len(unit)))[unit.tokens.special].all()
        assert (order != np.arange(len(unit))).sum() > len(unit) / 2


def test_hubs_alone_make_no_anchor_unique(tiny, units):
    """Each head has a hub of its own, at a random place: uniqueness and share are chance."""
    random, heads, long = np.random.default_rng(0), tiny.shape.heads, max(units, key=len)
    size, found = len(long), []
    for seed in range(40):
        z = np.zeros((1, heads, size, 2), np.float32)
        z[..., 0] = 0.1 * random.random((1, heads, size))
        for head in range(heads):
            z[0, head, random.integers(1, size - 1), 0] = 10.0
        batch = TokenBatch([long.marks], [anchor.types_of(long, seed)])
        statistics = pair_statistics(torch.from_numpy(z), batch, quantile(0.01))
        _, [seen] = observer(tiny).see([long], "real")
        only = joined([statistics], lambda layers: np.stack(layers, 1))
        made = replace(seen, batch=batch, statistics=only)
        totals = anchor.MEASURE.update(made)
        found.append({name: value.sum((0, 1, 2)) for name, value in totals.items()})
    summed = {name: sum(one[name] for one in found) for name in found[0]}
    for name, quantity in anchor.MEASURE.compute(summed).items():
        assert quantity.value == pytest.approx(quantity.chance, rel=0.08), name
    assert anchor.MEASURE.compute(summed)["word_uniqueness_in_layer"].value > 0.8


def test_detection_is_the_area_under_the_curve(tiny, units):
    unit = units[5]
    assert (repetition.couples([unit], 0) >= 0).all()
    vectors = tiny.head_vectors(unit.tokens)
    words = unit.marks.words
    estimates = np.mean(
        [
            [
                repetition.detection(
                    layer[None].float(), torch.from_numpy(repetition.couples([unit], seed))
                )[0].numpy()
                for layer in vectors
            ]
            for seed in range(60)
        ],
        axis=0,
    )
    for layer, z in enumerate(vectors):
        for head in range(len(z)):
            C = (z[head] @ z[head].T).numpy()
            there = [i for i in range(len(unit)) if words[i] >= 0]
            pairs = [(i, j) for i in there for j in there if i < j]
            numbers = unit.tokens.words
            repeated = [
                C[i, j] for i, j in pairs if words[i] == words[j] and numbers[i] != numbers[j]
            ]
            others = [C[p] for p in pairs if words[p[0]] != words[p[1]]]
            wins = np.mean([(a > b) + (a == b) / 2 for a in repeated for b in others])
            assert estimates[layer, head] == pytest.approx(wins, abs=0.05)


FLOATING = {"norm", "similarity", "similarity_std"}  # lengths and similarities have no grid


def same(one: Totals, other: Totals, rel: float = 1e-12) -> None:
    assert one.sums.keys() == other.sums.keys()
    assert one.sums
    for key, arrays in one.sums.items():
        for name, value in arrays.items():
            if key.measure == "size" and name in FLOATING:
                np.testing.assert_allclose(value, other.sums[key][name], rtol=rel)
            else:
                np.testing.assert_array_equal(value, other.sums[key][name], err_msg=f"{key} {name}")
    for key, arrays in one.profiles.items():
        for name, value in arrays.items():
            np.testing.assert_array_equal(value, other.profiles[key][name])
    for key, counts in one.types.items():
        np.testing.assert_array_equal(counts.ends, other.types[key].ends)


def test_sums_do_not_depend_on_how_texts_are_cut_and_merged(tiny, units, random):
    seen_by = observer(tiny)
    whole = added(seen_by, [[unit] for unit in units])
    for _ in range(3):
        order = random.permutation(len(units))
        cuts = np.sort(random.choice(np.arange(1, len(units)), 2, replace=False))
        parts = [
            added(seen_by, [[units[i]] for i in part])
            for part in np.split(order, cuts)
            if len(part)
        ]
        random.shuffle(parts)
        merged = Totals(REPLICATES, seed=0)
        for part in parts:
            merged.follow(part, {key: Counted.of(one) for key, one in part.types.items()}, {})
        merged.settle()
        same(whole, merged)


def test_padding_changes_no_measure_beyond_rounding(tiny, units):
    seen_by = observer(tiny)
    long = sorted(units, key=len)[-3:]
    alone, padded = added(seen_by, [[unit] for unit in long]), added(seen_by, [long])
    assert len({len(unit) for unit in long}) > 1
    for key in alone.sums:
        for level in ("head", "model"):
            one, other = quantities(alone, key, level), quantities(padded, key, level)
            for name in one:
                np.testing.assert_allclose(
                    one[name].value[0],
                    other[name].value[0],
                    rtol=1e-4,
                    atol=2e-5,
                    err_msg=f"{key.measure} {name}",
                )


def test_even_attention_gives_every_target_its_chance_level(tiny, units):
    totals = added(observer(tiny), [[unit] for unit in units], "uniform")
    for name, quantity in quantities(totals, Key("uniform", "focus")).items():
        if quantity.chance is not None:
            np.testing.assert_allclose(
                quantity.value[0], quantity.chance[0], rtol=1e-4, err_msg=name
            )
    contrast = quantities(totals, Key("uniform", "size", "raw", "kept"))["contrast"].value[0]
    assert contrast.max() < 1e-3


def test_no_attention_at_all_leaves_every_token_to_itself(tiny, units):
    totals = added(observer(tiny), [[unit] for unit in units], "identity")
    found = quantities(totals, Key("identity", "focus"))
    np.testing.assert_allclose(found["own_token"].value[0], 1)
    np.testing.assert_allclose(found["entropy"].value[0], 0, atol=1e-6)


def test_shuffling_keeps_the_tokens_and_the_sentence_lengths(units):
    from headscope.units import shuffled

    unit = max(units, key=len)
    moved = shuffled(unit, seed=1)
    assert sorted(moved.marks.ids) == sorted(unit.marks.ids)
    assert moved.marks.ids.tolist() != unit.marks.ids.tolist()
    np.testing.assert_array_equal(moved.marks.sentences, unit.marks.sentences)
    np.testing.assert_array_equal(moved.marks.special, unit.marks.special)
    assert shuffled(unit, seed=1).marks.ids.tolist() == moved.marks.ids.tolist()


def test_surroundings_are_known_for_every_rule(tiny, units):
    seen_by = Observer(tiny, [SimilarityKind()], [quantile(SHARE), peak(0.5)], seed=0)
    totals = added(seen_by, [[unit] for unit in units[:2]])
    by_rule = [
        quantities(totals, key)["word_surroundings"].value[0]
        for key in totals.sums
        if key.measure == "anchor"
    ]
    assert len(by_rule) == 2
    assert all(((value > 0) & (value <= 1)).all() for value in by_rule)
    assert (by_rule[0] != by_rule[1]).any()


def test_scattered_pairs_are_those_outside_the_squares_on_the_diagonal(tiny, units):
    share = 0.4
    seen_by = Observer(tiny, [SimilarityKind("raw", "left_out")], [peak(share)], seed=0)
    totals = added(seen_by, [[unit] for unit in units])
    key = next(key for key in totals.sums if key.measure == "noise")
    found = quantities(totals, key)["scattered"].value[0]
    texts = dense(tiny, units, "left_out")
    for layer in range(tiny.shape.layers):
        for head in range(tiny.shape.heads):
            scattered = high = 0
            for text in texts[layer][head]:
                kept = [i for i in range(len(text.ids)) if not text.special[i]]
                C = text.C[np.ix_(kept, kept)]
                size = len(kept)
                pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
                if not pairs:
                    continue
                level = share * max(C[pair] for pair in pairs)
                ones = {pair for pair in pairs if C[pair] >= level}
                clusters = [[0]]
                for place in range(1, size):
                    if all((other, place) in ones for other in clusters[-1]):
                        clusters[-1].append(place)
                    else:
                        clusters.append([place])
                inside = sum(len(one) * (len(one) - 1) // 2 for one in clusters)
                high += len(ones)
                scattered += len(ones) - inside
            assert high > 0
            assert found[layer, head] == pytest.approx(scattered / high, abs=1e-3)
    assert 0 <= found.min() < 0.5 < found.max() <= 1


def test_pieces_belong_to_their_word_and_one_occurrence_is_no_repetition(tiny):
    """The second pieces of two occurrences are the same word, and never unrelated noise."""
    text = "The gammarus crawls. " + "Sand and stones and water. " * 12 + "A gammarus sleeps."
    [unit] = read_units(0, Document(text, "texts"), tiny.tokenizer, 160, "en")
    pieces = np.array([word.casefold() == "gammarus" for word in unit.tokens.word_texts])
    places = np.flatnonzero(pieces)
    first, second = np.split(places, 2)
    assert len(first) == len(second) > 1
    C = np.zeros((len(unit), len(unit)))
    C[first[1], second[1]] = C[second[1], first[1]] = 3  # the second pieces
    C[first[0], first[1]] = C[first[1], first[0]] = 2  # of one occurrence
    pairs = len(unit) * (len(unit) - 1) // 2
    for number, same in ((1, 1), (2, 1)):
        found = reference.high_statistics(C, unit.marks, quantile(number / pairs))
        assert found.count == number
        assert found.same_word == same
        assert found.repeated.tolist() == [[[1, 0, 0, 0]]]
        assert found.unrelated == 0
    chance = reference.chance_pairs(unit.marks)
    words = [word.casefold() for word in unit.tokens.word_texts]
    numbers = unit.tokens.words
    assert chance.same_word == sum(
        words[i] == words[j] and numbers[i] != numbers[j]
        for i in range(len(unit))
        for j in range(i + 1, len(unit))
        if numbers[i] >= 0
    )


def test_a_plateau_of_rounding_is_unresolved_and_a_clear_ranking_is_not(tiny, units):
    """Of equal vectors but for their last digits, rounding decides which pairs are high."""
    long = max(units, key=len)
    random, rule = torch.Generator().manual_seed(0), quantile(0.01)
    batch = TokenBatch([long.marks], [anchor.types_of(long, 0)])
    clear = torch.randn(1, 1, len(long), 64, generator=random)
    plateau = torch.randn(1, 1, 1, 64, generator=random) * (1 + 1e-8 * clear)
    shares, overlap = [], []
    for z in (clear, plateau):
        wide = (z[0, 0].double() @ z[0, 0].double().T).numpy()
        narrow = (z[0, 0] @ z[0, 0].T).double().numpy()
        kept = np.ones(len(long), bool)
        both = [reference.high_pairs(C, rule, kept) for C in (wide, narrow)]
        overlap.append((both[0] & both[1]).sum() / both[1].sum())
        found = pair_statistics(z, batch, rule).high[0]
        shares.append(max(int(found.unresolved[0, 0]) - 1, 0) / int(found.count[0, 0]))
    assert shares[0] < 0.05
    assert shares[1] > 0.9
    assert overlap[0] > 0.95  # of float32 and float64
    assert overlap[1] < 0.9


def test_pairs_of_large_vectors_are_explained_by_size(units):
    long = max(units, key=len)
    random = torch.Generator().manual_seed(0)
    z = torch.randn(1, 1, len(long), 64, generator=random).abs()
    sized = z * torch.linspace(1, 30, len(long))[:, None]
    found = {
        reading: pair_statistics(sized, [long.marks], quantile(0.01), reading=reading).high[0]
        for reading in ("raw", "cosine")
    }
    shares = {name: int(high.large[0, 0]) / int(high.count[0, 0]) for name, high in found.items()}
    assert shares["raw"] > 0.5
    assert shares["cosine"] < 0.15
