"""LLVM functions TVM's code generator cannot express, as IR text linked into a kernel.

A kernel calls them by name with ``call_extern``; `definitions` writes exactly the ones that are
called. TVM marks imported functions always-inline, so each becomes one or two instructions.

========================  =======================================================
name                      meaning
========================  =======================================================
``tile_mload_i32x16``     ``(ptr, i32 n)``: load lanes below n, others are zero
``tile_cload_i32x16``     ``(ptr, i1 lanes)``: load the lanes that are set, others are zero
``tile_mstore_i32x16``    ``(ptr, i32 n, vector)``: store lanes below n
``tile_stored_i32``       ``(i32)``: the same value, which LLVM does not know for a part of one
``tile_bits_i32_f32``     ``(i32)``: the bits of an integer as another type
``tile_opaque_f32``       ``(f32)``: the same value; LLVM does not know where it comes from
``tile_stream_i32x16``    ``(ptr, vector)``: store past the caches where aligned
``tile_enter_i32x16``     ``(ptr, vector)``: the same, translating addresses ahead of time
``tile_dot_bf16_x16``     ``(f32 acc, i32 a, i32 b)``: acc + sum of two bf16 products
``tile_round_bf16_x16``   ``(f32)``: round to nearest even bf16, as i16
``tile_narrow_bf16_x16``  ``(f32)``: the same, but subnormal numbers may become zeros
``tile_max_f32``          ``(f32, f32)``: the larger; of a number and NaN the number
``tile_work_hint``        ``(i64 ns)``: tell the thread pool how long a loop will take
``tile_threads``          ``()``: how many threads a loop would run on now, 0 if unknown
========================  =======================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from tile_core.errors import InternalError
from tile_cpu.cpu_machine import CpuMachine, Isa
from tile_cpu.llvm.builder import Function
from tile_cpu.llvm_memory_access import define_gather
from tile_cpu.math import narrow, reduce, table

PREFIX = "tile_"
ENTER_AHEAD = 8192
"""Bytes before a streamed store enters a page that its translation is asked for: two pages.

A store past the caches waits for the translation of its address, and a loop that computes
something has few stores in flight to hide that behind. A prefetch of one line per page has
it ready, for 1.6 % more traffic.
"""
_PAGE = 4096
_SUBNORMAL = 0x20  # among the classes of floats
WORK_HINT_SYMBOL = "__tile_work_hint"
THREADS_SYMBOL = "__tile_threads"


def _lane_mask(lanes: int) -> str:
    numbers = ", ".join(f"i32 {i}" for i in range(lanes))
    return f"""\
  %i = insertelement <{lanes} x i32> poison, i32 %n, i32 0
  %b = shufflevector <{lanes} x i32> %i, <{lanes} x i32> poison, <{lanes} x i32> zeroinitializer
  %m = icmp sgt <{lanes} x i32> %b, <{numbers}>
"""


def _load(match: re.Match[str], machine: CpuMachine) -> str:
    bits, lanes = int(match[2]), int(match[3])
    vec, mask = f"<{lanes} x i{bits}>", f"<{lanes} x i1>"
    name, is_counted = f"llvm.masked.load.v{lanes}i{bits}.p0", match[1] == "m"
    return f"""\
declare {vec} @{name}(ptr, i32, {mask}, {vec})
define {vec} @{match[0]}(ptr %p, {"i32 %n" if is_counted else f"{mask} %m"}) #0 {{
{_lane_mask(lanes) if is_counted else ""}\
  %r = call {vec} @{name}(ptr %p, i32 {bits // 8}, {mask} %m, {vec} zeroinitializer)
  ret {vec} %r
}}
"""


def _masked_store(match: re.Match[str], machine: CpuMachine) -> str:
    bits, lanes = int(match[1]), int(match[2])
    vec, name = f"<{lanes} x i{bits}>", f"llvm.masked.store.v{lanes}i{bits}.p0"
    # LLVM 22 turns a masked store of one known lane of a truncated vector into a store of the
    # whole untruncated element, over its neighbours. The empty asm keeps masks unknown; scalar
    # stores, of which LLVM makes masked ones, store `_stored`.
    return f"""\
