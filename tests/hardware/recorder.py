"""A plugin of pytest: launches of tests for emulated GPUs become cases for real ones.

Tests run as ever, except that the reference interpreter takes the place of the emulator: what it
computes is what hardware must compute, and the test itself says whether that is right. The
launches of tests that pass are kept, and of those that fail after all comparisons have held: they
ask the emulator for counters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hardware.packing import MACHINE, Packer
from hardware.recorded import Compared, Launched, noted_comparisons, recording_executable
from tile_core import driver
from tile_core.compilation.results import Built, Lowered

OTHERS = re.compile(r"hip|gfx|sm_\d+a?|toy|reference|random:|reverse|isa|interpret|\bcpu\b")
"""What in the name of a test says for which machine, or in which order of threads, it runs."""

ANY_ORDER = re.compile(r"stream_compaction|moe_routing")
"""What computes sets, in the order of atomic operations: the interpreter's is one of many."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pack", help="the folder to write cases to")
    parser.addoption("--pack-machine", default=MACHINE, help="what code is translated for")
    parser.addoption("--pack-arch", action="append", default=[], help="keep code written for it")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--pack")
    if folder:
        archs = tuple(config.getoption("--pack-arch"))
        packer = Packer(Path(folder), config.getoption("--pack-machine"))
        config.pluginmanager.register(Recorder(packer, archs), "hardware-recorder")


class Recorder:
    """Records what passes.

    Parameters
    ----------
    folder
        Of the pack.
    archs
        Code for which architectures is kept.
    """

    def __init__(self, packer: Packer, archs: tuple[str, ...]) -> None:
        self.archs, self.packer = archs, packer
        self._launched: list[Launched] = []

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out tests of other machines, and those that only change the order of threads."""
        wanted = [item for item in items if self._is_wanted(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
        items[:] = wanted

    def _is_wanted(self, item: pytest.Item) -> bool:
        parameters = item.name.partition("[")[2]
        said = set(OTHERS.findall(parameters))
        return not said - {*self.archs} and not ANY_ORDER.search(parameters)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Run a test with the interpreter as its GPU; keep the launches if they are right."""
        self._launched = []
        with pytest.MonkeyPatch.context() as patches, noted_comparisons(patches) as noted:
            patches.setattr(driver, "complete", self._complete)
            patches.setattr("tile_cuda.machine_code.compile_source", _compiles_only)
            patches.setenv("TILE_DISABLE_CACHE", "1")
            try:
                yield
            except pytest.fail.Exception as failure:
                if "DID NOT RAISE" not in str(failure):
                    raise
                pytest.skip("expects the emulator to find a mistake")
            except Exception as error:
                if noted.has_failed or not noted.tolerances:
                    raise
                self._keep(item.nodeid, noted)
                told = f"{type(error).__name__}: {error}".partition("\n")[0]
                pytest.skip(f"recorded, and asks the emulator for something else ({told})")
        self._keep(item.nodeid, noted)

    def _keep(self, name: str, noted: Compared) -> None:
        """Write the launches of a test, each once."""
        for number, launched in enumerate(self._launched):
            told = name if len(self._launched) == 1 else f"{name} #{number}"
            self.packer.add(told.removeprefix("tests/"), launched, noted.tolerances)

    def _complete(self, lowered: Lowered) -> Built:
        """Take the place of `tile_core.driver.complete`."""
        target = lowered.target
        if target.kind != "cuda" or target.arch not in self.archs:
            pytest.skip(f"{target} is not recorded")
        parts = {f.name: getattr(lowered, f.name) for f in fields(lowered)}
        executable = recording_executable(lowered, self._launched.append)
        return Built(**parts, artifact=None, executable=executable)


def _compiles_only(*args: Any, **kwargs: Any) -> Any:
    pytest.skip("compiles and runs nothing")
