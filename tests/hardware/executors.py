"""What runs cases: a GPU, a driver that only checks what it is told, or the emulator."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from hardware.cases import Argument, Case, Pack
from hardware.comparing import Difference
from hardware.memory import Image
from hardware.problems import prepared

Arrays = dict[str, np.ndarray]
Launch = Callable[[int], "list[np.ndarray | None]"]
Solve = Callable[[int], "list[Difference]"]

EXECUTORS = {
    "gpu": "hardware.executors:Gpu",
    "driver": "hardware.executors:Driver",
    "emulator": "hardware.executors:Emulator",
}
"""By name: module and class."""


class NotHere(Exception):
    """An executor cannot try a case."""


class Executor(Protocol):
    """Runs cases in a process of its own."""

    computes: bool
    """Whether tensors hold results afterwards."""

    def describe(self) -> str:
        """Return what this is."""

    def prepare(self, pack: Pack, case: Case, arrays: Arrays) -> Launch:
        """Return what launches a case on fresh memory, waits, and returns the tensors' bytes.

        It is told how often it was called before.
        """

    def prepare_problem(self, pack: Pack, case: Case) -> Solve:
        """Return what makes a problem of a seed, launches, and says where results are wrong.

        Raises
        ------
        NotHere
            If that would take too long.
        """

    def is_usable(self) -> bool:
        """Tell whether another case can be run after a failure."""


def open_executor(name: str) -> Executor:
    """Return an executor by its name, or by ``module:class``."""
    module, _, kind = EXECUTORS.get(name, name).partition(":")
    found: Executor = getattr(importlib.import_module(module), kind)()
    return found


class Torch:
    """A device of torch; `tile_launch` loads and launches.

    Parameters
    ----------
    device
        ``"cuda"``, or ``"cpu"`` for tests of this class: bundles then have code for processors.
    """

    computes = True

    def __init__(self, device: str) -> None:
        import torch

        import tile_launch

        self.torch, self.load, self.device = torch, tile_launch.load, device

    def is_usable(self) -> bool:
        """Tell whether the context still works: after a fault it never does."""
        try:
            self._wait()
        except RuntimeError:
            return False
        return True

    def _wait(self) -> None:
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def prepare(self, pack: Pack, case: Case, arrays: Arrays) -> Launch:
        """Load the machine code.

        Every other launch passes the inputs alone, where the kernel has outputs: those are then
        allocated as for users, and from the second such call on C makes it.
        """
        kernel = self.load(pack.bundle(case), self.device)
        outputs = kernel.manifest.outputs

        def launch(number: int) -> list[np.ndarray | None]:
            images = [Image(a, arrays[a.data]) if a.data else None for a in case.arguments]
            stored = [None if i is None else self._put(i.bytes) for i in images]
            passed = [
                argument.value if image is None else self._tensor(image, memory)
                for argument, image, memory in zip(case.arguments, images, stored, strict=True)
            ]
            self._spoil()
            if outputs and number % 2:
                return self._call(kernel, passed, images, stored)
            kernel.run(*passed)
            self._wait()
            return [self._result(*each) for each in zip(images, stored, strict=True)]

        return launch

    def prepare_problem(self, pack: Pack, case: Case) -> Solve:
        """Load the machine code; everything else is done on the device."""
        kernel = self.load(pack.bundle(case), self.device)

        def run(*passed: Any) -> None:
            self._spoil()
            kernel.run(*passed)
            self._wait()

        return prepared(self.torch, self.device, case, run, partial(torch_dtype, self.torch))

    def _call(
        self, kernel: Any, passed: list[Any], images: list[Image | None], stored: list[Any]
    ) -> list[np.ndarray | None]:
        """Call a kernel with its inputs, and return all tensors, those that it made among them."""
        outputs = kernel.manifest.outputs
        inputs = [p for position, p in enumerate(passed) if position not in outputs]
        sizes = [passed[position].nbytes for position in outputs]
        poisons = [self._put(np.full(size, 0xFF, np.uint8)) for size in sizes]
        del poisons  # what the allocator gives out next
        made = kernel(*inputs)
        self._wait()
        found = [self._result(*each) for each in zip(images, stored, strict=True)]
        for position, tensor in zip(outputs, made if len(outputs) > 1 else [made], strict=True):
            found[position] = self._bytes(tensor).cpu().numpy()
        return found

    def _spoil(self) -> None:
        """Leave NaN in the shared memory of the device, where it has any."""

    def _put(self, data: np.ndarray) -> Any:
        """Return bytes on the device; tests on a processor keep their own."""
        return self.torch.from_numpy(data.copy()).to(self.device)

    def _bytes(self, tensor: Any) -> Any:
        """Return the bytes of the elements of a tensor."""
        return tensor.contiguous().flatten().view(self.torch.uint8)

    def _result(self, image: Image | None, memory: Any) -> np.ndarray | None:
        return None if image is None else image.result(memory.cpu().numpy())

    def _tensor(self, image: Image, memory: Any) -> Any:
        """Return the tensor inside of an image on the device."""
        dtype = torch_dtype(self.torch, image.argument.dtype)
        inside = memory[image.start : image.stop].view(dtype)
        return inside.as_strided(image.shape, image.strides)


class Gpu(Torch):
    """The first GPU of this machine."""

    def __init__(self) -> None:
        super().__init__("cuda")
        self.torch.cuda.init()
        half = self.torch.float16
        self.spoiled = self.torch.full((4096, 1024), float("nan"), dtype=half, device="cuda")
        self.product = self.torch.empty((4096, 4096), dtype=half, device="cuda")

    def describe(self) -> str:
        """Return the name of the GPU, and versions."""
        cuda = self.torch.cuda
        major, minor = cuda.get_device_capability()
        return f"{cuda.get_device_name()} ({major}.{minor}), torch {self.torch.__version__}"

    def _spoil(self) -> None:
        """Multiply what is NaN: the tiles of the product stay where the next kernel begins."""
        self.torch.mm(self.spoiled, self.spoiled.T, out=self.product)


class Processor(Torch):
    """This machine's processor, for tests of what runs on GPUs."""

    def __init__(self) -> None:
        super().__init__("cpu")

    def describe(self) -> str:
        """Return what this is."""
        return "a processor"


