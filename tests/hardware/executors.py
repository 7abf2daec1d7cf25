"""What runs cases: a GPU, a driver that only checks what it is told, or the emulator."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from hardware.cases import Argument, Case, Pack
from hardware.memory import Image

Arrays = dict[str, np.ndarray]
Launch = Callable[[], "list[np.ndarray | None]"]

EXECUTORS = {
    "gpu": "hardware.executors:Gpu",
    "driver": "hardware.executors:Driver",
    "emulator": "hardware.executors:Emulator",
}
"""By name: module and class."""


class Executor(Protocol):
    """Runs cases in a process of its own."""

    computes: bool
    """Whether tensors hold results afterwards."""

    def describe(self) -> str:
        """Return what this is."""

    def prepare(self, pack: Pack, case: Case, arrays: Arrays) -> Launch:
        """Return what launches a case on fresh memory, waits, and returns the tensors' bytes."""

    def is_usable(self) -> bool:
        """Tell whether another case can be run after a failure."""


def open_executor(name: str) -> Executor:
    """Return an executor by its name, or by ``module:class``."""
    module, _, kind = EXECUTORS.get(name, name).partition(":")
    found: Executor = getattr(importlib.import_module(module), kind)()
    return found


class Gpu:
    """The first GPU, reached by `tile_runtime`; torch holds the memory."""

    computes = True

    def __init__(self) -> None:
        import torch

        import tile_runtime

        self.torch, self.load = torch, tile_runtime.load
        torch.cuda.init()

    def describe(self) -> str:
        """Return the name of the GPU, and versions."""
        cuda = self.torch.cuda
        major, minor = cuda.get_device_capability()
        return f"{cuda.get_device_name()} ({major}.{minor}), torch {self.torch.__version__}"

    def is_usable(self) -> bool:
        """Tell whether the context still works: after a fault it never does."""
        try:
            self.torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    def prepare(self, pack: Pack, case: Case, arrays: Arrays) -> Launch:
        """Load the machine code."""
        kernel = self.load(pack.bundle(case), "cuda")

        def launch() -> list[np.ndarray | None]:
            images = [Image(a, arrays[a.data]) if a.data else None for a in case.arguments]
            stored = [None if i is None else self.torch.from_numpy(i.bytes).cuda() for i in images]
            passed = [
                self._tensor(image, memory) if image else argument.value
                for argument, image, memory in zip(case.arguments, images, stored, strict=True)
            ]
            kernel.run(*passed)
            self.torch.cuda.synchronize()
            found: list[np.ndarray | None] = []
            for image, memory in zip(images, stored, strict=True):
                found.append(None if image is None else image.result(memory.cpu().numpy()))
            return found

        return launch

    def _tensor(self, image: Image, memory: Any) -> Any:
        """Return the tensor inside of an image on the GPU."""
        dtype = _torch_dtype(self.torch, image.argument.dtype)
        inside = memory[image.start : image.stop].view(dtype)
        return inside.as_strided(image.shape, image.strides)


def _torch_dtype(torch: Any, name: str) -> Any:
    """Return the type of torch, or unsigned integers of the same size, that hold the same bits."""
    known = {"tfloat32": "float32", "handle": "int64"}.get(name, name)
    if "4" in known.replace("64", "") and known.startswith(("int4", "uint4", "float4")):
        return torch.uint8
    return getattr(torch, known, None) or torch.uint8


class Driver:
    """`tile_runtime` in front of a driver that checks what it is told, and runs nothing.

    The driver is compiled here, against NVIDIA's header. What a cubin says of its kernels is
    compared with what the launcher is told.
    """

    computes = False

    def __init__(self) -> None:
        from hardware.strict import build_strict_driver
        from tile_runtime.cuda_driver import open_driver

        with TemporaryDirectory() as folder:
            self.driver = open_driver(str(build_strict_driver(Path(folder))))

    def describe(self) -> str:
        """Return what this is."""
        return "a driver that checks what it is told and runs nothing"

    def is_usable(self) -> bool:
        """Return True: there is nothing to break."""
        return True

    def prepare(self, pack: Pack, case: Case, arrays: Arrays) -> Launch:
        """Load the machine code, and pass memory of the host off as a GPU's."""
        from hardware.cubins import complaints
        from support.stubs import Foreign
        from tile_runtime.bundle import read_bundle
        from tile_runtime.kernel import LoadedKernel
        from tile_runtime.launcher import callable_of
        from tile_runtime.streams import allocator, device_of

        (variant,) = read_bundle(pack.bundle(case)).variants
        if not self.driver.runs(variant.manifest.machine.name):
            raise RuntimeError(f"no GPU of this driver runs {variant.target}")
        if found := complaints(variant.manifest, variant.code):
            raise RuntimeError("; ".join(found))
        empty = allocator(self.driver.allocate)
        run = callable_of(
            variant.manifest, variant.code, self.driver, lambda device: 0, device_of, empty
        )
        kernel = LoadedKernel(variant.manifest, run)

        def launch() -> list[np.ndarray | None]:
            passed: list[Any] = []
            for argument in case.arguments:
                if not argument.data:
                    passed.append(argument.value)
                    continue
                image = Image(argument, arrays[argument.data])
                passed.append(Foreign(image.array(_plain_dtype(argument.dtype)), 2))
            kernel.run(*passed)
            return []

        return launch


def _plain_dtype(name: str) -> np.dtype[Any]:
    """Return a type of NumPy's own that kernels take for `name`."""
    known = {"tfloat32": "float32", "bfloat16": "uint16", "handle": "uint64"}.get(name, name)
    try:
        return np.dtype(known)
    except TypeError:
        return np.dtype("uint8")


class Emulator:
    """The emulator of GPUs, with all of its checks: the kernels are compiled again, for it."""

    computes = True

    def __init__(self) -> None:
        from tile_core.plugins.host import installed_plugins

        self.host = installed_plugins()

    def describe(self) -> str:
        """Return what this is."""
        return "the emulator"

    def is_usable(self) -> bool:
        """Return True: what it finds is reported, not suffered."""
        return True

    def prepare(self, pack: Pack, case: Case, arrays: Arrays) -> Launch:
        """Compile the kernel."""
        from tile_core.driver import BuildOptions, build
        from tile_core.dtypes import dtype_of

        kernel, configs, flags = pickle.loads(pack.program(case).read_bytes())
        options = BuildOptions(pass_configs=configs, compile_flags=flags)
        built = build(kernel, f"cuda:{case.lowered_for}@sim", self.host, options)

        def dtype(argument: Argument) -> np.dtype[Any]:
            found = dtype_of(argument.dtype)
            return np.dtype("uint8") if found.packing > 1 else found.numpy()

        def launch() -> list[np.ndarray | None]:
            images = [Image(a, arrays[a.data]) if a.data else None for a in case.arguments]
            built.executable(*(
                argument.value if image is None else image.array(dtype(argument))
                for argument, image in zip(case.arguments, images, strict=True)
            ))  # fmt: skip
            return [None if image is None else image.result(image.bytes) for image in images]

        return launch
