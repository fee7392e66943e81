"""Pictures and sounds: read as their models read them, each position in its place."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as t
from PIL import Image
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.errors import CannotLoad, CannotObserve, CannotRead, NotPossible
from headscope.inputs.picture import as_read, normalised, png
from headscope.inputs.sound import open_sound, resampled
from senses import (
    SETTINGS,
    checkerboard,
    clip_vision,
    dino,
    siglip_vision,
    spectrogram_transformer,
    two_tones,
    vit,
    wav2vec2,
    whisper,
    write_wave,
)

UNSET = "ignore:There is no preprocessor configuration:UserWarning"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ViT as it is saved, its preprocessor configuration beside it."""
    where = tmp_path_factory.mktemp("vit")
    vit().save_pretrained(where)
    t.ViTImageProcessorPil(**SETTINGS).save_pretrained(where)
    return where


@pytest.fixture(scope="module")
def seen(folder: Path) -> "hs.PlacedReading":
    return hs.load(folder, device="cpu").read(checkerboard())


@pytest.mark.parametrize(("height", "width"), [(150, 97), (90, 201), (30, 40)])
def test_a_picture_is_prepared_as_transformers_prepares_it(height: int, width: int) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    down, across = np.indices((height, width))
    waves = 127.5 + 120 * np.sin(down / 9)[..., None] * np.cos(across[..., None] / [7, 11, 13])
    for resample, pixels in ((2, noise), (2, waves), (3, waves)):
        pixels = pixels.astype(np.uint8)
        own = t.ViTImageProcessorPil(**SETTINGS | {"resample": resample})
        theirs = own(Image.fromarray(pixels), return_tensors="pt")["pixel_values"]
        settings = own.to_dict()
        ours = normalised(as_read(pixels, settings), settings)
        steps = (ours - theirs).abs() * 255 * torch.tensor(SETTINGS["image_std"])[:, None, None]
        assert steps.max() < 1.01


def test_clip_cuts_the_middle_of_a_picture_out() -> None:
    given = {
        "do_center_crop": True,
        "size": {"shortest_edge": 64},
        "crop_size": {"height": 64, "width": 64},
        "resample": 3,
    }
    own = t.CLIPImageProcessorPil(**given)
    pixels = np.random.default_rng(1).integers(0, 256, (90, 201, 3), dtype=np.uint8)
    settings = own.to_dict()
    theirs = own(Image.fromarray(pixels), return_tensors="pt")["pixel_values"]
    ours = normalised(as_read(pixels, settings), settings)
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max() < 1.01 / 255 / min(settings["image_std"])


def test_patches_are_tokens_with_a_row_and_a_column(seen: "hs.PlacedReading") -> None:
    positions = seen.positions
    assert positions.grid == (4, 4)
    assert len(seen) == 17
    assert positions.labels[0] == "[CLS]"
    assert positions.labels[6] == "row 2, column 2"
    assert positions.special.tolist() == [True] + [False] * 16
    assert repr(seen).endswith("16 patches in 4 rows and 4 columns, 1 special>")


@pytest.mark.parametrize(
    ("make", "special"), [(vit, 1), (dino, 4), (clip_vision, 1), (siglip_vision, 0)]
)
@pytest.mark.filterwarnings(UNSET)
def test_a_patch_changes_the_values_of_its_own_position_only(make, special: int) -> None:
    scope = hs.load(make())
    plain = scope.read(checkerboard())
    assert int(plain.positions.special.sum()) == special
    pixels = checkerboard()
    pixels[32:48, 16:32] = 128  # the third row, the second column
    changed = scope.read(pixels)
    values = []
    for reading in (plain, changed):
        scope.observe_inputs(reading.given, lambda one: values.append(one.v) or None)
    first, second = values[0], values[scope.shape.layers]
    moved = (first != second).any(-1)[0].any(0).nonzero().flatten().tolist()
    assert [plain.positions.labels[at] for at in moved] == ["row 3, column 2"]


