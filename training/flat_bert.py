"""BERT's masked-language forward pass on one flat stream of tokens, for fast training.

Texts of many lengths lie end to end in a stream of fixed size, so nothing is padded and one graph
is compiled. Weights of one kind are stacked over layers (14 tensors instead of 200), which lets
the optimiser treat all matrices at once; `to_transformers` unstacks them into the standard model.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

try:
    from torch.nn.attention.varlen import varlen_attn
except ImportError:  # an older torch: `Attention` then works by groups
    varlen_attn = None

Weights = dict[str, Tensor]


def configuration(**changes: int) -> BertConfig:
    """12 layers of 12 heads of 16 dimensions; the inner width fills the 16 MiB we may ship."""
    sizes = {
        "vocab_size": 8192,
        "hidden_size": 192,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 960,
        "max_position_embeddings": 512,
    } | changes
    return BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def new_weights(config: BertConfig, device: str, seed: int = 0) -> Weights:
    """BERT's initialisation: normal with deviation 0.02, biases zero, norms one."""
    generator = torch.Generator().manual_seed(seed)
    layers, width, inner = config.num_hidden_layers, config.hidden_size, config.intermediate_size

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator) * config.initializer_range

    def norm(*shape: int) -> Tensor:  # [..., 0] is the gain, [..., 1] the bias
        return torch.stack([torch.ones(*shape, width), torch.zeros(*shape, width)], dim=-2)

    weights = {
        "word": normal(config.vocab_size, width),
        "position": normal(config.max_position_embeddings, width),
        "kind": normal(config.type_vocab_size, width),
        "embedding_norm": norm(),
        "square": normal(layers, 4, width, width),  # query, key, value, output
        "square_bias": torch.zeros(layers, 4, width),
        "wide": normal(layers, 2, width, inner),  # up (transposed), down
        "up_bias": torch.zeros(layers, inner),
        "down_bias": torch.zeros(layers, width),
        "norms": norm(layers, 2),  # after attention, after the inner layer
        "head": normal(width, width),
        "head_bias": torch.zeros(width),
        "head_norm": norm(),
        "word_bias": torch.zeros(config.vocab_size),
    }
    weights["word"][config.pad_token_id] = 0
    return {name: w.to(device).requires_grad_() for name, w in weights.items()}


@dataclass(frozen=True)
class Attention:
    """Attention inside each text of the stream, by one of two kernels.

    `groups` lists (texts, length) of equally long texts lying side by side, for torch's usual
    attention; without it the texts are those of `bounds` and the variable-length kernel is used.
    """

    groups: tuple[tuple[int, int], ...] | None = None
    longest: int = 512

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, bounds: Tensor) -> Tensor:  # T, heads, d
        if self.groups is None:
            return varlen_attn(q, k, v, bounds, bounds, self.longest, self.longest)
        parts, at = [], 0
        for texts, length in self.groups:
            piece = slice(at, at + texts * length)
            qkv = (x[piece].unflatten(0, (texts, length)).transpose(1, 2) for x in (q, k, v))
            z = F.scaled_dot_product_attention(*qkv)  # texts, heads, length, d
            parts.append(z.transpose(1, 2).flatten(0, 1))
            at += texts * length
        return torch.cat(parts)


def hidden_states(
    weights: Weights,
    ids: Tensor,
    positions: Tensor,
    kinds: Tensor,
    bounds: Tensor,
    attention: Attention,
    heads: int = 12,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """The last layer's states (T, width); `bounds` (int32) says where texts begin, and the end."""
    width = weights["word"].shape[1]

    def norm(x: Tensor, gain_bias: Tensor) -> Tensor:
        return F.layer_norm(x.float(), (width,), *gain_bias.unbind(-2), 1e-12).to(dtype)

    x = F.embedding(ids, weights["word"]) + F.embedding(positions, weights["position"])
    x = norm(x + F.embedding(kinds, weights["kind"]), weights["embedding_norm"])  # T, width
    layers = zip(
        weights["square"].to(dtype).unbind(0),
        weights["square_bias"].to(dtype).unbind(0),
        weights["wide"].to(dtype).unbind(0),
        weights["up_bias"].to(dtype).unbind(0),
        weights["down_bias"].to(dtype).unbind(0),
        weights["norms"].flatten(0, 1).unbind(0)[0::2],
        weights["norms"].flatten(0, 1).unbind(0)[1::2],
        strict=True,
    )
    for square, square_bias, wide, up_bias, down_bias, norm_1, norm_2 in layers:
        qkv = F.linear(x, square[:3].flatten(0, 1), square_bias[:3].flatten())  # T, 3 width
        q, k, v = qkv.unflatten(1, (3, heads, -1)).unbind(1)  # T, heads, d
        z = attention(q, k, v, bounds).flatten(1)  # T, width
        x = norm(F.linear(z, square[3], square_bias[3]) + x, norm_1)
        inner = F.gelu(torch.addmm(up_bias, x, wide[0]))  # T, inner
        x = norm(F.linear(inner, wide[1], down_bias) + x, norm_2)
    return x


def word_logits(weights: Weights, states: Tensor) -> Tensor:
    """BERT's masked-language head on the states of the masked positions (M, width)."""
    dtype, width = states.dtype, states.shape[1]
    h = F.gelu(F.linear(states, weights["head"].to(dtype), weights["head_bias"].to(dtype)))
    h = F.layer_norm(h.float(), (width,), *weights["head_norm"].unbind(-2), 1e-12).to(dtype)
    return F.linear(h, weights["word"].to(dtype), weights["word_bias"].to(dtype))  # M, words


@torch.no_grad()
def to_transformers(weights: Weights, config: BertConfig) -> BertForMaskedLM:
    """The standard model with these weights, in float32 on the CPU."""
    w = {name: tensor.detach().float().cpu() for name, tensor in weights.items()}
    state: dict[str, Tensor] = {}

    def put(name: str, weight: Tensor, bias: Tensor | None = None) -> None:
        state[f"{name}.weight"] = weight.contiguous()
        if bias is not None:
            state[f"{name}.bias"] = bias.contiguous()

    put("bert.embeddings.word_embeddings", w["word"])
    put("bert.embeddings.position_embeddings", w["position"])
    put("bert.embeddings.token_type_embeddings", w["kind"])
    put("bert.embeddings.LayerNorm", *w["embedding_norm"])
    places = ("self.query", "self.key", "self.value", "output.dense")
    for i in range(config.num_hidden_layers):
        layer = f"bert.encoder.layer.{i}"
        for j, place in enumerate(places):
            put(f"{layer}.attention.{place}", w["square"][i, j], w["square_bias"][i, j])
        put(f"{layer}.attention.output.LayerNorm", *w["norms"][i, 0])
        put(f"{layer}.intermediate.dense", w["wide"][i, 0].T, w["up_bias"][i])
        put(f"{layer}.output.dense", w["wide"][i, 1], w["down_bias"][i])
        put(f"{layer}.output.LayerNorm", *w["norms"][i, 1])
    put("cls.predictions.transform.dense", w["head"], w["head_bias"])
    put("cls.predictions.transform.LayerNorm", *w["head_norm"])
    state["cls.predictions.bias"] = w["word_bias"]

    model = BertForMaskedLM(config).eval()
    missing, unexpected = model.load_state_dict(state, strict=False)
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    buffers = {"bert.embeddings.position_ids", "bert.embeddings.token_type_ids"}
    if unexpected or set(missing) - tied - buffers:
        raise RuntimeError(f"weights do not fit: missing {missing}, unexpected {unexpected}")
    return model
