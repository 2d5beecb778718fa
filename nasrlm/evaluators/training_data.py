"""Data sets that candidates are trained on: digits, .npz files, folders of images, any torch Dataset."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from nasrlm import registry
from nasrlm.errors import nearest
from nasrlm.evaluators.training_images import open_folder
from nasrlm.evaluators.training_options import ReadingOptions, wrong
from nasrlm.evaluators.training_parts import (
    IN_MEMORY_BYTES,
    InMemory,
    Part,
    Ready,
    Streamed,
    bytes_as_float,
    completed,
    fitted,
    prepared,
)

if TYPE_CHECKING:
    from nasrlm.evaluators.training_network import Form

DIGITS = "digits"
_FORMS = "Allowed: digits; a .npz file; a folder of class folders of images; package.module:function; file.py:function."
_ARRAYS = {"train": ("x_train", "y_train"), "validation": ("x_val", "y_val"), "test": ("x_test", "y_test")}


@dataclass(frozen=True)
class Source:
    """A data set as found: nothing is resized, standardised or held out yet.

    Attributes:
        name: names the metric.
        parts: "train" and possibly "validation" and "test": tensors in memory, or a Dataset.
        shape: of a sample as the network would get it.
        whole: samples are whole numbers (ids), not float.
    """

    name: str
    parts: Mapping[str, Any]
    shape: tuple[int, ...]
    whole: bool


@dataclass(frozen=True)
class Data:
    """A data set ready for training.

    Attributes:
        train: what networks learn from.
        validation: what a search scores on.
        test: what stays untouched by a search.
        classes: how many there are; None if the Dataset does not say.
    """

    train: Part
    validation: Part
    test: Part
    classes: int | None

    def at(self, device: torch.device) -> Data:
        """The same with what lies in memory moved to a device."""
        train, validation, test = (part.at(device) for part in (self.train, self.validation, self.test))
        return Data(train, validation, test, self.classes)


def open_data(data: Any, shape: tuple[Any, ...], *, resize: bool, options: Mapping[str, Any]) -> Source:
    """Finds a data set and looks at its first sample.

    Args:
        data: "digits", a path, a "module:function", or a function.
        shape: of the network's input without the batch.
        resize: bring images to that shape.
        options: arguments for the function.

    Raises:
        ConfigError: no such data, or data of a form that cannot be used.
    """
    name, parts = _found(data, shape, options)
    first = _first(parts["train"])
    images = len(shape) == 3 and all(isinstance(size, int) for size in shape)
    if resize and (not images or first.dim() not in (2, 3) or _channels(first) not in (1, 3, shape[0])):
        raise wrong(
            "resize",
            f"the samples of {name} have the shape {tuple(first.shape)}, the networks take {tuple(shape)}. Only "
            "images of 1 or 3 channels can be resized. Leave resize out.",
        )
    made = fitted(first.unsqueeze(0), shape, resize)
    return Source(_plain(name), parts, tuple(made.shape[1:]), not made.is_floating_point())


def check_fit(space: str, form: Form, source: Source) -> None:
    """Sees that the networks take the samples.

    Raises:
        ConfigError: another shape or kind of numbers; both are named.
    """
    fits = len(form.shape) == len(source.shape) and all(
        size == wanted or not isinstance(wanted, int) for size, wanted in zip(source.shape, form.shape, strict=True)
    )
    if not fits:
        raise wrong(
            "data",
            f"the networks of {space} take the shape {form.shape}, and the samples of {source.name} have "
            f"{source.shape}. Give the space's options for that data, other data, or for images resize: true.",
        )
    if form.whole != source.whole:
        kinds = {True: "whole numbers (ids)", False: "float (or pixels in uint8)"}
        raise wrong(
            "data",
            f"the networks of {space} take {kinds[form.whole]}, and the samples of {source.name} are "
            f"{kinds[source.whole]}. Convert them.",
        )


def check_classes(space: str, form: Form, name: str, data: Data) -> None:
    """Sees that the networks have an output a class.

    Raises:
        ConfigError: fewer; both numbers are named.
    """
    if data.classes is not None and form.outputs is not None and form.outputs < data.classes:
        raise wrong(
            "data",
            f"the networks of {space} have {form.outputs} outputs, and {name} has {data.classes} classes. Give the "
            "space's option for the number of classes, or other data.",
        )


def load_data(source: Source, shape: tuple[Any, ...], options: ReadingOptions) -> Data:
    """Reads a data set, into memory if it takes no more than a gigabyte there, and completes its parts.

    Raises:
        ConfigError: samples of different shapes, labels that are no class numbers, no samples to hold out.
    """
    size = sum(bytes_as_float(len(part), source.shape) for part in source.parts.values())
    ready = Ready(shape, options.resize)
    parts = {
        name: _placed(part, source, ready, size <= IN_MEMORY_BYTES, options.workers)
        for name, part in source.parts.items()
    }
    parts = prepared(completed(parts, options.held_out), ready, options.standardize)
    for part_name, part in parts.items():
        if isinstance(part, InMemory) and not bool(part.x.isfinite().all()):
            raise wrong("data", f"the {part_name} samples of {source.name} have numbers that are not finite.")
    labels = [part.y for part in parts.values() if isinstance(part, InMemory)]
    named = getattr(source.parts["train"], "classes", None)
    classes = int(max(y.max() for y in labels)) + 1 if labels else None if named is None else len(named)
    return Data(parts["train"], parts["validation"], parts["test"], classes)


def _found(data: Any, shape: tuple[Any, ...], options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if callable(data):
        return getattr(data, "__name__", "data"), _called(data, options)
    text = str(data)
    if options and ":" not in text:
        raise wrong("data_options", f"data_options go to a function, and data is {text!r}. Leave them out.")
    if text == DIGITS:
        return DIGITS, {"train": _digits()}
    path = Path(text).expanduser()
    if path.suffix == ".npz":
        return path.stem, _arrays(path)
    if path.is_dir():
        return path.name, dict(open_folder(path, shape))
    if ":" in text:
        function = _function(text)
        return text.rpartition(":")[2], _called(function, options)
    close = nearest(text, [DIGITS, *(p.name for p in sorted(path.parent.glob("*")))]) if path.parent.is_dir() else []
    raise wrong("data", f"there is no data {text!r}. {f'Nearest: {close[0]}. ' if close else ''}{_FORMS}")


def _plain(name: str) -> str:
    """A name that can stand in a metric's."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name).strip("_.-") or "data"


