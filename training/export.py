"""Puts a checkpoint, its configuration and the tokenizer together as the folder that is shipped.

    python training/export.py OUT_FOLDER/final.safetensors PREPARED_FOLDER/tokenizer SPECIMEN_FOLDER

Weights stay float16 on disk; the configuration asks for float32, which is faster and exact on CPUs.
"""

import argparse
import json
import shutil
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("specimen", type=Path)
    args = parser.parse_args()
    args.specimen.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(args.checkpoint, args.specimen / "model.safetensors")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(args.tokenizer / name, args.specimen / name)
    config = json.loads((args.checkpoint.parent / "config.json").read_text())
    config |= {"architectures": ["BertForMaskedLM"], "dtype": "float32"}
    config.pop("transformers_version", None)
    text = json.dumps(config, indent=2, sort_keys=True) + "\n"
    (args.specimen / "config.json").write_text(text)


if __name__ == "__main__":
    main()
