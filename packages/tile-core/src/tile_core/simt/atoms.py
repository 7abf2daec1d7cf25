"""Matrix instructions as data: shapes, element types and which thread holds which element.

A warp multiplies an m×k by a k×n matrix in one instruction. The layouts are fragments over the
threads of one warp; their register slots count elements in the order of the manual, so that
the registers of a fragment can be passed to the instruction as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.dtypes import DType, dtype_of
from tile_core.layout import Fragment
from tile_core.records import dataclass


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
        Element types of the operands and of the accumulator.
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
        ``"row"`` or ``"col"`` for each operand, where the instruction has a form for each: along
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

    `shape` is m, n and k.
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


_BYTES = {"int4": "int8", "uint4": "uint8"}
_SIGNED_BYTES = {"int4": "int8", "uint4": "int8"}
_NARROW_FLOATS = frozenset(
    {
        *("float8_e3m4", "float8_e4m3fn", "float8_e5m2"),
        *("float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"),
        *("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float4_e2m1_unpacked"),
    }
)
"""Types whose values are all float16 and bfloat16 values too."""


def register_types(a: str, b: str, *, float32: bool = False) -> Iterator[tuple[str, str]]:
    """Yield pairs of element types that hold all values of `a` and `b`, the narrowest first.

    Operands in shared memory are converted to them on their way into registers.

    Operands may become float32 where `float32` says that instructions multiply those exactly.

    Examples
    --------
    >>> list(register_types("float4_e2m1fn", "bfloat16"))
    [('float4_e2m1fn', 'bfloat16'), ('bfloat16', 'bfloat16')]
    """
    yield _BYTES.get(a, a), _BYTES.get(b, b)
    if "uint4" in (a, b):
        yield _SIGNED_BYTES.get(a, a), _SIGNED_BYTES.get(b, b)
    for wide in ("float16", "bfloat16"):
        if all(x == wide or x in _NARROW_FLOATS for x in (a, b)):
            yield wide, wide
    if float32 and all(dtype_of(x).is_float and dtype_of(x).bits <= 32 for x in (a, b)):
        yield "float32", "float32"
