"""A tiny model with random weights of any type that transformers knows.

The default configuration of a type is shrunk by the names of its fields, nested configurations
too, so that widths that have to agree agree. What a family needs besides is in `SPECIAL`.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from inspect import getsource, signature
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

WIDTH, HEADS, HEAD_SIZE, LAYERS, INNER, EXPERTS = 64, 4, 16, 2, 64, 4
LEFT_OUT = (
    "transformers_version",
    "architectures",
    "model_type",
    "_name_or_path",
    "out_features",
    "out_indices",
    "stage_names",
    "per_layer_config",
)
LARGEST = 30_000_000  # parameters
RULES: tuple[tuple[str, Any], ...] = (
    (r"(^|_)vocab_size$|^vocab_size_per_layer_input$", "vocabulary"),
    (r"num_key_value_heads$|num_kv_heads$|^n_head_kv$|multi_query_group_num$", "key heads"),
    (r"^(mamba_d_head|mamba_head_dim|mamba_headdim)$", 32),
    (r"^(rotary_dim|pos_emb_dim)$", 8),
    (r"_per_stage$|^embed_dim_per", WIDTH),
    (r"heads_type|_per_head$|head_dim_", None),
    (r"(^|_)(attention_heads|attn_heads|heads|head|nhead)$", HEADS),
    (r"(qk_rope_head_dim|qk_nope_head_dim|v_head_dim)$", 8),
    (r"^qk_head_dim$", 16),
    (r"(^|_)(head_dim|d_kv|d_head|attention_head_size|kv_channels)$", HEAD_SIZE),
    (r"(lora_rank|_rank|lora_dim|index_head_dim)$", 16),
    (r"(num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|num_selected_experts|top_k)$", 2),
    (r"^(n_group|topk_group|num_expert_group|n_groups)$", 1),
    (r"(num_experts|n_routed_experts|num_local_experts|moe_num_experts|n_experts)$", EXPERTS),
    (r"^(attn_layer_period|expert_layer_period|full_attention_interval)$", 2),
    (r"^(attn_layer_offset|expert_layer_offset)$", 1),
    (r"first_k_dense_replace|num_nextn_predict_layers|num_feature_layers|feat_extract", None),
    (r"(^|_)(layers|layer|blocks|n_layers|depth|hidden_layers)$", LAYERS),
    (r"^(depths|num_blocks|layers_per_stage|num_encoder_blocks_list)$", "ones"),
    (
        r"(intermediate|ffn|mlp|inner|feedforward|filter)_?(size|dim|hidden_size|hidden_dim)?s?$",
        INNER,
    ),
    (r"(^d_ff|n_inner|feed_forward_proj_size|ffn_hidden_size|conv_dim)$", INNER),
    (
        r"(^|_)(hidden_size|hidden_dim|embed_dim|embedding_size|embedding_dim|d_model|dim|n_embd"
        r"|emb_dim|width|hidden_sizes|hidden_channels|projection_dim|projector_hidden_size"
        r"|output_dim|out_hidden_size|embed_dims|proj_dim|embedding_hidden_size|word_embed_proj_dim"
        r"|encoder_dim|rnn_hidden_size|num_hiddens)$",
        WIDTH,
    ),
    (r"^(max_position_embeddings|n_positions|n_ctx|max_seq_len|max_sequence_length)$", "positions"),
    (r"image_size$|^img_size$", 32),
    (r"^(patch_size|spatial_patch_size)$", "patch"),
    (r"^(num_frames)$", 2),
    (r"^(sliding_window|local_attention|attention_window|window|block_size|chunk_size)$", "window"),
    (r"^(max_source_positions)$", 64),
    (r"^(max_target_positions)$", 512),
    (r"^(num_mel_bins|n_mels)$", 16),
)
SPECIAL: dict[str, dict[str, Any]] = {
    "ctrl": {"dff": INNER},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "gpt_neo": {
        "attention_types": [[["global"], LAYERS]],
        "attention_layers": ["global"] * LAYERS,
        "num_layers": LAYERS,
    },
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "qwen4_exp_text": {"head_dim": HEAD_SIZE},
    "step3p5": {"sliding_window": 64},
    "falcon_h1": {"mamba_d_ssm": 128, "mamba_n_heads": 4, "mamba_d_head": 32},
    "zamba": {"num_hidden_layers": 5, "attn_layer_period": 2, "attn_layer_offset": 1},
    **{
        kind: {"image_size": 64, "window_size": 2}
        for kind in ("swin", "swinv2", "donut-swin", "maskformer-swin")
    },
    "bamba": {"attn_layer_indices": [1]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "big_bird": {"attention_type": "original_full"},
    "reformer": {"axial_pos_embds": False, "attn_layers": ["local", "local"]},
    "funnel": {"block_sizes": [2], "block_repeats": [1], "num_decoder_layers": 1},
    "xlnet": {"d_head": HEAD_SIZE, "n_layer": LAYERS},
    "mobilebert": {"intra_bottleneck_size": WIDTH, "embedding_size": WIDTH},
    "layoutlmv3": {"coordinate_size": 8, "shape_size": 16},
    "lilt": {"hidden_size": 96},
    "xmod": {"default_language": "en_XX"},
    "recurrent_gemma": {"num_hidden_layers": 3},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "hunyuan_v1_dense": {"head_dim": HEAD_SIZE},
    "hunyuan_v1_moe": {"head_dim": HEAD_SIZE},
    "ministral": {"head_dim": HEAD_SIZE, "num_key_value_heads": 2},
    "nemotron": {"head_dim": HEAD_SIZE, "num_key_value_heads": 2},
    "esm": {"pad_token_id": 1, "mask_token_id": 3},
    "autoformer": {"prediction_length": 4, "context_length": 8},
    "informer": {"prediction_length": 4, "context_length": 8},
    "time_series_transformer": {"prediction_length": 4, "context_length": 8},
}


def tiny_config(kind: str, vocabulary: int) -> PreTrainedConfig:
    """The configuration of a tiny model of a type, for a vocabulary of so many tokens."""
    made = CONFIG_MAPPING[kind]
    plain = made().to_dict()
    small = _shrunk(plain, vocabulary)
    _fit_sections(small, kind)
    return made(**small | SPECIAL.get(kind, {}))


def tiny_model(kind: str, vocabulary: int) -> PreTrainedModel:
    """A tiny model of a type, its weights random, far from zero, and the same each time."""
    config = tiny_config(kind, vocabulary)
    made = _class(config) or _class_beside(config)
    if made is None:
        raise LookupError(f"no model class of transformers takes {type(config).__name__}")
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in made(config).parameters())
    if size > LARGEST:
        raise LookupError(f"its default configuration is not made tiny: {size:,} parameters")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: PreTrainedModel = made(config).eval()
        for parameter in model.parameters():
            if parameter.dtype.is_floating_point:
                parameter.data.add_(torch.randn_like(parameter) * 0.05)
    return model


def _class(config: PreTrainedConfig) -> Any:
    """The model class for a configuration: of those without a head where there is one."""
    for name in _mappings():
        mapping: Any = getattr(modeling_auto, name)
        if type(config) in mapping:
            found = mapping[type(config)]
            return found[0] if isinstance(found, tuple) else found
    return None


def _class_beside(config: PreTrainedConfig) -> Any:
    """The class for a configuration that no auto class knows: from the file beside its own."""
    try:
        beside = import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
    except ImportError:
        return None
    takes = [
        kind
        for kind in vars(beside).values()
        if isinstance(kind, type)
        and issubclass(kind, PreTrainedModel)
        and getattr(kind, "config_class", None) is type(config)
        and not kind.__name__.endswith("PreTrainedModel")
    ]
    named = [
        kind
        for kind in vars(beside).values()
        if isinstance(kind, type)
        and issubclass(kind, PreTrainedModel)
        and type(config).__name__ in str(signature(kind).parameters.get("config", ""))
    ]
    found = [kind for kind in [*named, *takes] if "forward" in vars(kind)]
    return min(found, key=lambda kind: "For" in kind.__name__, default=None)


def _mappings() -> Iterator[str]:
    yield "MODEL_MAPPING"
    yield from sorted(
        name
        for name in vars(modeling_auto)
        if name.startswith("MODEL_") and name.endswith("_MAPPING") and name != "MODEL_MAPPING"
    )


def _shrunk(plain: dict[str, Any], vocabulary: int) -> dict[str, Any]:
    """The fields of a configuration, small."""
    small: dict[str, Any] = {}
    special = iter(range(vocabulary - 1, 0, -1))  # numbers of special tokens, none of a text
    for name, value in plain.items():
        if name in LEFT_OUT:
            continue
        if isinstance(value, dict) and "model_type" in value:
            small[name] = _shrunk(value, vocabulary) | {"model_type": value["model_type"]}
        elif name == "vocab_size" and value is None:
            small[name] = vocabulary
        elif re.search(r"token_id$|token_index$|_token_ids$", name):
            small[name] = _token(value, vocabulary, special)
        else:
            small[name] = _value(name, value, plain, vocabulary)
    _fit_layers(small, plain)
    if "qk_rope_head_dim" in plain and "head_dim" in plain:
        small["head_dim"] = small["qk_rope_head_dim"]
    return small


def _token(value: Any, vocabulary: int, special: Iterator[int]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 5 else next(special)
    return value


def _value(name: str, value: Any, plain: dict[str, Any], vocabulary: int) -> Any:
    """One field, small: by the first rule that knows its name."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    listed = isinstance(value, (list, tuple)) and all(type(one) is int for one in value)
    if not whole and not (listed and value):
        return value
    rule = next((rule for pattern, rule in RULES if re.search(pattern, name)), None)
    if rule is None:
        return value
    if rule == HEADS and listed:  # by stage
        return [min(one, 2) for one in value]
    if isinstance(rule, int):
        return min(value, rule) if whole else [min(one, rule) for one in value]
    if rule == "ones":
        return min(value, LAYERS) if whole else [1] * len(value)
    if not whole:
        return value
    if rule == "vocabulary":
        return vocabulary
    if rule == "key heads":
        heads = next((plain[k] for k in ("num_attention_heads", "n_head") if k in plain), value)
        return min(value, 2 if isinstance(heads, int) and value < heads else HEADS)
    return min(value, {"positions": 512, "patch": 8, "window": 64}[rule])


