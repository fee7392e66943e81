"""Compare the Triton kernels with the reference on a GPU, in one go: prints a line a case.

    PYTHONPATH=src python3 benchmarks/check_gpu.py

Most of the time goes into compiling; --shard 3/8 does every eighth case, so that eight processes
can share the work. Also runs through Triton's interpreter on a CPU (tests/pairs/interpreter.py),
slowly, with --small.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import bare_machine  # noqa: F401
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "pairs"))
from agreement import (
    assert_agree,
    assert_same_bits,
    assert_together_as_alone,
    some_tokens,
    typed,
    undecided,
)

from headscope.attention.statistics import attention_statistics
from headscope.errors import NotFiniteError
from headscope.pairs import nearest, pair_statistics, peak, quantile, reference, sigma

RULES = [quantile(0.01), quantile(0.05), peak(0.3), sigma(2.0), nearest(3)]
CASES = []
FAILED = []


def case(name, check):
    CASES.append((name, check))


def run(name, check):
    begun = time.perf_counter()
    try:
        said = check() or ""
        print(f"ok      {name}  {said} ({time.perf_counter() - begun:.1f} s)", flush=True)
    except Exception as error:
        FAILED.append(name)
        print(f"FAILED  {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)


def both(z, tokens, rules, **settings):
    tokens = typed(tokens)
    # The reference computes in float64, but how much is rounding depends on the type of z.
    want = pair_statistics(z.cpu(), tokens, rules, backend="reference", **settings)
    return want, pair_statistics(z, tokens, rules, backend="cuda", **settings)


def whole_numbers(device, d, dtype, lengths, special):
    """Products of small whole numbers are exact in every format, so everything must be equal."""
    rng = np.random.default_rng(d)
    tokens = [some_tokens(rng, n) for n in lengths]
    z = torch.from_numpy(rng.integers(-4, 5, (len(lengths), 2, max(lengths) + 5, d)))
    z = z.to(device, dtype)
    want, got = both(z, tokens, RULES, special=special, top=9)
    assert_agree(want, got)


def real_numbers(device, dtype, reading, size):
    rng = np.random.default_rng(size)
    tokens = [some_tokens(rng, size), some_tokens(rng, size // 2)]
    z = torch.from_numpy(rng.normal(0.2, 1, (2, 3, size, 64))).to(device, dtype)
    want, got = both(z, tokens, RULES, reading=reading)
    unclear = set()
    for b, text in enumerate(tokens):
        for head in z[b, :, : len(text)].double().cpu().numpy():
            C = reference.similarity(head, reading)
            unclear |= {n for n, r in enumerate(RULES) if undecided(C, r, text.kept("kept"), 1e-5)}
    assert_agree(want, got, digits=3e-5, skip=[f"high[{n}]" for n in unclear])
    return f"{len(RULES) - len(unclear)} of {len(RULES)} rules decided beyond rounding"


def extreme(device, scale, dtype=torch.float32):
    rng = np.random.default_rng(7)
    tokens = [some_tokens(rng, 100)]
    z = torch.from_numpy(rng.integers(-4, 5, (1, 2, 100, 16))).to(device, dtype) * scale
    want, got = both(z, tokens, RULES)
    assert_agree(want, got)


def equal(device, value):
    rng = np.random.default_rng(8)
    tokens = [some_tokens(rng, 200)]
    z = torch.full((1, 2, 200, 32), float(value), device=device)
    for reading in ("raw", "cosine", "centred"):
        want, got = both(z, tokens, RULES, reading=reading)
        skip = ["high"] if reading == "cosine" and value else []
        assert_agree(want, got, skip=skip)


def refuses(device, bad, dtype):
    rng = np.random.default_rng(9)
    tokens = [some_tokens(rng, 70), some_tokens(rng, 50)]
    z = torch.randn(2, 3, 70, 16, device=device).to(dtype)
    z[1, 2, 60] = torch.nan  # padding: not looked at
    pair_statistics(z, tokens, RULES, backend="cuda")
    z[1, 2, 40, 3] = bad
    try:
        pair_statistics(z, tokens, RULES, backend="cuda", layer="5")
    except NotFiniteError as error:
        said = str(error)
    else:
        said = "nothing"
    assert "layer 5, head 3, text 2" in said, said


def repeats(device, size):
    rng = np.random.default_rng(10)
    tokens = [some_tokens(rng, size), some_tokens(rng, size - 37)]
    z = torch.randn(2, 4, size, 64, device=device).to(torch.bfloat16)
    first = pair_statistics(z, tokens, RULES, backend="cuda", top=20)
    assert_same_bits(first, pair_statistics(z, tokens, RULES, backend="cuda", top=20))
    padded = torch.cat([z, torch.full_like(z[:, :, :50], torch.nan)], 2)
    assert_same_bits(first, pair_statistics(padded, tokens, RULES, backend="cuda", top=20))
    alone = pair_statistics(z[:1], tokens[:1], RULES, backend="cuda")
    assert np.array_equal(alone.high[0].by_distance, first.high[0].by_distance[:1])
    assert np.array_equal(alone.mean, first.mean[:1])


def together(device, dtype, lengths, rules, reading):
    """Three layers and both settings of special tokens at once."""
    rng = np.random.default_rng(12)
    tokens = [some_tokens(rng, n) for n in lengths]
    z = torch.from_numpy(rng.normal(0.2, 1, (3 * len(lengths), max(lengths), 2, 64)))
    z = z.to(device, dtype).transpose(1, 2)  # as a model has them in memory
    assert_together_as_alone(z, tokens, rules, reading, digits=1e-5)


def leaves_the_model_alone(device, size, padding):
    """The outputs of a model have the same bits when its heads are observed."""
    from transformers import BertConfig, BertModel

    from headscope.capture import capture

    torch.manual_seed(0)
    model = BertModel(BertConfig(num_hidden_layers=2)).to(device, torch.bfloat16).eval()
    ids = torch.randint(0, 30000, (4, size), device=device)
    mask = torch.ones_like(ids)
    if padding:
        mask[1, size // 2 :] = 0
    seen = []
    with torch.no_grad():
        plain = model(ids, attention_mask=mask).last_hidden_state
        with capture(model, seen.append):
            observed = model(ids, attention_mask=mask).last_hidden_state
    assert torch.equal(plain, observed)
    own = seen[0]
    assert own.normaliser is not None, "no normaliser"
    scores = own.scaling * own.q.float() @ own.k.float().transpose(2, 3)
    if own.mask is not None:
        scores = scores.masked_fill(own.mask.logical_not(), -torch.inf)
    off = (torch.logsumexp(scores, 3) - own.normaliser)[mask[:, None].expand(-1, 12, -1) > 0]
    assert off.abs().max() < 1e-3, f"the normaliser is off by {off.abs().max():.1e}"


def attends(device, dtype, size, **settings):
    rng = np.random.default_rng(11)
    lengths = [size, 1, size // 2 + 3]
    tokens = [some_tokens(rng, n) for n in lengths]
    classes = [rng.integers(0, 5, n).astype(np.int32) for n in lengths]
    make = torch.Generator().manual_seed(0)
    query = (2 * torch.randn(3, 4, size, 64, generator=make)).to(device, dtype)
    key = torch.randn(3, 2, size, 64, generator=make).to(device, dtype)
    arguments = (query, key, tokens, classes)
    want = attention_statistics(*arguments, number_of_classes=6, backend="reference", **settings)
    got = attention_statistics(*arguments, number_of_classes=6, backend="cuda", **settings)
    for name in (
        "mass",
        "entropy",
        "maximum",
        "own",
        "previous",
        "next",
        "own_sentence",
        "columns",
    ):
        left, right = getattr(want, name), getattr(got, name)
        error = np.abs(left - right).max() / max(1, np.abs(left).max())
        # The kernels round weights to 11 bits where the vectors have 8 or 11 themselves.
        assert error < (1e-4 if dtype == torch.float32 else 5e-4), f"{name} is off by {error:.1e}"
    again = attention_statistics(*arguments, number_of_classes=6, backend="cuda", **settings)
    assert np.array_equal(got.columns, again.columns)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--small", action="store_true", help="few and short texts")
    options.add_argument("--shard", default="0/1", help="which of how many parts of the cases")
    chosen = options.parse_args()
    small, (part, parts) = chosen.small, (int(n) for n in chosen.shard.split("/"))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    floats = (
        (torch.float32, torch.float16, torch.bfloat16) if device == "cuda" else (torch.float32,)
    )
    dimensions = (8, 16, 80) if small else (8, 16, 32, 64, 80, 128, 256)
    lengths = [3, 65] if small else [1, 2, 3, 63, 64, 65, 130, 257]
    kinds = list(itertools.product(dimensions, floats))
    if device == "cuda":  # every format with 64 dimensions, and every dimension with bfloat16
        kinds = [(d, t) for d, t in kinds if t == torch.bfloat16 or d in (8, 64, 256)]
    for d, dtype in kinds:
        for special in ("kept", "left_out"):
            case(
                f"whole numbers, d = {d}, {dtype}, special {special}",
                lambda d=d, t=dtype, s=special: whole_numbers(device, d, t, lengths, s),
            )
    for dtype, reading in itertools.product(floats, ("raw", "cosine", "centred")):
        for size in (70,) if small else (200, 600):
            case(
                f"real numbers, {dtype}, {reading}, {size} tokens",
                lambda t=dtype, r=reading, n=size: real_numbers(device, t, r, n),
            )
    texts = ([40], [66, 3]) if small else ([600], [1, 300, 65, 512])
    rules = ([quantile(0.01), quantile(0.05)], [quantile(0.01), peak(0.3), sigma(2.0)])
    for dtype, own, each in itertools.product(floats, texts, rules):
        for reading in ("raw", "cosine", "centred"):
            case(
                f"together, {dtype}, {own} tokens, {len(each)} rules, {reading}",
                lambda t=dtype, n=own, e=each, r=reading: together(device, t, n, e, r),
            )
    for scale in (2.0**-66, 2.0**66):  # about 1e-20 and 1e20, and exact: ties stay ties
        case(f"whole numbers times {scale}", lambda s=scale: extreme(device, s))
    for value in (0, 0.1, -3):
        case(f"all vectors equal {value}", lambda v=value: equal(device, v))
    for bad, dtype in itertools.product((torch.nan, torch.inf, -torch.inf), floats):
        case(f"refuses {bad} in {dtype}", lambda b=bad, t=dtype: refuses(device, b, t))
    case("float16 overflow is refused", lambda: refuses(device, 1e6, torch.float16))
    if device == "cuda":
        case("the same bits again, padded, and alone", lambda: repeats(device, 700))
        for padding in (False, True):
            case(
                f"the model is left alone, padding {padding}",
                lambda p=padding: leaves_the_model_alone(device, 300, p),
            )
    size = 70 if small else 300
    make = torch.Generator().manual_seed(1)
    settings = {
        "plain": {},
        "causal": {"causal": True},
        "causal window": {"causal": True, "window": 33},
        "window": {"window": 17},
        "soft cap": {"softcap": 5.0},
        "sinks": {"sinks": torch.randn(4, generator=make).to(device)},
        "added mask": {"mask": torch.randn(1, 4, size, size, generator=make).to(device)},
        "boolean mask": {
            "mask": (
                (torch.rand(3, 1, size, size, generator=make) < 0.5)
                | torch.eye(size, dtype=torch.bool)
            ).to(device)
        },
    }
    for name, each in settings.items():
        for dtype in floats if name == "plain" else floats[:1]:
            case(
                f"attention, {name}, {dtype}",
                lambda t=dtype, e=each: attends(device, t, size, **e),
            )
    for each in CASES[part::parts]:
        run(*each)
    print(f"shard {chosen.shard}: {len(FAILED)} of {len(CASES[part::parts])} failed", flush=True)
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
