"""Tiny models with random weights, one per family, for every test that is about families."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as t
from torch import Tensor

SIZE = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
GROUPED = SIZE | {"num_key_value_heads": 2}
ROTARY = GROUPED | {"head_dim": 8, "max_position_embeddings": 64}
IMAGE = {k: v for k, v in SIZE.items() if k != "vocab_size"} | {"image_size": 16, "patch_size": 4}
LAYERS, HEADS = 3, 4


@dataclass(frozen=True)
class Family:
    """One family: how to build it and what to feed it."""

    name: str
    build: Callable[[], t.PreTrainedModel]
    kind: str = "text"  # or "seq2seq", "image", "audio"
    projection: str = ""  # where the heads are joined by W_O, as a suffix of a module path

    def model(self, implementation: str | None = None) -> t.PreTrainedModel:
        torch.manual_seed(0)
        model = self.build().eval()
        for parameter in model.parameters():  # far from zero, so that attention is far from uniform
            parameter.data.add_(torch.randn_like(parameter) * 0.15)
        if implementation is not None:
            model.set_attn_implementation(implementation)
        return model

    def inputs(self, batch: int = 2, tokens: int = 11) -> dict[str, Tensor]:
        torch.manual_seed(1)
        if self.kind == "image":
            return {"pixel_values": torch.randn(batch, 3, 16, 16)}
        if self.kind == "audio":
            start = torch.randint(5, 97, (batch, 7))
            return {"input_features": torch.randn(batch, 8, 40), "decoder_input_ids": start}
        given = {"input_ids": torch.randint(5, 97, (batch, tokens))}
        if self.kind == "seq2seq":
            given["decoder_input_ids"] = torch.randint(5, 97, (batch, 7))
        return given


def _bart() -> dict[str, Any]:
    return {
        "vocab_size": 97,
        "d_model": 32,
        "encoder_layers": 3,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "max_position_embeddings": 64,
    }


SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
INTERFACE = [
    Family("bert", lambda: t.BertForMaskedLM(t.BertConfig(**SIZE)), projection="output.dense"),
    Family(
        "roberta",
        lambda: t.RobertaForMaskedLM(t.RobertaConfig(**SIZE, pad_token_id=1)),
        projection="attention.output.dense",
    ),
    Family(
        "distilbert",
        lambda: t.DistilBertForMaskedLM(
            t.DistilBertConfig(vocab_size=97, dim=32, n_layers=3, n_heads=4, hidden_dim=48)
        ),
        projection="out_lin",
    ),
    Family(
        "albert",
        lambda: t.AlbertForMaskedLM(t.AlbertConfig(**SIZE, embedding_size=16)),
        projection="attention.dense",
    ),
    Family(
        "electra",
        lambda: t.ElectraForPreTraining(t.ElectraConfig(**SIZE, embedding_size=16)),
        projection="attention.output.dense",
    ),
    Family(
        "modernbert",
        lambda: t.ModernBertForMaskedLM(
            t.ModernBertConfig(**SIZE, **SPECIAL, cls_token_id=1, sep_token_id=2, local_attention=4)
        ),
        projection="attn.Wo",
    ),
    Family("esm", lambda: t.EsmForMaskedLM(t.EsmConfig(**SIZE, pad_token_id=1, mask_token_id=3))),
    Family(
        "gpt2",
        lambda: t.GPT2LMHeadModel(
            t.GPT2Config(
                vocab_size=97,
                n_embd=32,
                n_layer=3,
                n_head=4,
                n_positions=64,
                bos_token_id=1,
                eos_token_id=2,
            )
        ),
        projection="attn.c_proj",
    ),
    Family(
        "llama",
        lambda: t.LlamaForCausalLM(t.LlamaConfig(**ROTARY, **SPECIAL)),
        projection="o_proj",
    ),
    Family(
        "mistral",
        lambda: t.MistralForCausalLM(t.MistralConfig(**ROTARY, **SPECIAL, sliding_window=4)),
        projection="o_proj",
    ),
    Family(
        "qwen2",
        lambda: t.Qwen2ForCausalLM(t.Qwen2Config(**GROUPED, **SPECIAL)),
        projection="o_proj",
    ),
    Family(
        "gemma", lambda: t.GemmaForCausalLM(t.GemmaConfig(**ROTARY, **SPECIAL)), projection="o_proj"
    ),
    Family(
        "gemma2",  # soft-capped logits, which only its eager attention knows
        lambda: t.Gemma2ForCausalLM(
            t.Gemma2Config(**ROTARY, **SPECIAL, sliding_window=4, attn_implementation="eager")
        ),
        projection="o_proj",
    ),
    Family(
        "gpt_oss",  # attention sinks, which only its eager attention knows
        lambda: t.GptOssForCausalLM(
            t.GptOssConfig(
                **ROTARY,
                **SPECIAL,
                num_local_experts=2,
                num_experts_per_tok=1,
                sliding_window=4,
                attn_implementation="eager",
            )
        ),
        projection="o_proj",
    ),
    Family(
        "t5",
        lambda: t.T5ForConditionalGeneration(
            t.T5Config(
                vocab_size=97,
                d_model=32,
                d_kv=8,
                d_ff=48,
                num_layers=3,
                num_heads=4,
                pad_token_id=0,
                eos_token_id=1,
                decoder_start_token_id=0,
            )
        ),
        kind="seq2seq",
        projection="Attention.o",
    ),
    Family(
        "bart",
        lambda: t.BartForConditionalGeneration(t.BartConfig(**_bart(), **SPECIAL)),
        kind="seq2seq",
        projection="attn.out_proj",
    ),
    Family(
        "vit",
        lambda: t.ViTModel(
            t.ViTConfig(
                **IMAGE,
            )
        ),
        kind="image",
    ),
    Family(
        "clip_vision",
        lambda: t.CLIPVisionModel(
            t.CLIPVisionConfig(
                **IMAGE,
            )
        ),
        kind="image",
        projection="out_proj",
    ),
    Family(
        "whisper",
        lambda: t.WhisperForConditionalGeneration(
            t.WhisperConfig(
                **{k: v for k, v in _bart().items() if k != "max_position_embeddings"},
                num_mel_bins=8,
                max_source_positions=20,
                max_target_positions=64,
                decoder_start_token_id=1,
                **SPECIAL,
            )
        ),
        kind="audio",
        projection="attn.out_proj",
    ),
]
BY_PROJECTION = [
    Family(
        "deberta-v2",
        lambda: t.DebertaV2ForMaskedLM(
            t.DebertaV2Config(**SIZE, relative_attention=True, pos_att_type=["c2p", "p2c"])
        ),
    ),
    Family(
        "deberta",
        lambda: t.DebertaForMaskedLM(
            t.DebertaConfig(**SIZE, relative_attention=True, pos_att_type=["c2p", "p2c"])
        ),
    ),
    Family("mpnet", lambda: t.MPNetForMaskedLM(t.MPNetConfig(**SIZE))),
    Family(
        "longformer",
        lambda: t.LongformerForMaskedLM(t.LongformerConfig(**SIZE, attention_window=4)),
    ),
    Family(
        "big_bird",
        lambda: t.BigBirdForMaskedLM(
            t.BigBirdConfig(**SIZE, **SPECIAL, attention_type="original_full")
        ),
    ),
    Family("rembert", lambda: t.RemBertForMaskedLM(t.RemBertConfig(**SIZE))),
    Family("roformer", lambda: t.RoFormerForMaskedLM(t.RoFormerConfig(**SIZE))),
    Family("megatron-bert", lambda: t.MegatronBertForMaskedLM(t.MegatronBertConfig(**SIZE))),
    Family(
        "xlm",
        lambda: t.XLMWithLMHeadModel(t.XLMConfig(vocab_size=97, emb_dim=32, n_layers=3, n_heads=4)),
    ),
    Family(
        "flaubert",
        lambda: t.FlaubertWithLMHeadModel(
            t.FlaubertConfig(vocab_size=97, emb_dim=32, n_layers=3, n_heads=4)
        ),
    ),
    Family(
        "gptj",
        lambda: t.GPTJForCausalLM(
            t.GPTJConfig(vocab_size=97, n_embd=32, n_layer=3, n_head=4, rotary_dim=4, **SPECIAL)
        ),
    ),
    Family(
        "codegen",
        lambda: t.CodeGenForCausalLM(
            t.CodeGenConfig(vocab_size=97, n_embd=32, n_layer=3, n_head=4, rotary_dim=4, **SPECIAL)
        ),
    ),
    Family(
        "gpt_neo",
        lambda: t.GPTNeoForCausalLM(
            t.GPTNeoConfig(
                vocab_size=97,
                hidden_size=32,
                num_layers=3,
                num_heads=4,
                attention_types=[[["global"], 3]],
                **SPECIAL,
            )
        ),
    ),
    Family(
        "bloom",
        lambda: t.BloomForCausalLM(
            t.BloomConfig(vocab_size=97, hidden_size=32, n_layer=3, n_head=4, **SPECIAL)
        ),
    ),
    Family("falcon", lambda: t.FalconForCausalLM(t.FalconConfig(**SIZE, **SPECIAL))),
    Family(
        "mpt",
        lambda: t.MptForCausalLM(t.MptConfig(vocab_size=97, d_model=32, n_layers=3, n_heads=4)),
    ),
    Family(
        "openai-gpt",
        lambda: t.OpenAIGPTLMHeadModel(
            t.OpenAIGPTConfig(vocab_size=97, n_embd=32, n_layer=3, n_head=4)
        ),
    ),
]
ALL = INTERFACE + BY_PROJECTION
