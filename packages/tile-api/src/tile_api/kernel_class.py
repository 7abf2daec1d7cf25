"""The class of kernels as TileLang's `JITKernel`: called with a function, it compiles that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tile_api.frontend.source import calling_span
from tile_core.errors import FrontendTypeError


class CompilingClass(type):
    """The type of `tile_api.kernel.CompiledKernel`.

    ``JITKernel(func, out_idx=[-1], target="cuda")`` is what `tile_api.compile` returns for these
    arguments.
    """

    def __call__(cls, *args: Any, **options: Any) -> Any:
        """Compile a function, or make a kernel of what the driver built."""
        if args and hasattr(args[0], "executable"):
            return super().__call__(*args, **options)
        if "built" in options:
            return super().__call__(*args, **options)
        return _compiled(*args, **options)


def _compiled(
    func: Any = None,
    out_idx: int | Sequence[int] | None = None,
    execution_backend: str | None = None,
    target: object = None,
    target_host: object = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, object] | None = None,
    from_database: bool = False,
    compile_flags: str | Sequence[str] | None = None,
    backend_context: object = None,
) -> Any:
    from tile_api.compiling import compile

    if from_database or func is None:
        raise FrontendTypeError(
            "JITKernel needs a function to compile",
            span=calling_span(),
            hint="pass a @T.prim_func; kernels that were saved are loaded by tile.load",
        )
    wishes = (out_idx, execution_backend, target, target_host, verbose, pass_configs)
    return compile(func, *wishes, compile_flags)


__all__ = ["CompilingClass"]
