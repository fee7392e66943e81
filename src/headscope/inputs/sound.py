"""A sound as a model reads it: opened, one channel, at the model's rate."""

import math
import wave
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.errors import CannotRead
from headscope.inputs.picture import Pixels

Wave = NDArray[np.float32]  # (samples,), from -1 to 1

SOUNDS = {".wav", ".wave", ".flac", ".ogg", ".oga", ".mp3", ".aiff", ".aif", ".m4a", ".opus"}
ZEROS, ROLLOFF = 6, 0.99  # of the filter that resamples: zero crossings, and where it ends
SHORTEST = 0.025  # seconds that a model hears at once, at the least
QUIETEST = 80.0  # dB under the loudest, in a spectrogram
LINES, MOST_COLUMNS = 128, 1200  # of a spectrogram


def open_sound(source: Any) -> tuple[Wave, int]:
    """The samples of a sound, its channels averaged, and how many there are in a second."""
    if isinstance(source, (str, Path)):
        samples, rate = _from_file(Path(source))
    else:
        given, rate = source
        samples = np.asarray(given)
        if isinstance(rate, bool) or not isinstance(rate, (int, np.integer)) or rate < 1:
            raise CannotRead(f"A sound is (array, samples in a second); the rate is {rate!r}.")
        if samples.dtype.kind == "i":
            samples = samples / -float(np.iinfo(samples.dtype).min)
        if samples.ndim == 2 and samples.shape[0] < samples.shape[1]:
            samples = samples.T  # channels first
    samples = np.asarray(samples, dtype=np.float32)
    if samples.ndim == 2:
        samples = samples.mean(axis=1)
    if samples.ndim != 1 or not np.isfinite(samples).all():
        raise CannotRead("The samples of a sound are finite numbers: (samples,) or (samples, 2).")
    if len(samples) < SHORTEST * rate:
        raise CannotRead(f"The sound has {len(samples)} samples, too few for a model to hear.")
    return np.ascontiguousarray(samples), int(rate)


def _from_file(path: Path) -> tuple[NDArray[Any], int]:
    if not path.is_file():
        raise CannotRead(f"There is no file '{path}'.")
    if path.suffix.lower() in (".wav", ".wave"):
        try:
            return _plain_wave(path)
        except (wave.Error, EOFError) as error:
            said = f"'{path}' is no WAV file of whole numbers ({error or 'it ends too early'})"
    else:
        said = f"Only .wav is read without a further package, and '{path}' is none"
    try:
        import soundfile
    except ImportError as error:
        raise CannotRead(
            f"{said}. For other files: pip install 'headscope[audio]'.",
            python="Or pass the samples: scope.read((array, rate)).",
        ) from error
    try:
        samples, rate = soundfile.read(path, dtype="float32")
    except Exception as error:
        raise CannotRead(
            f"'{path}' is no sound that can be opened ({type(error).__name__}: {error})."
        ) from error
    return samples, rate


def _plain_wave(path: Path) -> tuple[NDArray[Any], int]:
    """A WAV file of whole numbers of 8 to 32 bits."""
    with wave.open(str(path), "rb") as file:
        channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
        held = file.readframes(file.getnframes())
    raw = np.frombuffer(held[: len(held) // (width * channels) * width * channels], np.uint8)
    if width == 1:
        values = (raw.astype(np.float32) - 128) / 128
    else:  # the highest bytes of a whole number of 32 bits
        whole = np.zeros((len(raw) // width, 4), np.uint8)
        whole[:, 4 - width :] = raw.reshape(-1, width)
        values = whole.view("<i4")[:, 0] / np.float32(2**31)
    return values.reshape(-1, channels), rate


def resampled(samples: Wave, rate: int, wanted: int) -> Wave:
    """The same sound with another number of samples in a second.

    By a windowed sinc that lets nothing through which the lower of the two rates cannot hold.
    """
    if rate == wanted:
        return samples
    shared = math.gcd(rate, wanted)
    old, new = rate // shared, wanted // shared
    base = min(old, new) * ROLLOFF
    width = math.ceil(ZEROS * old / base)
    at = torch.arange(-width, width + old, dtype=torch.float64)[None] / old
    steps = torch.arange(0, -new, -1, dtype=torch.float64)[:, None] / new
    t = ((steps + at) * base).clamp(-ZEROS, ZEROS)
    window = torch.cos(t * math.pi / ZEROS / 2) ** 2
    kernels = (torch.sinc(t) * window * (base / old)).float()  # (new, taps)
    padded = torch.nn.functional.pad(torch.from_numpy(samples)[None, None], (width, width + old))
    found = torch.nn.functional.conv1d(padded, kernels[:, None], stride=old)  # (1, new, steps)
    length = math.ceil(new * len(samples) / old)
    sound: Wave = found.transpose(1, 2).reshape(-1)[:length].numpy()
    return sound


def spectrogram(samples: Wave, rate: int) -> Pixels:
    """What is heard when, as a picture: time to the right, high tones above, loud is dark."""
    size = 2 ** max(int(math.log2(rate * 0.032)), 5)
    step = max(len(samples) // MOST_COLUMNS, size // 4, 1)
    padded = np.pad(samples, (size // 2, size // 2))
    starts = np.arange(0, len(samples), step)
    cut = np.stack([padded[start : start + size] for start in starts])  # (times, size)
    power = np.abs(np.fft.rfft(cut * np.hanning(size), axis=1)) ** 2  # (times, frequencies)
    bins = np.minimum((np.arange(LINES) * power.shape[1]) // LINES, power.shape[1] - 1)
    level = 10 * np.log10(power[:, bins].T + 1e-12)
    shade = np.clip((level - level.max() + QUIETEST) / QUIETEST, 0, 1)
    grey = (255 * (1 - shade[::-1])).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)


def envelope(samples: Wave, columns: int = MOST_COLUMNS) -> list[list[float]]:
    """The lowest and the highest sample of each of so many stretches."""
    cuts = np.linspace(0, len(samples), min(columns, len(samples)) + 1).astype(int)
    low = np.minimum.reduceat(samples, cuts[:-1])
    high = np.maximum.reduceat(samples, cuts[:-1])
    return [low.round(4).tolist(), high.round(4).tolist()]
