"""Matrix instructions as data: shapes, element types and which thread holds which element.

A warp multiplies an m×k by a k×n matrix in one instruction. The layouts are fragments over the
threads of one warp; their register slots count elements in the order of the manual, so that
the registers of a fragment can be passed to the instruction as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tile_core.dtypes import DType, dtype_of
from tile_core.layout import Fragment

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixAtom:
    """One matrix instruction of a warp: ``c += a @ b``.

    Parameters
    ----------
    function
        What it is called in the device header; see `tile_core.ir.device_calls`. The header
        overloads it on the element types.
    feature
        The ability that a machine must have.
    a_dtype, b_dtype, c_dtype
        Element types of the factors and of the sum.
    a : Fragment of shape (m, k)
    b : Fragment of shape (k, n)
    c : Fragment of shape (m, n)
        Which threads hold an element, and in which register slot.
    template
        Template arguments of the function.
    pieces
        How many times it is called along M and along N, if more than once: for each of so many
        neighbouring rows, and columns, of the first element.
    parts
        Threads among which the instruction exchanges elements; each group computes on its own.
        None given: all of them together.
    orders
        ``"row"`` or ``"col"`` for each factor, where the instruction has a form for each: along
        what the elements are neighbours that one thread holds. None if there is one form only.
    """

    function: str
    feature: str
    a_dtype: DType
    b_dtype: DType
    c_dtype: DType
    a: Fragment
    b: Fragment
    c: Fragment
    template: tuple[int, ...] = ()
    pieces: tuple[int, int] = (1, 1)
    parts: tuple[tuple[int, ...], ...] = ()
    orders: tuple[str, str] | None = None

    @property
    def m(self) -> int:
        """Rows of the product."""
        return self.a.shape[0]

    @property
    def n(self) -> int:
        """Columns of the product."""
        return self.b.shape[1]

    @property
    def k(self) -> int:
        """Products that are summed for each element."""
        return self.a.shape[1]

    @property
    def threads(self) -> int:
        """Threads of a warp."""
        return self.c.thread_extent

    @property
    def name(self) -> str:
        """Shape and element types, such as ``m16n8k16 float16*float16+float32``."""
        return f"m{self.m}n{self.n}k{self.k} {self.a_dtype}*{self.b_dtype}+{self.c_dtype}"


def row_pattern(bits: int) -> Fragment:
    """Return how a warp holds 8 rows of 16 bytes: four threads per row, one word each.

    The elements of a word are the register slots. Wider elements than words: one per thread.
    PTX ISA, "Matrix Fragments for mma": rows are groupID, words threadID_in_group.
    """
    per_word = max(1, 32 // bits)
    return Fragment((8, 4 * per_word), lambda i, j: (4 * i + j // per_word, j % per_word))


def column_pattern(bits: int) -> Fragment:
    """Return `row_pattern` with the roles of rows and columns exchanged."""
    per_word = max(1, 32 // bits)
    return Fragment((4 * per_word, 8), lambda i, j: (4 * j + i // per_word, i % per_word))


def atom_of_words(
    function: str, feature: str, shape: tuple[int, int, int], dtypes: tuple[str, str, str]
) -> MatrixAtom:
    """Return an instruction whose operands are made of `row_pattern` and `column_pattern`.

    Registers run down the rows of `a` first, then along its columns; those of `b` along k;
    those of `c` down the rows. All ``mma`` instructions from Turing on are of this kind.

    Parameters
    ----------
    shape
        m, n and k.
    dtypes
        Element types of a, b and c.
    """
    m, n, k = shape
    a_dtype, b_dtype, c_dtype = map(dtype_of, dtypes)
    rows, columns = row_pattern(a_dtype.bits), column_pattern(b_dtype.bits)
    total = row_pattern(16)
    return MatrixAtom(
        function=function,
        feature=feature,
        a_dtype=a_dtype,
        b_dtype=b_dtype,
        c_dtype=c_dtype,
        a=rows.repeat((m // 8, k // rows.shape[1]), lower_dim_first=False),
        b=columns.repeat((k // columns.shape[0], n // 8), lower_dim_first=False),
        c=total.repeat((m // 8, n // 8), lower_dim_first=False),
    )


def distribute(fragment: Fragment, values: npt.ArrayLike) -> Array:
    """Return the registers of all threads that hold `values`: shape (threads, slots).

    Registers that hold no element are NaN.
    """
    registers = np.full((fragment.thread_extent, fragment.slots), np.nan)
    threads = fragment.thread_table()
    slots = np.broadcast_to(fragment.slot_table()[..., None], threads.shape)
    registers[threads, slots] = np.asarray(values, dtype=np.float64)[..., None]
    return registers


def collect(fragment: Fragment, registers: Array) -> Array:
    """Return the tile that `registers` of shape (threads, slots) hold; NaN if replicas differ."""
    threads = fragment.thread_table()
    slots = np.broadcast_to(fragment.slot_table()[..., None], threads.shape)
    copies = registers[threads, slots]
    first: Array = copies[..., 0]
    agreed = (copies == first[..., None]).all(axis=-1)
    tile: Array = np.where(agreed, first, np.nan)
    return tile


def execute(atom: MatrixAtom, a: Array, b: Array, c: Array) -> Array:
    """Return the registers of ``c`` after the instruction has run on those of all threads.

    Each group of `atom.parts` sees its own registers only: an element that none of its threads
    holds is NaN, and so is every sum that needs it.

    Parameters
    ----------
    a, b, c
        Registers, of shape (threads, slots).
    """
    result: Array = c.copy()
    for part in atom.parts or (tuple(range(atom.threads)),):
        left, right = _seen(atom.a, a, part), _seen(atom.b, b, part)
        product = left @ right
        threads = atom.c.thread_table()[..., 0]
        slots = atom.c.slot_table()
        mine = np.isin(threads, part)
        result[threads[mine], slots[mine]] += product[mine]
    return result


def _seen(fragment: Fragment, registers: Array, part: tuple[int, ...]) -> Array:
    """Return the tile as far as the threads `part` hold it, NaN elsewhere."""
    tile = np.full(fragment.shape, np.nan)
    slots = fragment.slot_table()
    threads = fragment.thread_table()
    for replica in range(fragment.replication):
        holders = threads[..., replica]
        mine = np.isin(holders, part)
        tile[mine] = registers[holders[mine], slots[mine]]
    return tile


def defects(atom: MatrixAtom, seed: int = 0) -> tuple[str, ...]:
    """Return what is wrong with the layouts of `atom`, in words; nothing if it is sound.

    Integers are spread over the registers, the instruction runs, and the collected sum is
    compared with numpy's. Every register of every thread must have an element, and no two.
    """
    found = [
        f"{name} leaves registers of some thread unused, or uses one twice"
        for name, f in (("a", atom.a), ("b", atom.b), ("c", atom.c))
        if not f.is_injective() or f.size * f.replication != atom.threads * f.slots
    ]
    if (atom.a.shape[1], atom.c.shape) != (atom.b.shape[0], (atom.m, atom.n)):
        return (*found, "the shapes of a, b and c do not agree")
    if atom.c.replication != 1:
        return (*found, "two threads hold one sum")
    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(-8, 8, f.shape).astype(float) for f in (atom.a, atom.b, atom.c))
    registers = [distribute(f, x) for f, x in ((atom.a, a), (atom.b, b), (atom.c, c))]
    total = collect(atom.c, execute(atom, registers[0], registers[1], registers[2]))
    if not np.array_equal(total, a @ b + c):
        found.append("the sum differs from a @ b + c, or a group of threads lacks an element")
    return tuple(found)
