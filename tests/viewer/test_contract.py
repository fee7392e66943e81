"""What Python hands to the viewer is what the viewer's JavaScript is type-checked against."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.viewer.packed import packed
from headscope.viewer.studied import packed_study
from viewer.test_packed import unpacked

CHECKS = Path(__file__).parents[1] / "javascript"
TYPES = Path(hs.__file__).parent / "viewer" / "static"
TSC = CHECKS / "node_modules" / ".bin" / "tsc"

pytestmark = pytest.mark.skipif(
    not (TSC.exists() and shutil.which("node")),
    reason="needs the checks of the viewer's JavaScript: npm ci in tests/javascript",
)


def complaints(folder: Path, kind: str, value: Any) -> str:
    """What the type checker says of a value from Python as one of the viewer's types."""
    said = json.dumps(value, ensure_ascii=True)
    (folder / "value.ts").write_text(
        f'import type {{ {kind} }} from "headscope/types.js";\n'
        f"export const value: {kind} = {said};\n"
    )
    (folder / "tsconfig.json").write_text(
        json.dumps(
            {
                "extends": str(CHECKS / "tsconfig.base.json"),
                "compilerOptions": {
                    "lib": ["es2024", "dom"],
                    "paths": {"headscope/*": [str(TYPES / "*")]},
                },
                "files": ["value.ts"],
            }
        )
    )
    ran = subprocess.run([TSC, "-p", folder], capture_output=True, text=True, timeout=120)
    assert ran.returncode in (0, 1, 2), ran.stderr
    return ran.stdout


def test_a_reading_is_as_the_viewer_expects_it(tiny: hs.Scope, tmp_path: Path) -> None:
    text = "The keeper lit the lamp. The lamp burned all night, and the keeper slept. "
    for reading in (tiny.read(text), tiny.ablate([(2, 3)]).read(text * 6)):
        header, _ = unpacked(packed(reading))
        assert complaints(tmp_path, "Header", header) == ""
    assert header["windows"] > 1
    del header["tokens"]["word_type"]
    assert "word_type" in complaints(tmp_path, "Header", header)  # the check can fail


def test_a_study_is_as_the_viewer_expects_it(tiny: hs.Scope, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The keeper lit the lamp. The fog came in.\n\nA ship passed in the fog.")
    study = packed_study(tiny.study(corpus, tmp_path / "study", document="paragraph"))
    assert complaints(tmp_path, "Study", study) == ""
    assert "surprise" in complaints(tmp_path, "Study", study | {"surprise": 1})
