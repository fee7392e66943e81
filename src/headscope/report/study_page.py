"""The report of a study: one page that needs no other file and no network.

Verdicts come first, then each finding with its chart and what it means, then every head with its
card. Charts are SVG inside the page; `headscope.markup` writes it.
"""

import shlex
from collections import defaultdict
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from headscope import figures
from headscope.effects.added import told_of_heads
from headscope.effects.registry import DEFINITIONS
from headscope.errors import CannotDraw
from headscope.markup import Content, Element, h, page, style, svg
from headscope.measures.base import Definition
from headscope.report.added import registry as added
from headscope.report.added.section import Section
from headscope.report.findings import badge, findings
from headscope.report.head_links import card_name, with_links
from headscope.study.folder import Study, reads_tables
from headscope.study.half_precision import HALF, WHAT
from headscope.study.manifest import Manifest
from headscope.study.parameters import Parameters
from headscope.study.told import ToldClaim, View, over, told_claims, told_view

Row = dict[str, Any]

# For each section: its charts, the claims it speaks of, and what it means in plain words.
SECTIONS = (
    (
        "Separators",
        ("focus",),
        ("separators", "sentence_ends"),
        "Attention is a budget of 100 % that each token spends on the others. In the last layers "
        "much of it goes to separators and to the marks that end sentences: the places where a "
        "text is cut into parts.",
    ),
    (
        "Centralisation",
        ("centralisation",),
        ("centralisation",),
        "The number of tokens that share a layer's attention, counted so that even shares count "
        "fully and tiny ones hardly. It falls when the whole text looks at the same few tokens.",
    ),
    (
        "Range",
        ("range",),
        ("range",),
        "How far apart the two tokens of a high pair are. The dashed line is the mean distance of "
        "all pairs of the same texts: above it a layer joins what is far apart, below it what is "
        "near.",
    ),
    (
        "Sentences",
        ("sentence",),
        ("same_sentence", "same_sentence_beyond_distance"),
        "How much more often than by chance a high pair stays within one sentence. Near tokens "
        "share a sentence anyway; the line with distances matched says what is left once the "
        "distances of the pairs are taken into account.",
    ),
    (
        "Repetition",
        ("repetition",),
        ("repetition_heads",),
        "Some heads bring together the occurrences of the same word. Each cell says how many times "
        "more often than by chance the high pairs of a head are a content word and its repetition; "
        "function words, punctuation and markup repeat for other reasons, and are in the table "
        "repetition of the study.",
    ),
    (
        "Anchors",
        ("anchor", "uniqueness"),
        ("common_token_heads", "unique_anchors"),
        "The anchor of a head is the word most often at an end of its high pairs. If each head "
        "has a token of its own, there are nearly as many anchors as heads.",
    ),
    (
        "Size",
        ("selection",),
        (),
        "Raw similarity is large where vectors are long, whatever their direction. The line says "
        "how many of the high pairs would be high by the size of their vectors alone; where that "
        "is most of them, look at cosine beside raw.",
    ),
    (
        "Noise",
        ("noise", "snr"),
        (),
        "A high pair is unrelated when its tokens are in different sentences, far apart, different "
        "words, and not special. The signal-to-noise ratio is the distance between the mean "
        "similarity of related and unrelated pairs, in standard deviations of the latter.",
    ),
)

# What a study of pictures or sounds has of it: no words, no sentences, no separators.
OF_PLACES = (
    (
        "Attention",
        ("focus",),
        (),
        "Attention is a budget of 100 % that each patch or frame spends on others. Where a line "
        "is above its chance level, a layer looks there more than evenly: at what is near, or at "
        "what stands nowhere, special positions or the silence that a model adds to a sound.",
    ),
    (
        "Centralisation",
        ("centralisation",),
        ("centralisation",),
        "The number of positions that share a layer's attention, counted so that even shares count "
        "fully and tiny ones hardly. It falls when everything looks at the same few positions.",
    ),
    (
        "Range",
        ("range",),
        ("range",),
        "How far apart the two ends of a high pair stand: on the grid of patches, or in seconds. "
        "The dashed line is the mean distance of all pairs of the same documents: above it a layer "
        "joins what is far apart, below it what is near.",
    ),
    next(section for section in SECTIONS if section[0] == "Size"),
)


def _sections(said: Manifest) -> Sequence[tuple[str, tuple[str, ...], tuple[str, ...], str]]:
    """The findings that a study of its kind can have."""
    return SECTIONS if said.corpus.kind == "text" else OF_PLACES


@reads_tables
def study_page(study: Study) -> str:
    """The whole page."""
    said = study.manifest
    css = files("headscope").joinpath("report/study_page.css").read_text(encoding="utf-8")
    view = told_view(said.parameters)
    claims = told_claims(study.table("findings").to_pylist(), view)
    body = h(
        "main",
        None,
        h("h1", None, f"What the heads of {said.model.name} do"),
        _run(said),
        h("h2", None, "Findings"),
        findings(claims, view),
        [_section(study, claims, *section) for section in _sections(said)],
        [_added(study, section) for section in added.SECTIONS if section.has(study)],
        h("h2", None, "Every head"),
        _heads(study, view),
        h("h2", None, "What was left out"),
        _skipped(study),
        h("h2", None, "Repeat it"),
        h("pre", None, h("code", None, _command(said))),
    )
    columns = f".grid {{ --heads: {said.model.heads}; }}"
    title = f"headscope: {said.model.name} on {said.corpus.name}"
    return page(title, style(f"{css}{columns}"), body)


