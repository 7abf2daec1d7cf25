"""`tilelang.JITKernel`, `lower`, `transform`, `engine.callback`: compiling as TileLang has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_api import lowering
from tile_api.compiling import compile
from tile_api.kernel import CompiledKernel
from tile_api.lowered import LoweredKernel
from tile_api.tilelang.machines import machine, source_target
from tile_core.errors import FrontendError, ScopeError, UnsupportedName

EagerJITBuildError, JITNoBuilderError = FrontendError, ScopeError


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
        options = (out_idx, execution_backend, target, target_host, verbose, pass_configs)
        return compile(func, *options, compile_flags)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, CompiledKernel)


class JITKernel(CompiledKernel, metaclass=_Kernels):
    """A compiled kernel: ``JITKernel(func, target="cuda")`` compiles one."""


def lower(
    func_or_mod: Any,
    target: object = "auto",
    target_host: object = None,
    runtime_only: bool = False,
    enable_host_codegen: bool = False,
    enable_device_compile: bool = False,
    **options: Any,
) -> LoweredKernel:
    """Return a kernel as source; as `tile_api.lower`, but a GPU without name is the usual one.

    Parameters
    ----------
    func_or_mod
        The traced function.
    target
        For which machine. Of a GPU without an architecture, where there is none, the one that
        programs can expect: see `tile_api.tilelang.machines.USUAL`.
    target_host, runtime_only, enable_host_codegen, enable_device_compile
        Accepted for compatibility: nothing of the source depends on them.
    options
        As for `tile_api.lower`.
    """
    return lowering.lower(func_or_mod, source_target(target), **options)


def simplify_prim_func(func: Any) -> Any:
    """Return a function as it is, or one that returns functions: kernels are always simplified."""
    return func


def apply_simplify(stmt: Any, inline_let: bool = False) -> Any:
    """Return a program as it is: kernels are always simplified."""
    return stmt


def _registering(kind: str, name: str) -> Callable[[Any], Any]:
    def register(func: Any = None, override: bool = True) -> Any:
        if func is None or isinstance(func, bool):
            return register
        if machine().target.kind == kind:
            raise UnsupportedName(
                f"tilelang.{name} changes the source of kernels, which are kept by their programs",
                hint="read it with kernel.get_kernel_source(); pass compile_flags=, or call your "
                "own code with T.import_source and T.call_extern",
            )
        return func

    register.__name__ = name
    register.__doc__ = f"""Accept a function that changes the source of kernels for {kind}.

    It is not called, as kernels run elsewhere and no such source is generated.

    Raises
    ------
    UnsupportedName
        If kernels are compiled for {kind}.
    """
    return register


register_cuda_postproc = register_cuda_postproc_callback = _registering(
    "cuda", "register_cuda_postproc"
)
register_hip_postproc = register_hip_postproc_callback = _registering(
    "hip", "register_hip_postproc"
)
register_c_postproc = register_c_postproc_callback = _registering("c", "register_c_postproc")