def test_a_picture_is_read_from_a_file_an_image_or_an_array(folder: Path, tmp_path: Path) -> None:
    scope, pixels = hs.load(folder, device="cpu"), checkerboard(100, 80)
    picture = Image.fromarray(pixels)
    picture.save(tmp_path / "board.png")
    readings = [
        scope.read(one)
        for one in (
            tmp_path / "board.png",
            str(tmp_path / "board.png"),
            picture,
            pixels,
            pixels / 255,
        )
    ]
    for reading in readings[1:]:
        assert np.array_equal(reading.similarity(2, 3), readings[0].similarity(2, 3))


def test_vectors_are_those_of_the_model_and_the_model_stays_as_it_is(folder: Path) -> None:
    scope = hs.load(folder, device="cpu")
    reading = scope.read(checkerboard())
    with torch.inference_mode():
        before = scope.model(**reading.given).last_hidden_state
        A = t.ViTModel.from_pretrained(folder, attn_implementation="eager")(
            **reading.given, output_attentions=True
        ).attentions
    assert torch.equal(scope.forward(**reading.given).last_hidden_state, before)
    assert np.allclose(reading.attention(2, 4), A[1][0, 3].numpy(), atol=1e-5)


def test_focus_counts_attention_on_what_is_near(seen: "hs.PlacedReading") -> None:
    focus, (rows, columns) = seen.focus(), (seen.positions.rows, seen.positions.columns)
    assert focus.targets == (
        "special positions",
        "own patch",
        "touching patches",
        "own row",
        "own column",
    )
    A, plain = seen.attention(1, 2), ~seen.positions.special
    both = plain[:, None] & plain[None]
    down, across = abs(rows[:, None] - rows), abs(columns[:, None] - columns)
    expected = [
        np.broadcast_to(~plain, A.shape),
        both & (down == 0) & (across == 0),
        both & (np.maximum(down, across) == 1),
        both & (down == 0),
        both & (across == 0),
    ]
    masses = [(A * mask).sum() / len(A) for mask in expected]
    assert np.allclose(list(focus.of(1, 2).values()), masses, atol=1e-5)
    assert np.allclose(focus.chance, [mask.mean() for mask in expected])
    assert "special positions" in repr(focus)


def test_high_pairs_say_where_on_the_grid(seen: "hs.PlacedReading") -> None:
    pairs = seen.high_pairs(1, 1, "quantile(0.1)", special="left_out")
    assert len(pairs) == 12  # of 120
    assert {"first_row", "second_column", "distance"} <= set(pairs.columns)
    assert not {"same_sentence", "first_word", "first_seconds"} & set(pairs.columns)
    C, first = seen.similarity(1, 1), pairs[0]
    assert first["similarity"] == pytest.approx(C[first["first"], first["second"]])
    across = first["first_column"] - first["second_column"]
    down = first["first_row"] - first["second_row"]
    assert first["distance"] == pytest.approx(np.hypot(across, down))
    assert pairs.to_arrow().num_rows == 12
    assert "first label" in repr(pairs)


def test_range_is_a_distance_on_the_grid_beside_that_of_all_pairs(seen: "hs.PlacedReading") -> None:
    C, points = seen.similarity(2, 1)[1:, 1:], np.argwhere(np.ones((4, 4)))
    apart = np.array([[np.hypot(*(a - b)) for a in points] for b in points])
    upper = np.triu_indices(16, 1)
    twelve = np.argsort(-C[upper])[:12]
    found = seen.range(2, 1, "quantile(0.1)")
    assert found.distance == pytest.approx(apart[upper][twelve].mean())
    assert found.chance == pytest.approx(apart[upper].mean())
    assert found.of_chance == pytest.approx(found.distance / found.chance)
    assert found.unit == "patches"


def test_range_of_a_sound_is_in_seconds() -> None:
    reading = hs.load(wav2vec2()).read((two_tones(), 16_000))
    found = reading.range(1, 1)
    assert found.unit == "seconds"
    assert found.chance == pytest.approx(0.02 * 51 / 3)  # of 50 frames
    with pytest.raises(NotPossible, match="stand nowhere"):
        reading.scope.read(reading.given, labels=[""] * 50).range(1, 1)


