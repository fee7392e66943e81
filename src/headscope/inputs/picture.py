"""A picture as a model reads it: opened, resized, cut to size and normalised.

By the preprocessor configuration beside the model and without its code, which may want packages
that are not here; resized as Pillow does, so that the patches are those of transformers.
"""

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from headscope.errors import CannotRead

Pixels = NDArray[np.uint8]  # (height, width, 3)
IMAGES = {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"}  # endings of files
FILTERS = {0: "nearest", 2: "bilinear", 3: "bicubic"}  # by Pillow's numbers
LIKE_A_FILE = "a path, a PIL image, or an array (height, width, 3)"


def open_picture(source: Any) -> Pixels:
    """The pixels of a picture: red, green and blue from 0 to 255."""
    if isinstance(source, (str, Path)):
        return _from_file(Path(source))
    if hasattr(source, "convert") and hasattr(source, "getbands"):
        return np.asarray(source.convert("RGB"), dtype=np.uint8)
    return _from_array(np.asarray(source))


def _from_file(path: Path) -> Pixels:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise CannotRead(
            f"Opening '{path}' needs Pillow: pip install 'headscope[image]'.",
            python="Or pass the pixels, an array (height, width, 3) of numbers from 0 to 255.",
        ) from error
    try:
        with Image.open(path) as picture:
            upright = ImageOps.exif_transpose(picture)
            return np.asarray(upright.convert("RGB"), dtype=np.uint8)
    except FileNotFoundError as error:
        raise CannotRead(f"There is no file '{path}'.") from error
    except Exception as error:
        raise CannotRead(
            f"'{path}' is no picture that can be opened ({type(error).__name__}: {error})."
        ) from error


def _from_array(array: NDArray[Any]) -> Pixels:
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    if array.ndim != 3 or array.shape[2] not in (3, 4) or 0 in array.shape:
        raise CannotRead(
            f"A picture is {LIKE_A_FILE}; this array is of shape {tuple(array.shape)}. "
            "Channels come last: array.transpose(1, 2, 0) puts them there."
        )
    array = array[:, :, :3]
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if not np.isfinite(array).all() or array.min() < 0 or array.max() > 255:
        raise CannotRead(
            "The numbers of a picture are from 0 to 255 (or from 0 to 1, of a floating type); "
            f"these are from {array.min():.4g} to {array.max():.4g}."
        )
    if array.dtype.kind == "f" and array.max() <= 1:
        array = array * 255
    return np.ascontiguousarray(array.round().astype(np.uint8))


def as_read(pixels: Pixels, settings: Mapping[str, Any]) -> Pixels:
    """The picture as the model sees it: resized, and its middle cut out where that is asked for."""
    if settings.get("do_resize", True):
        size = _size(settings.get("size"), pixels)
        if size != pixels.shape[:2]:
            pixels = _resized(pixels, size, FILTERS.get(settings.get("resample", 2), "bilinear"))
    if settings.get("do_center_crop") and settings.get("crop_size"):
        pixels = _middle(pixels, _size(settings["crop_size"], pixels))
    return pixels


def normalised(pixels: Pixels, settings: Mapping[str, Any]) -> Tensor:
    """What the model is given: (1, 3, height, width)."""
    values = torch.from_numpy(pixels.astype(np.float32)).permute(2, 0, 1)
    if settings.get("do_rescale", True):
        values = values * settings.get("rescale_factor", 1 / 255)
    if settings.get("do_normalize", True):
        mean, std = (settings.get(name, [0.5] * 3) for name in ("image_mean", "image_std"))
        values = (values - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    return values[None].float()


def _size(wanted: Any, pixels: Pixels) -> tuple[int, int]:
    """Height and width, as a configuration says them."""
    height, width = pixels.shape[:2]
    if isinstance(wanted, int):
        return wanted, wanted
    if isinstance(wanted, Mapping) and "height" in wanted:
        return int(wanted["height"]), int(wanted["width"])
    if isinstance(wanted, Mapping) and "shortest_edge" in wanted:
        short = int(wanted["shortest_edge"])
        if height <= width:
            return short, int(short * width / height)
        return int(short * height / width), short
    if wanted is None:
        return height, width
    raise CannotRead(
        f"The preprocessor configuration of the model asks for a size of {dict(wanted)}, which is "
        "not known here.",
        python="Prepare the picture yourself: scope.read({'pixel_values': tensor}, labels=[…]).",
    )


def _resized(pixels: Pixels, size: tuple[int, int], how: str) -> Pixels:
    """By a filter that takes in every pixel, as Pillow does it; a number may differ by one.

    Across and then down, in whole numbers from 0 to 255 after each. Pillow may go down first, and
    then a sharp edge that "bicubic" overshoots comes out by some steps otherwise.
    """
    values = torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].contiguous().double()
    smooth = {} if how == "nearest" else {"antialias": True, "align_corners": False}
    for shape in ((pixels.shape[0], size[1]), size):
        values = interpolate(values, size=shape, mode=how, **smooth)
        values = values.add(0.5).floor().clamp(0, 255)
    found: Pixels = values[0].byte().permute(1, 2, 0).contiguous().numpy()
    return found


def _middle(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """The middle of a picture, black around it where it is smaller."""
    height, width = pixels.shape[:2]
    whole = np.zeros((max(height, size[0]), max(width, size[1]), 3), np.uint8)
    top, left = (whole.shape[0] - height) // 2, (whole.shape[1] - width) // 2
    whole[top : top + height, left : left + width] = pixels
    top, left = (whole.shape[0] - size[0]) // 2, (whole.shape[1] - size[1]) // 2
    return np.ascontiguousarray(whole[top : top + size[0], left : left + size[1]])


def png(pixels: Pixels) -> bytes:
    """The picture as a PNG file, so that a page can show it."""
    height, width = pixels.shape[:2]

    def chunk(name: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + check

    lines = b"".join(b"\0" + pixels[line].tobytes() for line in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines, 9)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
