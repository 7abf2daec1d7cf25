"""`tilelang.JITKernel`: the class of compiled kernels, which compiles when it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tile_api.compiling import compile
from tile_api.kernel import CompiledKernel


class _Kernels(type):
    """Compiles where a class would make an object, and knows all compiled kernels for its own."""

    def __call__(
        cls,
        func: Any = None,
        out_idx: int | Sequence[int] | None = None,
        execution_backend: str | None = "tvm_ffi",
        target: object = "auto",
        target_host: object = None,
        verbose: bool = False,
        pass_configs: Mapping[Any, object] | None = None,
        from_database: bool = False,
        compile_flags: str | Sequence[str] | None = None,
        backend_context: object = None,
    ) -> CompiledKernel:
        """Compile a function as `tile_api.compile` does.

        Parameters
        ----------
        from_database, backend_context
            Accepted for compatibility: kernels are kept, and found again, by themselves.
        """
        return compile(
            func,
            out_idx,
            execution_backend,
            target,
            target_host,
            verbose,
            pass_configs,
            compile_flags,
        )

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, CompiledKernel)


class JITKernel(CompiledKernel, metaclass=_Kernels):
    """A compiled kernel: ``JITKernel(func, target="cuda")`` compiles one."""