def torch_dtype(torch: Any, name: str) -> Any:
    """Return the type of torch for elements, or one that holds the same bits.

    Elements of four bits are bytes that hold two.
    """
    if name in ("int4", "uint4") or name.startswith("float4"):
        return torch.uint8
    known = {"tfloat32": "float32", "handle": "int64"}.get(name, name)
    return getattr(torch, known, None) or torch.uint8


class Driver:
    """`tile_launch` in front of a driver that checks what it is told, and runs nothing.

    The driver is compiled here, against NVIDIA's header. What a cubin says of its kernels is
    compared with what the launcher is told.
    """

    computes = False

    def __init__(self) -> None:
        from hardware.strict import build_strict_driver
        from tile_launch.cuda_driver import open_driver

        with TemporaryDirectory() as folder:
            self.driver = open_driver(str(build_strict_driver(Path(folder))))

    def describe(self) -> str:
        """Return what this is."""
        return "a driver that checks what it is told and runs nothing"

    def is_usable(self) -> bool:
        """Return True: there is nothing to break."""
        return True

    def prepare_problem(self, pack: Pack, case: Case) -> Solve:
        """Refuse: there is nothing that could solve it."""
        raise NotHere("large problems need a GPU")

    def prepare(self, pack: Pack, case: Case, arrays: Arrays) -> Launch:
        """Load the machine code, and pass memory of the host off as a GPU's."""
        from hardware.cubins import complaints
        from support.stubs import Foreign
        from tile_launch.bundle import read_bundle
        from tile_launch.kernel import LoadedKernel
        from tile_launch.launcher import callable_of
        from tile_launch.loading import loaded_again
        from tile_launch.streams import allocator, device_of

        (variant,) = read_bundle(pack.bundle(case)).variants
        if not self.driver.runs(variant.manifest.machine.name):
            raise RuntimeError(f"no GPU of this driver runs {variant.target}")
        if found := complaints(variant.manifest, variant.code):
            raise RuntimeError("; ".join(found))
        empty = allocator(self.driver.allocate)
        run = callable_of(
            variant.manifest, variant.code, self.driver, lambda device: 0, device_of, empty
        )
        kernel = LoadedKernel(variant.manifest, run, variant.code, loaded_again)

        def launch(number: int) -> list[np.ndarray | None]:
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

    def prepare_problem(self, pack: Pack, case: Case) -> Solve:
        """Refuse: there is nothing that could solve it."""
        raise NotHere("large problems need a GPU")

    def prepare(self, pack: Pack, case: Case, arrays: Arrays) -> Launch:
        """Compile the kernel."""
        from tile_core.compilation.options import BuildOptions
        from tile_core.driver import build
        from tile_core.dtypes import dtype_of

        kernel, configs, flags = pickle.loads(pack.program(case).read_bytes())
        options = BuildOptions(pass_configs=configs, compile_flags=flags)
        built = build(kernel, f"cuda:{case.lowered_for}@sim", self.host, options)

        def dtype(argument: Argument) -> np.dtype[Any]:
            found = dtype_of(argument.dtype)
            return np.dtype("uint8") if found.packing > 1 else found.numpy()

        def launch(number: int) -> list[np.ndarray | None]:
            images = [Image(a, arrays[a.data]) if a.data else None for a in case.arguments]
            built.executable(*(
                argument.value if image is None else image.array(dtype(argument))
                for argument, image in zip(case.arguments, images, strict=True)
            ))  # fmt: skip
            return [None if image is None else image.result(image.bytes) for image in images]

        return launch
