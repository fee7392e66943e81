"""One view of a study is told, everywhere the same one, and the others are counted beside it."""

import re
from dataclasses import replace

import pytest
from texts import TEXTS

import headscope as hs
from headscope import figures
from headscope.cli.study import summary
from headscope.pairs import nearest
from headscope.report.study_page import study_page
from headscope.study.parameters import Parameters
from headscope.study.told import FAILS, HOLDS, OPEN, View, told_claims, told_view
from headscope.viewer.studied import packed_study

RULES = ("quantile(0.01)", "quantile(0.002)", "nearest(3)")
VIEWS = [View(r, s, u) for u in RULES for r in ("raw", "cosine") for s in ("kept", "left_out")]
TOLD = View("raw", "left_out", RULES[0])


def row(view: View | None, verdict: str, claim: str = "range", mode: str = "real"):
    where = dict.fromkeys(("reading", "special", "rule"))
    if view is not None:
        where = {"reading": view.reading, "special": view.special, "rule": view.rule}
    return {"claim": claim, "mode": mode, "verdict": verdict, **where}


def told(holds, otherwise: str = FAILS):
    rows = [row(view, HOLDS if holds(view) else otherwise) for view in VIEWS]
    (claim,) = told_claims(rows, TOLD)
    return claim


def test_the_told_view_is_the_own_rule_the_first_reading_and_without_special_tokens():
    said = Parameters(readings=("cosine", "raw"), rule=nearest(3))
    assert told_view(said) == View("cosine", "left_out", "nearest(3)")
    assert told_view(replace(said, special=("kept",))).special == "kept"
    assert str(told_view(said)) == "cosine, nearest(3), special tokens left out"


@pytest.mark.parametrize(
    ("holds", "agreeing", "words"),
    [
        (lambda view: True, 12, "robust: all 12 views agree"),
        (lambda view: False, 12, "robust: all 12 views agree"),
        (lambda view: view.rule == "nearest(3)", 8, "8 of 12 views agree; it holds in 4, near"),
        (lambda view: view.reading == "raw", 6, "6 of 12 views agree, raw only"),
        (lambda view: view == TOLD, 1, "1 of 12 views agrees, quantile(0.01)"),
        (lambda view: view != VIEWS[0], 11, "11 of 12 views agree"),
    ],
)  # fmt: skip
def test_a_verdict_says_how_many_views_agree_and_where_it_holds(holds, agreeing, words):
    claim = told(holds)
    assert claim.row["reading"] == "raw"
    assert claim.agreeing == agreeing
    assert claim.agreement.startswith(words)
    assert next(iter(claim.views)) == TOLD


def test_views_that_disagree_without_holding_are_counted_too():
    rows = [row(view, OPEN if view.special == "kept" else FAILS) for view in VIEWS]
    (claim,) = told_claims(rows, TOLD)
    assert claim.agreement == "6 of 12 views agree; it holds in none"


def test_that_all_views_are_unsure_is_not_called_robust():
    assert told(lambda view: False, OPEN).agreement == "all 12 views agree"


def test_attention_needs_no_view_and_nulls_are_not_told():
    rows = [row(None, HOLDS, "separators"), row(None, FAILS, "separators", mode="random")]
    (claim,) = told_claims(rows, TOLD)
    assert (claim.row["verdict"], claim.views) == (HOLDS, {})
    assert claim.agreement == "needs no view: it is about attention"


@pytest.fixture(scope="module")
def swept(tiny, tmp_path_factory):
    """A study whose views disagree: two readings, both settings of special, every rule."""
    folder = tmp_path_factory.mktemp("swept")
    return tiny.study(TEXTS, folder, sweep=True, readings=("raw", "cosine"), replicates=20)


def test_terminal_report_figure_and_viewer_tell_the_same_verdicts(swept):
    view = told_view(swept.manifest.parameters)
    rows = swept.findings.to_pylist()
    expected = {
        r["says"]: r["verdict"]
        for r in rows
        if r["mode"] == "real"
        and (r["reading"], r["special"], r["rule"])
        in ((None, None, None), ("raw", "left_out", "quantile(0.01)"))
    }
    assert {r["says"]: r["verdict"] for r in rows if r["told"] and r["mode"] == "real"} == expected
    claims = told_claims(rows, view)
    assert {claim.row["says"]: claim.row["verdict"] for claim in claims} == expected

    table = summary(swept)
    said, verdicts = (list(column.cells) for column in table.columns[:2])
    plain = [re.sub(r"\[.*?\]|:.*", "", verdict) for verdict in verdicts]
    assert dict(zip(said, plain, strict=True)) == expected
    assert str(view) in table.caption

    drawn = figures.findings(swept).to_dict()
    shown = {
        r["claim"]: r["verdict"] for d in drawn["datasets"].values() for r in d if "claim" in r
    }
    assert shown == {name: expected[name] for name in shown}
    assert str(view) in " ".join(drawn["title"]["subtitle"])

    page = study_page(swept)
    badges = re.findall(r'<tr><td[^>]*><span class="verdict [\w-]+">([\w ]+)</span>', page)
    assert badges == list(expected.values())
    assert str(view) in page

    packed = packed_study(swept)
    assert View(packed["reading"], packed["special"], packed["rule"]) == view
    for one in packed["measures"]:
        told = [
            found["value"]
            for found in swept.table(one["measure"]).to_pylist()
            if (found["level"], found["quantity"], found["mode"]) == ("head", one["name"], "real")
            and view.has(found)
        ]
        assert one["value"] == pytest.approx(told, rel=1e-3)


def test_the_report_has_a_row_for_each_claim_and_every_view_under_it(swept):
    page = study_page(swept)
    claims = told_claims(swept.findings.to_pylist(), told_view(swept.manifest.parameters))
    assert page.count('<tbody><tr><td class="" data-name="verdict">') == len(claims)
    grids = re.findall(r'<table class="views">.*?</table>', page)
    assert len(grids) == sum(bool(claim.views) for claim in claims)
    for grid, claim in zip(grids, [c for c in claims if c.views], strict=True):
        assert len(claim.views) == 32
        cells = re.findall(
            r'<td class="[\w-]+( told)?" .*?<small>([\w ]+)(?:, told)?</small>', grid
        )
        assert len(cells) == 32
        assert [verdict for told, verdict in cells if told] == [claim.row["verdict"]]
        assert sum(verdict == HOLDS for _, verdict in cells) == len(claim.holding)
        assert len(re.findall(r'<th scope="row">', grid)) == 4


def test_a_study_of_one_view_has_no_grid(tiny, tmp_path):
    made = tiny.study(
        TEXTS[:4], tmp_path, special=("kept",), readings=("raw",), nulls=(), replicates=5
    )
    page = study_page(made)
    assert 'class="views"' not in page
    assert "special tokens kept" in page
    assert "views agree" not in {column.header for column in summary(made).columns}
    assert isinstance(made, hs.Study)
