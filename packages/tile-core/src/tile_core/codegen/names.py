"""Names in printed C++: the user's where possible, never a word that means something else."""

from __future__ import annotations

import re

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.names import Names

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof union unsigned using virtual void
volatile wchar_t while xor xor_eq final override import module
"""
_ENVIRONMENT = """
tile half_t bfloat16_t threadIdx blockIdx blockDim gridDim warpSize assert printf min max NULL
EOF INFINITY NAN stdin stdout stderr errno unix linux i386 M_PI M_E I NDEBUG signals slots emit
half half2 nv_bfloat16 nv_bfloat162 float2 float3 float4 double2 int2 int3 int4 uint2 uint3
uint4 char2 char4 short2 uchar4 dim3 size_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t
uint16_t uint32_t uint64_t
"""
_C_LIBRARY = """
main abort abs acos acosh asin asinh atan atan2 atanh atexit bsearch calloc cbrt ceil clock
copysign cos cosh div erf erfc exit exp exp2 exp10 expm1 fabs fdim ffs floor fma fmax fmin fmod
free frexp gamma getenv hypot index j0 j1 jn labs ldexp ldiv lgamma log log10 log1p log2 logb
lrint lround malloc memchr memcmp memcpy memmove memset modf nan nearbyint nextafter pow printf
puts qsort raise rand read realloc remainder remove rename rint round select signal sin sincos
sinh sleep sqrt srand strlen system tan tanh tgamma time trunc write y0 y1 yn
"""
RESERVED = frozenset((_KEYWORDS + _ENVIRONMENT).split())
_NO_SYMBOL = frozenset((_KEYWORDS + _ENVIRONMENT + _C_LIBRARY).split())
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]+")
_UNDERSCORES = re.compile(r"__+")


def identifier(name_hint: str) -> str:
    """Return `name_hint` as a legal C++ name, changed as little as possible.

    Names with two underscores, or one before a capital letter, belong to the toolchain; names
    in capitals that start with ``TILE_`` to the device header.
    """
    name = _UNDERSCORES.sub("_", _ILLEGAL.sub("_", name_hint))
    name = name if name.strip("_") else "x"
    if name[0].isdigit() or (name[0] == "_" and not name[1:2].islower()):
        name = f"x{name}" if name[0] == "_" else f"x_{name}"
    return f"x_{name}" if name.startswith("TILE_") else name


class CppNames(Names):
    """Gives the buffers and variables of one function names that differ wherever both are seen.

    Names of an inner scope are free again when it ends, so that loops one after the other
    count with the same index.
    """

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        super().__init__(RESERVED | reserved)
        self._scopes: list[list[tuple[Buffer | Var | None, str]]] = [[]]

    def enter(self) -> None:
        """Begin a scope."""
        self._scopes.append([])

    def leave(self) -> None:
        """End the innermost scope and forget its names."""
        for thing, name in self._scopes.pop():
            self._taken.discard(name)
            if thing is not None:
                del self._given[thing]

    def of(self, thing: Buffer | Var) -> str:
        """Return the name of `thing`, derived from its own on first use."""
        found = self._given.get(thing)
        if found is None:
            found = self._given[thing] = self.fresh(thing.name, thing)
        return found

    def fresh(self, name_hint: str, thing: Buffer | Var | None = None) -> str:
        """Return a name like `name_hint` that nothing else in sight has."""
        stem = identifier(name_hint)
        name, number = stem, 0
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        self._scopes[-1].append((thing, name))
        return name


def symbol(name_hint: str, taken: set[str]) -> str:
    """Return the name of a kernel in its translation unit; what C libraries define is avoided."""
    stem = identifier(name_hint)
    if stem in _NO_SYMBOL:
        stem = f"{stem}_kernel"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    taken.add(name)
    return name
