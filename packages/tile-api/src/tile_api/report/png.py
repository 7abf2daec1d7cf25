"""Small pictures as PNG files."""

from __future__ import annotations

import base64
import colorsys
import struct
import zlib

import numpy as np


def image_of(hues: np.ndarray) -> str:
    """Return a picture with one point for each element of `hues`, as a PNG file in base 64.

    Colours are such that they can be told apart on white and on black. Hues of shape (rows,
    columns) are from 0 to 359.

    Notes
    -----
    Source: W3C, "Portable Network Graphics (PNG) Specification", chunks IHDR, IDAT and IEND.
    """
    palette = np.array([_colour(hue) for hue in range(360)], dtype=np.uint8)
    points = palette[hues]
    rows, columns = hues.shape
    lines = b"".join(b"\0" + points[row].tobytes() for row in range(rows))
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*c) for c in chunks)).decode()


def _colour(hue: int) -> tuple[int, int, int]:
    red, green, blue = colorsys.hls_to_rgb(hue / 360, 0.62, 0.55)
    return round(red * 255), round(green * 255), round(blue * 255)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
