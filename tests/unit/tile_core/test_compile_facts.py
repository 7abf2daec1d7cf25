"""What backends and plugins tell of themselves for compile keys."""

from __future__ import annotations

import sys
import types

import pytest

from tile_core.compilation.options import BuildOptions
from tile_core.plugins.hookspecs import hookimpl
from tile_core.plugins.host import PluginHost, installed_plugins
from tile_core.target import Target


@pytest.fixture(scope="module")
def plugins() -> PluginHost:
    return installed_plugins()


class OfRules:
    """A plugin that adds rules, in a package of its own."""

    __module__ = "of_rules.plugin"

    @hookimpl
    def tile_rules(self, target):
        return ()


class OfReports:
    """A plugin that only listens."""

    __module__ = "of_reports.plugin"

    @hookimpl
    def tile_kernel_built(self, report):
        return None


def test_packages_are_those_that_decide(plugins: PluginHost) -> None:
    assert {"tile_core", "tile_cpu"} <= {*plugins.packages(Target("cpu"))}
    emulated = plugins.packages(plugins.resolve("cuda:sm_80@sim")[1])
    assert {"tile_core", "tile_cuda", "tile_sim"} <= {*emulated}
    assert "tile_cpu" not in emulated


def test_plugins_that_add_rules_decide_and_listeners_do_not() -> None:
    host = installed_plugins()
    before = host.packages(Target("cpu"))
    host.add("listener", OfReports())
    assert host.packages(Target("cpu")) == before
    host.add("rules", OfRules())
    assert host.packages(Target("cpu")) == tuple(sorted({*before, "of_rules"}))


def test_a_module_is_a_plugin_too() -> None:
    module = types.ModuleType("some_package.plugin")
    module.tile_passes = hookimpl(lambda target: ())  # type: ignore[attr-defined]
    host = installed_plugins()
    host.add("module", module)
    assert "some_package" in host.packages(Target("cpu"))


TOOLS = {
    "cpu": {"apache-tvm", "c-compiler", "machine", "processors"},
    "cuda:sm_80": {"architecture", "compiler"},
    "hip:gfx942": {"architecture", "compiler"},
    "cuda:sm_80@sim": {"c++-compiler", "dialect"},
    "interpret": set(),
}


@pytest.mark.parametrize("spec", TOOLS)
def test_tools_are_named_with_versions(plugins: PluginHost, spec: str) -> None:
    backend, target = plugins.resolve(spec)
    told = backend.toolchain(target, BuildOptions())
    assert {*told} == TOOLS[spec]
    assert all(isinstance(version, str) and version for version in told.values())
    assert told == backend.toolchain(target, BuildOptions())


def test_a_machine_without_tools_has_versions(
    plugins: PluginHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tile_core.errors import ToolchainError

    def missing(*args: object) -> None:
        raise ToolchainError("there is none")

    for name in ("tile_cuda", "tile_hip"):
        monkeypatch.setattr(f"{name}.compilers.wanted_compiler", missing)
    monkeypatch.setattr("tile_sim.toolchain.find_compiler", missing)
    monkeypatch.setattr("tile_cpu.versions.find_compiler", missing)
    names = {"cuda:sm_80": "compiler", "hip:gfx942": "compiler", "cuda:sm_80@sim": "c++-compiler"}
    for spec, name in (names | {"cpu": "c-compiler"}).items():
        backend, target = plugins.resolve(spec)
        assert backend.toolchain(target, BuildOptions())[name] == "none"


def test_compilers_of_a_wish_are_told(plugins: PluginHost, monkeypatch: pytest.MonkeyPatch) -> None:
    wishes, mine = [], types.SimpleNamespace(identity="mine 1.2")
    monkeypatch.setattr(
        "tile_cuda.compilers.wanted_compiler",
        lambda arch, wish: wishes.append((arch, wish)) or mine,
    )
    backend, target = plugins.resolve("cuda:sm_90a")
    options = BuildOptions((("cuda.compiler", "nvcc"),))
    assert backend.toolchain(target, options)["compiler"] == "mine 1.2"
    assert wishes == [("sm_90a", "nvcc")]


def test_telling_loads_no_tvm() -> None:
    import subprocess

    text = (
        "import sys\n"
        "from tile_core.compilation.options import BuildOptions\n"
        "from tile_core.plugins.host import installed_plugins\n"
        "host = installed_plugins()\n"
        f"for spec in {[*TOOLS]}:\n"
        "    backend, target = host.resolve(spec)\n"
        "    backend.toolchain(target, BuildOptions()), host.packages(target)\n"
        "assert not {'tvm', 'torch'} & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