def test_a_picture_is_read_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    Image.fromarray(checkerboard()).save(tmp_path / "board.png")
    asked = ["read", str(tmp_path / "board.png"), "--model", str(folder), "--device", "cpu"]
    told = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "board.html")]).stdout
    assert "16 patches in 4 rows and 4 columns, 1 special" in told
    assert "touching patches" in told
    assert (tmp_path / "board.html").stat().st_size > 100_000
    found = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert found["positions"][6]["row"] == 2
    assert found["high_pairs"]["pairs"][0]["first_label"]
    table = CliRunner().invoke(app, [*asked, "--csv", "--rule", "quantile(0.1)"]).stdout
    assert table.startswith("text,similarity,first,second,first_label")


def test_equal_squares_of_a_checkerboard_are_told_from_the_others() -> None:
    """Without position embeddings equal patches have equal vectors, whatever the weights."""
    model = vit()
    model.embeddings.position_embeddings.data.zero_()
    reading = hs.load(model, t.ViTImageProcessorPil(**SETTINGS)).read(checkerboard())
    C = reading.similarity(1, 1, "cosine")[1:, 1:]
    colour = (np.indices((4, 4)).sum(0) % 2).ravel()
    same = colour[:, None] == colour
    assert C[same].min() > 0.9999
    assert C[~same].max() < C[same].min()


def test_silenced_heads_write_nothing(folder: Path) -> None:
    scope = hs.load(folder, device="cpu").ablate([(1, 2)])
    later = scope.read(checkerboard())
    plain = hs.load(folder, device="cpu").read(checkerboard())
    assert not np.allclose(later.head_vectors(2, 1), plain.head_vectors(2, 1))
    assert np.array_equal(later.head_vectors(1, 1), plain.head_vectors(1, 1))


@pytest.mark.parametrize("kind", ["Wav2Vec2", "Hubert"])
def test_frames_are_tokens_with_a_time(kind: str, tmp_path: Path) -> None:
    scope = hs.load(wav2vec2(kind))
    path = write_wave(tmp_path / "tones.wav", two_tones())
    reading = scope.read(path)
    assert len(reading) == 50  # of 320 samples each
    assert reading.positions.seconds[:2].tolist() == pytest.approx([0.01, 0.03])
    assert reading.positions.labels[1] == "0.03 s"
    again = scope.read((two_tones(), 16_000))
    assert np.allclose(again.similarity(1, 1), reading.similarity(1, 1), atol=1e-2)
    pairs = reading.high_pairs(2, 1)
    assert pairs[0]["distance"] == pytest.approx(
        abs(pairs[0]["first_seconds"] - pairs[0]["second_seconds"])
    )
    assert reading.focus().targets == ("previous frame", "own frame", "next frame")


def test_the_silence_that_whisper_adds_is_left_out_and_told() -> None:
    scope = hs.load(whisper())
    reading = scope.read((two_tones(8_000, 1.0), 8_000))
    assert scope.shape.stack == "encoder"
    assert len(reading) == 51  # of 100 positions, for two seconds
    assert reading.positions.seconds[-1] == pytest.approx(1.0)
    focus, A = reading.focus(), reading.attention(1, 3)
    assert focus.targets[0] == "silence added"
    assert A.shape == (51, 51)
    assert focus.of(1, 3)["silence added"] == pytest.approx(1 - A.sum(1).mean(), abs=1e-5)
    assert focus.of(1, 3)["own frame"] == pytest.approx(np.trace(A) / 51, abs=1e-5)
    assert focus.of(1, 3)["next frame"] == pytest.approx(np.trace(A, 1) / 51, abs=1e-5)
    assert focus.of(1, 3)["previous frame"] == pytest.approx(np.trace(A, -1) / 51, abs=1e-5)
    assert focus.chance[0] == pytest.approx(0.49)
    with pytest.raises(CannotRead, match=r"lasts 3.0 s, and the model reads 2 s at once"):
        scope.read((two_tones(seconds=3.0), 16_000))


def test_patches_of_a_spectrogram_have_a_time_and_a_band() -> None:
    reading = hs.load(spectrogram_transformer()).read((two_tones(seconds=0.9), 16_000))
    assert reading.positions.kind == "sound"
    assert reading.positions.grid == (3, 9)
    assert len(reading) == 2 + 27
    assert reading.positions.labels[:4] == (
        "[CLS]",
        "[special 2]",
        "0.08 s, band 1",
        "0.18 s, band 1",
    )


