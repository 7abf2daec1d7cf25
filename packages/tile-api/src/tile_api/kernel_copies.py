"""Copies of compiled kernels, in this process and in others."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from tile_api.disk_cache.entry_codec import RevivedBuild
    from tile_api.keys import CompileKey
    from tile_core.driver import Built


class KernelCopies:
    """How compiled kernels are copied and pickled; see `tile_api.kernel.CompiledKernel`."""

    if TYPE_CHECKING:
        _built: Built | RevivedBuild
        _key: Callable[[], CompileKey] | None
        prim_func: object

    def __copy__(self) -> Self:
        """Return a kernel that runs the same code, and may be told another tuning result."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a kernel that runs the same code; attributes of the user are copied."""
        made = memo[id(self)] = self.__copy__()
        vars(made).update(copy.deepcopy(self._own_attributes(), memo))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the kernel as it travels to other processes: see `tile_api.pickled`."""
        from tile_api.pickled import packed, unpacked

        key = None if self._key is None else self._key()
        return unpacked, (packed(self._built, key, self.prim_func), self._own_attributes())

    def _own_attributes(self) -> dict[str, Any]:
        """Return what belongs to this object and not to the code that it runs."""
        code = ("_built", "_events", "_key", "_kernel", "_device", "_launch", "prim_func")
        return {name: value for name, value in vars(self).items() if name not in code}
