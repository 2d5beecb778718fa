"""TFRecord files without TensorFlow: framing and checksums, and the few types of protocol-buffer fields.

A record is its length (u64, little-endian), a masked CRC-32C of the length's eight bytes, the payload, and a
masked CRC-32C of the payload. Checksums are worked out for thousands of records at a time, one byte a step.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from nasrlm.datasets.importers.protocol import damaged

_HEAD, _FOOT = 12, 4
_BATCH = 4096
_LARGEST = 1 << 24  # bytes of a record; published ones have hundreds
_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed

Record = tuple[int, int, bytes]
"""Number, counted from 1; offset in the file; payload."""


def read_records(file: Path) -> Iterator[Record]:
    """The records of a TFRecord file, each with its number and offset.

    Raises:
        TableError: a checksum that does not fit, or an end in the middle of a record; with number and offset.
    """
    batch: list[Record] = []
    try:
        with open(file, "rb") as stream:
            for record in _framed(file, stream):
                batch.append(record)
                if len(batch) == _BATCH:
                    yield from _checked(file, batch)
                    batch = []
    except OSError as error:
        raise damaged(file, "", error.strerror or error) from error
    yield from _checked(file, batch)


def _framed(file: Path, stream: IO[bytes]) -> Iterator[Record]:
    """Records with their last four bytes, the checksum, still on."""
    number, offset = 1, 0
    while head := stream.read(_HEAD):
        if len(head) < _HEAD or _length_crc(head[:8]) != struct.unpack("<I", head[8:])[0]:
            what = "the file ends" if len(head) < _HEAD else "the checksum of the length does not fit"
            raise damaged(file, _place(number, offset), f"{what} in the record's head")
        length = struct.unpack("<Q", head[:8])[0]
        if length > _LARGEST:
            raise damaged(file, _place(number, offset), f"a record of {length:,} bytes cannot be")
        body = stream.read(length + _FOOT)
        if len(body) < length + _FOOT:
            raise damaged(file, _place(number, offset), f"the file ends after {len(body)} of {length + _FOOT} bytes")
        yield number, offset, body
        number, offset = number + 1, offset + _HEAD + length + _FOOT


def _checked(file: Path, batch: list[Record]) -> Iterator[Record]:
    crcs = masked_crcs([body[:-_FOOT] for _, _, body in batch])
    for (number, offset, body), crc in zip(batch, crcs, strict=True):
        if crc != struct.unpack("<I", body[-_FOOT:])[0]:
            raise damaged(file, _place(number, offset), "the checksum does not fit, so bytes have changed")
        yield number, offset, body[:-_FOOT]


@functools.cache
def _length_crc(length: bytes) -> int:
    return int(masked_crcs([length])[0])  # records of one file have a few hundred lengths


def _place(number: int, offset: int) -> str:
    return f"record {number:,} at byte {offset:,}"


def _table() -> np.ndarray:
    crcs = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crcs = np.where(crcs & 1, (crcs >> 1) ^ _POLYNOMIAL, crcs >> 1).astype(np.uint32)
    return crcs


_TABLE = _table()


def masked_crcs(texts: list[bytes]) -> np.ndarray:
    """The masked CRC-32C of each text, as TFRecord files hold it.

    >>> hex(masked_crcs([b"123456789"])[0])  # CRC-32C 0xe3069283, rotated by 15 bits, plus 0xa282ead8
    '0xc78ab0e5'
    """
    crcs = np.full(len(texts), 0xFFFFFFFF, np.uint32)
    lengths = np.array([len(text) for text in texts], int)
    order = np.argsort(-lengths, kind="stable")  # longest first: those that are not at their end stand in front
    padded = np.zeros((int(lengths.max(initial=0)), len(texts)), np.uint8)
    for column, i in enumerate(order):
        padded[: lengths[i], column] = np.frombuffer(texts[i], np.uint8)
    going = np.searchsorted(-lengths[order], -np.arange(len(padded)), side="left")
    for row, count in zip(padded, going, strict=True):
        now = crcs[:count]
        crcs[:count] = _TABLE[(now ^ row[:count]) & 0xFF] ^ (now >> 8)
    crcs = ~crcs
    rotated = (crcs >> 15) | (crcs << 17)
    found = np.empty_like(crcs)
    found[order] = rotated + np.uint32(0xA282EAD8)
    return found


def fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """The fields of a protocol-buffer message: number, and an integer, a double or the bytes of what is inside.

    Raises:
        ValueError: it is cut short, or has a field of another type.

    >>> list(fields(bytes([0x10, 0x96, 0x01, 0x22, 0x02, 0x68, 0x69])))
    [(2, 150), (4, b'hi')]
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == 2:
            length, at = _varint(message, at)
        elif kind == 1:
            length = 8
        else:
            raise ValueError(f"field {number} has the wire type {kind}")
        part = message[at : at + length]
        if len(part) < length:
            raise ValueError(f"field {number} is cut short")
        yield number, struct.unpack("<d", part)[0] if kind == 1 else part
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a number is cut short")
