"""Random input for a network, from what its runtime says of its inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nasrlm.devices.settings import Settings
from nasrlm.errors import DeviceError

DTYPES = ("float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool")
"""Element types that random values can be made of."""


@dataclass(frozen=True)
class Input:
    """An input of a network.

    Attributes:
        name: in the network.
        dtype: numpy's word for its element type, or the runtime's word for one that numpy lacks.
        shape: whole numbers; anything else is a size that is left open.
    """

    name: str
    dtype: str
    shape: tuple[Any, ...]


def random_inputs(inputs: Iterable[Input], settings: Settings, seed: int | None = None) -> dict[str, np.ndarray]:
    """Arrays for the inputs by name: normal numbers, or 0 and 1 where whole numbers are wanted.

    Args:
        inputs: as the runtime gives them.
        settings: their batch size and seed count.
        seed: in place of the settings' own.

    Raises:
        DeviceError: another batch size, sizes left open, or an element type that cannot be made up.
    """
    rng = np.random.default_rng(settings.seed if seed is None else seed)
    return {value.name: _random(value, settings, rng) for value in inputs}


def _random(value: Input, settings: Settings, rng: np.random.Generator) -> np.ndarray:
    shape = _shape(value, settings)
    if value.dtype not in DTYPES:
        raise DeviceError(
            f"{settings.where}: the network's input {value.name!r} is a {value.dtype}. "
            f"Inputs that can be made up: {', '.join(DTYPES)}."
        )
    dtype = np.dtype(value.dtype)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)  # 0 and 1 are valid wherever whole numbers are indices


def _shape(value: Input, settings: Settings) -> list[int]:
    shape, size = list(value.shape), settings.batch_size
    if shape and not isinstance(shape[0], int):
        shape[0] = size
    elif shape and shape[0] != size:
        raise DeviceError(
            f"{settings.where}: the network's input {value.name!r} has the fixed batch size {shape[0]}, but "
            f"batch_size is {size}. Set batch_size: {shape[0]}, or export with a free batch size; "
            "if that input is a weight, export the network with its weights."
        )
    if not all(isinstance(dim, int) for dim in shape):
        raise DeviceError(
            f"{settings.where}: the network's input {value.name!r} has the shape {list(value.shape)}, which "
            "leaves sizes open. Export it with fixed sizes (only the batch may stay open)."
        )
    return shape
