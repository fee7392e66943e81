"""Measures the heads of every checkpoint of a training run on held-out pairs of 128 tokens.

    python training/heads.py OUT_FOLDER PREPARED_FOLDER training/checkpoints.json

The definitions are those of headscope's method page (focus and row entropy); the code is apart from
the package on purpose, so that either can check the other.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from evaluate import CLS, SEP, held_out_windows, masked
from prepare import read_stream
from safetensors.torch import load_file
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM


def load(path: Path) -> BertForMaskedLM:
    model = BertForMaskedLM(BertConfig.from_pretrained(path.parent))
    model.load_state_dict(load_file(path), strict=False)
    model.set_attn_implementation("eager")
    return model.float().eval()


def pairs(stream: dict[str, np.ndarray], count: int, length: int = 128) -> tuple[Tensor, Tensor]:
    """`[CLS] A [SEP] B [SEP]` from the beginning of documents, cut at a sentence end near half."""
    starts = np.cumsum(stream["sentence_lengths"], dtype=np.int64) - stream["sentence_lengths"]
    ends = np.cumsum(stream["document_lengths"], dtype=np.int64)
    ids, kinds = [], []
    for begin, end in zip(ends - stream["document_lengths"], ends, strict=True):
        middle = starts[np.searchsorted(starts, begin + length // 3)]
        if end - begin < length or middle - begin > length * 3 // 4 or len(ids) == count:
            continue
        a, b = stream["ids"][begin:middle], stream["ids"][middle : begin + length - 3]
        ids.append([CLS, *a.tolist(), SEP, *b.tolist(), SEP])
        kinds.append([0] * (len(a) + 2) + [1] * (len(b) + 1))
    return torch.tensor(ids), torch.tensor(kinds)


@torch.no_grad()
def focus(model: BertForMaskedLM, ids: Tensor, kinds: Tensor) -> dict[str, Tensor]:
    """Means over texts and rows, each of shape (layers, heads)."""
    found: dict[str, list[Tensor]] = {}
    for one, kind in zip(ids.split(8), kinds.split(8), strict=True):
        attentions = model(input_ids=one, token_type_ids=kind, output_attentions=True).attentions
        a = torch.stack(attentions, dim=1)  # texts, layers, heads, from, to
        separators = (one == SEP).float()[:, None, None, None, :]
        each = {
            "entropy": -(a * a.clamp(min=1e-12).log()).sum(-1).mean(-1),
            "separator": (a * separators).sum(-1).mean(-1),
            "first": a[..., 0].mean(-1),
            "previous": a.diagonal(-1, -2, -1).mean(-1),
            "next": a.diagonal(1, -2, -1).mean(-1),
            "own": a.diagonal(0, -2, -1).mean(-1),
        }
        for name, value in each.items():
            found.setdefault(name, []).append(value)
    return {name: torch.cat(values).mean(0) for name, values in found.items()}


def summary(measures: dict[str, Tensor], chance: float) -> dict:
    """The few numbers of a checkpoint that go into the table; layers and heads count from 1."""
    heads = measures["entropy"].shape[1]

    def best(name: str) -> list:
        place = int(measures[name].argmax())
        return [place // heads + 1, place % heads + 1, round(float(measures[name].max()), 4)]

    def by_layer(values: Tensor) -> list[float]:
        return [round(v, 3) for v in values.tolist()]

    return {
        "entropy_by_layer": by_layer(measures["entropy"].mean(1)),
        "entropy_deviation_of_heads": round(float(measures["entropy"].std()), 4),
        "previous_token_heads": int((measures["previous"] > 0.5).sum()),
        "next_token_heads": int((measures["next"] > 0.5).sum()),
        "best_previous": best("previous"),
        "best_next": best("next"),
        "separator_over_chance_by_layer": by_layer(measures["separator"].mean(1) / chance),
        "best_separator": best("separator"),
        "first_token_by_layer": by_layer(measures["first"].mean(1)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="the folder of the checkpoints and log.jsonl")
    parser.add_argument("prepared", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    stream = read_stream(args.prepared / "held_out.stream.xz")
    ids, kinds = pairs(stream, 64)
    chance = float((ids == SEP).float().mean())
    windows, documents = held_out_windows(stream, 128, most=1020)
    windows, documents = windows[::6], documents[::6]
    records = [json.loads(line) for line in (args.run / "log.jsonl").read_text().splitlines()]
    final = next(r["finished"]["steps"] for r in reversed(records) if "finished" in r)

    rows = []
    for path in [*sorted(args.run.glob("step*.safetensors")), args.run / "final.safetensors"]:
        step = final if path.stem == "final" else int(path.stem.removeprefix("step"))
        model = load(path)
        row = {"step": step, "texts": len(ids), "separator_chance": round(chance, 4)}
        row |= summary(focus(model, ids, kinds), chance)
        result = masked(model, windows, documents)
        row |= {"masked_loss_128": round(result["loss"], 3)}
        row |= {"masked_accuracy_128": round(result["accuracy"], 4)}
        rows.append(row)
        print(json.dumps(row), flush=True)
        args.out.write_text("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")


if __name__ == "__main__":
    main()
