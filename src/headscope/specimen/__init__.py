"""The bundled specimen: a 12-layer, 12-head BERT with its tokenizer, trained for headscope.

`FOLDER` is what `AutoModelForMaskedLM.from_pretrained` takes; MODEL_CARD.md there says the rest."""

from pathlib import Path

FOLDER = Path(__file__).parent
