"""The five-minute start does what it says: its code is run as it stands, from top to bottom."""

import re
import subprocess
import sys
from pathlib import Path

import headscope as hs

PAGE = Path(__file__).parents[2] / "docs" / "start.md"


def test_the_five_minute_start_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study-me.txt").write_text(hs.sample_text(), encoding="utf-8")
    blocks = re.findall(r"```(python|bash)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert [language for language, _ in blocks].count("python") >= 6
    names: dict[str, object] = {}
    for language, code in blocks:
        if language == "python":
            exec(compile(code, str(PAGE), "exec"), names)
            continue
        for line in code.strip().splitlines():
            verb = line.split()
            assert verb[0] == "headscope", line
            done = subprocess.run(
                [sys.executable, "-m", *verb], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{line}: {done.stderr}"
    said = capsys.readouterr().out
    assert "(27, 27) (27, 27)" in said  # tokens × tokens
    assert "repetition_heads" in said
    for page in ("reading.html", "report.html", "report-2.html", "range.svg"):
        assert (tmp_path / page).stat().st_size > 1000, page
