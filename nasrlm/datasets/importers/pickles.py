"""Pickles of foreign origin: numbers, texts, lists, dicts and arrays of numbers are read, all else is refused.

A pickle is a program. Nothing of it can run but the few functions named here, which make numbers.
"""

from __future__ import annotations

import bz2
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy._core import multiarray

from nasrlm.datasets.importers.protocol import damaged
from nasrlm.errors import TableError

_NUMBERS = "biuf"  # kinds of NumPy's element types: bool, signed, unsigned, float


class _Refused(Exception):
    """A name in a pickle that is not on the list."""


def _dtype(*arguments: Any) -> np.dtype[Any]:
    found = np.dtype(*arguments)
    if found.kind not in _NUMBERS:
        raise _Refused(f"an array of {found}")
    return found


def _from_buffer(buffer: Any, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any) -> np.ndarray:
    return np.frombuffer(buffer, dtype).reshape(shape, order=order)


def _encode(text: str, encoding: str = "latin1") -> bytes:
    # Python 3 writes bytes so in the pickle protocols of Python 2.
    if encoding not in ("latin1", "latin-1"):
        raise _Refused(f"text in {encoding}")
    return text.encode("latin1")


def _tensor(*arguments: Any) -> None:
    """Weights are left out."""


_MAGIC = 0x1950A86A20F9469CFC6C  # what torch.save began with before torch 1.6
_STORAGES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _encode,
    **{(builtins, "set"): set for builtins in ("builtins", "__builtin__")},
    ("numpy", "dtype"): _dtype,
    ("numpy", "ndarray"): np.ndarray,
    **{(f"numpy.{core}.multiarray", "scalar"): multiarray.scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): multiarray._reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
    **{("torch._utils", f"_rebuild_{kind}"): _tensor for kind in ("tensor_v2", "parameter")},
    **{("torch", f"{kind}Storage"): _tensor for kind in _STORAGES},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _Refused(f"{module}.{name}") from None

    def persistent_load(self, pid: Any) -> None:
        """The numbers of a tensor are not read."""


def load_pickle(file: Path) -> Any:
    """The plain value in a pickle; a name that ends in .pbz2 or .bz2 is decompressed.

    Raises:
        TableError: it holds anything but plain values (nothing of it is run), is cut short or no pickle.
    """
    return _guarded(file, _load_compressed if file.suffix in (".pbz2", ".bz2") else _load_plain)


def load_torch(file: Path) -> Any:
    """The plain value in a file that torch.save wrote, before torch 1.6 or since; tensors in it become None.

    torch's own safe reader is written in Python and takes fifteen times as long for dictionaries of numbers.

    Raises:
        TableError: as `load_pickle`.
    """
    return _guarded(file, _load_zip if zipfile.is_zipfile(file) else _load_legacy)


def _guarded(file: Path, load: Callable[[Path], Any]) -> Any:
    try:
        return load(file)
    except _Refused as refused:
        raise TableError(
            f"{file} was refused: it holds {refused}. Allowed are numbers, texts, lists, dicts and arrays of numbers, "
            "as in the published files. Nothing in it was run. Take the file from its authors."
        ) from None
    except OSError as error:
        raise damaged(file, "", error.strerror or error) from error
    except Exception as error:  # bytes that have changed can make the functions above fail in any way
        raise damaged(file, "", f"no pickle that can be read ({type(error).__name__}: {error})") from error


def _load_plain(file: Path) -> Any:
    with open(file, "rb") as stream:
        return _Unpickler(stream).load()


def _load_compressed(file: Path) -> Any:
    with bz2.open(file, "rb") as stream:
        value = _Unpickler(stream).load()
        if stream.read(1):  # reading to the end also compares the checksum
            raise ValueError("something follows the end of the pickle")
        return value


def _load_zip(file: Path) -> Any:
    with zipfile.ZipFile(file) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        with archive.open(name) as stream:
            return _Unpickler(stream).load()


def _load_legacy(file: Path) -> Any:
    with open(file, "rb") as stream:
        if stream.read(2) == b"PK":
            raise ValueError("the archive that it is lacks its end")
        stream.seek(0)
        if _Unpickler(stream).load() != _MAGIC:
            raise ValueError("it does not begin as torch.save begins")
        for _ in ("version", "system"):
            _Unpickler(stream).load()
        return _Unpickler(stream).load()