def _digits() -> InMemory:
    """1,797 handwritten digits of 8x8 pixels (Alpaydin & Kaynak 1998, UCI), as scikit-learn has them."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return InMemory(torch.from_numpy(x.astype(np.float32)).view(-1, 1, 8, 8), torch.from_numpy(y.astype(np.int64)))


def _arrays(path: Path) -> dict[str, InMemory]:
    if not path.is_file():
        close = nearest(path.name, [p.name for p in sorted(path.parent.glob("*.npz"))])
        raise wrong("data", f"there is no file {str(path)!r}. {f'Nearest: {close[0]}. ' if close else ''}{_FORMS}")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, TypeError, BadZipFile) as error:
        raise wrong("data", f"{path} cannot be read as .npz of plain numbers: {error}.") from error
    parts = {}
    for part, (x, y) in _ARRAYS.items():
        if x in arrays and y in arrays:
            parts[part] = _pair(arrays[x], arrays[y], f"{path}: {x}, {y}")
    if "train" not in parts:
        raise wrong(
            "data",
            f"{path} holds {', '.join(arrays) or 'nothing'}. Wanted: x_train and y_train, and if you like x_val, "
            "y_val, x_test, y_test.",
        )
    return parts


def _pair(x: Any, y: Any, where: str) -> InMemory:
    try:
        samples, labels = torch.as_tensor(x), torch.as_tensor(y)
    except (TypeError, ValueError) as error:
        raise wrong("data", f"{where} are no numbers: {error}") from error
    if labels.dim() == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dim() != 1 or len(labels) != len(samples) or len(labels) == 0 or samples.dim() < 2:
        raise wrong(
            "data",
            f"{where} have the shapes {tuple(samples.shape)} and {tuple(labels.shape)}. Wanted: (n, ...) samples and "
            "(n,) labels, such as (5000, 3, 32, 32) and (5000,).",
        )
    whole = labels.long()
    if not torch.equal(whole.to(labels.dtype), labels) or int(whole.min()) < 0:
        raise wrong("data", f"{where}: labels must be class numbers 0, 1, 2 ...; the least is {labels.min().item()}.")
    return InMemory(samples, whole)


def _function(text: str) -> Any:
    place, _, name = text.rpartition(":")
    try:
        module = registry.load_code(place, "data set") if place.endswith(".py") else importlib.import_module(place)
    except ImportError as error:
        raise wrong("data", f"data is {text!r}, and {place!r} cannot be imported: {error}. {_FORMS}") from error
    if not callable(getattr(module, name, None)):
        close = nearest(name, [known for known in vars(module) if not known.startswith("_")])
        raise wrong("data", f"{place} has no function {name!r}.{f' Nearest: {close[0]}.' if close else ''}")
    return getattr(module, name)


def _called(function: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a function gives: a Dataset, (train, test) or (train, validation, test)."""
    name = getattr(function, "__name__", "the function")
    try:
        made = function(**options)
    except Exception as error:  # anybody's code
        what = f"{type(error).__name__}: {error}"
        raise wrong("data", f"the function {name} with data_options {dict(options)} failed: {what}") from error
    several = made if isinstance(made, tuple | list) else (made,)
    names = {1: ("train",), 2: ("train", "test"), 3: ("train", "validation", "test")}.get(len(several))
    if names is None or not all(hasattr(part, "__len__") and hasattr(part, "__getitem__") for part in several):
        kinds = ", ".join(type(part).__name__ for part in several)
        raise wrong("data", f"{name} gave {kinds}. Wanted: a Dataset with len, (train, test) or (train, val, test).")
    return dict(zip(names, map(_unpacked, several), strict=True))


