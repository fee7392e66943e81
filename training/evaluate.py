"""Evaluates an exported folder through plain transformers: masked loss, cloze sentences, speed.

    python training/evaluate.py SPECIMEN_FOLDER PREPARED_FOLDER --other gum=dev.sents.jsonl

Masking is BERT's (15 % of the tokens; of these 80 % [MASK], 10 % another word, 10 % kept) unless a
row says otherwise. Intervals are 95 % bootstrap intervals over documents.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from prepare import read_stream
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoTokenizer

CLS, SEP, MASK, FIRST_WORD = 2, 3, 4, 5
TOKENS_A_DOCUMENT = 510  # of a long document only the beginning: every document counts alike
CLOZE = Path(__file__).parent / "cloze.json"


def cut(ids: list[int], length: int, most: int | None = None) -> list[list[int]]:
    """Full windows `[CLS] text [SEP]` of `length` tokens, side by side from the beginning."""
    inner = length - 2
    begins = range(0, min(len(ids), most or len(ids)) - inner + 1, inner)
    return [[CLS, *ids[b : b + inner], SEP] for b in begins]


def mask(ids: Tensor, way: str, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Masked ids and the places to predict, for whole windows without padding."""
    places = torch.rand(ids.shape, generator=generator) < 0.15
    places[:, 0] = places[:, -1] = False
    fate = torch.rand(ids.shape, generator=generator)
    if way == "all [MASK]":
        fate.zero_()
    anything = torch.randint(FIRST_WORD, 8192, ids.shape, generator=generator)
    new = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, anything, ids))
    return torch.where(places, new, ids), places


