"""Writes one LLVM function at a time: values with Python operators, as IR text.

Text is exact where TVM is not: nothing here is reassociated, ``x != x`` stays a NaN test, and
``fma`` means fused. Numbers mix with values and become constants of the value's type.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from tile_core.errors import InternalError
from tile_core.records import dataclass
from tile_cpu.cpu_machine import CpuMachine

FLOAT_BITS = {"float": 32, "double": 64}
Operand = Any  # Value | int | float


@dataclass(frozen=True, slots=True)
class Type:
    """An LLVM scalar type (``float``, ``i32`` …) and a number of lanes; one lane is a scalar."""

    scalar: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.scalar if self.lanes == 1 else f"<{self.lanes} x {self.scalar}>"

    @property
    def is_float(self) -> bool:
        """Whether lanes are IEEE floats."""
        return self.scalar in FLOAT_BITS

    @property
    def bits(self) -> int:
        """Bits of one lane."""
        return FLOAT_BITS[self.scalar] if self.is_float else int(self.scalar[1:])

    @property
    def infinity(self) -> int:
        """Bits of the infinity of a float; those of NaN are beyond."""
        return {32: 0x7F800000, 64: 0x7FF0000000000000}[self.bits]

    @property
    def suffix(self) -> str:
        """How LLVM mangles this type into the name of an intrinsic."""
        base = f"f{self.bits}" if self.is_float else self.scalar
        return base if self.lanes == 1 else f"v{self.lanes}{base}"

    def of(self, scalar: str) -> Type:
        """Return the type of as many lanes of `scalar`."""
        return Type(scalar, self.lanes)

    @property
    def as_int(self) -> Type:
        """The integer type of the same width."""
        return self.of(f"i{self.bits}")


def constant_text(value: float, kind: Type) -> str:
    """Return `value` as an LLVM constant of `kind`, the same in every lane."""
    if kind.scalar == "float":
        single = value if value in (float("inf"), -float("inf")) else _single(value)
        text = f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"
    elif kind.scalar == "double":
        text = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    else:
        wrapped = int(value) & ((1 << kind.bits) - 1)
        text = str(wrapped) if kind.bits > 1 else ("true" if wrapped else "false")
    return text if kind.lanes == 1 else f"splat ({kind.scalar} {text})"


def _single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An SSA value of a function being written.

    ``+ - * /`` work lane by lane on floats, ``+ - * & | ^`` on integers. Comparisons are
    methods, signed on integers and false for NaN on floats (except `ne`, which is true).
    """

    text: str
    type: Type
    fn: Function

    def _lift(self, other: Operand) -> Value:
        return other if isinstance(other, Value) else self.fn.constant(other, self.type)

    def _binary(self, float_op: str, int_op: str, other: Operand, swap: bool = False) -> Value:
        left, right = (self._lift(other), self) if swap else (self, self._lift(other))
        op = float_op if self.type.is_float else int_op
        return self.fn.emit(f"{op} {left.type} {left.text}, {right.text}", self.type)

    def __add__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other, swap=True)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other, swap=True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other)

    def __rmul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other, swap=True)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "sdiv", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "sdiv", other, swap=True)

    def __and__(self, other: Operand) -> Value:
        return self._binary("", "and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("", "or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("", "xor", other)

    def __neg__(self) -> Value:
        if self.type.is_float:
            return self.fn.emit(f"fneg {self.type} {self.text}", self.type)
        return 0 - self

    def shl(self, count: Operand) -> Value:
        """Shift bits left."""
        return self._binary("", "shl", count)

    def lshr(self, count: Operand) -> Value:
        """Shift bits right, zeros enter."""
        return self._binary("", "lshr", count)

    def ashr(self, count: Operand) -> Value:
        """Shift bits right, the sign enters."""
        return self._binary("", "ashr", count)

    def _compare(self, float_test: str, int_test: str, other: Operand) -> Value:
        op = f"fcmp {float_test}" if self.type.is_float else f"icmp {int_test}"
        right = self._lift(other)
        return self.fn.emit(f"{op} {self.type} {self.text}, {right.text}", self.type.of("i1"))

    def lt(self, other: Operand) -> Value:
        """Tell where self < other."""
        return self._compare("olt", "slt", other)

    def gt(self, other: Operand) -> Value:
        """Tell where self > other."""
        return self._compare("ogt", "sgt", other)

    def ge(self, other: Operand) -> Value:
        """Tell where self >= other."""
        return self._compare("oge", "sge", other)

    def eq(self, other: Operand) -> Value:
        """Tell where self equals other."""
        return self._compare("oeq", "eq", other)

    def ne(self, other: Operand) -> Value:
        """Tell where self differs from other; NaN differs from everything."""
        return self._compare("une", "ne", other)

    def ugt(self, other: Operand) -> Value:
        """Tell where self > other as unsigned integers."""
        return self._compare("ogt", "ugt", other)

    def ult(self, other: Operand) -> Value:
        """Tell where self < other as unsigned integers."""
        return self._compare("olt", "ult", other)

    def is_nan(self) -> Value:
        """Tell where a float is NaN, by its bits."""
        return self.magnitude().ugt(self.type.infinity)

    def magnitude(self) -> Value:
        """Return the bits of a float without its sign."""
        return self.bits() & ((1 << (self.type.bits - 1)) - 1)

    def sign(self) -> Value:
        """Return the sign bit of a float, in place."""
        return self.bits() & (1 << (self.type.bits - 1))

    def bits(self) -> Value:
        """Return the bits of a float as integers."""
        return self.bitcast(self.type.as_int)

    def bitcast(self, kind: Type) -> Value:
        """Return the same bits as another type of the same size."""
        if kind == self.type:
            return self
        return self.fn.emit(f"bitcast {self.type} {self.text} to {kind}", kind)

    def to(self, scalar: str, *, signed: bool = True) -> Value:
        """Convert to another scalar type, floats to floats; `signed` tells how to read integers."""
        source, kind = self.type, self.type.of(scalar)
        if source == kind:
            return self
        if source.is_float:
            op = "fpext" if kind.bits > source.bits else "fptrunc"
        elif kind.is_float:
            op = "sitofp" if signed else "uitofp"
        elif kind.bits < source.bits:
            op = "trunc"
        else:
            op = "sext" if signed else "zext"
        return self.fn.emit(f"{op} {source} {self.text} to {kind}", kind)

    def where(self, yes: Operand, no: Operand) -> Value:
        """Return `yes` in the lanes where this mask is set, else `no`; one must be a Value."""
        model = yes if isinstance(yes, Value) else no
        yes, no = model._lift(yes), model._lift(no)
        text = f"select {self.type} {self.text}, {yes.type} {yes.text}, {no.type} {no.text}"
        return self.fn.emit(text, yes.type)

    def lanes(self, picked: Sequence[int]) -> Value:
        """Return a vector (one lane: a scalar) of the lanes `picked`."""
        if len(picked) == 1:
            return self.fn.emit(
                f"extractelement {self.type} {self.text}, i32 {picked[0]}", Type(self.type.scalar)
            )
        mask = f"<{len(picked)} x i32> <{', '.join(f'i32 {i}' for i in picked)}>"
        return self.fn.emit(
            f"shufflevector {self.type} {self.text}, {self.type} poison, {mask}",
            Type(self.type.scalar, len(picked)),
        )


@dataclass(slots=True, eq=False)
class Function:
    """One LLVM function under construction."""

    name: str
    machine: CpuMachine  # what it may use
    lines: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)  # of outside functions; intrinsics need none
    _parameters: list[Value] = field(default_factory=list)
    _next: int = 0
    _block: str = "entry"
    _returns: str = ""

    def parameter(self, kind: Type) -> Value:
        """Add a parameter; ``Type("ptr")`` is an address."""
        value = Value(f"%a{len(self._parameters)}", kind, self)
        self._parameters.append(value)
        return value

    def fresh(self, stem: str = "v") -> str:
        """Return an unused local name, without its percent sign."""
        self._next += 1
        return f"{stem}{self._next}"

    def emit(self, text: str, kind: Type) -> Value:
        """Add an instruction that yields a value."""
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return Value(name, kind, self)

    def run(self, text: str) -> None:
        """Add an instruction without a value."""
        self.lines.append(f"  {text}")

    def constant(self, value: float, kind: Type) -> Value:
        """Return a constant, the same in every lane."""
        return Value(constant_text(value, kind), kind, self)

    def call(self, name: str, kind: Type, *args: Value | str) -> Value:
        """Call an intrinsic or function; strings are arguments already in LLVM's spelling."""
        listed = ", ".join(a if isinstance(a, str) else f"{a.type} {a.text}" for a in args)
        return self.emit(f"call {kind} @{name}({listed})", kind)

    def unary(self, name: str, x: Value) -> Value:
        """Call ``llvm.<name>`` on one value of its own type."""
        return self.call(f"llvm.{name}.{x.type.suffix}", x.type, x)

    def binary(self, name: str, x: Value, y: Operand) -> Value:
        """Call ``llvm.<name>`` on two values of one type."""
        return self.call(f"llvm.{name}.{x.type.suffix}", x.type, x, x._lift(y))

    def fma(self, a: Value, b: Operand, c: Operand) -> Value:
        """Return ``a*b + c`` rounded once, on every machine."""
        name = f"llvm.fma.{a.type.suffix}"
        return self.call(name, a.type, a, a._lift(b), a._lift(c))

    def mad(self, a: Value, b: Operand, c: Operand) -> Value:
        """Return ``a*b + c``, fused where that is one instruction."""
        return self.fma(a, b, c) if self.machine.fuses_multiply_add else a * b + c

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Return ``c0 + x*(c1 + x*(…))``; `coefficients` in rising order."""
        result = self.constant(coefficients[-1], x.type)
        for value in reversed(coefficients[:-1]):
            result = self.mad(result, x, value)
        return result

    def fence(self, x: Value) -> Value:
        """Return `x`, which no multiply-add contraction may look through."""
        return self.unary("arithmetic.fence", x)

    def abs(self, x: Value) -> Value:
        """Return the magnitude of floats."""
        return self.unary("fabs", x)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        """Return `magnitude` with the sign of `sign`."""
        return self.binary("copysign", magnitude, sign)

    def any(self, mask: Value) -> Value:
        """Tell whether a lane of `mask` is set."""
        if mask.type.lanes == 1:
            return mask
        flat = mask.bitcast(Type(f"i{mask.type.lanes}"))
        return flat.ne(0)

    def label(self, name: str) -> None:
        """Start a block; the one before must have ended with a branch."""
        self.lines.append(f"{name}:")
        self._block = name

    def either(self, condition: Value, yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
        """Return ``yes()`` if the scalar `condition` holds, else ``no()``; one of them runs."""
        names = [self.fresh(stem) for stem in ("yes", "no", "join")]
        self.run(f"br i1 {condition.text}, label %{names[0]}, label %{names[1]}")
        arms: list[tuple[Value, str]] = []
        for name, arm in zip(names, (yes, no), strict=False):
            self.label(name)
            value = arm()
            arms.append((value, self._block))
            self.run(f"br label %{names[2]}")
        self.label(names[2])
        incoming = ", ".join(f"[{value.text}, %{block}]" for value, block in arms)
        return self.emit(f"phi {arms[0][0].type} {incoming}", arms[0][0].type)

    def each_lane(self, body: Callable[..., Value], *args: Value) -> Value:
        """Return the vector of ``body(scalars)``, lane after lane in a loop."""
        kind = args[0].type
        if kind.lanes == 1:
            return body(*args)
        loop, done, before = self.fresh("loop"), self.fresh("done"), self._block
        index, following = f"%{self.fresh('i')}", f"%{self.fresh('n')}"
        so_far, grown = f"%{self.fresh('r')}", f"%{self.fresh('r')}"
        self.run(f"br label %{loop}")
        self.label(loop)
        phis = len(self.lines)
        picked = [
            self.emit(f"extractelement {a.type} {a.text}, i32 {index}", Type(a.type.scalar))
            for a in args
        ]
        value = body(*picked)
        whole = Type(value.type.scalar, kind.lanes)
        self.run(
            f"{grown} = insertelement {whole} {so_far}, {value.type} {value.text}, i32 {index}"
        )
        self.run(f"{following} = add i32 {index}, 1")
        self.lines[phis:phis] = [
            f"  {index} = phi i32 [0, %{before}], [{following}, %{self._block}]",
            f"  {so_far} = phi {whole} [poison, %{before}], [{grown}, %{self._block}]",
        ]
        last = self.emit(f"icmp eq i32 {following}, {kind.lanes}", Type("i1"))
        self.run(f"br i1 {last.text}, label %{done}, label %{loop}, !llvm.loop !0")
        self.label(done)
        return Value(grown, whole, self)

    def outside(self, name: str, *args: Value) -> Value:
        """Call a function of the C library on scalars; it returns their type."""
        kind = args[0].type
        listed = ", ".join(str(a.type) for a in args)
        self.declared.add(f"declare {kind} @{name}({listed})")
        return self.call(name, kind, *args)

    def finish(self, result: Value) -> Function:
        """Return from the function with `result`; nothing may follow."""
        if result.fn is not self:
            raise InternalError(f"{self.name} returns a value of {result.fn.name}")
        self._returns = str(result.type)
        self.run(f"ret {result.type} {result.text}")
        return self

    def definition(self) -> str:
        """Return the text of the finished function."""
        listed = ", ".join(f"{p.type} {p.text}" for p in self._parameters)
        head = f"define {self._returns} @{self.name}({listed}) #0 {{\nentry:\n"
        return head + "\n".join(self.lines) + "\n}\n"
