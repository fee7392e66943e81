"""What several tests need: small tokenizers of every kind, a tiny model, the specimen."""

from pathlib import Path

import pytest
import torch
import transformers as t
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

import headscope as hs

SHARED = Path(__file__).parent.parent.parent / "shared"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BYTES = pre_tokenizers.ByteLevel.alphabet()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("shared") and not SHARED.exists():
            item.add_marker(
                pytest.mark.skip(reason="the development data is not beside the project")
            )


def _framed(tokenizer: Tokenizer, first: str, last: str) -> None:
    """Add a special token at either end, as BERT and RoBERTa do."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        special_tokens=[(s, tokenizer.token_to_id(s)) for s in (first, last)],
    )


def wordpiece() -> t.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator([hs.sample_text()], trainer)
    _framed(tokenizer, "[CLS]", "[SEP]")
    return t.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def byte_level(framed: bool = False) -> t.PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=BYTES,
        show_progress=False,
    )
    tokenizer.train_from_iterator([hs.sample_text()], trainer)
    if framed:
        _framed(tokenizer, "<s>", "</s>")
    return t.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")


def metaspace() -> t.PreTrainedTokenizerFast:
    """As SentencePiece spells it: ▁ for a space, bytes for characters it does not know."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256))],
        show_progress=False,
    )
    tokenizer.train_from_iterator([hs.sample_text()], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return t.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


TOKENIZERS = {
    "wordpiece": wordpiece,
    "byte_level": byte_level,
    "byte_level_framed": lambda: byte_level(framed=True),
    "metaspace": metaspace,
}


@pytest.fixture(scope="session", params=TOKENIZERS)
def any_tokenizer(request: pytest.FixtureRequest) -> t.PreTrainedTokenizerFast:
    return TOKENIZERS[request.param]()


def tiny_bert(vocabulary: int) -> t.BertForMaskedLM:
    torch.manual_seed(0)
    config = t.BertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
        initializer_range=0.2,
    )
    return t.BertForMaskedLM(config).eval()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with random weights: 3 layers × 4 heads × 8, 64 tokens at once."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = wordpiece()
    tiny_bert(len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> hs.Scope:
    return hs.load(tiny_folder, device="cpu")


@pytest.fixture(scope="session")
def specimen() -> hs.Scope:
    return hs.load(device="cpu")