declare void @{name}({vec}, ptr, i32, <{lanes} x i1>)
define i32 @{match[0]}(ptr %p, i32 %count, {vec} %v) #0 {{
  %n = call i32 asm "", "=r,0"(i32 %count)
{_lane_mask(lanes)}\
  call void @{name}({vec} %v, ptr %p, i32 {bits // 8}, <{lanes} x i1> %m)
  ret i32 0
}}
"""


def _stored(match: re.Match[str], machine: CpuMachine) -> str:
    # A sum with what may be anything for all LLVM knows is no truncated value; see `_masked_store`.
    zero, kind = f"@tile_zero_{match[1]}", match[1]
    return f"""\
{zero} = weak hidden global {kind} 0, align 8
define {kind} @{match[0]}({kind} %v) #0 {{
  %z = load {kind}, ptr {zero}, align 8, !invariant.load !{{}}
  %s = add {kind} %v, %z
  ret {kind} %s
}}
"""


def _bits(match: re.Match[str], machine: CpuMachine) -> str:
    given = match[1]
    wanted = {"f16": "half", "f32": "float", "f64": "double"}.get(match[2], match[2])
    return f"""\
define {wanted} @{match[0]}({given} %v) #0 {{
  %b = bitcast {given} %v to {wanted}
  ret {wanted} %b
}}
"""


def _opaque(match: re.Match[str], machine: CpuMachine) -> str:
    # Unlike `llvm.arithmetic.fence`, of which LLVM makes no vectors.
    bits = match[1]
    zero, integer, kind = f"@tile_zero_f{bits}", f"i{bits}", {"32": "float", "64": "double"}[bits]
    return f"""\
{zero} = weak hidden global {integer} 0, align 8
define {kind} @{match[0]}({kind} %v) #0 {{
  %z = load {integer}, ptr {zero}, align 8, !invariant.load !{{}}
  %b = bitcast {kind} %v to {integer}
  %x = xor {integer} %b, %z
  %r = bitcast {integer} %x to {kind}
  ret {kind} %r
}}
"""


def _stream(match: re.Match[str], machine: CpuMachine) -> str:
    bits, lanes = int(match[2]), int(match[3])
    vec, size = f"<{lanes} x i{bits}>", lanes * bits // 8
    return f"""\
define i32 @{match[0]}(ptr %p, {vec} %v) #0 {{
  %a = ptrtoint ptr %p to i64
{_translation_ahead(size) if match[1] == "enter" else ""}\
  %low = and i64 %a, {size - 1}
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %past, label %through
past:
  store {vec} %v, ptr %p, align {size}, !nontemporal !{{i32 1}}
  ret i32 0
through:
  store {vec} %v, ptr %p, align {bits // 8}
  ret i32 0
}}
"""


def _translation_ahead(size: int) -> str:
    return f"""\
  %inside = and i64 %a, {_PAGE - 1}
  %enters = icmp ult i64 %inside, {size}
  br i1 %enters, label %ask, label %go
ask:
  %ahead = getelementptr i8, ptr %p, i64 {ENTER_AHEAD}
  call void @llvm.prefetch.p0(ptr %ahead, i32 0, i32 3, i32 1)
  br label %go
go:
"""


def _dot_bf16(match: re.Match[str], machine: CpuMachine) -> str:
    n = int(match[1])
    x86 = machine.isa is Isa.X86_64
    name = f"avx512bf16.dpbf16ps.{n * 32}" if x86 else f"bfdot.v{n}f32.v{2 * n}bf16"
    intrinsic = f"llvm.{'x86' if x86 else 'aarch64.neon'}.{name}"
    acc, raw, pairs = f"<{n} x float>", f"<{n} x i32>", f"<{2 * n} x bfloat>"
    return f"""\
