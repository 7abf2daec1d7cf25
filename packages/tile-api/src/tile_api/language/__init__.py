# ruff: noqa: F403 - each module says with __all__ what belongs into the namespace
"""The `T` namespace: everything that can be written in a kernel.

``import tile_api as tile; import tile_api.language as T``. Element types, GPU instructions and
expression classes come from tables; layouts, which need NumPy, and what few programs say are loaded
on first use.

>>> import numpy as np
>>> import tile_api as tile
>>> import tile_api.language as T
>>> @T.prim_func
... def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
...     with T.Kernel(1, threads=32):
...         for i in T.Parallel(4):
...             B[i] = A[i] * 2
>>> tile.compile(twice, out_idx=[-1], target="cpu")(np.ones(4, "float32"))
array([2., 2., 2., 2.], dtype=float32)
"""

from __future__ import annotations

import importlib
from typing import Any

from tile_api.frontend.dtypes import *
from tile_api.frontend.dtypes import DTYPES, get_tvm_dtype
from tile_api.frontend.function import *
from tile_api.frontend.macro import *
from tile_api.language.allocate import *
from tile_api.language.annotations import *
from tile_api.language.arithmetic import *
from tile_api.language.atomics import *
from tile_api.language.barriers import *
from tile_api.language.clusters import *
from tile_api.language.compat import *
from tile_api.language.conversions import *
from tile_api.language.copies import *
from tile_api.language.elementary import *
from tile_api.language.gpu_only import GPU_NAMES
from tile_api.language.launch import *
from tile_api.language.loops import *
from tile_api.language.matmul import *
from tile_api.language.nodes import NODES
from tile_api.language.reductions import *
from tile_api.language.symbols import *
from tile_api.language.tensor import *
from tile_api.language.thread import *
from tile_api.language.unavailable import UNAVAILABLE
from tile_api.language.vectors import *
from tile_api.language.views import *
from tile_api.language.wide_loads import *

_LATE_MODULES = {
    "allreduce": "CommReducer comm_reducer tvm_thread_allreduce",
    "builder_forms": "Else If Then While axis block init reads sblock where writes",
    "debug": "Assert assume device_assert print",
    "externs": "call_extern call_intrin call_pure_extern evaluate import_source",
    "layouts": (
        "Fragment Layout make_full_bank_swizzled_layout make_fully_replicated_layout_fragment "
        "make_gemm_fragment_8x8 make_gemm_fragment_8x8_transposed "
        "make_half_bank_swizzled_layout make_linear_layout make_mma_swizzle_layout "
        "make_quarter_bank_swizzled_layout make_swizzled_layout make_wgmma_swizzled_layout"
    ),
    "let_bindings": "Let let",
    "persistent": "BaseTileScheduler Persistent PersistentTileScheduler",
    "across_ranks": "Signals Symmetric barrier_ranks rank ranks signal wait_signal",
    "transpose_im2col": "c2d_im2col im2col transpose",
    "reducers": "finalize_reducer reducer_init reducer_update",
    "rng": "rng_init rng_rand rng_rand_float",
    "scans": "cummax cumsum",
    "scaled_matmul": "gemm_blockscaled",
    "sparse_matmul": "gemm_sp",
    "thread_axes": "thread_binding",
    "thread_programs": "device extern flat launch line neg ref tensor_map threads",
    "warp_groups": "WarpSpecialize WarpSpecializeFrame ws",
}
"""What few programs say: modules that are loaded on first use, and the names in them."""
_LAZY = {
    "JITFunc": "tile_api.jitting:JITKernelFactory",
    **{
        name: f"{__name__}.{module}:{name}"
        for module, names in _LATE_MODULES.items()
        for name in names.split()
    },
}
_TABLES: dict[str, Any] = {
    **UNAVAILABLE,
    **GPU_NAMES,
    **NODES,
    **DTYPES,
    "boolean": DTYPES["bool"],
    "void": get_tvm_dtype("handle"),
}
globals().update(_TABLES)
globals().pop("launch")  # the module: the statement of that name is loaded on first use


def __getattr__(name: str) -> Any:
    """Load layouts and the compiler's classes when first asked for."""
    home = _LAZY.get(name)
    if home is None:
        value = None if name.startswith("_") else _operator(name)
        if value is None:
            from tile_api.frontend.python_errors import unknown_name

            instead = None if name.startswith("_") else _said_as(name)
            raise unknown_name("the language", name, __dir__(), "T.", instead)
        return value
    module, _, attribute = home.partition(":")
    value = globals()[name] = getattr(importlib.import_module(module), attribute)
    return value


def _operator(name: str) -> Any:
    """Return what writes an operator that has no function of its own here, if there is one."""
    home = importlib.import_module("tile_api.language.generated_operators")
    return home.derived(name)


def _said_as(name: str) -> str | None:
    """Return how the language says what NumPy, torch or Triton call `name`, if that is known."""
    from tile_api.language.foreign_names import SAID_AS

    return SAID_AS.get(name)


def __dir__() -> list[str]:
    """Return what programs say: no names that are there only to be refused, or to be told apart.

    Those are what TileLang has and this language has not, classes of expressions, and types of
    vectors, which annotations seldom name.
    """
    vectors = {name for name in DTYPES if name.rpartition("x")[2].isdigit()}
    return sorted({*__all__} - UNAVAILABLE.keys() - NODES.keys() - vectors - {"Any"})


_MODULES = (
    *(f"tile_api.frontend.{module}" for module in ("dtypes", "function", "macro")),
    *(
        f"{__name__}.{module}"
        for module in (
            *("allocate", "annotations", "arithmetic", "atomics", "barriers", "clusters"),
            *("compat", "conversions", "copies", "elementary"),
            *("launch", "loops", "matmul", "reductions", "symbols", "tensor"),
            *("thread", "vectors", "views", "wide_loads"),
        )
    ),
)
__all__ = sorted(
    {"Any", *_TABLES, *_LAZY}.union(
        *(importlib.import_module(module).__all__ for module in _MODULES)
    )
)
