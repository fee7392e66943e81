"""The page of each claim says how it is tested as the registry of claims does."""

import importlib.util
from pathlib import Path

import pytest

from headscope.figures import FIGURES, QUANTITIES
from headscope.study.claims import CLAIMS, Claim

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("claims", DOCS / "claims.py")
assert spec is not None
assert spec.loader is not None
claims = importlib.util.module_from_spec(spec)
spec.loader.exec_module(claims)


def test_every_claim_has_a_page_on_the_site_and_no_page_is_of_none() -> None:
    pages = {claims.page_of(claim) for claim in CLAIMS}
    assert set((DOCS / "findings").glob("*.md")) == pages
    assert set(claims.SHOWN) == {claim.name for claim in CLAIMS}
    nav = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in pages if f"findings/{page.name}" not in nav] == []


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_the_page_of_a_claim_says_how_it_is_tested(claim: Claim) -> None:
    page = claims.page_of(claim).read_text(encoding="utf-8")
    made = claims.put(page, "how it is tested", claims.tested(claim))
    assert page == made, "run: python docs/claims.py"
    assert claim.says in page.splitlines()[0].lower()
    how = page.split("## How to read it")[1]
    assert len(how.split()) > 40


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_the_page_of_a_claim_shows_the_figure_that_has_its_quantity(claim: Claim) -> None:
    figure, quantities = claims.SHOWN[claim.name]
    assert figure in FIGURES
    assert set(quantities) <= set(QUANTITIES[figure])
    page = claims.page_of(claim).read_text(encoding="utf-8")
    for model in claims.MODELS:
        assert f"({figure}-{model}.svg)" in page
        drawn = DOCS / "findings" / f"{figure}-{model}.svg"
        assert drawn.read_text(encoding="utf-8").startswith("<svg")
        assert drawn.stat().st_size < 120_000