@torch.no_grad()
def masked_sums(model, windows: list[list[int]], documents: list[int], way: str) -> np.ndarray:
    """Sums over the masked places of each document: loss, right ones, places."""
    generator = torch.Generator().manual_seed(0)
    sums = np.zeros((max(documents) + 1, 3))
    batch = max(1, 4096 // len(windows[0]))
    for begin in range(0, len(windows), batch):
        ids = torch.tensor(windows[begin : begin + batch])
        hidden, places = mask(ids, way, generator)
        logits = model(input_ids=hidden).logits
        each = torch.nn.functional.cross_entropy(logits[places], ids[places], reduction="none")
        right = logits[places].argmax(-1) == ids[places]
        rows = torch.tensor(documents[begin : begin + batch])[places.nonzero()[:, 0]]
        values = torch.stack([each, right.float(), torch.ones_like(each)], dim=1)
        np.add.at(sums, rows.numpy(), values.double().numpy())
    return sums


def figures_of(sums: np.ndarray) -> dict:
    """Loss and accuracy over all masked places, with intervals over documents."""
    sums = sums[sums[:, 2] > 0]
    draws = np.random.default_rng(0).integers(len(sums), size=(2000, len(sums)))
    totals = sums[draws].sum(1)
    loss, right = (totals[:, i] / totals[:, 2] for i in (0, 1))
    return {
        "loss": float(sums[:, 0].sum() / sums[:, 2].sum()),
        "loss_interval": np.quantile(loss, [0.025, 0.975]).tolist(),
        "accuracy": float(sums[:, 1].sum() / sums[:, 2].sum()),
        "accuracy_interval": np.quantile(right, [0.025, 0.975]).tolist(),
        "documents": len(sums),
        "places": int(sums[:, 2].sum()),
    }


def masked(model, windows: list[list[int]], documents: list[int], way: str = "BERT") -> dict:
    return figures_of(masked_sums(model, windows, documents, way))


def held_out_windows(
    stream: dict[str, np.ndarray], length: int, most: int = TOKENS_A_DOCUMENT
) -> tuple[list[list[int]], list[int]]:
    """The windows of all held-out documents long enough, and the number of each one's document."""
    ends = np.cumsum(stream["document_lengths"], dtype=np.int64)
    pieces = np.split(stream["ids"], ends[:-1])
    windows, documents = [], []
    for number, piece in enumerate(pieces):
        found = cut(piece.tolist(), length, most)
        windows += found
        documents += [number] * len(found)
    return windows, documents


def familiar(prepared: Path, held: dict[str, np.ndarray], span: int = 13) -> np.ndarray:
    """For each held-out document the share of its runs of 13 tokens that training text has too."""

    def hashes(ids: np.ndarray) -> np.ndarray:
        total = np.zeros(len(ids) - span + 1, dtype=np.uint64)
        for k in range(span):
            total = total * np.uint64(1_000_003) + ids[k : len(ids) - span + 1 + k]
        return total

    train = read_stream(prepared / "train.stream.xz")["ids"]
    mine = hashes(held["ids"].astype(np.uint64))
    seen: set[int] = set()
    for begin in range(0, len(train), 4_000_000):
        part = train[begin : begin + 4_000_000 + span - 1].astype(np.uint64)
        if len(part) >= span:
            seen.update(np.intersect1d(mine, hashes(part)).tolist())
    known = np.isin(mine, np.array(sorted(seen), dtype=np.uint64))
    ends = np.cumsum(held["document_lengths"], dtype=np.int64)
    begins = ends - held["document_lengths"]
    return np.array(
        [known[b : max(b + 1, e - span + 1)].mean() for b, e in zip(begins, ends, strict=True)]
    )


@torch.no_grad()
def cloze(model, tokenizer) -> dict:
    """Share of the cloze sentences whose word is among the five likeliest, by kind."""
    shares, missed = {}, []
    for kind, sentences in json.loads(CLOZE.read_text()).items():
        right = 0
        for sentence, word in sentences:
            encoded = tokenizer(sentence, return_tensors="pt")
            at = (encoded["input_ids"][0] == MASK).nonzero().item()
            top = model(**encoded).logits[0, at].topk(5).indices.tolist()
            if word in tokenizer.convert_ids_to_tokens(top):
                right += 1
            else:
                missed.append([sentence, word, tokenizer.convert_ids_to_tokens(top)])
        shares[kind] = [right, len(sentences)]
    return {"right_of": shares, "missed": missed}


@torch.no_grad()
def seconds_for_512(model) -> dict:
    """The quickest of 20 passes, by the clock and in processor time (for a busy machine)."""
    ids = torch.randint(FIRST_WORD, 8192, (1, 512))
    found = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        times = []
        for _ in range(20):
            begin = time.perf_counter(), time.process_time()
            model(input_ids=ids)
            times.append([time.perf_counter() - begin[0], time.process_time() - begin[1]])
        clock, processor = np.min(times, axis=0).tolist()
        found[f"{threads} threads"] = {"clock": clock, "processor": processor}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("specimen", type=Path)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("--other", action="append", default=[], help="name=file.jsonl with `text`")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    args = parser.parse_args()
    model = AutoModelForMaskedLM.from_pretrained(args.specimen).eval()
    tokenizer = AutoTokenizer.from_pretrained(args.specimen)
    figures: dict = {}

    def note(name: str, value: dict) -> None:
        figures[name] = value
        print(name, json.dumps(value), flush=True)
        if args.out:
            args.out.write_text(json.dumps(figures, indent=1) + "\n")

    note("cloze", cloze(model, tokenizer))
    for pair in args.other:
        name, path = pair.split("=")
        with open(path, encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines]
        joined = tokenizer("\n".join(texts), add_special_tokens=False, verbose=False)["input_ids"]
        windows = cut(joined, 512)
        for way in ("BERT", "all [MASK]"):
            value = masked(model, windows, list(range(len(windows))), way)
            note(f"{name}, 512 tokens, {way}", value)
    held = read_stream(args.prepared / "held_out.stream.xz")
    share = familiar(args.prepared, held)
    note("familiar", {"mean_share": share.mean(), "under_1_percent": int((share < 0.01).sum())})
    for length in (128, 512, 32, 256):
        sums = masked_sums(model, *held_out_windows(held, length), "BERT")
        note(f"held out, {length} tokens, BERT", figures_of(sums))
        unfamiliar = sums[share[: len(sums)] < 0.01]
        note(f"held out and unfamiliar, {length} tokens, BERT", figures_of(unfamiliar))
    windows = held_out_windows(held, 128)
    note("held out, 128 tokens, all [MASK]", masked(model, *windows, "all [MASK]"))
    note("forward pass of 512 tokens, seconds", seconds_for_512(model))


if __name__ == "__main__":
    main()
