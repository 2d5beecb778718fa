"""Data for training: arrays, folders, Datasets; parts held out; what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, TensorDataset

from nasrlm.errors import ConfigError, UsageError
from nasrlm.evaluators import training_data
from nasrlm.evaluators.training import TrainingEvaluator
from nasrlm.evaluators.training_data import load_data, open_data
from nasrlm.evaluators.training_options import ReadingOptions
from nasrlm.evaluators.training_parts import InMemory, Streamed, fitted, held_out
from nasrlm.spaces import SearchSpace
from tests.unit.evaluators.training_spaces import Digits, Vectors, pictures

MODULE = "tests.unit.evaluators.training_spaces"


def accuracy(space: SearchSpace, data: Any, **options: Any) -> float:
    evaluator = TrainingEvaluator(space, data=data, **{"epochs": 20, "batch_size": 16, **options})
    found = evaluator.evaluate(space.sample(1, seed=0), evaluator.metrics)
    assert evaluator.failures == {}
    return float(found.iloc[0, 0])


def loaded(data: Any, shape: tuple[int, ...] = (1, 8, 8), **reading: Any) -> training_data.Data:
    options = ReadingOptions(**reading)
    return load_data(open_data(data, shape, resize=options.resize, options={}), shape, options)


def blobs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    return np.eye(3, 4)[labels] * 100 + rng.normal(size=(n, 4)), labels


def test_digits_are_split_by_class_and_standardised() -> None:
    data = loaded("digits")
    assert (len(data.train), len(data.validation), len(data.test), data.classes) == (1079, 359, 359, 10)
    for part in (data.train, data.validation, data.test):
        assert isinstance(part, InMemory)
        counts = torch.bincount(part.y) / len(part)
        assert float(counts.min()) > 0.09 and float(counts.max()) < 0.11
    assert abs(float(data.train.x.mean())) < 1e-5 and abs(float(data.train.x.std()) - 1) < 1e-3
    rows = {tuple(row.tolist()) for part in (data.train, data.validation, data.test) for row in part.x.flatten(1)}
    assert len(rows) == 1797, "no image is in two parts"
    again = loaded("digits")
    assert torch.equal(again.test.x, data.test.x)


def test_raw_numbers_stay_without_standardising() -> None:
    assert float(loaded("digits", standardize=False).train.x.max()) == 16.0


def test_npz(tmp_path: Path) -> None:
    x, y = blobs(150, 0)
    x_test, y_test = blobs(50, 1)
    np.savez(tmp_path / "blobs.npz", x_train=x, y_train=y, x_test=x_test, y_test=y_test[:, None].astype(np.uint8))
    path = str(tmp_path / "blobs.npz")
    assert TrainingEvaluator(Vectors(), data=path).metrics == ("accuracy/blobs",)
    assert TrainingEvaluator(Vectors(), data=path, label="mine").metrics == ("accuracy/mine",)
    assert accuracy(Vectors(), path) > 95
    assert accuracy(Vectors(), path, score_on="test") > 95
    data = loaded(path, (4,))
    assert (len(data.train), len(data.validation), len(data.test)) == (120, 30, 50)
    np.savez(tmp_path / "three.npz", x_train=x, y_train=y, x_val=x[:7], y_val=y[:7], x_test=x_test, y_test=y_test)
    assert len(loaded(tmp_path / "three.npz", (4,)).validation) == 7


def test_grey_images_without_a_channel_get_one(tmp_path: Path) -> None:
    np.savez(tmp_path / "grey.npz", x_train=np.zeros((20, 8, 8), np.uint8), y_train=np.arange(20) % 2)
    assert loaded(tmp_path / "grey.npz").train.x.shape == (12, 1, 8, 8)


def test_resize() -> None:
    grey = torch.arange(2.0).view(1, 1, 1, 2).expand(1, 1, 4, 2)
    assert fitted(grey, (3, 8, 4), True).shape == (1, 3, 8, 4)
    colour = torch.stack([torch.full((4, 4), v) for v in (0.0, 3.0, 6.0)])[None]
    assert torch.equal(fitted(colour, (1, 4, 4), True), torch.full((1, 1, 4, 4), 3.0))
    assert torch.equal(fitted(colour, (3, 4, 4), True), colour)
    assert loaded("digits", (3, 16, 16), resize=True).train.x.shape == (1079, 3, 16, 16)
    with pytest.raises(ConfigError, match="Only images of 1 or 3 channels can be resized"):
        TrainingEvaluator(Vectors(), resize=True)


def draw(folder: Path, n: int = 12, size: int = 10) -> Path:
    for label, name in enumerate(("left", "right")):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            pixels = np.random.default_rng(i).integers(0, 80, (size, size), dtype=np.uint8)
            pixels[:, label * size // 2 : (label + 1) * size // 2] += 150
            Image.fromarray(pixels).save(folder / name / f"{i}.png")
    return folder


def test_folder_of_images(tmp_path: Path) -> None:
    folder = draw(tmp_path / "halves")
    assert accuracy(Digits(classes=2), str(folder)) == 100
    assert TrainingEvaluator(Digits(classes=2), data=folder).metrics == ("accuracy/halves",)
    data = loaded(folder, (3, 8, 8))
    assert data.train.x.shape == (14, 3, 8, 8) and data.classes == 2
    draw(tmp_path / "parts" / "train")
    draw(tmp_path / "parts" / "val", 3)
    draw(tmp_path / "parts" / "test", 2)
    data = loaded(tmp_path / "parts")
    assert (len(data.train), len(data.validation), len(data.test)) == (24, 6, 4)
    (tmp_path / "parts" / "test" / "left").rename(tmp_path / "parts" / "test" / "middle")
    with pytest.raises(ConfigError, match="different class folders"):
        loaded(tmp_path / "parts")


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="0 folders with 0 images"):
        TrainingEvaluator(Digits(), data=tmp_path)
    with pytest.raises(ConfigError, match="a folder of images, and the networks take the shape"):
        TrainingEvaluator(Vectors(), data=tmp_path)
    folder = draw(tmp_path / "halves")
    (folder / "left" / "3.png").write_bytes(b"no image")
    with pytest.raises(ConfigError, match="3.png is no image that can be read"):
        loaded(folder)


def test_functions(tmp_path: Path) -> None:
    space = Digits(classes=2)
    evaluator = TrainingEvaluator(space, data=f"{MODULE}:pictures", data_options={"n": 80}, steps=5)
    assert evaluator.metrics == ("accuracy/pictures",)
    assert len(evaluator._data.train) == 48
    assert accuracy(space, f"{MODULE}:pictures") > 90
    assert accuracy(space, pictures) > 90
    file = tmp_path / "mine.py"
    file.write_text(f"from {MODULE} import pictures\n\ndef both():\n    return pictures(40), pictures(10)\n")
    assert (len(loaded(f"{file}:both").train), len(loaded(f"{file}:both").test)) == (32, 10)


class Slow(Dataset):
    """Items one by one, as a Dataset of files gives them."""

    def __init__(self, n: int = 60, shape: tuple[int, ...] = (1, 8, 8), named: bool = True) -> None:
        self.n, self.shape = n, shape
        if named:
            self.classes = ("dark", "bright")

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        if i >= self.n:
            raise IndexError(i)
        return np.full(self.shape, i % 2 + np.sin(i) / 5, np.float32), i % 2


@pytest.mark.parametrize("workers", [0, 1])
def test_a_large_dataset_is_read_in_batches(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    inside = loaded(Slow)
    assert isinstance(inside.train, InMemory)
    monkeypatch.setattr(training_data, "IN_MEMORY_BYTES", 100)
    streamed = loaded(Slow, workers=workers)
    assert isinstance(streamed.train, Streamed) and streamed.classes == 2
    assert (len(streamed.train), len(streamed.validation), len(streamed.test)) == (36, 12, 12)
    ((x, y),) = streamed.train.batches([torch.arange(36)])
    assert abs(float(x.mean())) < 1e-5 and y.dtype == torch.int64
    first = accuracy(Digits(classes=2), Slow, workers=workers, epochs=8)
    assert first > 90
    assert accuracy(Digits(classes=2), Slow, workers=workers, epochs=8) == first


def test_ids_stay_whole_numbers() -> None:
    assert fitted(torch.zeros(2, 5, dtype=torch.int32), (5,), False).dtype == torch.int64
    with pytest.raises(ConfigError, match="take float .*, and the samples of .* are whole numbers"):
        TrainingEvaluator(Vectors(), data=lambda: TensorDataset(torch.zeros(9, 4, dtype=torch.int64), torch.zeros(9)))


def test_held_out_rows_have_every_class_in_its_share() -> None:
    labels = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)
    rest, held = held_out(labels, 20)
    assert torch.bincount(labels[held]).tolist() == [12, 6, 2]
    assert sorted([*rest.tolist(), *held.tolist()]) == list(range(100))
    assert held.tolist() != list(range(0, 100, 5)), "rows are shuffled"


def of_tensors(x: Any, y: Any) -> Any:
    return lambda: TensorDataset(torch.as_tensor(x), torch.as_tensor(y))


GOOD = torch.rand(20, 4)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("digitss", "there is no data 'digitss'. Nearest: digits"),
        ("no/such/place", "there is no data 'no/such/place'"),
        ("nothing.npz", "there is no file 'nothing.npz'"),
        ("no_such_module:f", "'no_such_module' cannot be imported"),
        (f"{MODULE}:picture", "no function 'picture'. Nearest: pictures"),
        (lambda: 3, "gave int. Wanted: a Dataset"),
        (lambda: (Slow(), Slow(), Slow(), Slow()), "gave Slow, Slow, Slow, Slow"),
        (lambda: ["a", "b"], "the Dataset str gives str"),
        (lambda n: Slow(n), "with data_options {} failed: TypeError"),
        (lambda: Slow(0), "has no samples"),
        (of_tensors(GOOD, [-1] * 20), "class numbers 0, 1, 2 ...; the least is -1"),
        (of_tensors(GOOD, [0.5] * 20), "class numbers"),
        (of_tensors(GOOD, torch.zeros(20, 3)), "shapes (20, 4) and (20, 3)"),
        (of_tensors(GOOD * math.nan, [0, 1] * 10), "not finite"),
        (of_tensors(GOOD[:2], [0, 1]), "held_out is 0.2: of 2 samples that gives 0"),
    ],
)
def test_data_that_cannot_be_used(data: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        evaluator = TrainingEvaluator(Vectors(), data=data)
        evaluator.evaluate(Vectors().sample(1, seed=0), evaluator.metrics)
    assert words in str(caught.value)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    for content, words in (
        ({"x": GOOD}, "holds x. Wanted: x_train and y_train"),
        ({"x_train": GOOD, "y_train": ["a"] * 20}, "are no numbers"),
        ({"x_train": GOOD, "y_train": np.array([None] * 20)}, "cannot be read as .npz of plain numbers"),
    ):
        np.savez(tmp_path / "a.npz", **content)
        with pytest.raises(ConfigError, match=words):
            TrainingEvaluator(Vectors(), data=tmp_path / "a.npz")
    for damaged in (b"", b"PK\x03\x04 cut short", b"text"):
        (tmp_path / "b.npz").write_bytes(damaged)
        with pytest.raises(ConfigError, match="cannot be read as .npz"):
            TrainingEvaluator(Vectors(), data=tmp_path / "b.npz")
    (tmp_path / "c.py").write_text("1 / 0")
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        TrainingEvaluator(Vectors(), data=f"{tmp_path}/c.py:f")
    with pytest.raises(ConfigError, match="data_options go to a function"):
        TrainingEvaluator(Digits(), data_options={"n": 1})


def test_samples_of_different_shapes() -> None:
    class Ragged(Slow):
        def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
            return np.zeros((1, 8, 8 + (i == 5)), np.float32), i % 2

    with pytest.raises(ConfigError, match="sample 5 of Ragged has the shape \\(1, 8, 9\\)"):
        loaded(Ragged)
    assert loaded(Ragged, resize=True).train.x.shape == (36, 1, 8, 8)
