"""Kernels out of bundles: call them as the kernels they were saved from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_launch.arguments import Signature
from tile_launch.checked_calls import CheckedCalls
from tile_launch.errors import ArgumentCountError
from tile_launch.keyword_arguments import in_order
from tile_launch.manifest import Manifest
from tile_launch.manifest_json import text_of_manifest
from tile_launch.native.library import installed_library

FILLED_IN = ("rank", "ranks")
"""Names of the last parameters of kernels across ranks: callers do not pass them."""


class LoadedKernel:
    """A kernel ready to run: ``kernel(*args)`` takes and returns what the saved one does.

    Only the first of the calls that `tile_launch.checked_calls.CheckedCalls` takes for alike is
    checked; others like it are made in C, where that could be compiled.
    """

    def __init__(
        self,
        manifest: Manifest,
        executable: Callable[..., None],
        code: bytes,
        load_again: Callable[[str, bytes], LoadedKernel],
    ) -> None:
        self.manifest, self._code, self._load_again = manifest, code, load_again
        self.run_unchecked = executable
        positions = range(len(manifest.parameters))
        inputs = tuple(p for p in positions if p not in manifest.outputs)
        self._inputs, self._device = inputs, manifest.machine.family
        checks, device = Signature(manifest, inputs), self._device
        self._calls = CheckedCalls(checks, manifest, executable, device, installed_library)
        if _is_across_ranks(manifest):
            self._inputs = inputs[: -len(FILLED_IN)]
            from tile_launch.rank_calls import LoadedRankCalls  # few kernels do

            self._calls = LoadedRankCalls(checks, manifest, executable, device, installed_library)
            self._calls.code = code

    @property
    def name(self) -> str:
        """What the kernel is called."""
        return self.manifest.kernel

    @property
    def target(self) -> str:
        """What the code was compiled for, such as ``"cuda:sm_80"``."""
        return self.manifest.machine.target

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Check the arguments, allocate the outputs, run, and return the outputs.

        Arguments may come by name, too, which takes longer.

        Raises
        ------
        LaunchError
            If an argument is not what the kernel was compiled for, a grid is empty, or an
            assumption about sizes does not hold.
        DeviceAssertError
            If an assertion inside the kernel fails.
        """
        if named:
            names = [self.manifest.parameters[p].name for p in self._inputs]
            args = in_order(self.name, names, args, named, ArgumentCountError)
        found = self._calls.quick(*args)
        return self._calls(*args) if found is NotImplemented else found

    def run(self, *args: Any) -> None:
        """Check and run on all parameters in order: outputs are passed, and not returned.

        Raises
        ------
        LaunchError, DeviceAssertError
            As calls do.
        """
        positions = tuple(range(len(self.manifest.parameters)))
        checked = Signature(self.manifest, positions).check(args, self._device)
        self.run_unchecked(*checked.passed)

    def __copy__(self) -> LoadedKernel:
        """Return the kernel itself: it does not change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedKernel:
        """Return the kernel itself: it does not change."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the kernel as it travels to other processes, with its machine code."""
        return self._load_again, (text_of_manifest(self.manifest), self._code)

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.manifest.parameters)
        return f"<kernel {self.name}({names}) for {self.target}>"


def _is_across_ranks(manifest: Manifest) -> bool:
    """Whether a kernel runs on every rank of a group."""
    return tuple(p.name for p in manifest.parameters[-len(FILLED_IN) :]) == FILLED_IN
