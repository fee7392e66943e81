"""The small tokenizers that tests read with: whether a test passes must not be a matter of luck."""

import json
import subprocess
import sys
from pathlib import Path

import headscope as hs
from tiny import SPECIAL, TOKENIZERS, wordpiece

HERE = Path(__file__).parent
SHOW = "import json, test_tiny; print(json.dumps(test_tiny.as_they_are()))"


def as_they_are() -> dict[str, list[object]]:
    """All that a tokenizer holds, and how it reads the sample text."""
    made = {name: make() for name, make in TOKENIZERS.items()}
    return {
        name: [each.backend_tokenizer.to_str(), each.encode(hs.sample_text())]
        for name, each in made.items()
    }


def test_tokenizers_are_the_same_in_every_process() -> None:
    there = subprocess.run(
        [sys.executable, "-c", SHOW], cwd=HERE, capture_output=True, text=True, check=True
    )
    assert json.loads(there.stdout) == as_they_are()


def test_word_pieces_are_few_and_special_tokens_are_only_those_of_bert() -> None:
    tokenizer = wordpiece()
    assert sorted(tokenizer.all_special_tokens) == sorted(SPECIAL)
    assert 500 < len(tokenizer) < 600
    assert tokenizer.tokenize("The lighthouse xylophone")[-1].startswith("##")
    assert tokenizer.unk_token_id not in tokenizer.encode(hs.sample_text())