declare {acc} @{intrinsic}({acc}, {pairs}, {pairs})
define {acc} @{match[0]}({acc} %c, {raw} %a, {raw} %b) #0 {{
  %x = bitcast {raw} %a to {pairs}
  %y = bitcast {raw} %b to {pairs}
  %r = call {acc} @{intrinsic}({acc} %c, {pairs} %x, {pairs} %y)
  ret {acc} %r
}}
"""


def _splat(value: int, lanes: int) -> str:
    return "<" + ", ".join([f"i32 {value}"] * lanes) + ">"


def _narrow_bf16(match: re.Match[str], machine: CpuMachine) -> str:
    """Round in one instruction where there is one; x86's takes subnormal numbers for zeros.

    There ``round`` tests for them first; ``narrow`` is for products, which take operands so too.
    """
    lanes = int(match[2])
    vec, result = f"<{lanes} x float>", f"<{lanes} x i16>"
    head = f"define {result} @{match[0]}({vec} %x) #0 {{\n"
    is_exact = machine.has("bf16")
    if not (is_exact or (machine.has("avx512bf16") and lanes in (8, 16))):
        return f"{head}{_bf16_by_integers(lanes)}}}\n"
    at_once = f"""\
  %r = fptrunc {vec} %x to <{lanes} x bfloat>
  %direct = bitcast <{lanes} x bfloat> %r to {result}
  ret {result} %direct
"""
    if match[1] == "narrow" or is_exact:
        return f"{head}{at_once}}}\n"
    return f"""\
{head}\
  %class = call <{lanes} x i1> @llvm.x86.avx512.fpclass.ps.{32 * lanes}({vec} %x, i32 {_SUBNORMAL})
  %set = bitcast <{lanes} x i1> %class to i{lanes}
  %none = icmp eq i{lanes} %set, 0
  br i1 %none, label %direct.way, label %exact.way, !prof !{{!"branch_weights", i32 1000, i32 1}}
direct.way:
{at_once}\
exact.way:
{_bf16_by_integers(lanes)}\
}}
"""


def _bf16_by_integers(n: int) -> str:
    vec = f"<{n} x i32>"
    return f"""\
  %b = bitcast <{n} x float> %x to {vec}
  %h = lshr {vec} %b, {_splat(16, n)}
  %o = and {vec} %h, {_splat(1, n)}
  %near = add {vec} %b, {_splat(32767, n)}
  %s = add {vec} %near, %o
  %nan = fcmp uno <{n} x float> %x, %x
  %q = or {vec} %b, {_splat(0x400000, n)}
  %u = select <{n} x i1> %nan, {vec} %q, {vec} %s
  %t = lshr {vec} %u, {_splat(16, n)}
  %v = trunc {vec} %t to <{n} x i16>
  ret <{n} x i16> %v
"""


def _extremum(match: re.Match[str], machine: CpuMachine) -> str:
    """Return what ``llvm.maxnum`` becomes on x86, spelt out.

    LLVM 22 recognises a reduction by the intrinsic, and where it vectorises one it may drop the
    iterations that do not fill a vector.
    """
    kind = {"f16": "half", "f32": "float", "f64": "double"}[match[2]]
    compare = {"max": "ogt", "min": "olt"}[match[1]]
    return f"""\
define {kind} @{match[0]}({kind} %a, {kind} %b) #0 {{
  %better = fcmp {compare} {kind} %b, %a
  %one = select i1 %better, {kind} %b, {kind} %a
  %missing = fcmp uno {kind} %a, %a
  %r = select i1 %missing, {kind} %b, {kind} %one
  ret {kind} %r
}}
"""


def _work_hint(match: re.Match[str], machine: CpuMachine) -> str:
    # The runtime fills the global when it loads the module; see `tile_cpu.openmp_threads`.
    return f"""\
@{WORK_HINT_SYMBOL} = dllexport global ptr null, align 8
define i32 @{match[0]}(i64 %w) #0 {{
  %p = load volatile ptr, ptr @{WORK_HINT_SYMBOL}, align 8
  %none = icmp eq ptr %p, null
  br i1 %none, label %done, label %tell
tell:
  store volatile i64 %w, ptr %p, align 8
  br label %done
