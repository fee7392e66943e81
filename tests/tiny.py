"""Small tokenizers of every kind, trained on the sample text, and a tiny BERT that fits them."""

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

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BYTES = pre_tokenizers.ByteLevel.alphabet()


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
