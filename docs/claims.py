"""Write what every claim is, and what two models show of it, into the pages of docs/findings/.

    python docs/claims.py             # how each is tested, from the registry of claims
    python docs/claims.py STUDIES     # also what the studies of benchmarks/findings.py tell, drawn

What stands between the marks of a page is written here; how to read it is written by hand below.
"""

import argparse
import sys
from pathlib import Path

from headscope import figures
from headscope.measures.base import Definition
from headscope.measures.registry import DEFINITIONS
from headscope.study.claims import CLAIMS, Claim
from headscope.study.folder import Study, open_study
from headscope.study.told import ToldClaim, strongest_null, told_claims, told_view

FOLDER = Path(__file__).with_name("findings")
CORPUS = "WikiText"
MODELS = {"specimen": "The specimen", "gte-small": "gte-small"}
SHOWN = {  # the figure of each claim, and the quantities that it is about
    "separators": ("focus", ("separator",)),
    "sentence_ends": ("focus", ("sentence_end",)),
    "centralisation": ("centralisation", ("attended_columns",)),
    "repetition_heads": ("repetition", ("same_content_word",)),
    "common_token_heads": ("anchor", ("word_share",)),
    "range": ("range", ("mean_distance",)),
    "same_sentence": ("sentence", ("same_sentence",)),
    "same_sentence_beyond_distance": ("sentence", ("same_sentence", "same_sentence_matched")),
    "unique_anchors": ("uniqueness", ("word_uniqueness_in_layer",)),
}
MADE = """    python benchmarks/findings.py ../shared/data studies --corpus WikiText \\
        --null-tokens 4096
    python benchmarks/findings.py ../shared/data studies --corpus WikiText \\
        --null-tokens 4096 --model ../shared/models/gte-small
"""


def page_of(claim: Claim) -> Path:
    """Where the page of a claim is."""
    return FOLDER / f"{claim.name.replace('_', '-')}.md"


def put(page: str, name: str, content: str) -> str:
    """The page with what stands between the marks of a name as it is now."""
    begin, end = f"<!-- from docs/claims.py: {name} -->\n", f"<!-- {name}: end -->\n"
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{content.strip(chr(10))}\n\n{end}{after}"


def tested(claim: Claim) -> str:
    """How a claim is tested, from its registry."""
    way = "" if claim.curve is None else f"; it has to {'rise' if claim.rising else 'fall'} too"
    trend = f"{way}, layer by layer" if way else ""
    nulls = ", ".join(claim.nulls)
    means = "\n".join(meaning(DEFINITIONS[name]) for name in SHOWN[claim.name][1])
    return (
        f"**Claim:** {claim.says}.\n\n"
        f"**Tested by:** {claim.statistic}. It has to be surely above {claim.threshold:g}, and "
        f"above what the nulls give: {nulls}{trend}. [The rule](../findings.md#the-rule).\n\n"
        f"{means}"
    )


def meaning(of: Definition) -> str:
    """A quantity in a line, as the method page has it."""
    return f"- `{of.name}`: {of.says}. More means: {of.more}. By chance: {of.chance or 'nothing'}."


def told(claim: Claim, studies: dict[str, Study]) -> str:
    """What the studies tell of a claim, the commands that made them, and their figures."""
    figure = SHOWN[claim.name][0]
    draw = [
        f"    headscope figure studies/{model}/{CORPUS} {figure} --out "
        f"docs/findings/{figure}-{model}.svg"
        for model in studies
    ]
    parts = [MADE + "\n".join(draw)]
    for model, study in studies.items():
        rows = told_claims(study.findings.to_pylist(), told_view(study.manifest.parameters))
        found = next(one for one in rows if one.row["claim"] == claim.name)
        parts.append(f"![{claim.says}: {model}]({figure}-{model}.svg)")
        parts.append(f"**{MODELS[model]}: {found.row['verdict']}.** {numbers(found)}")
    return "\n\n".join(parts)


def numbers(claim: ToldClaim) -> str:
    """The numbers beside a verdict, as sentences."""
    row = claim.row
    if row["value"] is None:
        return f"There is no such number: {row['reason']}."
    said = [f"{row['value']:.3g} ({row['low']:.3g} … {row['high']:.3g})"]
    said.append(f"closest null {strongest_null(row)}")
    if row["trend"] is not None:
        said.append(f"ρ over the layers {row['trend']:+.2f} (p {row['trend_p']:.2g})")
    if claim.views:
        said.append(f"{claim.agreeing} of {len(claim.views)} views agree")
    why = "" if row["verdict"] == "holds" else f" Why: {row['reason']}."
    return f"{'; '.join(said)}.{why}"


def main() -> int:
    """Write the pages; 1 where one of them changed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("studies", type=Path, nargs="?", help="made by benchmarks/findings.py")
    given = parser.parse_args()
    studies = {}
    if given.studies:
        studies = {model: open_study(given.studies / model / CORPUS) for model in MODELS}
        for figure in dict.fromkeys(figure for figure, _ in SHOWN.values()):
            for model, study in studies.items():
                figures.save(figures.FIGURES[figure](study), FOLDER / f"{figure}-{model}.svg")
    changed = False
    for claim in CLAIMS:
        file = page_of(claim)
        page = file.read_text(encoding="utf-8")
        made = put(page, "how it is tested", tested(claim))
        if studies:
            made = put(made, "what is told", told(claim, studies))
        file.write_text(made, encoding="utf-8")
        changed |= made != page
    return int(changed)


if __name__ == "__main__":
    sys.exit(main())
