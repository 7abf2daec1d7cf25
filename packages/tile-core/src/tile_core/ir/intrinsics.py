"""The table of scalar intrinsics: what each returns and what else it does.

Operators and passes read effects here and nowhere else; an intrinsic that is not in the
table cannot be called.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.dtypes import DType, dtype_of, promote
from tile_core.errors import DtypeMismatch, FrontendTypeError
from tile_core.ir.effect import Effect as Effect
from tile_core.ir.expr import AddressOf, Expr, StringConst
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS
from tile_core.records import dataclass

Conversions = tuple[DType | None, ...]
"""What each argument is converted to; None leaves it as it is."""

ResultRule = Callable[[str, tuple[Expr, ...]], tuple[Conversions, DType]]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """One row: number of arguments (None = any), how the result dtype follows, effects."""

    arity: int | None
    rule: ResultRule
    effect: Effect = Effect.NONE

    def resolve(self, name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
        """Return what the arguments are converted to, and the result dtype.

        Raises
        ------
        FrontendTypeError
            If the number of arguments is wrong.
        DtypeMismatch
            If an argument has a dtype the intrinsic does not take.
        """
        if self.arity is not None and len(args) != self.arity:
            raise FrontendTypeError(
                f"T.{name} takes {self.arity} arguments, got {len(args)}",
                hint=f"help(T.{name}) shows what it takes",
            )
        return self.rule(name, args)


def _common(args: tuple[Expr, ...]) -> DType:
    common = args[0].dtype
    for arg in args[1:]:
        common = promote(common, arg.dtype)
    return common


def _float(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
    """Float functions: integers are computed in float32."""
    common = _common(args)
    if not common.is_float:
        common = dtype_of("float32").with_lanes(common.lanes)
    return (common,) * len(args), common


def _same(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
    common = _common(args)
    return (common,) * len(args), common


def _float_only(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
    wanted, common = _same(name, args)
    if not common.is_float:
        raise FrontendTypeError(
            f"T.{name} takes floating-point values, got {common}", hint="convert: T.float32(x)"
        )
    return wanted, common


def _float_test(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
    wanted, common = _float(name, args)
    return wanted, dtype_of("bool").with_lanes(common.lanes)


def _integer(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
    wanted, common = _same(name, args)
    if not common.is_int:
        raise DtypeMismatch(
            f"T.{name} takes integers, got {common}",
            hint="convert the value: T.cast(x, 'int32'), or T.reinterpret(x, 'int32') for its bits",
        )
    return wanted, common


def _count(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
    wanted, common = _integer(name, args)
    return wanted, dtype_of("int32").with_lanes(common.lanes)


def _ldexp(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
    _, dtype = _float(name, args[:1])
    return (dtype, dtype_of("int32").with_lanes(dtype.lanes)), dtype


def _first(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
    """Return the dtype of the first argument: shuffles, votes on values."""
    return (None,) * len(args), args[0].dtype


def _element(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
    """Address and value: the result is the element's previous value."""
    address = args[0]
    if not isinstance(address, AddressOf):
        raise FrontendTypeError(
            f"T.{name} needs an element such as A[i, j] as destination",
            hint="index a buffer: its address is needed, not its value",
        )
    dtype = address.buffer.dtype
    rest = (None if isinstance(a, StringConst) else dtype for a in args[1:])
    return (None, *rest), dtype


def _returns(dtype: str) -> ResultRule:
    def rule(name: str, args: tuple[Expr, ...]) -> tuple[Conversions, DType]:
        return (None,) * len(args), dtype_of(dtype)

    return rule


_UNARY_FLOAT = """
    exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt sigmoid tanh sin cos tan asin acos atan
    sinh cosh asinh acosh atanh erf floor ceil round trunc nearbyint
"""
_FAST = ["__exp", "__exp10", "__log", "__log2", "__log10", "__tan", "__cos", "__sin", "fast_rcp"]
_BINARY_FLOAT = ["pow", "fmod", "hypot", "copysign", "atan2", "nextafter"]
_ROUNDED = {"add": 2, "sub": 2, "mul": 2, "fmaf": 3, "frcp": 1, "fsqrt": 1, "frsqrt": 1, "fdiv": 2}
_SHUFFLES = ["shfl_xor", "shfl_down", "shfl_up", "shfl_sync"]
_WARP_REDUCTIONS = [f"warp_reduce_{k}" for k in ("sum", "max", "min", "bitand", "bitor")]
_ATOMICS = "atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_exchange"

INTRINSICS: dict[str, Intrinsic] = {
    **{name: Intrinsic(1, _float) for name in _UNARY_FLOAT.split()},
    **{name: Intrinsic(1, _float_only) for name in _FAST},
    **{name: Intrinsic(2, _float) for name in _BINARY_FLOAT},
    **{
        f"ieee_{name}_{mode}": Intrinsic(arity, _float_only)
        for name, arity in _ROUNDED.items()
        for mode in ("rn", "rz", "ru", "rd")
    },
    "fma": Intrinsic(3, _float),
    "ldexp": Intrinsic(2, _ldexp),
    "abs": Intrinsic(1, _same),
    **{name: Intrinsic(1, _float_test) for name in ("isnan", "isinf", "isfinite")},
    **{name: Intrinsic(1, _count) for name in ("popcount", "clz", "ffs")},
    "dp4a": Intrinsic(3, _returns("int32")),
    **{name: Intrinsic(3, _first, Effect.WARP) for name in _SHUFFLES},
    **{name: Intrinsic(1, _first, Effect.WARP) for name in _WARP_REDUCTIONS},
    "activemask": Intrinsic(0, _returns("uint32"), Effect.WARP),
    **{
        name: Intrinsic(1, _returns(dtype), effect)
        for dtype, effect, names in (
            ("int32", Effect.WARP, "any_sync all_sync"),
            ("uint32", Effect.WARP, "ballot_sync match_any_sync match_all_sync"),
            ("int32", Effect.BLOCK, "syncthreads_count syncthreads_and syncthreads_or"),
        )
        for name in names.split()
    },
    **{name: Intrinsic(3, _element, Effect.ATOMIC) for name in _ATOMICS.split()},
    "atomic_load": Intrinsic(2, _element, Effect.ATOMIC),
    "atomic_store": Intrinsic(3, _element, Effect.ATOMIC),
    "rng_init": Intrinsic(3, _returns("int32"), Effect.STATE),
    "rng_rand": Intrinsic(0, _returns("uint32"), Effect.STATE),
    "rng_rand_float": Intrinsic(0, _returns("float32"), Effect.STATE),
    "rng_rand_normal": Intrinsic(0, _returns("float32"), Effect.STATE),
    "printf": Intrinsic(None, _returns("int32"), Effect.OUTPUT),
    **{
        name: Intrinsic(None, _returns(dtype), effect)
        for name, (dtype, effect) in GPU_INTRINSICS.items()
    },
}


def effect_of(function: str) -> Effect:
    """Return the effects of calling `function`; extern functions go by their addresses."""
    if function.startswith("extern:"):
        return Effect.READS | Effect.WRITES
    if function.startswith("device:"):
        from tile_core.ir.device_calls import device_effect  # a kernel from the cache has none

        return device_effect(function)
    return INTRINSICS[function].effect
