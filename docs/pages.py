"""Pages of the site that are not written as pages: made anew whenever the site is built.

Files that stand elsewhere in the project (the README is the home page), the reference of the
command line, which the commands themselves say, and the gallery, whose figures are made by the
commands beside them. MkDocs calls the functions whose names begin with `on_`.
"""

import re
import sys
from pathlib import Path
from posixpath import dirname, normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from commands import command_reference
from gallery import gallery

ROOT = Path(__file__).parent.parent
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/RESULTS.md": "results.md",
    "benchmarks/results/pairs.md": "results/pairs.md",
    "benchmarks/results/study.md": "results/study.md",
    "benchmarks/results/effects.md": "results/effects.md",
    "benchmarks/results/segmentation.md": "results/segmentation.md",
    "src/headscope/specimen/MODEL_CARD.md": "specimen.md",
    "training/README.md": "training.md",
}
"""Where a file of the project is on the site."""

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    made: dict[str, str | bytes] = {"commands.md": command_reference()}
    made |= gallery()
    for source, page in ELSEWHERE.items():
        made[page] = linked((ROOT / source).read_text(encoding="utf-8"), source, page)
    for image in ("benchmarks/pairs.svg",):
        made[Path(image).name] = (ROOT / image).read_bytes()
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to files of the project into links of the site."""
    uri = page.file.src_uri
    return markdown if page.file.generated_by else linked(markdown, f"docs/{uri}", uri)


def linked(markdown: str, source: str, page: str) -> str:
    """The text of a file with links as they are on the site; what is not on it is only named."""

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        path, _, anchor = target.partition("#")
        file = normpath(f"{dirname(source)}/{path}".lstrip("/"))
        if file in ELSEWHERE:
            there = ELSEWHERE[file]
        elif file.startswith("docs/"):
            there = file.removeprefix("docs/")
        elif mark:
            there = Path(file).name  # of `on_files`
        else:
            return words
        to = relpath(there, dirname(page) or ".")
        return f"{mark}[{words}]({to}{'#' + anchor if anchor else ''})"

    # Code stays as it is; but the words of a link may hold some.
    kept: list[str] = []

    def hide(code: re.Match[str]) -> str:
        kept.append(code[0])
        return f"\x00{len(kept) - 1}\x00"

    hidden = re.sub(r"```.*?```|`[^`\n]+`", hide, markdown, flags=re.DOTALL)
    return re.sub(r"\x00(\d+)\x00", lambda one: kept[int(one[1])], LINK.sub(link, hidden))
