"""What AVX-512, VNNI and BF16 instructions do, in LLVM IR of any processor.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, the sections
VPDPBUSD, VPMADDWD, VDPBF16PS, VCVTNEPS2BF16,
VPERMPS, VPERMI2PS, VFPCLASSPS, VSCALEFPS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence


def instruction(name: str) -> str:
    """Return a function ``@emulated.NAME`` for LLVM's ``llvm.x86.NAME``.

    Parameters
    ----------
    name
        As in ``avx512.vpdpbusd.512``.
    """
    for pattern, write in _WRITERS:
        match = re.fullmatch(pattern, name)
        if match:
            return write(name, int(match[1]) // 32)
    raise KeyError(f"no function is written for the instruction {name}")


def _function(name: str, result: str, parameters: Sequence[str], body: str) -> str:
    return f"define {result} @emulated.{name}({', '.join(parameters)}) #0 {{\n{body}}}\n"


def _numbers(scalar: str, values: Sequence[int]) -> str:
    return "<" + ", ".join(f"{scalar} {value}" for value in values) + ">"


def _every(vector: str, of: str, first: int, step: int, n: int) -> str:
    lanes = _numbers("i32", range(first, first + step * n, step))
    return f"shufflevector {of} {vector}, {of} poison, <{n} x i32> {lanes}"


def _dot_bytes(name: str, n: int) -> str:
    wide, bytes_ = f"<{n} x i32>", f"<{4 * n} x i8>"
    body, total = "", "%c"
    for i in range(4):
        body += f"""\
  %a{i} = {_every("%a", bytes_, i, 4, n)}
  %b{i} = {_every("%b", bytes_, i, 4, n)}
  %u{i} = zext <{n} x i8> %a{i} to {wide}
  %s{i} = sext <{n} x i8> %b{i} to {wide}
  %p{i} = mul {wide} %u{i}, %s{i}
  %t{i} = add {wide} {total}, %p{i}
"""
        total = f"%t{i}"
    body += f"  ret {wide} {total}\n"
    return _function(name, wide, [f"{wide} %c", f"{bytes_} %a", f"{bytes_} %b"], body)


def _dot_words(name: str, n: int) -> str:
    wide, words = f"<{n} x i32>", f"<{2 * n} x i16>"
    body = ""
    for i in range(2):
        body += f"""\
  %a{i} = {_every("%a", words, i, 2, n)}
  %b{i} = {_every("%b", words, i, 2, n)}
  %u{i} = sext <{n} x i16> %a{i} to {wide}
  %s{i} = sext <{n} x i16> %b{i} to {wide}
  %p{i} = mul {wide} %u{i}, %s{i}
"""
    body += f"  %t = add {wide} %p0, %p1\n  ret {wide} %t\n"
    return _function(name, wide, [f"{words} %a", f"{words} %b"], body)


def _flushed(n: int, to: str, of: str) -> str:
    """Return lines that take subnormal numbers for zeros, with their sign."""
    bits, vec = f"<{n} x i32>", f"<{n} x float>"
    return f"""\
  {to}.i = bitcast {vec} {of} to {bits}
  {to}.e = and {bits} {to}.i, {_numbers("i32", [0x7F800000] * n)}
  {to}.z = icmp eq {bits} {to}.e, zeroinitializer
  {to}.s = and {bits} {to}.i, {_numbers("i32", [-0x80000000] * n)}
  {to}.f = select <{n} x i1> {to}.z, {bits} {to}.s, {bits} {to}.i
  {to} = bitcast {bits} {to}.f to {vec}
"""


def _dot_bf16(name: str, n: int) -> str:
    # The products of the odd elements come first; each sum is rounded.
    bits, vec, pairs = f"<{n} x i32>", f"<{n} x float>", f"<{2 * n} x bfloat>"
    body = _flushed(n, "%t0", "%c")
    for x in "ab":
        body += f"""\
  %{x}i = bitcast {pairs} %{x} to {bits}
  %{x}o = and {bits} %{x}i, {_numbers("i32", [-0x10000] * n)}
  %{x}e = shl {bits} %{x}i, {_numbers("i32", [16] * n)}
"""
    for step, part in enumerate("oe", start=1):
        for x in "ab":
            body += f"  %{x}{part}v = bitcast {bits} %{x}{part} to {vec}\n"
            body += _flushed(n, f"%{x}{part}f", f"%{x}{part}v")
        body += f"""\
  %r{step} = call {vec} @llvm.fma.v{n}f32({vec} %a{part}f, {vec} %b{part}f, {vec} %t{step - 1})
