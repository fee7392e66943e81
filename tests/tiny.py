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


def _as_bert(model: models.WordPiece) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def wordpiece() -> t.PreTrainedTokenizerFast:
    learner, text = _as_bert(models.WordPiece(unk_token="[UNK]")), hs.sample_text()
    # The trainer breaks ties by number, and numbers letters inside words in the order of a hash
    # table, another one in every process. Letters that it is given have their numbers.
    inside = sorted({f"##{letter}" for letter in text.lower() if letter.isalnum()})
    trainer = trainers.WordPieceTrainer(
        vocab_size=600, special_tokens=[*SPECIAL, *inside], show_progress=False
    )
    learner.train_from_iterator([text], trainer)
    tokenizer = _as_bert(models.WordPiece(learner.get_vocab(), unk_token="[UNK]"))
    tokenizer.add_special_tokens(SPECIAL)
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
