"""The driver of one maker's GPUs; where there is none, the error names the emulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tile_core.errors import TileError


class GpuDriver:
    """Opens a driver of `tile_launch`.

    `find` returns the library of the driver, or raises: most machines have none, and then need no
    `module` for one. `emulated` is the target to name where no kernel can run.
    """

    def __init__(self, find: Callable[[], object], module: str, emulated: str) -> None:
        self._find, self._module, self._emulated = find, module, emulated
        self._opened: Any = None

    def open(self, path: str | None = None) -> Any:
        """Return the driver of this machine; `MissingFeature` if there is none, or no device."""
        with self.told():
            return import_module(self._module).open_driver(path)

    def installed(self) -> Any:
        """Return the driver of this machine, opened once; as `open` otherwise."""
        if self._opened is None:
            with self.told():
                self._find()
                self._opened = import_module(self._module).installed_driver()
        return self._opened

    @contextmanager
    def told(self) -> Iterator[None]:
        """Let errors of the block say that there is an emulator."""
        try:
            yield
        except TileError as error:
            error.hint = f"run the kernel in the emulator: target='{self._emulated}'"
            raise
