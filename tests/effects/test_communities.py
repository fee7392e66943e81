"""The verb `communities`: its tables are means over windows of what one window shows."""

import numpy as np
import pytest

from effects.enumerated import energies, partitions
from headscope.corpus import Corpus, Document
from headscope.effects.potts import couplings as potts
from headscope.errors import NotPossible
from headscope.pairs import reference
from headscope.units import read_units


def heads(table, quantity, shape=(3, 4)):
    rows = [
        row for row in table.to_pylist() if row["quantity"] == quantity and row["level"] == "head"
    ]
    found = np.full(shape, np.nan)
    for row in rows:
        found[row["layer"] - 1, row["head"] - 1] = row["value"]
    return found


@pytest.fixture(scope="module")
def added(tiny, made, corpus, tmp_path_factory):
    import shutil

    folder = tmp_path_factory.mktemp("communities") / "study"
    shutil.copytree(made, folder)
    return tiny.communities(corpus, folder, limit=3, windows=1, tokens=9, warmed=1, gammas=[4.0])


def drawn(tiny, corpus, study):
    """The windows that were read."""
    from headscope.effects.sample import draw

    for number, document in enumerate(draw(Corpus(corpus, "paragraph"), 3, 0)):
        assert isinstance(document, Document)
        yield read_units(number, document, tiny.tokenizer, 64, "en")[0]


def test_energies_are_the_least_there_are_among_nine_tokens(tiny, corpus, added):
    """Of two runs for each head: nearly always, and never below."""
    ways, least = partitions(9), []
    for unit in drawn(tiny, corpus, added):
        own = np.zeros((3, 4))
        kept = ~unit.tokens.special
        nine = np.flatnonzero(kept)[:9]
        for layer, z in enumerate(tiny.head_vectors(unit.tokens)):
            for head in range(4):
                C = reference.similarity(z[head].double().numpy(), "centred", kept)
                C = C[np.ix_(nine, nine)]
                lowest = energies(potts.couplings(C), ways).min()
                own[layer, head] = lowest / np.abs(np.triu(C, 1)).sum()
        least.append(own)
    found, wanted = heads(added.table("communities"), "community_energy"), np.mean(least, axis=0)
    assert (found >= wanted - 1e-9).all()
    np.testing.assert_allclose(found, wanted, rtol=0.1)
    assert (found < wanted + 1e-9).mean() > 0.6


def test_every_number_has_its_interval_and_those_with_a_null_their_chance(added):
    rows = added.table("communities").to_pylist()
    named = {row["quantity"] for row in rows}
    assert {"community_energy", "community_number", "largest_community"} <= named
    for row in rows:
        if row["quantity"] in ("community_energy", "community_number"):
            assert row["low"] <= row["value"] <= row["high"]
            assert row["chance"] is not None
    number = {
        r["layer"]: r for r in rows if r["quantity"] == "community_number" and r["level"] == "layer"
    }
    own = heads(added.table("communities"), "community_number")
    for layer, row in number.items():
        assert row["value"] == pytest.approx(own[layer - 1].mean())


def test_the_sweep_has_every_resolution_and_one_is_the_table(added):
    sweep = added.table("community_sweep").to_pylist()
    assert {row["gamma"] for row in sweep} == {1.0, 4.0}
    same = [row for row in sweep if row["gamma"] == 1 and row["level"] == "head"]
    table = {
        (row["quantity"], row["layer"], row["head"]): row["value"]
        for row in added.table("communities").to_pylist()
    }
    assert same
    for row in same:
        assert table[row["quantity"], row["layer"], row["head"]] == row["value"]
    finer = [r["value"] for r in sweep if r["quantity"] == "community_number" and r["gamma"] == 4]
    coarser = [r["value"] for r in sweep if r["quantity"] == "community_number" and r["gamma"] == 1]
    assert np.mean(finer) >= np.mean(coarser)


def test_temperatures_are_looked_at_on_texts_that_are_long_enough(added):
    """One of the three is, and a transition is where its susceptibility is largest."""
    rows = [row for row in added.table("community_warmth").to_pylist() if row["level"] == "head"]
    assert len(rows) == 12 * 3 * 12  # heads, quantities, temperatures
    assert all(row["chance"] is not None for row in rows)
    curves = {}
    for row in rows:
        if row["quantity"] == "susceptibility":
            curves.setdefault((row["layer"], row["head"]), {})[row["temperature"]] = row["value"]
    found = heads(added.table("communities"), "transition")
    for (layer, head), curve in curves.items():
        highest = max(curve, key=curve.get)
        assert abs(np.log(found[layer - 1, head - 1] / highest)) < 0.37  # a step of temperatures


def test_what_cannot_be_is_refused_before_anything_is_read(tiny, study, corpus):
    for wrong, said in (
        ({"reading": "cosinus"}, "a reading is one of"),
        ({"tokens": 2}, "tokens is a number from 4"),
        ({"gammas": [-1.0]}, "gamma is a number from 0 on"),
    ):
        with pytest.raises(NotPossible, match=said):
            tiny.communities(corpus, study.path, **wrong)
    assert "communities" not in study.manifest.added


def test_the_report_and_the_terminal_show_them(added, corpus):
    from typer.testing import CliRunner

    from headscope import figures
    from headscope.cli import app
    from headscope.cli.communities import summary
    from headscope.report.added.communities import SECTION
    from headscope.report.study_page import study_page
    from headscope.terminal import Terminal

    page = study_page(added)
    assert f"<h2>{SECTION.title}</h2>" in page
    for name in SECTION.figures:
        assert figures.FIGURES[name](added).to_dict()["title"]["text"]
    console = Terminal(width=140)
    with console.capture() as said:
        console.print(summary(added))
    rows = {
        row["layer"]: row
        for row in added.table("communities").to_pylist()
        if row["quantity"] == "community_number" and row["level"] == "layer"
    }
    assert all(f"{row['value']:.3g}" in said.get() for row in rows.values())
    wrong = ["communities", str(corpus), "--out", str(added.path), "--tokens", "1"]
    assert "tokens is a number from 4" in str(CliRunner().invoke(app, wrong).exception)
