"""NAS-Bench-101: records written here byte by byte, as TensorFlow writes them."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import pandas as pd
import pytest

from nasrlm.datasets import load_table
from nasrlm.datasets.importers import import_table
from nasrlm.datasets.importers.nasbench101 import architecture
from nasrlm.datasets.importers.tfrecord import fields, masked_crcs, read_records
from nasrlm.errors import SpaceError, TableError

OPERATIONS = "input,conv3x3-bn-relu,maxpool3x3,conv1x1-bn-relu,output"
MATRIX = "0110000101000100000100000"


def crc(data: bytes) -> int:
    """CRC-32C bit by bit, masked: another way than the reader's."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", crc(length)) + payload + struct.pack("<I", crc(payload))


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def chunk(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def evaluation(epoch: float, time: float, valid: float, test: float) -> bytes:
    return double(1, epoch) + double(2, time) + double(3, 1.0) + double(4, valid) + double(5, test) + chunk(6, b"ckpt")


def record(*values, **more) -> bytes:
    return framed(payload(*values, **more))


def payload(
    name: str,
    epochs: int,
    valid: float,
    test: float,
    matrix: str = MATRIX,
    ops: str = OPERATIONS,
    params: int = 8_555_530,
) -> bytes:
    half = epochs / 2
    stages = ((0.0, 0.0, 0.1, 0.1), (half, half, 0.5, 0.5), (epochs, 10.0 * epochs, valid, test))
    message = b"".join(chunk(1, evaluation(*stage)) for stage in stages)
    message += varint(2 << 3) + varint(params) + double(3, 99.0)
    return json.dumps([name, epochs, matrix, ops, base64.b64encode(message).decode()]).encode()


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Two networks; the runs of the first do not stand together, and the second was trained for 108 epochs only."""
    file = tmp_path / "nasbench_full.tfrecord"
    other = record("b" * 32, 108, 0.91, 0.9, "0100", "input,output")
    tests = (0.92, 0.93, 0.94)
    file.write_bytes(
        record("a" * 32, 108, 0.95, tests[0])
        + record("a" * 32, 4, 0.5, 0.4)
        + other
        + b"".join(record("a" * 32, 108, 0.95, test) for test in tests[1:])
    )
    return file


def test_runs_are_averaged_and_the_last_evaluation_counts(imported, published: Path) -> None:
    table = imported("nasbench101", published)
    assert list(table["arch"]) == ["1100101101:conv3x3-bn-relu,maxpool3x3,conv1x1-bn-relu", "1:"]
    first, second = (row for _, row in table.iterrows())
    assert first["accuracy/cifar10"] == pytest.approx(93.0)
    assert first["accuracy/cifar10_valid"] == pytest.approx(95.0)
    assert first["train_time_s/cifar10"] == pytest.approx(1080.0)
    assert first["accuracy/cifar10_4_epochs"] == pytest.approx(40.0)
    assert first["params"] == 8_555_530
    assert second["accuracy/cifar10"] == pytest.approx(90.0)
    assert pd.isna(second["accuracy/cifar10_4_epochs"])


def test_a_limit_is_kept(imported, published: Path) -> None:
    assert len(imported("nasbench101", published, limit=1)) == 1


def test_checksums_are_those_of_another_way() -> None:
    texts = [b"", b"1", b"123456789", bytes(range(256)) * 3, b"x" * 100]
    assert list(masked_crcs(texts)) == [crc(text) for text in texts]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-7], r"record 5 at byte [\d,]+: the file ends after \d+ of \d+ bytes"),
        (lambda data: data[:5], "record 1 at byte 0: the file ends in the record's head"),
        (lambda data: data[:40] + b"#" + data[41:], "record 1 at byte 0: the checksum does not fit"),
        (lambda data: b"\x01" + data[1:], "record 1 at byte 0: the checksum of the length does not fit"),
        (lambda data: framed(b"[1, 2]"), "record 1 at byte 0: it has another structure"),
        (lambda data: framed(b"\xff"), "record 1 at byte 0: it has another structure"),
        (lambda data: record("c", 108, 1, 1, "0101"), "record 1 at byte 0: .*the matrix '0101' does not fit"),
        (lambda data: record("c", 109, 1, 1), "record 1 at byte 0: it has no 109"),
        (lambda data: b"", "it holds no record"),
    ],
)
def test_damaged_files_are_refused_and_nothing_is_left(tmp_path: Path, published: Path, change, message: str) -> None:
    published.write_bytes(change(published.read_bytes()))
    with pytest.raises(TableError, match=f"nasbench_full.tfrecord.*{message}"):
        import_table("nasbench101", [published], tmp_path / "out" / "table.parquet")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_older_table_stays_when_the_import_fails(tmp_path: Path, published: Path) -> None:
    table = tmp_path / "out" / "table.parquet"
    import_table("nasbench101", [published], table, overwrite=True)
    before = table.read_bytes()
    published.write_bytes(published.read_bytes()[:-1])
    with pytest.raises(TableError):
        import_table("nasbench101", [published], table, overwrite=True)
    assert table.read_bytes() == before


def test_records_know_their_place(published: Path) -> None:
    records = list(read_records(published))
    assert [number for number, _, _ in records] == [1, 2, 3, 4, 5]
    assert records[1][1] == 16 + len(records[0][2])


@pytest.mark.parametrize("message", [b"\x0d\x00\x00\x00\x00", b"\x10", b"\x12\x05ab", b"\x11\x00", b"\x80" * 12])
def test_messages_cut_short_are_refused(message: bytes) -> None:
    with pytest.raises(ValueError):
        list(fields(message))


def test_the_space_reads_the_strings(space_or_skip) -> None:
    space = space_or_skip("nasbench101")
    text = architecture(MATRIX, OPERATIONS)
    assert space.architecture(text).string == text
    with pytest.raises(SpaceError):
        space.architecture(text[1:])


@pytest.mark.data
def test_published_rows_come_back_as_they_are(tmp_path: Path, data_folder: Path) -> None:
    """The 20,000 rows of the shared table as records, and what comes of them."""
    rows = pd.read_csv(data_folder / "nasbench101_sample20k.csv.gz", dtype={"adjacency": str, "ops": str})
    payloads = [_as_payload(row) for row in rows.fillna({"ops": ""}).itertuples()]
    lengths = [struct.pack("<Q", len(payload)) for payload in payloads]
    # the reader's own checksums, which another test compares: the other way takes minutes
    heads, feet = ([struct.pack("<I", crc) for crc in masked_crcs(parts)] for parts in (lengths, payloads))
    records = zip(lengths, heads, payloads, feet, strict=True)
    (tmp_path / "a.tfrecord").write_bytes(b"".join(part for record in records for part in record))
    done = import_table("nasbench101", [tmp_path / "a.tfrecord"], tmp_path / "t.parquet")
    metrics = ["accuracy/cifar10", "accuracy/cifar10_valid", "params"]
    table = load_table(done.file, space="nasbench101", metrics=metrics)
    assert len(table) == len(rows) == 20_000
    assert [a.string.partition(":")[0] for a in table.architectures] == list(rows["adjacency"])
    assert list(table.values["accuracy/cifar10"]) == pytest.approx(list(rows["cifar10_test_acc"]), abs=1e-9)
    assert list(table.values["params"]) == list(rows["trainable_params"])


def _as_payload(row) -> bytes:
    n, bits = row.vertices, iter(row.adjacency)
    matrix = "".join(next(bits) if j > i else "0" for i in range(n) for j in range(n))
    names = {"conv3x3": "conv3x3-bn-relu", "conv1x1": "conv1x1-bn-relu", "maxpool3x3": "maxpool3x3"}
    inner = [names[op] for op in row.ops.split("-") if op]
    accuracy = row.cifar10_test_acc / 100
    operations = ",".join(["input", *inner, "output"])
    return payload(row.nb101_hash, 108, accuracy, accuracy, matrix, operations, row.trainable_params)