def _run(said: Manifest) -> Element:
    """What was run, in a sentence and a table."""
    model, corpus, chosen = said.model, said.corpus, said.parameters
    facts = {
        "model": f"{model.name}: {model.family}, {model.layers} layers × "
        f"{model.heads} heads × {model.head_size}",
        "corpus": f"{corpus.name}: {corpus.in_words}, {corpus.skipped:,} skipped",
        "high pairs": f"{chosen.rule}, {', '.join(chosen.readings)}; special tokens "
        + " and ".join(word.replace("_", " ") for word in chosen.special),
        "nulls": ", ".join(chosen.nulls) or "none run",
        "intervals": f"95 %, over {over(said)}, {chosen.replicates} replicates, seed {chosen.seed}",
        "computed": f"on {said.device}, in {said.dtype}{_rounded(said.dtype)}",
        "made with": f"headscope {said.headscope}, torch {said.torch}, transformers "
        f"{said.transformers}",
    }
    rows = [
        h("tr", None, h("th", {"scope": "row"}, name), h("td", None, value))
        for name, value in facts.items()
    ]
    return h("table", {"class": "facts"}, rows)


def _rounded(dtype: str) -> str:
    """What to say of numbers that were rounded more than they need be."""
    return f": {WHAT}" if dtype in HALF else ""


def _section(
    study: Study,
    claims: list[ToldClaim],
    title: str,
    charts: tuple[str, ...],
    names: tuple[str, ...],
    meaning: str,
) -> list[Element]:
    """One finding: its verdict, what it means, its charts."""
    spoken = [claim.row["verdict"] for claim in claims if claim.row["claim"] in names]
    badges = [(" ", badge(verdict)) for verdict in dict.fromkeys(spoken)]
    drawn = [_chart(study, chart) for chart in charts]
    return [
        h("h2", None, title, badges),
        h(
            "div",
            {"class": "finding"},
            h("p", None, meaning),
            h("div", {"class": "charts"}, drawn),
        ),
    ]


def _added(study: Study, section: Section) -> list[Element]:
    """What was added to the study by one verb, and from what."""
    how = study.manifest.added[section.verb]
    chosen = ", ".join(f"{name} {value}" for name, value in how.parameters.items())
    read = f"From {how.documents:,} documents, {how.tokens:,} tokens; {chosen}."
    more: list[Content] = section.more(study) if section.more else []
    return [
        h("h2", None, section.title),
        h(
            "div",
            {"class": "finding whole" if section.wide else "finding"},
            h(
                "div",
                None,
                h("p", None, section.meaning),
                h("p", None, h("small", None, read)),
                more,
            ),
            h("div", {"class": "charts"}, [_chart(study, name) for name in section.figures]),
        ),
    ]


def _chart(study: Study, name: str) -> Element:
    try:
        drawn = svg(figures.as_svg(figures.FIGURES[name](study)), name)
    except CannotDraw as error:
        return h("p", None, str(error))
    shown = [_definition(DEFINITIONS[one]) for one in figures.quantities(study, name)]
    table = study.table("heads")
    heads = set(zip(table["layer"].to_pylist(), table["head"].to_pylist(), strict=True))
    return h("figure", None, with_links(drawn, heads), h("figcaption", None, shown))


def _definition(of: Definition) -> Element:
    """What a quantity is, as the method page has it."""
    chance = f" By chance: {of.chance}." if of.chance else ""
    return h("p", None, h("b", None, of.name.replace("_", " ")), f": {of.says}.{chance}")


def _heads(study: Study, view: View) -> list[Element]:
    """A grid of labels, each leading to the head's card."""
    heads = study.table("heads").to_pylist()
    anchors = defaultdict(list)
    for row in study.rows("anchors"):
        if row["kind"] == "word" and view.has(row):
            anchors[row["layer"], row["head"]].append(row)
    examples = defaultdict(list)
    for row in study.rows("examples"):
        if view.has(row):
            examples[row["layer"], row["head"]].append(row)
    told, of_texts = told_of_heads(study), study.manifest.corpus.kind == "text"
    count = study.manifest.model.heads
    cells = [h("span", None), *(h("span", {"class": "at"}, head + 1) for head in range(count))]
    cards = []
    kinds: dict[str, int] = {}
    for row in heads:
        at = row["layer"], row["head"]
        if row["head"] == 1:
            cells.append(h("span", {"class": "at"}, row["layer"]))
        first, *others = row["labels"]
        number = kinds.setdefault(first.split(":")[0], len(kinds)) % 10
        said = "; ".join(row["labels"])
        link = {"class": f"cell k{number}", "href": f"#{card_name(at)}", "title": said}
        cells.append(h("a", link, first, h("small", None, f" +{len(others)}") if others else None))
        cards.append(_card(row, anchors[at], examples[at], told.get(at, []), of_texts))
    return [
        h(
            "p",
            None,
            "A row is a layer, a column a head, both counted from 1. A head has every label that "
            "fits its numbers; the grid gives the strongest, and how many there are besides. "
            "Follow it to the head's card. Pairs are looked at in the "
            f"view that is told: {view}.",
        ),
        h("div", {"class": "grid"}, cells),
        h("details", {"class": "cards"}, h("summary", None, "The cards of all heads"), cards),
    ]


