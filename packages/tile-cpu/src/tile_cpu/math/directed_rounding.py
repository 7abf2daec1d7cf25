"""The ieee_* operations: one rounding, in the direction asked for.

A result is first found to the nearest number together with the sign of what was lost (an
error-free transformation), then moved by one step where the direction asks for it. Single
precision goes through double, where nothing under- or overflows. In double the sign of the
loss is unknown when it underflows, below 2**-960 or so.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_cpu.llvm.builder import Function, Value

Rounded = tuple[Value, Value]  # nearest result, something with the sign of exact - nearest
Exact = Callable[..., Rounded]


def _sum(fn: Function, a: Value, b: Value) -> Rounded:
    s = a + b
    shadow = s - a
    return s, (a - (s - shadow)) + (b - shadow)


def _product(fn: Function, a: Value, b: Value) -> Rounded:
    p = fn.fence(a * b)
    return p, fn.fma(a, b, -p)


def _quotient(fn: Function, a: Value, b: Value) -> Rounded:
    q = a / b
    rest = fn.fma(-q, b, a)
    return q, b.bits().lt(0).where(-rest, rest)


def _root(fn: Function, a: Value) -> Rounded:
    s = fn.unary("sqrt", a)
    return s, fn.fma(-s, s, a)


def _inverse_root(fn: Function, a: Value) -> Rounded:
    def loss(y: Value) -> Value:  # 1 - a*y*y
        square, tail = _product(fn, y, y)
        return fn.fma(-square, a, fn.constant(1.0, a.type)) - tail * a

    y = 1.0 / fn.unary("sqrt", a)
    better = fn.fma(y * 0.5, loss(y), y)
    y = better.eq(better).where(better, y)
    return y, loss(y)


def _fused(fn: Function, a: Value, b: Value, c: Value) -> Rounded:
    result = fn.fma(a, b, c)
    high, low = _product(fn, a, b)
    mid, last = _sum(fn, c, low)
    top, rest = _sum(fn, high, mid)
    return result, ((top - result) + rest) + last


def _step(x: Value, up: bool) -> Value:
    """Return the next number above (below) a non-NaN `x`."""
    bits = x.bits()
    grows = bits.lt(0) ^ 1 if up else bits.lt(0)
    moved = (bits + grows.where(1, x.fn.constant(-1, bits.type))).bitcast(x.type)
    least = x.fn.constant(1 if up else (1 << (x.type.bits - 1)) | 1, bits.type).bitcast(x.type)
    return x.eq(0.0).where(least, moved)


def _to_odd(x: Value, loss: Value) -> Value:
    """Return `x` if nothing was lost, else the neighbour or itself whose last bit is set.

    Such a double rounds to single as the exact value would, in any direction.
    """
    bits = x.bits()
    even = (bits & 1).eq(0)
    towards = loss.gt(0.0).where(_step(x, True), _step(x, False))
    move = even & loss.ne(0.0) & loss.eq(loss) & x.fn.abs(x).lt(float("inf"))
    return move.where(towards, x)


def _narrowed(x: Value, mode: str) -> Value:
    """Round a double to single in the direction `mode`."""
    near = x.to("float")
    return _directed(near, x - near.to("double"), mode)


def _directed(near: Value, loss: Value, mode: str) -> Value:
    """Move `near` by one step if the exact value lies on the side `mode` rounds to."""
    if mode == "rz":
        positive = near.bits().lt(0) ^ 1
        inward = (positive & loss.lt(0.0)) | ((positive ^ 1) & loss.gt(0.0))
        return inward.where(positive.where(_step(near, False), _step(near, True)), near)
    up = mode == "ru"
    needed = loss.gt(0.0) if up else loss.lt(0.0)
    return needed.where(_step(near, up), near)


def _overflowed(near: Value, loss: Value, *inputs: Value) -> Value:
    """Return `loss`, pointing inwards where finite inputs gave an infinite result."""
    fn = near.fn
    finite = fn.abs(inputs[0]).lt(float("inf"))
    for other in inputs[1:]:
        finite = finite & fn.abs(other).lt(float("inf"))
    inward = near.gt(0.0).where(-1.0, fn.constant(1.0, near.type))
    return (finite & fn.abs(near).eq(float("inf"))).where(inward, loss)


def _inverse(fn: Function, a: Value) -> Rounded:
    return _quotient(fn, fn.constant(1.0, a.type), a)


def _difference(fn: Function, a: Value, b: Value) -> Rounded:
    return _sum(fn, a, -b)


def _zero_of_opposites(near: Value, result: Value) -> Value:
    """Give an exact zero, sum of opposite numbers, the sign it has when rounding down."""
    positive_zero = near.bits().eq(0)
    return positive_zero.where(result.fn.constant(-0.0, result.type), result)


def directed(exact: Exact, mode: str) -> Callable[..., Value]:
    """Return the operation that rounds like `exact`'s result in the direction `mode`."""

    def run(fn: Function, *args: Value) -> Value:
        single = args[0].type.bits < 64
        if mode == "rn" and not (single and exact is _inverse_root):
            return fn.fence(exact(fn, *args)[0])
        wide = [a.to("double") for a in args]
        near, loss = exact(fn, *wide)
        if single:
            odd = _to_odd(near, loss)
            result = odd.to("float") if mode == "rn" else _narrowed(odd, mode)
        else:
            by_zero = exact in (_quotient, _inverse, _inverse_root)
            loss = loss if by_zero else _overflowed(near, loss, *wide)
            result = _directed(near, loss, mode)
        if mode == "rd" and exact in _SUMS:
            positive = [(a.bits().lt(0) ^ 1) & a.eq(0.0) for a in _terms(fn, exact, args)]
            both = positive[0] & positive[1]
            result = both.where(result, _zero_of_opposites(near, result))
        return result

    return run


def _terms(fn: Function, exact: Exact, args: tuple[Value, ...]) -> tuple[Value, Value]:
    """Return the two numbers that `exact` adds; only zeros and signs need be right."""
    if exact is _fused:
        return _signed_product(fn, *args[:2]), args[2]
    return args[0], (-args[1] if exact is _difference else args[1])


def _signed_product(fn: Function, a: Value, b: Value) -> Value:
    zero = a.eq(0.0) | b.eq(0.0)
    size = zero.where(0.0, fn.constant(1.0, a.type))
    return fn.copysign(size, (a.bits() ^ b.bits()).bitcast(a.type))


_SUMS = (_sum, _difference, _fused)
OPERATIONS: dict[str, tuple[int, Exact]] = {
    "add": (2, _sum),
    "sub": (2, _difference),
    "mul": (2, _product),
    "fmaf": (3, _fused),
    "frcp": (1, _inverse),
    "fsqrt": (1, _root),
    "frsqrt": (1, _inverse_root),
    "fdiv": (2, _quotient),
}
