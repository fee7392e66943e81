"""The report of a study: one page that needs no other file and no network.

Verdicts come first, then each finding with its chart and what it means, then every head with its
card. Charts are SVG inside the page; whatever comes from the corpus is escaped.
"""

import re
import shlex
from collections import defaultdict
from html import escape
from importlib.resources import files
from typing import Any

import vl_convert

from headscope import figures
from headscope.store import Study

Row = dict[str, Any]

# For each section: its charts, the claims it speaks of, and what it means in plain words.
SECTIONS = (
    (
        "Separators",
        ("focus",),
        ("separators",),
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
        "more often than by chance the high pairs of a head are a word and its repetition.",
    ),
    (
        "Anchors",
        ("anchor", "uniqueness"),
        ("common_token_heads", "unique_anchors"),
        "The anchor of a head is the word most often at an end of its high pairs. If each head "
        "has a token of its own, there are nearly as many anchors as heads.",
    ),
    (
        "Noise",
        ("noise", "snr"),
        ("noise",),
        "A high pair is unrelated when its tokens are in different sentences, far apart, different "
        "words, and not special. The signal-to-noise ratio is the distance between the mean "
        "similarity of related and unrelated pairs, in standard deviations of the latter.",
    ),
)


def study_page(study: Study) -> str:
    """The whole page."""
    said = study.manifest
    style = files("headscope").joinpath("report/study_page.css").read_text(encoding="utf-8")
    title = f"{said['model']['name']} on {said['corpus']['name']}"
    claims = study.table("findings").to_pylist()
    body = [
        f"<h1>What the heads of {escape(said['model']['name'])} do</h1>",
        _run(said),
        "<h2>Findings</h2>",
        _findings(claims),
        *[_section(study, claims, *section) for section in SECTIONS],
        "<h2>Every head</h2>",
        _heads(study),
        "<h2>What was left out</h2>",
        _skipped(study),
        "<h2>Repeat it</h2>",
        f"<pre><code>{escape(_command(said))}</code></pre>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<title>headscope: {escape(title)}</title><style>{style}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _run(said: Row) -> str:
    """What was run, in a sentence and a table."""
    model, corpus, chosen = said["model"], said["corpus"], said["parameters"]
    facts = {
        "model": f"{model['name']}: {model['family']}, {model['layers']} layers × "
        f"{model['heads']} heads × {model['head_size']}",
        "corpus": f"{corpus['name']}: {corpus['documents']:,} documents, {corpus['tokens']:,} "
        f"tokens, {corpus['skipped']:,} skipped",
        "high pairs": f"{chosen['rule']}, {', '.join(chosen['readings'])}; special tokens "
        + " and ".join(word.replace("_", " ") for word in chosen["special"]),
        "nulls": ", ".join(chosen["nulls"]) or "none run",
        "intervals": f"95 %, over documents, {chosen['replicates']} replicates, seed "
        f"{chosen['seed']}",
        "made with": f"headscope {said['headscope']}, torch {said['torch']}, transformers "
        f"{said['transformers']}",
    }
    rows = "".join(
        f"<tr><th scope='row'>{name}</th><td>{escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table class='facts'>{rows}</table>"


def _findings(claims: list[Row]) -> str:
    """One row a claim; where special tokens were kept and left out, a row for each."""
    rows = []
    for row in claims:
        if row["mode"] != "real":
            continue
        special = f" ({row['special'].replace('_', ' ')})" if row["special"] else ""
        null = f"{row['null_value']:.3g}" if row["null_value"] is not None else ""
        trend = f"{row['trend']:+.2f} (p {row['trend_p']:.2g})" if row["trend"] is not None else ""
        value = (
            f"{row['value']:.3g} <small>[{row['low']:.3g}, {row['high']:.3g}]</small>"
            if row["value"] is not None
            else "–"
        )
        rows.append(
            f"<tr><td>{_badge(row['verdict'])}</td><td>{escape(row['says'])}{special}</td>"
            f"<td>{escape(row['statistic'] or '')}</td><td class='n'>{value}</td>"
            f"<td class='n'>{row['threshold']:g}</td><td class='n'>{null}</td>"
            f"<td class='n'>{trend}</td><td>{escape(row['reason'] or '')}</td></tr>"
        )
    names = ("verdict", "claim", "tested by", "value [95 %]", "must pass", "null", "trend", "why")
    head = "".join(f"<th scope='col'>{name}</th>" for name in names)
    return (
        "<p>Each claim of the paper, the number that tests it, and a verdict by a fixed rule: it "
        "holds when the whole interval lies above the threshold, the trend over layers goes the "
        "right way, and random weights, where they were run, do not do the same.</p>"
        f"<div class='wide'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _badge(verdict: str) -> str:
    kind = verdict.replace(" ", "-")
    return f"<span class='verdict {escape(kind)}'>{escape(verdict)}</span>"


def _section(
    study: Study,
    claims: list[Row],
    title: str,
    charts: tuple[str, ...],
    names: tuple[str, ...],
    meaning: str,
) -> str:
    """One finding: its verdict, what it means, its charts."""
    spoken = {row["verdict"] for row in claims if row["claim"] in names and row["mode"] == "real"}
    badges = " ".join(_badge(verdict) for verdict in sorted(spoken))
    drawn = []
    for chart in charts:
        try:
            spec = figures.FIGURES[chart](study).to_dict()
        except figures.CannotDraw as error:
            drawn.append(f"<p>{escape(str(error))}</p>")
        else:
            drawn.append(f"<figure>{_own_names(vl_convert.vegalite_to_svg(spec), chart)}</figure>")
    return f"<h2>{title} {badges}</h2><p>{meaning}</p><div class='charts'>{''.join(drawn)}</div>"


def _own_names(svg: str, chart: str) -> str:
    """The renderer counts gradients and clips over its lifetime; count them within the chart."""
    names: dict[str, str] = {}
    return re.sub(
        r'(id="|url\(#)((?:gradient_|clip)\d+)',
        lambda found: found[1] + names.setdefault(found[2], f"{chart}-{len(names)}"),
        svg,
    )


def _heads(study: Study) -> str:
    """A grid of labels, each leading to the head's card."""
    heads = study.table("heads").to_pylist()
    anchors = defaultdict(list)
    for row in study.table("anchors").to_pylist():
        if row["kind"] == "word" and row["special"] == figures.without_special(study):
            anchors[row["layer"], row["head"]].append(row)
    examples = defaultdict(list)
    for row in study.table("examples").to_pylist():
        if row["special"] == figures.without_special(study):
            examples[row["layer"], row["head"]].append(row)
    count = max(row["head"] for row in heads)
    cells = ["<span></span>", *(f"<span class='at'>{head}</span>" for head in range(1, count + 1))]
    cards = []
    kinds: dict[str, int] = {}
    for row in heads:
        at = row["layer"], row["head"]
        if row["head"] == 1:
            cells.append(f"<span class='at'>{row['layer']}</span>")
        kind = row["label"].split(":")[0]
        number = kinds.setdefault(kind, len(kinds))
        cells.append(
            f"<a class='cell k{number % 10}' href='#head-{at[0]}-{at[1]}' "
            f"title='{escape(row['evidence'], quote=True)}'>{escape(row['label'])}</a>"
        )
        cards.append(_card(row, anchors[at], examples[at]))
    return (
        "<p>A row is a layer, a column a head, both counted from 1. The label is the first rule "
        "that fits the head's numbers; follow it to its card.</p>"
        f"<div class='grid' style='--heads:{count}'>{''.join(cells)}</div>{''.join(cards)}"
    )


def _card(row: Row, anchors: list[Row], examples: list[Row]) -> str:
    words = ", ".join(
        f"<b>{escape(a['type'])}</b> {a['share']:.0%}"
        for a in sorted(anchors, key=lambda a: a["rank"])[:5]
    )
    pairs = "".join(
        f"<li><span class='n'>{e['similarity']:.3g}</span> {_marked(e['first_context'])} "
        f"<span class='with'>with</span> {_marked(e['second_context'])} "
        f"<small>distance {e['distance']}, {escape(str(e['source']))}</small></li>"
        for e in examples
    )
    # The name is inside the card, so that a browser opens the card it leads to.
    return (
        f"<details><summary>Layer {row['layer']}, head {row['head']}: "
        f"<b>{escape(row['label'])}</b></summary><div id='head-{row['layer']}-{row['head']}'>"
        f"<p>{escape(row['evidence'])} (strength {row['strength']:.2f}).</p><p>Words at the ends "
        f"of its high pairs: {words or 'none'}.</p><ul>{pairs}</ul></div></details>"
    )


def _marked(context: str) -> str:
    """A context whose token stands in [brackets]: the token in bold."""
    before, found, rest = context.partition("[")
    token, closed, after = rest.rpartition("]") if rest.count("]") == 1 else rest.partition("]")
    if not (found and closed):
        return f"<q>{escape(context)}</q>"
    return f"<q>…{escape(before)}<mark>{escape(token)}</mark>{escape(after)}…</q>"


def _skipped(study: Study) -> str:
    rows = study.table("skipped").to_pylist()
    if not rows:
        return "<p>Every document could be read.</p>"
    shown = "".join(
        f"<li>{escape(str(row['source']))}, line {row['line']}: {escape(row['reason'])}</li>"
        for row in rows[:50]
    )
    more = f"<p>And {len(rows) - 50:,} more: see the table <code>skipped</code>.</p>"
    return f"<ul>{shown}</ul>{more if len(rows) > 50 else ''}"


def _command(said: Row) -> str:
    """The command that makes this study again."""
    corpus, chosen = said["corpus"], said["parameters"]
    words = ["headscope", "study", corpus["name"], "--out", "STUDY"]
    if said["model"]["name"] != "specimen":
        words += ["--model", said["model"]["name"]]
    if corpus["cut"] != "file":
        words += ["--document", corpus["cut"]]
    if corpus["column"] != "text":
        words += ["--column", corpus["column"]]
    if corpus["pattern"]:
        words += ["--files", corpus["pattern"]]
    words += ["--rule", chosen["rule"]]
    for reading in chosen["readings"]:
        words += ["--reading", reading]
    if len(chosen["special"]) == 1:
        words += ["--special", chosen["special"][0]]
    for null in chosen["nulls"]:
        words += ["--null", null]
    if chosen["sweep"]:
        words.append("--sweep")
    if chosen["window"]:
        words += ["--window", str(chosen["window"])]
    if chosen["language"] != "en":
        words += ["--language", chosen["language"]]
    return shlex.join([*words, "--seed", str(chosen["seed"])])
