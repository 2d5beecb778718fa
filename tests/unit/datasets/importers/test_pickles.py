"""Pickles of foreign origin: plain values come out, nothing is run, and what is refused is named."""

from __future__ import annotations

import bz2
import collections
import decimal
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nasrlm.datasets.importers.pickles import load_pickle, load_torch
from nasrlm.errors import TableError

PLAIN = {
    "text": "ä",
    ("a", 1): [1, 2.5, None, True, b"\x00\xff", 2**70],
    "scalars": [np.float64(1.5), np.float32(2.5), np.int64(3), np.int8(4), np.bool_(True)],
    "array": np.arange(6, dtype=np.float32).reshape(2, 3),
    "ordered": collections.OrderedDict(a=1),
    "set": {1, 2},
}


def same(found: Any) -> bool:
    array = found.pop("array")
    expected = {key: value for key, value in PLAIN.items() if key != "array"}
    return found == expected and np.array_equal(array, PLAIN["array"])


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_come_out_of_every_protocol(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(PLAIN, protocol))
    (tmp_path / "a.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps(PLAIN, protocol)))
    assert same(load_pickle(tmp_path / "a.pickle"))
    assert same(load_pickle(tmp_path / "a.pickle.pbz2"))


@pytest.mark.parametrize("zipped", [True, False])
def test_weights_in_torch_files_are_left_out(tmp_path: Path, zipped: bool) -> None:
    value = {"w": torch.zeros(3), "p": torch.nn.Parameter(torch.ones(2)), "list": [1.0, np.int64(7)]}
    torch.save(value, tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    assert load_torch(tmp_path / "a.pt") == {"w": None, "p": None, "list": [1.0, 7]}


class Getattr:
    """A pickle of it asks for an attribute of something harmless."""

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, ("", "format")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (decimal.Decimal(1), "decimal.Decimal"),
        (Getattr(), "(builtins|__builtin__).getattr"),
        (np.array([{}], dtype=object), "an array of object"),
        (np.array(["a"]), "an array of <U1"),
        (Path("x"), "pathlib"),
        (print, "(builtins|__builtin__).print"),
    ],
)
def test_everything_else_is_refused_by_name(tmp_path: Path, value: object, name: str) -> None:
    (tmp_path / "a.pickle").write_bytes(pickle.dumps([value]))
    torch.save([value], tmp_path / "a.pt")
    for load, file in ((load_pickle, "a.pickle"), (load_torch, "a.pt")):
        with pytest.raises(TableError, match=f"{file} was refused: it holds {name}.*Allowed are numbers, texts"):
            load(tmp_path / file)


@pytest.mark.parametrize("zipped", [True, False])
def test_programs_are_not_run(tmp_path: Path, evil, zipped: bool) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (tmp_path / "a.pickle").write_bytes(pickle.dumps({"x": evil}, protocol))
        with pytest.raises(TableError, match="Nothing in it was run"):
            load_pickle(tmp_path / "a.pickle")
    torch.save([evil], tmp_path / "a.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(TableError, match="Nothing in it was run"):
        load_torch(tmp_path / "a.pt")
    assert not evil.file.exists()


def test_damaged_files_give_one_clear_message(tmp_path: Path) -> None:
    """Every file cut at any of 60 places, and 60 files with one byte changed: a value or a TableError, never else."""
    torch.save(PLAIN, tmp_path / "a.pt")
    files = {
        "b.pickle": (load_pickle, pickle.dumps(PLAIN)),
        "b.pbz2": (load_pickle, bz2.compress(pickle.dumps(PLAIN))),
        "b.pt": (load_torch, (tmp_path / "a.pt").read_bytes()),
    }
    rng = np.random.default_rng(0)
    for name, (load, data) in files.items():
        file = tmp_path / name
        for cut in rng.integers(0, len(data) - 1, 60):
            file.write_bytes(data[:cut])
            with pytest.raises(TableError, match=f"{name}: .*Is the file complete"):
                load(file)
        for at, bit in zip(rng.integers(0, len(data), 60), rng.integers(0, 8, 60), strict=True):
            file.write_bytes(data[:at] + bytes([data[at] ^ 1 << int(bit)]) + data[at + 1 :])
            try:
                load(file)
            except TableError as error:
                assert name in str(error)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for load in (load_pickle, load_torch):
        with pytest.raises(TableError, match="No such file"):
            load(tmp_path / "nothing.pt")
