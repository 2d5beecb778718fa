"""NAS-Bench-101's tfrecord files (Ying et al., ICML 2019; google-research/nasbench), without TensorFlow.

A record is one training run: a JSON list of module hash, epochs, adjacency matrix, operations and a message with
the counts and accuracies. The runs of a network are averaged; the last of a run's three evaluations counts.
Networks are kept in memory, as one short text and a few sums each, since their runs may stand anywhere in the file.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nasrlm.datasets.importers.protocol import STRUCTURE, Importer, Published, Row, damaged, not_published, one_path
from nasrlm.datasets.importers.tfrecord import fields, read_records

EPOCHS = (108, 36, 12, 4)
_FILES = "nasbench_full.tfrecord or nasbench_only108.tfrecord"
_PARAMS, _TIME, _EVALUATIONS = 2, 3, 1  # fields of ModelMetrics
_TRAINING_TIME, _VALIDATION, _TEST = 2, 4, 5  # fields of EvaluationData

Run = tuple[float, float, float]
"""Test and validation accuracy in percent, training time in seconds."""


def _open(paths: Sequence[Path]) -> Published:
    file = one_path(paths, _FILES)
    megabytes = file.stat().st_size / 1e6
    names = [name for epochs in EPOCHS for name in metric_names(epochs)]
    return Published("nasbench101", (*names, "params"), _rows(file, megabytes), megabytes, "MB")


def metric_names(epochs: int) -> tuple[str, str, str]:
    """The metrics of a number of epochs; those of 108 have the plain names.

    >>> metric_names(108)
    ('accuracy/cifar10', 'accuracy/cifar10_valid', 'train_time_s/cifar10')
    >>> metric_names(4)[0]
    'accuracy/cifar10_4_epochs'
    """
    ending = "" if epochs == EPOCHS[0] else f"_{epochs}_epochs"
    return f"accuracy/cifar10{ending}", f"accuracy/cifar10_valid{ending}", f"train_time_s/cifar10{ending}"


def _rows(file: Path, megabytes: float) -> Iterator[tuple[float, Row | None]]:
    """Rows in the order in which networks first come.

    A network's values are complete when the file has been read; only then is the first row known.
    """
    position: dict[str, int] = {}
    archs: list[str] = []
    params: list[int] = []
    sums: dict[int, _Sums] = {epochs: _Sums() for epochs in EPOCHS}
    for number, offset, payload in read_records(file):
        place = f"record {number:,} at byte {offset:,}"
        try:
            name, epochs, matrix, operations, message = json.loads(payload)
            run, count = _run(base64.b64decode(message))
            if name not in position:
                position[name] = len(archs)
                archs.append(architecture(matrix, operations))
                params.append(count)
            sums[epochs].add(position[name], run)
        except STRUCTURE as error:
            raise not_published(file, place, error) from error
        yield offset / 1e6, None
    if not archs:
        raise damaged(file, "", "it holds no record")
    means = {epochs: sums[epochs].means(len(archs)) for epochs in EPOCHS}
    for i, arch in enumerate(archs):
        row: Row = {"arch": arch, "params": params[i]}
        for epochs in EPOCHS:
            row.update(zip(metric_names(epochs), means[epochs][i], strict=True))
        yield megabytes, row


class _Sums:
    """Sums over the runs of each network, in arrays that grow."""

    def __init__(self) -> None:
        self._values = np.zeros((0, 4))

    def add(self, network: int, run: Run) -> None:
        if network >= len(self._values):
            grown = np.zeros((max(1024, 2 * network), 4))
            grown[: len(self._values)] = self._values
            self._values = grown
        self._values[network] += (*run, 1.0)

    def means(self, networks: int) -> np.ndarray:
        values = np.zeros((networks, 4))
        known = min(networks, len(self._values))
        values[:known] = self._values[:known]
        with np.errstate(invalid="ignore"):
            return values[:, :3] / values[:, 3:]  # NaN where there was no run


def _run(message: bytes) -> tuple[Run, int]:
    metrics = list(fields(message))
    last = [value for field, value in metrics if field == _EVALUATIONS][-1]
    values = dict(fields(last))  # type: ignore[arg-type]
    test, valid, time = (float(values[key]) for key in (_TEST, _VALIDATION, _TRAINING_TIME))
    return (100 * test, 100 * valid, time), int(dict(metrics)[_PARAMS])


def architecture(matrix: str, operations: str) -> str:
    """The string of a whole adjacency matrix, row by row, and of the operations with input and output.

    >>> architecture("010001000", "input,conv3x3-bn-relu,output")
    '101:conv3x3-bn-relu'
    """
    names = operations.split(",")
    vertices = len(names)
    if len(matrix) != vertices**2 or set(matrix) - set("01") or (names[0], names[-1]) != ("input", "output"):
        raise ValueError(f"the matrix {matrix!r} does not fit the operations {operations!r}")
    triangle = "".join(matrix[i * vertices + i + 1 : (i + 1) * vertices] for i in range(vertices))
    return f"{triangle}:{','.join(names[1:-1])}"


IMPORTER = Importer(_FILES, "Ying et al., NAS-Bench-101, ICML 2019; github.com/google-research/nasbench", _open)
