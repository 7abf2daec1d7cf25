"""`install`: programs that import TileLang and use a GPU run unedited, wherever that is."""

from __future__ import annotations

import importlib
import importlib.abc
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from tile_api.tilelang.devices.patches import PatchedPackage, Patches
from tile_api.tilelang.machines import USUAL, runs_on_host
from tile_api.tilelang.paths import MODULES
from tile_core.errors import AliasConflict, MissingFeature
from tile_core.target import Target

NAME = "tilelang"
HERE = "tile_api.tilelang"
_TARGET = "TILE_FORCE_TARGET"
_GPU = "TILE_PRETENDED_GPU"
_PATH = "PYTHONPATH"


@dataclass(slots=True)
class Installation:
    """What `install` changed; as a context manager it is undone at the end.

    Attributes
    ----------
    target
        Where kernels run, whatever target the program names.
    maps_devices
        Whether torch's GPU means the CPU.
    """

    target: Target
    maps_devices: bool
    _before: dict[str, str | None] = field(default_factory=dict, repr=False)
    _finder: Any = field(default=None, repr=False)
    _devices: Any = field(default=None, repr=False)
    _tvm: Any = field(default=None, repr=False)

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *error: object) -> None:
        if installed() is self:
            uninstall()


_OF_PROCESS: list[Installation] = []
"""The one installation that a process can have."""


def installed() -> Installation | None:
    """Return the installation of this process, or None."""
    return _OF_PROCESS[0] if _OF_PROCESS else None


def install(target: object = "cpu", gpu: str = "") -> Installation:
    """Let ``import tilelang`` find this package, and let a GPU be found, for the whole process.

    Where kernels run on the host (the CPU, the interpreter, an emulator), ``device="cuda"``,
    ``.cuda()`` and the queries of ``torch.cuda`` mean the CPU: see `tile_api.tilelang.devices`.
    Torch itself may be imported before or after, or never. Processes that are started from this
    one inherit the target and find the alias, too.

    Parameters
    ----------
    target
        Where kernels run, whatever ``target=`` a program names; any spelling of a target.
        ``"auto"`` is the GPU if there is one, else the CPU.
    gpu
        Which GPU programs are told of where none is: such as ``"sm_80"``, or
        ``"sm_90,multiprocessors=100,memory=40"``. "" leaves it to ``TILE_PRETENDED_GPU``.

    Returns
    -------
    Installation
        Undone by `uninstall`, or at the end of a ``with``.

    Raises
    ------
    AliasConflict
        If TileLang itself has been imported, or another target is installed already.
    TileError
        If there is no such target, or no backend for it, or `gpu` names none.
    """
    from tile_api.settings import Settings
    from tile_core.plugins.host import default_host

    exact = default_host().resolve(target)[1]
    Settings.from_environment({**os.environ, **({_GPU: gpu} if gpu else {})})
    current = installed()
    if current is not None:
        if current.target == exact:
            return current
        raise AliasConflict(
            f"programs are run for {current.target} already, and {exact} was asked for",
            hint="call tile_api.tilelang.uninstall() first",
        )
    _refuse_the_other()
    made = Installation(
        exact, runs_on_host(exact), {n: os.environ.get(n) for n in (_TARGET, _GPU, _PATH)}
    )
    _tell_children(exact, gpu)
    made._finder = _Finder()
    sys.meta_path.insert(0, made._finder)
    _register()
    made._tvm = PatchedPackage("tvm", _patch_tvm)
    if made.maps_devices:
        from tile_api.tilelang.devices import map_devices

        made._devices = map_devices(exact)
    _OF_PROCESS.append(made)
    return made


def _tell_children(target: object, gpu: str) -> None:
    """Let processes that are started from this one inherit the target, and find the alias."""
    os.environ[_TARGET] = str(target)
    if gpu:
        os.environ[_GPU] = gpu
    os.environ[_PATH] = os.pathsep.join(filter(None, (_for_children(), os.environ.get(_PATH))))
    sys.path.append(_for_children())  # multiprocessing hands on this one


def uninstall() -> None:
    """Undo `install`; without an installation, do nothing."""
    if not _OF_PROCESS:
        return
    made = _OF_PROCESS.pop()
    if made._devices is not None:
        made._devices.undo()
    if made._tvm is not None:
        made._tvm.undo()
    sys.meta_path.remove(made._finder)
    if _for_children() in sys.path:
        sys.path.remove(_for_children())
    for name in [n for n in sys.modules if n == NAME or n.startswith(f"{NAME}.")]:
        del sys.modules[name]
    for name, value in made._before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def require_machine(made: Installation, option: str) -> None:
    """Raise before torch does if programs are to run on a GPU, and there is none.

    The user says with `option` where to run.
    """
    from tile_core.plugins.host import default_host

    if not made.maps_devices and default_host().default_target().kind != made.target.kind:
        emulated = f"{made.target.kind}:{made.target.arch or USUAL[made.target.kind]}@sim"
        raise MissingFeature(
            f"this machine has no GPU for {made.target}",
            hint="run the program on this CPU, or in the emulator: "
            f"{option} cpu, {option} {emulated}",
        )


def install_inherited() -> None:
    """Install what the process that started this one had; for ``import tilelang`` in children."""
    sys.modules.pop(NAME, None)
    importlib.import_module(HERE)
    install(os.environ.get(_TARGET) or "auto")


def _for_children() -> str:
    """Return the folder in which other processes find the alias."""
    return str(Path(__file__).parent / "on_path")


def _refuse_the_other() -> None:
    """Raise if the name is taken by another package."""
    there = sys.modules.get(NAME)
    if there is not None and there is not sys.modules[HERE]:
        raise AliasConflict(
            f"{NAME} is imported already, from {getattr(there, '__file__', 'elsewhere')}",
            hint="call tile_api.tilelang.install() before anything imports tilelang",
        )


def _patch_tvm(tvm: Any, patches: Patches) -> None:
    """Let the functions of TVM take expressions of kernels."""
    from tile_api.tilelang.tvm_names import patch_tvm

    patch_tvm(tvm, patches)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds no module below the alias but those that are registered."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith(f"{NAME}."):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def _register() -> None:
    """Give each module its second name.

    They are found before any is imported: importing a module also makes it an attribute of the
    package it is in, and ``tilelang.jit`` is a function there.
    """
    sys.modules[NAME] = sys.modules[HERE]
    for path in filter(None, MODULES):
        sys.modules[f"{NAME}.{path}"] = sys.modules[f"{HERE}.{path}"]
