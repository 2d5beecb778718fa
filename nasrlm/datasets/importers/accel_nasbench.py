"""Accel-NASBench's results (Ahmad et al., DAC 2024; afzalxo/Accel-NASBench): JSON files in a folder or a tar.

Accuracy is that of a shortened training at low resolution. Published "MACs" are a profiler's sum of more than
convolutions, so they stand under ``macs/published``. What a device was not measured on is blank.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nasrlm.datasets.importers.json_files import load_json
from nasrlm.datasets.importers.protocol import (
    STRUCTURE,
    Importer,
    Published,
    Row,
    damaged,
    files_in,
    not_published,
    one_path,
)

_FILES = "the folder of result_*.json, or the .tar or .tar.gz of it"
_RESULT = re.compile(r"(?:.*/)?result_(\d+)\.json")
_LARGEST = 1 << 20  # bytes of a file in the tar
_BLOCKS = 7
_FIXED = ("accuracy/imagenet_proxy", "accuracy/imagenet_proxy_top5", "train_time_s/imagenet_proxy")
_COUNTS = ("params", "macs/published")
_PLATFORMS = {"latency": "latency_ms", "throughput": "throughput_per_s"}

Found = tuple[str, Any]
"""Place and what was read."""


def _open(paths: Sequence[Path]) -> Published:
    path = one_path(paths, _FILES)
    # Devices come and go from file to file: the columns are known after all have been read once.
    platforms: dict[str, None] = {}
    count = 0
    for place, data in _results(path):
        count += 1
        try:
            platforms |= dict.fromkeys(_platform_values(data))
        except STRUCTURE as error:
            raise not_published(path, place, error) from error
    return Published("mnasnet", (*_FIXED, *_COUNTS, *sorted(platforms)), _rows(path), count, "files")


def _rows(path: Path) -> Iterator[tuple[float, Row]]:
    for i, (place, data) in enumerate(_results(path)):
        try:
            yield i, _row(data)
        except STRUCTURE as error:
            raise not_published(path, place, error) from error


def _row(data: Mapping[str, Any]) -> Row:
    metrics, info = data["metrics"], data["model_info"]
    return {
        "arch": architecture(data["architecture"]),
        **dict(zip(_FIXED, (metrics["val_top1"], metrics["val_top5"], metrics["train_time"]), strict=True)),
        "params": round(info["params"] * 1e6),
        "macs/published": round(info["macs"] * 1e6),
        **_platform_values(data),
    }


def _platform_values(data: Mapping[str, Any]) -> dict[str, Any]:
    """`latency_zcu102: {latency_mean: 5}` -> `latency_ms/zcu102: 5`; what was not measured is left out."""
    found = {}
    for key, values in data["platform_perf"].items():
        quantity, _, device = key.partition("_")
        if values and values.get(f"{quantity}_mean") is not None:
            found[f"{_PLATFORMS[quantity]}/{device}"] = values[f"{quantity}_mean"]
    return found


def architecture(blocks: Mapping[str, Any]) -> str:
    """The string of the blocks' settings.

    >>> architecture({f"block{i}_{key}": 1 for i in range(7) for key in ("e", "k", "l", "se")})
    'e1k1l1s_e1k1l1s_e1k1l1s_e1k1l1s_e1k1l1s_e1k1l1s_e1k1l1s'
    """
    return "_".join(
        "".join(f"{key}{int(blocks[f'block{i}_{key}'])}" for key in "ekl")
        + ("s" if _on(blocks[f"block{i}_se"]) else "n")
        for i in range(_BLOCKS)
    )


def _on(value: Any) -> bool:
    # ConfigSpace writes booleans as they are, as 0 and 1, or as words
    return str(value).lower() in ("true", "1", "1.0")


def _results(path: Path) -> Iterator[Found]:
    if path.is_file():
        yield from _from_tar(path)
        return
    files = [file for file in files_in(path, ["result_*.json"]) if _RESULT.fullmatch(file.name)]
    for file in sorted(files, key=lambda file: int(file.stem.partition("_")[2])):
        yield file.name, load_json(file)


def _from_tar(path: Path) -> Iterator[Found]:
    """The results in a tar, in its order; files are read in memory and never unpacked to the disk."""
    found = 0
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                if not (member.isfile() and _RESULT.fullmatch(member.name)):
                    continue
                stream = archive.extractfile(member)
                if stream is None or member.size > _LARGEST:
                    raise damaged(path, member.name, f"a result of {member.size:,} bytes cannot be")
                yield member.name, json.loads(stream.read())
                found += 1
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise damaged(path, f"after {found:,} results", error) from error
    if not found:
        raise damaged(path, "", "it holds no result_*.json")


IMPORTER = Importer(_FILES, "Ahmad et al., Accel-NASBench, DAC 2024; github.com/afzalxo/Accel-NASBench", _open)