def test_a_resampled_tone_is_the_same_tone() -> None:
    for rate in (8_000, 22_050, 44_100, 48_000):
        time, wanted = np.arange(rate) / rate, np.arange(16_000) / 16_000
        found = resampled(np.sin(2 * np.pi * 440 * time).astype(np.float32), rate, 16_000)
        assert len(found) == 16_000
        expected = np.sin(2 * np.pi * 440 * wanted)
        assert np.abs(found - expected)[200:-200].max() < 5e-3
    high = np.sin(2 * np.pi * 11_000 * np.arange(44_100) / 44_100).astype(np.float32)
    assert np.abs(resampled(high, 44_100, 16_000))[200:-200].max() < 0.02  # it holds no such tone


def test_flac_is_read_where_soundfile_is_there(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "tones.flac", two_tones(), 16_000)
    samples, rate = open_sound(tmp_path / "tones.flac")
    assert rate == 16_000
    assert np.allclose(samples, two_tones(), atol=1e-3)


def test_inputs_that_are_ready_are_read_with_labels(folder: Path) -> None:
    scope = hs.load(folder, device="cpu")
    given = scope.read(checkerboard()).given
    labels = ["[CLS]", *(f"square {n}" for n in range(16))]
    reading = scope.read(given, labels=labels)
    assert reading.positions.labels[3] == "square 2"
    assert np.array_equal(reading.similarity(1, 1), scope.read(checkerboard()).similarity(1, 1))
    assert "distance" not in reading.high_pairs(1, 1).columns
    with pytest.raises(NotPossible, match="a label for each position"):
        scope.read(given)
    with pytest.raises(CannotRead, match="17 positions for this input, and there are 3 labels"):
        scope.read(given, labels=["a", "b", "c"])


def test_clip_reads_texts_and_pictures() -> None:
    config = t.CLIPConfig(
        text_config={"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        | {"intermediate_size": 48, "vocab_size": 30600, "projection_dim": 16},
        vision_config={"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
        | {"intermediate_size": 48, "image_size": 64, "patch_size": 16, "projection_dim": 16},
        projection_dim=16,
    )
    from transformers import CLIPModel

    scope = hs.load(CLIPModel(config).eval(), hs.load(device="cpu").tokenizer)
    assert scope.read("the sea").scope.shape.layers == 2
    with pytest.warns(UserWarning, match="no preprocessor configuration"):
        reading = scope.read(checkerboard())
    assert reading.scope.shape.layers == 3
    assert reading.positions.grid == (4, 4)


def test_the_page_can_show_a_picture_without_a_further_package(tmp_path: Path) -> None:
    (tmp_path / "board.png").write_bytes(png(checkerboard(48, 80)))
    with Image.open(tmp_path / "board.png") as picture:
        assert np.array_equal(np.asarray(picture), checkerboard(48, 80))


def test_what_cannot_be_read_is_said(folder: Path, tmp_path: Path) -> None:
    scope = hs.load(folder, device="cpu")
    (tmp_path / "no.png").write_text("no picture")
    with pytest.raises(CannotRead, match=r"no.png' is no picture that can be opened"):
        scope.read(tmp_path / "no.png")
    with pytest.raises(CannotRead, match="There is no file"):
        scope.read(tmp_path / "none.png")
    with pytest.raises(CannotRead, match="Channels come last"):
        scope.read(np.zeros((3, 64, 64), np.uint8))
    with pytest.raises(CannotRead, match="from 0 to 255"):
        scope.read(np.full((8, 8, 3), -1.0))
    with pytest.raises(CannotRead, match="read with its rate"):
        scope.read(np.zeros(16_000))
    with pytest.raises(CannotObserve, match=r"reads no sounds.*Load one that hears"):
        scope.read((two_tones(), 16_000))
    with pytest.raises(NotPossible, match="loaded to read pictures, and this needs a text"):
        print(scope.tokenizer)
    with pytest.raises(CannotObserve, match="reads no pictures"):
        hs.load(device="cpu").read(checkerboard())
    with pytest.raises(CannotLoad, match="needs its tokenizer"):
        hs.load(t.BertModel(t.BertConfig(num_hidden_layers=1)))