def _unpacked(dataset: Any) -> Any:
    """A TensorDataset is two tensors already."""
    from torch.utils.data import TensorDataset

    if isinstance(dataset, TensorDataset) and len(dataset.tensors) == 2:
        return _pair(*dataset.tensors, "the TensorDataset's tensors")
    return dataset


def _first(part: Any) -> Tensor:
    if isinstance(part, InMemory):
        return part.x[0]
    item = part[0] if len(part) else None
    if not isinstance(item, tuple | list) or len(item) != 2 or not isinstance(item[0], Tensor | np.ndarray):
        kind = "has no samples" if item is None else f"gives {_kind(item)}"
        raise wrong(
            "data",
            f"the Dataset {type(part).__name__} {kind}. Wanted: (tensor, class number) of each sample; with "
            "torchvision, transform=ToTensor().",
        )
    return torch.as_tensor(item[0])


def _kind(item: Any) -> str:
    inside = f" of {', '.join(type(x).__name__ for x in item)}" if isinstance(item, tuple | list) else ""
    return type(item).__name__ + inside


def _channels(sample: Tensor) -> int:
    return 1 if sample.dim() == 2 else int(sample.shape[0])


def _placed(part: Any, source: Source, ready: Ready, small: bool, workers: int) -> Any:
    """A part in memory, or as a stream."""
    if isinstance(part, InMemory):
        return part
    if not small:
        return Streamed(part, torch.arange(len(part)), workers)
    xs: list[Tensor] = []
    ys: list[int] = []
    for i in range(len(part)):
        x, y = part[i]
        x = ready(torch.as_tensor(x).unsqueeze(0))[0] if ready.resize else torch.as_tensor(x)
        if xs and x.shape != xs[0].shape:
            raise wrong(
                "data",
                f"sample {i} of {source.name} has the shape {tuple(x.shape)}, the first {tuple(xs[0].shape)}. Give "
                "all the same, or set resize: true for images.",
            )
        xs.append(x)
        ys.append(int(y))
    return _pair(torch.stack(xs), torch.tensor(ys), f"the samples of {source.name}")
