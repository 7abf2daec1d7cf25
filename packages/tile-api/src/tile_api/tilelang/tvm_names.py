"""Functions and classes of TVM that TileLang programs call with expressions of their kernels.

TileLang's kernels are TVM's programs, and helpers that are written beside them import ``tvm``. Here
TVM is the backend of the CPU, and knows nothing of the expressions of kernels: while the alias is
installed its functions take those, too, and do what the language's functions of the same name do.
What gets nothing of a kernel, outside of one, is TVM's as ever.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

from tile_api.frontend.builder import active
from tile_api.frontend.values import BufferValue, VarHandle
from tile_api.tilelang.devices.patches import Patches
from tile_api.tilelang.unsupported import Unsupported
from tile_core.errors import TileError
from tile_core.ir.expr import Expr


def patch_tvm(tvm: Any, patches: Patches) -> None:
    """Replace what programs call in TVM's module of programs."""
    import tile_api.language as T
    from tile_api.language.nodes import NODES
    from tile_core.plugins.host import default_host

    for backend in default_host().backends().values():
        if backend.compiler:
            importlib.import_module(backend.compiler)  # it goes on with what there was
    tirx = importlib.import_module("tvm.tirx")
    for name, node in NODES.items():
        real = getattr(tirx, name, None)
        if isinstance(real, type):
            patches.set(tirx, name, _class(name, node, real))
        elif real is None:
            patches.set(tirx, name, node)
    for name in [name for name in vars(tirx) if name in T.__all__ and name not in NODES]:
        ours, real = getattr(T, name), getattr(tirx, name)
        if inspect.isfunction(ours) and inspect.isfunction(real):
            patches.set(tirx, name, _function(ours, real))
    patches.set(tirx, "const", _function(_const, tirx.const))
    patches.set(tirx, "PrimExpr", _class("PrimExpr", Expr, importlib.import_module("tvm.ir").Expr))
    patches.set(tirx, "stmt_functor", Unsupported("tvm.tirx.stmt_functor", "passes"))
    patches.set(tvm, "TVMError", TileError)
    patches.set(tvm, "testing", importlib.import_module("tile_api.tilelang.compat.testing"))


def _const(value: Any, dtype: Any = None, span: Any = None) -> Any:
    """Return a number of an element type; by default int32, float32 or bool."""
    from tile_api.frontend.dtypes import dtype as language_dtype

    return language_dtype(type(value) if dtype is None else dtype)(value)


def _concerns_kernels(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Tell whether a call belongs to a kernel: it is traced, or an argument is of one."""
    from tile_api.frontend.dtypes import dtype

    if active() is not None:
        return True
    kinds = (Expr, BufferValue, VarHandle, dtype)
    return any(isinstance(value, kinds) for value in (*args, *keywords.values()))


def _function(ours: Any, real: Any) -> Any:
    """Return a function that is the language's in kernels, and TVM's elsewhere."""

    @functools.wraps(real)
    def chosen(*args: Any, **keywords: Any) -> Any:
        if _concerns_kernels(args, keywords):
            keywords.pop("span", None)
            return ours(*args, **keywords)
        return real(*args, **keywords)

    return chosen


def _class(name: str, ours: Any, real: Any) -> Any:
    """Return a class that makes and knows the language's expressions, and TVM's."""

    class Meta(type):
        def __call__(cls, *args: Any, **keywords: Any) -> Any:
            return (ours if _concerns_kernels(args, keywords) else real)(*args, **keywords)

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, (ours, real))

        def __getattr__(cls, member: str) -> Any:
            return getattr(real, member)

        def __or__(cls, other: object) -> Any:
            return Any  # it stands in an annotation

        __ror__ = __or__

    return Meta(name, (), {"__module__": real.__module__, "__doc__": real.__doc__})
