"""Hooks that change generated source: none is called where no such source is generated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_api.tilelang.machines import machine
from tile_core.errors import UnsupportedName

Hook = Callable[..., Any]


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


register_cuda_postproc = _registering("cuda", "register_cuda_postproc")
register_hip_postproc = _registering("hip", "register_hip_postproc")
register_c_postproc = _registering("c", "register_c_postproc")
register_cuda_postproc_callback = register_cuda_postproc
register_hip_postproc_callback = register_hip_postproc
register_c_postproc_callback = register_c_postproc