done:
  ret i32 0
}}
"""


def _threads(match: re.Match[str], machine: CpuMachine) -> str:
    # As above: the address of a function, where there is an OpenMP runtime.
    return f"""\
@{THREADS_SYMBOL} = dllexport global ptr null, align 8
define i32 @{match[0]}() #0 {{
  %p = load volatile ptr, ptr @{THREADS_SYMBOL}, align 8
  %none = icmp eq ptr %p, null
  br i1 %none, label %unknown, label %ask
ask:
  %n = call i32 %p()
  ret i32 %n
unknown:
  ret i32 0
}}
"""


_WRITERS: tuple[tuple[str, Callable[[re.Match[str], CpuMachine], str]], ...] = (
    (r"tile_([mc])load_i(8|16|32|64)x(\d+)", _load),
    (r"tile_mstore_i(8|16|32|64)x(\d+)", _masked_store),
    (r"tile_stored_(i8|i16|i32|i64)", _stored),
    (r"tile_bits_(i8|i16|i32|i64)_(i8|i16|i32|i64|f16|f32|f64)", _bits),
    (r"tile_opaque_f(32|64)", _opaque),
    (r"tile_(stream|enter)_i(8|16|32|64)x(\d+)", _stream),
    (r"tile_dot_bf16_x(\d+)", _dot_bf16),
    (r"tile_(narrow|round)_bf16_x(\d+)", _narrow_bf16),
    (r"tile_(max|min)_(f16|f32|f64)", _extremum),
    (r"tile_work_hint", _work_hint),
    (r"tile_threads", _threads),
)


def definitions(names: Iterable[str], machine: CpuMachine) -> str:
    """Return IR text that defines `names` for `machine`; empty if there are none.

    Raises
    ------
    InternalError
        If a name starts with ``tile_`` and means nothing.
    """
    wanted = sorted({name for name in names if name.startswith(PREFIX)})
    if not wanted:
        return ""
    own = {name: _written(name, machine) for name in wanted}
    rest = _function_text([name for name, text in own.items() if text is None], machine)
    texts = _declared_once(text for text in own.values() if text)
    return "\n".join([*texts, rest, _attributes(machine)])


def _declared_once(texts: Iterable[str]) -> Iterator[str]:
    """Yield `texts` less declarations of what an earlier one declares."""
    known: set[str] = set()
    for text in texts:
        lines = text.splitlines(keepends=True)
        declared = {line for line in lines if line.startswith("declare ")}
        yield "".join(line for line in lines if line not in declared & known)
        known |= declared


def _written(name: str, machine: CpuMachine) -> str | None:
    found = ((re.fullmatch(pattern, name), writer) for pattern, writer in _WRITERS)
    return next((writer(match, machine) for match, writer in found if match), None)


def _attributes(machine: CpuMachine) -> str:
    # Without the same features LLVM would refuse to inline into the kernel.
    features = machine.llvm_target().get("mattr", ())
    assert isinstance(features, (list, tuple))
    listed = f' "target-features"="{",".join(features)}"' if features else ""
    return f'attributes #0 = {{ nounwind alwaysinline "target-cpu"="{machine.cpu}"{listed} }}\n'


_DEFINERS: tuple[Callable[[str, CpuMachine], Function | None], ...] = (
    table.define,
    narrow.define,
    reduce.define,
    define_gather,
)
# Lanes are looped over where a function is called for each; unrolling would repeat the call.
_LOOP_METADATA = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.disable"}\n'


def _function_text(names: Iterable[str], machine: CpuMachine) -> str:
    """Return definitions of `names`, which refer to the attribute group ``#0``."""
    functions = [_function(name, machine) for name in names]
    if not functions:
        return ""
    declared = sorted({line for function in functions for line in function.declared})
    text = "\n".join([*declared, *(function.definition() for function in functions)])
    return text + (_LOOP_METADATA if "!llvm.loop" in text else "")


def _function(name: str, machine: CpuMachine) -> Function:
    for definer in _DEFINERS:
        function = definer(name, machine)
        if function is not None:
            return function
    raise InternalError(f"no LLVM text defines {name!r}")