def _card(
    row: Row, anchors: list[Row], examples: list[Row], told: list[Row], of_texts: bool
) -> Element:
    ranked = sorted(anchors, key=lambda a: a["rank"])[:5]
    words = [
        (", " if number else "", h("b", None, anchor["type"]), f" {anchor['share']:.0%}")
        for number, anchor in enumerate(ranked)
    ]
    where = f"Layer {row['layer']}, head {row['head']}: "
    labels = list(zip(row["labels"], row["strengths"], row["evidence"], strict=True))
    # The name is inside the card, so that a browser opens the card it leads to.
    inside = h(
        "div",
        {"id": card_name((row["layer"], row["head"]))},
        h("ul", {"class": "labels"}, [_label(*said) for said in labels]),
        [_number(one) for one in told],
        h("p", None, "Words at the ends of its high pairs: ", words or "none", ".")
        if of_texts
        else None,
        h("ul", None, [_example(example) for example in examples]) if of_texts else None,
    )
    return h(
        "details", None, h("summary", None, where, h("b", None, ", ".join(row["labels"]))), inside
    )


def _label(name: str, strength: float, evidence: str) -> Element:
    beyond = h("small", None, f" strength {strength:.2f}")
    return h("li", None, h("b", None, name), f": {evidence}", beyond)


def _number(row: Row) -> Element:
    """A quantity that was added, with its interval."""
    of = DEFINITIONS[row["quantity"]]
    low, high = row["low"], row["high"]
    interval = "" if low is None or high is None else f" [{low:.3g}, {high:.3g}]"
    name = of.name.replace("_", " ")
    value = f": {row['value']:.3g}"
    return h("p", {"title": of.says}, name, value, h("small", None, f"{interval} {of.unit}"))


def _example(row: Row) -> Element:
    return h(
        "li",
        None,
        h("span", {"class": "n"}, f"{row['similarity']:.3g}"),
        " ",
        _marked(row["first_context"]),
        " ",
        h("span", {"class": "with"}, "with"),
        " ",
        _marked(row["second_context"]),
        " ",
        h("small", None, f"distance {row['distance']}, {row['source']}", _shows(row)),
    )


def _shows(row: Row) -> str:
    """Which label a pair shows; one that shows none was drawn from all high ones."""
    shows = row.get("shows")
    return f"; shows: {shows}" if shows else ""


def _marked(context: str) -> Element:
    """A context whose token stands in [brackets]: the token in bold."""
    before, found, rest = context.partition("[")
    token, closed, after = rest.rpartition("]") if rest.count("]") == 1 else rest.partition("]")
    if not (found and closed):
        return h("q", None, context)
    return h("q", None, "…", before, h("mark", None, token), after, "…")


def _skipped(study: Study) -> list[Element]:
    rows = study.table("skipped").to_pylist()
    if not rows:
        return [h("p", None, "Every document could be read.")]
    shown = [
        h("li", None, f"{row['source']}, line {row['line']}: {row['reason']}") for row in rows[:50]
    ]
    more = h(
        "p", None, f"And {len(rows) - 50:,} more: see the table ", h("code", None, "skipped"), "."
    )
    return [h("ul", None, shown), *([more] if len(rows) > 50 else [])]


def _command(said: Manifest) -> str:
    """The command that makes this study again."""
    corpus, chosen = said.corpus, said.parameters
    words = ["headscope", "study", corpus.name, "--out", "STUDY"]
    if said.model.name != "specimen":
        words += ["--model", said.model.name]
    if corpus.document != "file":
        words += ["--document", corpus.document]
    if corpus.column != "text":
        words += ["--column", corpus.column]
    if corpus.files:
        words += ["--files", corpus.files]
    words += ["--rule", chosen.rule]
    for reading in chosen.readings:
        words += ["--reading", reading]
    if len(chosen.special) == 1:
        words += ["--special", chosen.special[0]]
    for null in chosen.nulls or ["none"]:
        words += ["--null", null]
    if chosen.sweep:
        words.append("--sweep")
    usual = Parameters()
    if chosen.nulls and chosen.null_tokens != usual.null_tokens:
        words += ["--null-tokens", str(chosen.null_tokens)]
    if chosen.texts != usual.texts and corpus.kind == "text":
        words += ["--texts", str(chosen.texts)]
    if chosen.window:
        words += ["--window", str(chosen.window)]
    if chosen.language != "en":
        words += ["--language", chosen.language]
    if chosen.group != "document" or corpus.document != "file":
        words += ["--group", chosen.group]
    return shlex.join([*words, "--seed", str(chosen.seed)])
