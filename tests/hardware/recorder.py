"""A plugin of pytest: launches of tests for emulated GPUs become cases for real ones.

Tests run as ever, except that the reference interpreter takes the place of the emulator: what it
computes is what hardware must compute, and the test itself says whether that is right. Only the
launches of tests that pass are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hardware.packing import Packer
from hardware.recorded import Launched, Tolerance, noted_tolerances, recording_executable
from tile_core import driver
from tile_core.driver import Built, Lowered
from tile_core.plugins.host import PluginHost

OTHERS = re.compile(r"hip|gfx|sm_\d+a?|toy|reference|random:|reverse|isa|interpret|\bcpu\b")
"""What in the name of a test says for which machine, or in which order of threads, it runs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pack", help="the folder to write cases to")
    parser.addoption("--pack-arch", action="append", default=[], help="keep code written for it")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--pack")
    if folder:
        archs = tuple(config.getoption("--pack-arch"))
        config.pluginmanager.register(Recorder(Path(folder), archs), "hardware-recorder")


class Recorder:
    """Records what passes.

    Parameters
    ----------
    folder
        Of the pack.
    archs
        Code for which architectures is kept.
    """

    def __init__(self, folder: Path, archs: tuple[str, ...]) -> None:
        self.archs, self.packer = archs, Packer(folder)
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
        return not said - {*self.archs}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Run a test with the interpreter as its GPU; keep its launches if it passes."""
        self._launched = []
        with pytest.MonkeyPatch.context() as patches, noted_tolerances(patches) as noted:
            patches.setattr(driver, "complete", self._complete)
            patches.setattr("tile_cuda.machine_code.compile_source", _compiles_only)
            patches.setattr("tile_cuda.stages.compile_source", _compiles_only)
            patches.setenv("TILE_DISABLE_CACHE", "1")
            yield
        if self._launched:
            self._keep(item.nodeid, noted)

    def _keep(self, name: str, noted: list[Tolerance]) -> None:
        """Write the launches of a test, each once."""
        for number, launched in enumerate(self._launched):
            told = name if len(self._launched) == 1 else f"{name} #{number}"
            self.packer.add(told.removeprefix("tests/"), launched, noted)

    def _complete(self, lowered: Lowered, host: PluginHost) -> Built:
        """Take the place of `tile_core.driver.complete`."""
        target = lowered.target
        if target.kind != "cuda" or target.arch not in self.archs:
            pytest.skip(f"{target} is not recorded")
        parts = {f.name: getattr(lowered, f.name) for f in fields(lowered)}
        executable = recording_executable(lowered, self._launched.append)
        return Built(**parts, artifact=None, executable=executable)


def _compiles_only(*args: Any, **kwargs: Any) -> Any:
    pytest.skip("compiles and runs nothing")
