"""Turns the corpus into what training reads: a tokenizer, token streams and the held-out documents.

    python training/prepare.py CORPUS_FOLDER PREPARED_FOLDER

CORPUS_FOLDER holds `corpus-*.txt.xz` (a paragraph a line, a blank line between documents). Half a
percent of the documents, chosen by a hash of their text, is held out before anything else is done.
"""

import argparse
import hashlib
import json
import lzma
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

VOCABULARY = 8192
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # ids 0 to 4
HELD_OUT_ONE_IN = 200

# A single letter, a title, a month: a period after one of these does not end a sentence.
ABBREVIATION = re.compile(
    r"\w|mr|mrs|ms|dr|st|prof|gen|col|capt|lt|sgt|rev|hon|jr|sr|vs|no|vol|pp|fig|ch|eds?|cf|ca|inc"
    r"|co|ltd|bros|messrs|esq|jan|feb|mar|apr|jun|jul|aug|sept|oct|nov|dec"
)
# A sentence ends at . ! or ? (and closing quotes) before white space and something like a capital.
SENTENCE_END = re.compile(r"(\S*)([.!?]+[\"'”’)\]]*)\s+(?=[\"'“‘(\[]*[A-Z0-9])")


def documents(folder: Path) -> Iterator[list[str]]:
    """Each document as its list of paragraphs, in the order of the files."""
    for path in sorted(folder.glob("corpus-*.txt.xz")):
        paragraphs: list[str] = []
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    paragraphs.append(line.strip())
                elif paragraphs:
                    yield paragraphs
                    paragraphs = []
        if paragraphs:
            yield paragraphs


def is_held_out(paragraphs: list[str]) -> bool:
    digest = hashlib.blake2b("\n".join(paragraphs).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % HELD_OUT_ONE_IN == 0


def sentences(paragraph: str) -> list[str]:
    pieces, begin = [], 0
    for match in SENTENCE_END.finditer(paragraph):
        word = match[1].lower().strip("\"'“‘([")
        if match[2] == "." and ABBREVIATION.fullmatch(word):
            continue
        pieces.append(paragraph[begin : match.end()].strip())
        begin = match.end()
    pieces.append(paragraph[begin:].strip())
    return [piece for piece in pieces if piece]


def train_tokenizer(paragraphs: Iterable[str]) -> Tokenizer:
    """An uncased WordPiece tokenizer with BERT's normaliser, pre-tokenizer and special tokens."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, min_frequency=5, limit_alphabet=200, special_tokens=SPECIAL
    )
    tokenizer.train_from_iterator(paragraphs, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name.strip('[]').lower()}_token": name for name in SPECIAL},
    )
    fast.save_pretrained(folder)
    # Named as what it is, so that AutoTokenizer gives the fast BERT tokenizer.
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config |= {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def encode(tokenizer: Tokenizer, docs: list[list[str]]) -> dict[str, np.ndarray]:
    """One stream of token ids, and how many of them each sentence and each document has."""
    ids, sentence_lengths, document_lengths = [], [], []
    for begin in range(0, len(docs), 500):
        part = [[s for p in doc for s in sentences(p)] for doc in docs[begin : begin + 500]]
        flat = [sentence for doc in part for sentence in doc]
        encoded = tokenizer.encode_batch_fast(flat, add_special_tokens=False)
        lengths = np.array([len(e.ids) for e in encoded])
        ids.append(np.array([i for e in encoded for i in e.ids], dtype=np.uint16))
        ends = np.cumsum([len(doc) for doc in part])
        document_lengths.append(np.add.reduceat(lengths, np.concatenate([[0], ends[:-1]])))
        sentence_lengths.append(lengths[lengths > 0])
    return {
        "ids": np.concatenate(ids),
        "sentence_lengths": np.concatenate(sentence_lengths).astype(np.uint16),
        "document_lengths": np.concatenate(document_lengths).astype(np.uint32),
    }


def write_stream(path: Path, stream: dict[str, np.ndarray]) -> None:
    """The three arrays in one xz file, after a line that says how long each is."""
    header = json.dumps({name: len(array) for name, array in stream.items()}).encode() + b"\n"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26, "lp": 1, "pb": 1}]
    with lzma.open(path, "wb", filters=filters) as file:
        file.write(header)
        for array in stream.values():
            file.write(array.tobytes())


def read_stream(path: Path) -> dict[str, np.ndarray]:
    types = {"ids": np.uint16, "sentence_lengths": np.uint16, "document_lengths": np.uint32}
    with lzma.open(path, "rb") as file:
        counts = json.loads(file.readline())
        body = file.read()
    stream, at = {}, 0
    for name, count in counts.items():
        stream[name] = np.frombuffer(body, dtype=types[name], count=count, offset=at)
        at += stream[name].nbytes
    return stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("--documents", type=int, help="use only the first so many (a rehearsal)")
    args = parser.parse_args()
    args.prepared.mkdir(parents=True, exist_ok=True)

    docs = list(documents(args.corpus))[: args.documents]
    held_out = [doc for doc in docs if is_held_out(doc)]
    known = {paragraph for doc in held_out for paragraph in doc}
    train = [[p for p in doc if p not in known] for doc in docs if not is_held_out(doc)]
    train = [doc for doc in train if doc]
    print(f"{len(train)} documents to train on, {len(held_out)} held out", flush=True)
    with lzma.open(args.prepared / "held_out.jsonl.xz", "wt", encoding="utf-8") as file:
        for doc in held_out:
            file.write(json.dumps({"text": "\n".join(doc)}, ensure_ascii=False) + "\n")

    tokenizer = train_tokenizer(paragraph for doc in train for paragraph in doc)
    save_tokenizer(tokenizer, args.prepared / "tokenizer")
    print(f"vocabulary of {tokenizer.get_vocab_size()}", flush=True)
    for name, part in (("held_out", held_out), ("train", train)):
        stream = encode(tokenizer, part)
        write_stream(args.prepared / f"{name}.stream.xz", stream)
        unknown = float((stream["ids"] == 1).mean())
        print(f"{name}: {len(stream['ids']):,} tokens, {unknown:.3%} unknown", flush=True)


if __name__ == "__main__":
    main()