"""
        body += _flushed(n, f"%t{step}", f"%r{step}")
    body += f"  ret {vec} %t2\n"
    return _function(name, vec, [f"{vec} %c", f"{pairs} %a", f"{pairs} %b"], body)


def _to_bf16(name: str, n: int) -> str:
    bits, vec = f"<{n} x i32>", f"<{n} x float>"
    body = f"""\
{_flushed(n, "%t", "%x")}\
  %b = bitcast {vec} %t to {bits}
  %h = lshr {bits} %b, {_numbers("i32", [16] * n)}
  %o = and {bits} %h, {_numbers("i32", [1] * n)}
  %near = add {bits} %o, {_numbers("i32", [0x7FFF] * n)}
  %sum = add {bits} %b, %near
  %up = lshr {bits} %sum, {_numbers("i32", [16] * n)}
  %quiet = or {bits} %h, {_numbers("i32", [0x40] * n)}
  %nan = fcmp uno {vec} %t, %t
  %r = select <{n} x i1> %nan, {bits} %quiet, {bits} %up
  %v = trunc {bits} %r to <{n} x i16>
  ret <{n} x i16> %v
"""
    return _function(name, f"<{n} x i16>", [f"{vec} %x"], body)


def _picked(n: int, tables: Sequence[str], index: str) -> str:
    """Return lines that pick a lane of the tables, one after the other, for each lane."""
    size = n * len(tables)
    body = "".join(
        f"""\
  store <{n} x float> {table}, ptr %p{at}, align 4
"""
        for at, table in enumerate(tables)
    )
    pointers = "".join(
        f"  %p{at} = getelementptr float, ptr %room, i32 {at * n}\n" for at in range(len(tables))
    )
    body = f"  %room = alloca [{size} x float], align 64\n{pointers}{body}"
    last = "poison"
    for lane in range(n):
        body += f"""\
  %i{lane} = extractelement <{n} x i32> {index}, i32 {lane}
  %m{lane} = and i32 %i{lane}, {size - 1}
  %q{lane} = getelementptr float, ptr %room, i32 %m{lane}
  %v{lane} = load float, ptr %q{lane}, align 4
  %r{lane} = insertelement <{n} x float> {last}, float %v{lane}, i32 {lane}
"""
        last = f"%r{lane}"
    return f"{body}  ret <{n} x float> {last}\n"


def _permute(name: str, n: int) -> str:
    vec, body = f"<{n} x float>", _picked(n, ["%t"], "%i")
    return _function(name, vec, [f"{vec} %t", f"<{n} x i32> %i"], body)


def _permute_two(name: str, n: int) -> str:
    vec, body = f"<{n} x float>", _picked(n, ["%s", "%t"], "%i")
    return _function(name, vec, [f"{vec} %s", f"<{n} x i32> %i", f"{vec} %t"], body)


def _is_subnormal(name: str, n: int) -> str:
    # Of the classes the backend asks for this one alone: bit 5 of the immediate.
    bits, vec = f"<{n} x i32>", f"<{n} x float>"
    body = f"""\
  %b = bitcast {vec} %x to {bits}
  %a = and {bits} %b, {_numbers("i32", [0x7FFFFFFF] * n)}
  %p = icmp ne {bits} %a, zeroinitializer
  %s = icmp ult {bits} %a, {_numbers("i32", [0x00800000] * n)}
  %r = and <{n} x i1> %p, %s
  ret <{n} x i1> %r
"""
    return _function(name, f"<{n} x i1>", [f"{vec} %x", "i32 %class"], body)


def _scale(name: str, n: int) -> str:
    """Return ``x * 2**floor(y)``, rounded once: float64 holds it for the exponents that matter."""
    vec, wide, bits = f"<{n} x float>", f"<{n} x double>", f"<{n} x i64>"
    body = f"""\
  %down = call {vec} @llvm.floor.v{n}f32({vec} %y)
  %low = call {vec} @llvm.maxnum.v{n}f32({vec} %down, {vec} {_numbers("float", ["-400.0"] * n)})
  %in = call {vec} @llvm.minnum.v{n}f32({vec} %low, {vec} {_numbers("float", ["400.0"] * n)})
  %e = fptosi {vec} %in to {bits}
  %b = add {bits} %e, {_numbers("i64", [1023] * n)}
  %s = shl {bits} %b, {_numbers("i64", [52] * n)}
  %p = bitcast {bits} %s to {wide}
  %w = fpext {vec} %x to {wide}
  %m = fmul {wide} %w, %p
  %r = fptrunc {wide} %m to {vec}
  %bad = fcmp uno {vec} %y, %y
  %f = select <{n} x i1> %bad, {vec} %y, {vec} %r
  ret {vec} %f
"""
    rest = ["i16 %mask", "i32 %rounding"] if n == 16 else ["i8 %mask"]
    return _function(name, vec, [f"{vec} %x", f"{vec} %y", f"{vec} %z", *rest], body)


_WRITERS: tuple[tuple[str, Callable[[str, int], str]], ...] = (
    (r"avx512\.vpdpbusd\.(\d+)", _dot_bytes),
    (r"avx512\.pmaddw\.d\.(\d+)", _dot_words),
    (r"avx512bf16\.dpbf16ps\.(\d+)", _dot_bf16),
    (r"avx512bf16\.cvtneps2bf16\.(\d+)", _to_bf16),
    (r"avx512\.permvar\.sf\.(\d+)", _permute),
    (r"avx512\.vpermi2var\.ps\.(\d+)", _permute_two),
    (r"avx512\.fpclass\.ps\.(\d+)", _is_subnormal),
    (r"avx512\.mask\.scalef\.ps\.(\d+)", _scale),
)
