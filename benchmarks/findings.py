"""The claims on several corpora, for docs/findings.md: one table, claim × model × corpus.

    python benchmarks/findings.py ../shared/data studies            # the specimen
    python benchmarks/findings.py ../shared/data studies --model ../shared/models/gte-small

Each run adds the studies of a model to the folder, and prints what all that are there tell.

Of each corpus a bounded number of passages is read, spread evenly over it: from each article of
WikiText, section of a textbook and speech its beginning, from a novel single paragraphs. Articles,
sections and speeches are independent of each other; the paragraphs of one novel are not.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

import headscope as hs
from headscope.study.folder import Study
from headscope.study.told import (
    FAILS,
    HOLDS,
    OPEN,
    ToldClaim,
    strongest_null,
    told_claims,
    told_view,
)

CHARACTERS = 700


def wikitext(data: Path) -> Iterator[str]:
    """The text of each article."""
    whole = (data / "wikitext2" / "wiki.valid.tokens").read_text(encoding="utf-8")
    for article in re.split(r"\n = [^=\n]+ = \n", whole)[1:]:
        yield "\n".join(line for line in article.split("\n") if not line.startswith(" ="))


def textbooks(data: Path) -> Iterator[str]:
    """Each module of three textbooks."""
    for file in sorted((data / "openstax").glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            segments = json.loads(line)["segments"]
            yield " ".join(sentence for segment in segments for sentence in segment)


def speeches(data: Path) -> Iterator[str]:
    """Each inaugural address."""
    for file in sorted((data / "us_speeches" / "inaugural").glob("*.txt")):
        yield file.read_text(encoding="utf-8")


def novel(data: Path, name: str) -> Iterator[str]:
    """The longer paragraphs of a novel."""
    (file,) = (data / "gutenberg_novels").rglob(f"*{name}*.txt")
    for paragraph in file.read_text(encoding="utf-8").split("\n\n"):
        if len(paragraph) > 200:
            yield " ".join(paragraph.split())


CORPORA = {
    "WikiText": (wikitext, "articles"),
    "textbooks": (textbooks, "modules of three books"),
    "speeches": (speeches, "inaugural addresses"),
    "Daisy Miller": (lambda data: novel(data, "daisy_miller"), "paragraphs of one book"),
    "Alice": (lambda data: novel(data, "alices_adventures"), "paragraphs of one book"),
}


def passages(texts: Iterator[str], number: int) -> list[str]:
    """The beginnings of some texts, spread evenly, each cut at the end of a sentence."""
    found = list(texts)
    step = max(1, len(found) // number)
    cut = [re.sub(r"(?s)([.!?]\s)(?!.*[.!?]\s).*", r"\1", text[:CHARACTERS]) for text in found]
    return cut[::step][:number]


def told(made: Study) -> list[ToldClaim]:
    """The claims of a study, as it tells them."""
    return told_claims(made.findings.to_pylist(), told_view(made.manifest.parameters))


def brief(claim: ToldClaim) -> str:
    """Verdict and value."""
    row = claim.row
    if row["value"] is None:
        return WORDS[row["verdict"]]
    said = f"{WORDS[row['verdict']]} {row['value']:.3g}"
    return said if row["low"] is None else f"{said} ({row['low']:.3g} … {row['high']:.3g})"


def detailed(claim: ToldClaim) -> str:
    """Trend, closest null, the other reading, agreement, and why it does not hold."""
    row = claim.row
    said = []
    if row["trend"] is not None:
        said.append(f"ρ {row['trend']:+.2f}, p {row['trend_p']:.2g}")
    said.append(f"null {strongest_null(row)}")
    cosine = claim.by_reading.get("cosine")
    if cosine is not None and cosine["value"] is not None:
        said.append(f"cosine {cosine['value']:.3g}")
    if claim.views:
        said.append(f"{claim.agreeing} of {len(claim.views)} views")
    if row["verdict"] != HOLDS:
        said.append(row["reason"])
    return "; ".join(said)


WORDS = {HOLDS: "**holds**", FAILS: "no", OPEN: "?"}


def table(made: dict[str, dict[str, Study]]) -> str:
    """Markdown: a row for each claim and model, a column for each corpus."""
    columns = [name for name in CORPORA if any(name in by_corpus for by_corpus in made.values())]
    claims = {
        (model, corpus): {claim.row["claim"]: claim for claim in told(study)}
        for model, by_corpus in made.items()
        for corpus, study in by_corpus.items()
    }
    lines = [f"| claim | model | {' | '.join(columns)} |", "|---" * (2 + len(columns)) + "|"]
    for name in dict.fromkeys(name for found in claims.values() for name in found):
        for number, model in enumerate(made):
            found = [claims.get((model, corpus), {}).get(name) for corpus in columns]
            cells = ["–" if claim is None else brief(claim) for claim in found]
            says = next(claim.row["says"] for claim in found if claim) if not number else ""
            lines.append(f"| {says} | {model} | {' | '.join(cells)} |")
    return "\n".join(lines)


def details(by_corpus: dict[str, Study]) -> str:
    """Markdown: all numbers of a model, a row for each claim."""
    claims = {corpus: told(study) for corpus, study in by_corpus.items()}
    lines = [f"| claim | {' | '.join(claims)} |", "|---" * (1 + len(claims)) + "|"]
    for row in zip(*claims.values(), strict=True):
        lines.append(f"| {row[0].row['says']} | {' | '.join(map(detailed, row))} |")
    for shaped in ("range", "same_sentence"):
        found = [
            next(claim.row for claim in of_corpus if claim.row["claim"] == shaped)["shape"] or "–"
            for of_corpus in claims.values()
        ]
        lines.append(f"| shape of `{shaped}` | {' | '.join(found)} |")
    return "\n".join(lines)


def run_on(made: dict[str, dict[str, Study]]) -> str:
    """Markdown: how much of each corpus each model read, and the nulls beside it."""
    columns = [name for name in CORPORA if any(name in by_corpus for by_corpus in made.values())]
    lines = [
        f"| passages (tokens; of nulls) | {' | '.join(columns)} |",
        "|---" * (1 + len(columns)) + "|",
    ]
    for model, by_corpus in made.items():
        cells = []
        for name in columns:
            said = by_corpus[name].manifest if name in by_corpus else None
            cells.append(
                f"{said.corpus.documents} ({said.corpus.tokens:,}; {said.nulls.tokens:,})"
                if said
                else "not run"
            )
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines)


def there(out: Path) -> dict[str, dict[str, Study]]:
    """Every study of an output folder, by model and corpus, small models first."""
    found: dict[str, dict[str, Study]] = {}
    for name in CORPORA:
        for folder in sorted(out.glob(f"*/{name.replace(' ', '-')}")):
            if (folder / "manifest.json").exists():
                model = re.sub(r"-Instruct.*\.gguf$", "", folder.parent.name)
                found.setdefault(model, {})[name] = hs.open(folder)
    return dict(sorted(found.items(), key=lambda item: _size(next(iter(item[1].values())))))


def _size(study: Study) -> tuple[int, int]:
    model = study.manifest.model
    return model.layers * model.heads * model.head_size, model.layers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--corpus", action="append", choices=CORPORA)
    parser.add_argument("--passages", type=int, default=40)
    parser.add_argument("--null-tokens", type=int, default=1500)
    parser.add_argument("--only-tell", action="store_true", help="of the studies that are there")
    given = parser.parse_args()
    if not given.only_tell:
        scope = hs.load(given.model, device="cpu")
        for name in given.corpus or CORPORA:
            texts, _ = CORPORA[name]
            folder = given.out / Path(scope.shape.name).name / name.replace(" ", "-")
            chosen = passages(texts(given.data), given.passages)
            made = scope.study(chosen, folder, null_tokens=given.null_tokens)
            corpus = made.manifest.corpus
            print(f"{name}: {corpus.documents} passages, {corpus.tokens:,} tokens", flush=True)
    found = there(given.out)
    print(f"{run_on(found)}\n\n{table(found)}")
    for model, by_corpus in found.items():
        folded = f"<details><summary>{model}: the rest of it</summary>"
        print(f"\n{folded}\n\n{details(by_corpus)}\n\n</details>")


if __name__ == "__main__":
    main()
