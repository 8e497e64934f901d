"""Greyscale PNG images with 8 bits a pixel, read and written with zlib alone (PNG specification, third edition)."""

import struct
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER = struct.Struct(">IIBBBBB")  # width, height, bits, colour type, compression, filter method, interlacing
PLAIN = (8, 0, 0, 0, 0)
MOST_BYTES = 2**24  # of the pixels; few compressed bytes could be gigabytes
PAETH = 4  # the last filter

Pixels = NDArray[np.uint8]


def write_png(pixels: Pixels) -> bytes:
    """The file of (H, W) pixels."""
    height, width = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels.astype(np.uint8))
    chunks = ((b"IHDR", HEADER.pack(width, height, *PLAIN)), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    framed = (struct.pack(">I", len(data)) + name + data + _checksum(name, data) for name, data in chunks)
    return SIGNATURE + b"".join(framed)


def read_png(data: bytes, where: str) -> Pixels:
    """(H, W) pixels of the file at `where`; ValueError if it is damaged, not greyscale of 8 bits, or interlaced."""
    try:
        chunks = list(_chunks(data))
        width, height, *form = HEADER.unpack(chunks[0][1])
        if tuple(form) != PLAIN:
            raise ValueError("it is not greyscale with 8 bits a pixel; convert it, for example with ImageMagick")
        if (size := height * (width + 1)) > MOST_BYTES:
            raise ValueError(f"{width} x {height} pixels are more than {MOST_BYTES:,} bytes")
        compressed = b"".join(content for name, content in chunks if name == b"IDAT")
        lines = zlib.decompressobj().decompress(compressed, size + 1)
        if len(lines) != size:
            raise ValueError("it has another number of pixels than its header says")
        filtered = np.frombuffer(lines, np.uint8).reshape(height, width + 1)
        if (filtered[:, 0] > PAETH).any():
            raise ValueError("a line has a filter that PNG does not know")
        return _unfiltered(filtered)
    except (ValueError, IndexError, struct.error, zlib.error) as error:
        raise ValueError(f"{where}: no PNG image that can be read: {error}") from error


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not data.startswith(SIGNATURE):
        raise ValueError("it does not begin like one")
    place = len(SIGNATURE)
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        name, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        if data[place + 8 + length : place + 12 + length] != _checksum(name, content):
            raise ValueError(f"the checksum of its chunk at byte {place} is wrong")
        yield name, content
        place += 12 + length


def _checksum(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(name + content))


def _unfiltered(lines: Pixels) -> Pixels:
    """The pixels of (H, 1 + W) bytes: a filter for each line, and what it left."""
    height, width = lines.shape[0], lines.shape[1] - 1
    above, rows = [0] * width, []
    for number, *line in lines.tolist():
        row: list[int] = []
        left = corner = 0
        for value, up in zip(line, above, strict=True):
            guess = (0, left, up, (left + up) // 2, _paeth(left, up, corner))[number] if number else 0
            left, corner = (value + guess) % 256, up
            row.append(left)
        above = row
        rows.append(row)
    return np.array(rows, dtype=np.uint8).reshape(height, width)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))
