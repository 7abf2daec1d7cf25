"""Memory as the interpreter models it: bytes, what was written, and who touched what."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_core.dtypes import DType
from tile_core.interp.races import Tracker
from tile_core.interp.values import Array, element_bits

_PAD = 16


@dataclass(slots=True, eq=False)
class Storage:
    """The bytes behind a buffer and all its views, with shadow state per granule."""

    name: str
    raw: Array  # uint8[nbytes]: the memory itself; it may belong to the caller
    granule: int  # bits of the smallest element any view has: the unit of the shadow state
    is_global: bool
    # bool[granules]: which granules hold a value; None if all always do.
    written: Array | None = None
    # bool[granules]: which granules were stored to since it was set; for copies private to an
    # iteration.
    touched: Array | None = None
    # Bytes of one thread's copy, for memory that each thread has its own of, else 0.
    copy_bytes: int = 0
    contended: bool = False
    generation: int = 0
    trackers: dict[str, Tracker] = field(default_factory=dict)
    _typed: dict[np.dtype[Any], Array] = field(default_factory=dict)

    @property
    def granules(self) -> int:
        """Entries of the shadow state."""
        return len(self.raw) * 8 // self.granule

    def typed(self, stored: np.dtype[Any]) -> Array:
        """Return the memory as an array of whole elements of NumPy type `stored`."""
        known = self._typed.get(stored)
        if known is None:
            count = len(self.raw) // stored.itemsize
            known = self.raw[: count * stored.itemsize].view(stored)
            self._typed[stored] = known
        return known

    def get(self, offsets: Array, dtype: DType) -> Array:
        """Return the stored elements at element `offsets`, all inside; nibbles as uint8."""
        if not len(self.raw):
            unit = np.dtype(np.uint8) if dtype.bits == 4 else dtype.numpy()
            return np.zeros(offsets.shape, unit)
        if dtype.bits == 4:
            shift = ((offsets & 1) << 2).astype(np.uint8)
            result: Array = (self.raw[offsets >> 1] >> shift) & np.uint8(15)
            return result
        return self.typed(dtype.numpy())[offsets]

    def put(self, offsets: Array, dtype: DType, stored: Array) -> None:
        """Write stored elements at `offsets`; the last of several to one offset remains."""
        if dtype.bits == 4:
            for parity, keep, shift in ((0, 0xF0, 0), (1, 0x0F, 4)):
                here = (offsets & 1) == parity
                place = offsets[here] >> 1
                self.raw[place] = (self.raw[place] & np.uint8(keep)) | (
                    stored[here] << np.uint8(shift)
                )
        else:
            self.typed(dtype.numpy())[offsets] = stored

    def units(self, offsets: Array, dtype: DType) -> Array:
        """Return the shadow entries of elements; a trailing axis if there are several each."""
        factor = element_bits(dtype) // self.granule
        if factor == 1:
            return offsets
        return offsets[..., None] * factor + np.arange(factor)

    def is_written(self, offsets: Array, dtype: DType) -> Array | None:
        """Return which elements hold a value, or None if all do."""
        if self.written is None or not len(self.raw):
            return None
        units = self.units(offsets, dtype)
        known: Array = self.written[units]
        return known if units is offsets else np.asarray(known.all(axis=-1))

    def mark(self, offsets: Array, dtype: DType, known: Array | None = None) -> None:
        """Note that elements were stored; `known` tells which of them have a value now."""
        if self.written is None and self.touched is None:
            return
        units = self.units(offsets, dtype)
        if self.touched is not None:
            self.touched[units] = True
        if self.written is None:
            return
        if known is None:
            self.written[units] = True
        else:
            self.written[units] = known if units is offsets else known[..., None]

    def tracker(self, kind: str) -> Tracker:
        """Return the tracker of accesses among parties of one kind."""
        known = self.trackers.get(kind)
        if known is None:
            known = self.trackers[kind] = Tracker.of(self.granules)
        return known

    def forget(self) -> None:
        """Make all contents undefined again, as a new allocation is."""
        if self.written is not None:
            self.written[:] = False


def scratch(
    name: str, elements: int, dtype: DType, granule: int, *, copies: int = 0, is_global: bool
) -> Storage:
    """Return new memory with undefined contents, filled with a pattern no kernel expects.

    It has room for `elements` of `dtype` in each of the `copies` that threads have for themselves;
    0 is one that they share.
    """
    nbytes = -(-elements * element_bits(dtype) // 8)
    nbytes = -(-max(nbytes, 1) // _PAD) * _PAD
    total = nbytes * max(copies, 1)
    raw = np.full(total, 0xA5, np.uint8)
    return Storage(
        name,
        raw,
        granule,
        is_global,
        written=np.zeros(total * 8 // granule, np.bool_),
        copy_bytes=nbytes if copies else 0,
    )


def of_array(name: str, array: Array, granule: int, *, initialised: bool) -> Storage:
    """Return the memory that a caller's array spans, gaps between strides included."""
    item = array.dtype.itemsize
    reach = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    span = 0 if 0 in array.shape else reach // item + 1
    plain = array.view(np.dtype(f"u{item}"))  # NumPy cannot rebuild types it does not know
    flat = np.lib.stride_tricks.as_strided(plain, (span,), (item,), writeable=array.flags.writeable)
    storage = Storage(name, flat.view(np.uint8), granule, is_global=True)
    if not initialised:
        storage.written = np.zeros(storage.granules, np.bool_)
    return storage


def at_address(name: str, address: int, nbytes: int, granule: int) -> Storage:
    """Return the memory of this process at `address`, which the program vouches for."""
    block = (ctypes.c_uint8 * nbytes).from_address(address)
    return Storage(name, np.ctypeslib.as_array(block), granule, is_global=True)


@dataclass(slots=True, eq=False)
class ElementAddresses:
    """Where a buffer's elements are, as seen by the lanes that ask."""

    storage: Storage
    dtype: DType
    # shape, strides: in elements of `dtype`, known by now.
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    # Elements before the first one: a number, or int64[lanes] where lanes have copies.
    base: int | Array
    guarded: bool  # whether indices outside are allowed (global memory) or a mistake

    def locate(self, indices: list[Array]) -> tuple[Array, Array | None]:
        """Return element offsets, and which of them are inside (None: all)."""
        offsets: Array = np.zeros(1, np.int64) + self.base
        inside: Array | None = None
        vector = max((i.ndim for i in indices), default=1) > 1
        if vector:
            offsets = offsets[:, None]
        for index, extent, stride in zip(indices, self.shape, self.strides, strict=True):
            index = index.astype(np.int64)
            if vector and index.ndim == 1:
                index = index[:, None]
            fits = (index >= 0) & (index < extent)
            if not fits.all():
                inside = fits if inside is None else inside & fits
            offsets = offsets + index * stride
        if inside is not None:
            offsets, inside = np.broadcast_arrays(offsets, inside)
        return offsets, inside


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous box, in elements."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))