def _fit_layers(small: dict[str, Any], plain: dict[str, Any]) -> None:
    """One layer of each kind, where kinds of layers are listed one by one."""
    total = plain.get("num_hidden_layers", plain.get("n_layer"))
    lists = {
        name: value
        for name, value in plain.items()
        if isinstance(value, (list, tuple)) and len(value) == total and total and total > LAYERS
    }
    if not lists:
        return
    kinds = list(zip(*map(tuple, lists.values()), strict=True))
    first = [at for at, kind in enumerate(kinds) if kind not in kinds[:at]]
    chosen = first[:4] if len(first) >= LAYERS else [*first, *range(len(kinds))][:LAYERS]
    for name, value in lists.items():
        small[name] = [value[at] for at in sorted(chosen)]
    small["num_hidden_layers" if "num_hidden_layers" in plain else "n_layer"] = len(chosen)


def _fit_sections(small: dict[str, Any], kind: str) -> None:
    """Sections of rotary positions that add up to half a head, in every configuration inside."""
    source = _source(CONFIG_MAPPING[kind]) if kind in CONFIG_MAPPING else ""
    for name, held in list(small.items()):
        if name == "rope_parameters" and isinstance(held, dict) and "mrope_section" in source:
            half = int((small.get("head_dim") or HEAD_SIZE) * held.get("partial_rotary_factor", 1))
            parts = [half // 2 - 2 * (half // 8), half // 8, half // 8]
            small[name] = held | {"mrope_section": parts}
        elif isinstance(held, dict) and "model_type" in held:
            _fit_sections(held, held["model_type"])


def _source(made: Any) -> str:
    try:
        return getsource(import_module(made.__module__.replace(".configuration_", ".modeling_")))
    except (ImportError, OSError):
        return ""
