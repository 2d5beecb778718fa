"""Folders of images as data: one folder a class, as torchvision's ImageFolder has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nasrlm.errors import ConfigError
from nasrlm.evaluators.training_options import wrong

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_PARTS = {"train": ("train",), "validation": ("validation", "valid", "val"), "test": ("test",)}


@dataclass(frozen=True)
class ImageFolder:
    """Images of class folders, decoded when they are asked for; a Dataset for torch.

    Attributes:
        files: path and label of each.
        classes: names of the folders, sorted.
        shape: channels (1 = grey, 3 = colour), height and width to which each is brought.
    """

    files: tuple[tuple[Path, int], ...]
    classes: tuple[str, ...]
    shape: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        from PIL import Image

        path, label = self.files[i]
        channels, height, width = self.shape
        try:
            with Image.open(path) as image:
                found = image.convert("L" if channels == 1 else "RGB").resize(
                    (width, height), Image.Resampling.BILINEAR
                )
        except (OSError, ValueError, SyntaxError) as error:  # Pillow's for damaged files
            raise wrong("data", f"{path} is no image that can be read: {error}. Repair it or take it away.") from error
        pixels = torch.from_numpy(np.array(found, dtype=np.uint8))
        return pixels.view(height, width, channels).permute(2, 0, 1), label


def open_folder(folder: Path, shape: tuple[Any, ...]) -> dict[str, ImageFolder]:
    """Parts of a folder: `train`, `validation` and `test` folders with class folders in them, or class folders alone.

    Args:
        folder: where they are.
        shape: of the network's input without the batch, to which images are brought.

    Raises:
        ConfigError: no class folders or no images; a network that takes no images; a part with other classes.
    """
    if len(shape) != 3 or shape[0] not in (1, 3) or not all(isinstance(n, int) for n in shape):
        raise wrong(
            "data",
            f"data is {str(folder)!r}, a folder of images, and the networks take the shape {shape}. "
            "Images go to networks of (1 or 3, height, width).",
        )
    places = {part: [folder / name for name in names if (folder / name).is_dir()] for part, names in _PARTS.items()}
    if not places["train"]:
        return {"train": _images(folder, shape)}
    parts = {part: _images(found[0], shape) for part, found in places.items() if found}
    for part in parts.values():
        if part.classes != parts["train"].classes:
            raise _other_classes(folder, parts)
    return parts


def _images(folder: Path, shape: tuple[Any, ...]) -> ImageFolder:
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    files = tuple(
        (path, label)
        for label, name in enumerate(classes)
        for path in sorted((folder / name).rglob("*"))
        if path.suffix.lower() in ENDINGS
    )
    if len(classes) < 2 or not files:
        raise wrong(
            "data",
            f"{folder} has {len(classes)} folders with {len(files)} images in them. It must hold a folder a class "
            f"(two and more), each with images ({' '.join(ENDINGS)}).",
        )
    return ImageFolder(files, tuple(classes), (shape[0], shape[1], shape[2]))


def _other_classes(folder: Path, parts: dict[str, ImageFolder]) -> ConfigError:
    listed = "; ".join(f"{name}: {', '.join(part.classes[:10])}" for name, part in parts.items())
    return wrong("data", f"the parts of {folder} have different class folders. {listed}. Give them the same.")
