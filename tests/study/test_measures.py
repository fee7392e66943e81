"""Every measure against a version of it with double loops, and however the texts are cut."""

import brute
import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capture import HeadOutputs
from headscope.measures import repetition
from headscope.pairs import peak, quantile
from headscope.study.estimates import quantities
from headscope.study.observe import Kind, Observer
from headscope.study.sums import Chunked, Key, Totals
from headscope.study.units import Unit

SHARE = 0.07
REPLICATES = 8


def observer(scope: hs.Scope, special: str = "kept", nulls: bool = False) -> Observer:
    return Observer(scope, [Kind("raw", special)], [quantile(SHARE)], seed=0, nulls=nulls)


def added(seen_by: Observer, batches: list[list[Unit]], mode: str = "real") -> Totals:
    """The totals of some batches, each its own chunk."""
    totals = Totals(REPLICATES, seed=0)
    vocabulary = len(seen_by.scope.tokenizer)
    for units in batches:
        chunk = Chunked(len(units))
        totals.see(chunk, vocabulary, mode, range(len(units)), *seen_by.see(units, mode))
        totals.close(units, chunk, vocabulary)
    return totals


def dense(scope: hs.Scope, units: list[Unit], special: str) -> list[list[list[brute.Text]]]:
    """Texts by layer, head and number, from dense matrices."""
    layers, heads = scope.shape.layers, scope.shape.heads
    found = [[[] for _ in range(heads)] for _ in range(layers)]
    for unit in units:
        tokens, marks = unit.tokens, unit.marks
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
                        words=marks.words.tolist(),
                        word_texts=[word.casefold() for word in tokens.word_texts],
                        special=tokens.special.tolist(),
                        classes=tokens.classes.tolist(),
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
    by_hand = brute.anchor(dense(tiny, units, special), kind)
    for name in ("share", "uniqueness_in_layer", "uniqueness_in_model"):
        assert found[f"{kind}_{name}"].value[0] == pytest.approx(by_hand[name], abs=2e-6), name
    around = found[f"{kind}_surroundings"]
    assert around.value[0] == pytest.approx(by_hand["around"], abs=2e-6)
    assert around.chance[0] == pytest.approx(by_hand["chance"], abs=2e-6)


def test_the_drawn_anchor_share_is_that_of_a_multinomial_draw(tiny, units, random):
    unit = max(units, key=len)
    seen_by = observer(tiny)
    _, [seen] = seen_by.see([unit], "real")
    totals = [
        added(Observer(tiny, [Kind()], [quantile(SHARE)], seed, False), [[unit]])
        for seed in range(20)
    ]
    key = next(key for key in totals[0].sums if key.measure == "anchor")
    drawn = np.mean([quantities(one, key)["token_share"].chance[0].mean() for one in totals])
    ends = 2 * int(seen.high("count")[0, 0, 0])
    frequency = np.unique(unit.tokens.ids, return_counts=True)[1] / len(unit)
    simulated = random.multinomial(ends, frequency, 20_000).max(1).mean() / ends
    assert drawn == pytest.approx(simulated, rel=0.1)


def test_detection_is_the_area_under_the_curve(tiny, units):
    unit = units[5]
    assert (repetition.couples(unit, 0) >= 0).all()
    vectors = tiny.head_vectors(unit.tokens)
    words = unit.marks.words
    estimates = np.mean(
        [
            [
                repetition.detection(
                    layer[None].float(), torch.from_numpy(repetition.couples(unit, seed))[None]
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
            repeated = [C[p] for p in pairs if words[p[0]] == words[p[1]]]
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
        merged = parts[0]
        for part in parts[1:]:
            merged = merged.merged(part)
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
    totals = added(observer(tiny, nulls=True), [[unit] for unit in units], "uniform")
    for name, quantity in quantities(totals, Key("uniform", "focus")).items():
        if quantity.chance is not None:
            np.testing.assert_allclose(
                quantity.value[0], quantity.chance[0], rtol=1e-4, err_msg=name
            )
    contrast = quantities(totals, Key("uniform", "size", "raw", "kept"))["contrast"].value[0]
    assert contrast.max() < 1e-3


def test_no_attention_at_all_leaves_every_token_to_itself(tiny, units):
    totals = added(observer(tiny, nulls=True), [[unit] for unit in units], "identity")
    found = quantities(totals, Key("identity", "focus"))
    np.testing.assert_allclose(found["own_token"].value[0], 1)
    np.testing.assert_allclose(found["entropy"].value[0], 0, atol=1e-6)


def test_shuffling_keeps_the_tokens_and_the_sentence_lengths(units):
    from headscope.study.units import shuffled

    unit = max(units, key=len)
    moved = shuffled(unit, seed=1)
    assert sorted(moved.marks.ids) == sorted(unit.marks.ids)
    assert moved.marks.ids.tolist() != unit.marks.ids.tolist()
    np.testing.assert_array_equal(moved.marks.sentences, unit.marks.sentences)
    np.testing.assert_array_equal(moved.marks.special, unit.marks.special)
    assert shuffled(unit, seed=1).marks.ids.tolist() == moved.marks.ids.tolist()


def test_surroundings_are_known_for_every_rule(tiny, units):
    seen_by = Observer(tiny, [Kind()], [quantile(SHARE), peak(0.5)], seed=0, nulls=False)
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
    seen_by = Observer(tiny, [Kind("raw", "left_out")], [peak(share)], seed=0, nulls=False)
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
