"""Examples that a quantised network's ranges are measured on: random numbers, or the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nasrlm.devices.inputs import Input, random_inputs
from nasrlm.devices.settings import Settings
from nasrlm.errors import ConfigError, DeviceError

Feeds = dict[str, np.ndarray]


class CalibrationData:
    """Examples from a file, or random ones.

    Args:
        path: .npy with one array for a network of one input, or .npz with an array an input, by the inputs' names
            (any name where there is one input). The first dimension counts the examples. None = random numbers.
        samples: examples that are used, the first of the file.
        where: words for messages, such as "device onnxruntime_int8".

    Raises:
        ConfigError: a file that is missing or holds no arrays.
    """

    def __init__(self, path: str | Path | None, samples: int, where: str) -> None:
        self.samples, self.where, self.path = samples, where, path
        self.arrays = None if path is None else _arrays(Path(path), where)

    def feeds(self, inputs: list[Input]) -> list[Feeds]:
        """One feed of one example for each sample.

        Args:
            inputs: of the network.

        Raises:
            DeviceError: arrays that do not fit the inputs.
        """
        if self.arrays is None:
            settings = Settings(self.where.removeprefix("device "))
            return [random_inputs(inputs, settings, seed) for seed in range(self.samples)]
        arrays = self.arrays
        if len(inputs) == 1 and len(arrays) == 1:
            arrays = {inputs[0].name: next(iter(arrays.values()))}
        self._check(inputs, arrays)
        count = min([self.samples, *(len(array) for array in arrays.values())])
        return [{i.name: _cast(arrays[i.name][n : n + 1], i) for i in inputs} for n in range(count)]

    def _check(self, inputs: list[Input], arrays: Feeds) -> None:
        for value in inputs:
            array = arrays.get(value.name)
            if array is None:
                raise DeviceError(
                    f"{self.where}: {self.path} has no array for the network's input {value.name!r}; it has "
                    f"{', '.join(arrays)}. Save them by name: numpy.savez(path, {value.name}=...)."
                )
            if len(array) == 0 or array.shape[1:] != tuple(value.shape[1:]):
                raise DeviceError(
                    f"{self.where}: the array for {value.name!r} in {self.path} has the shape {array.shape}; the "
                    f"network takes {value.shape}. Give (examples, {', '.join(map(str, value.shape[1:]))})."
                )


def _cast(array: np.ndarray, value: Input) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=np.dtype(value.dtype))


def _arrays(path: Path, where: str) -> Feeds:
    try:
        loaded: Any = np.load(path.expanduser(), allow_pickle=False)
        found = {"": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, AttributeError, EOFError) as error:
        raise ConfigError(
            f"{where}: calibration {str(path)!r} cannot be read: {error}. Give an .npy or .npz file of arrays "
            "(numpy.save, numpy.savez), or leave it out for random numbers."
        ) from error
    if not found or any(array.ndim == 0 for array in found.values()):
        raise ConfigError(f"{where}: calibration {str(path)!r} holds no examples. Save an array with some first.")
    return found
