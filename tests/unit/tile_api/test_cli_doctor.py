"""``tile doctor`` as a user types it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import numpy as np

from tile_api.cli import doctor, main
from tile_core.plugins.host import PluginHost, installed_plugins
from tile_core.target import parse_target_spec

EDGES = (17, 30, 52, 76)


def rows(text: str) -> dict[str, list[str]]:
    """Return what the columns say of each target: compiles, with, runs, emulated."""
    table = text.partition("\ntarget ")[2].partition("\n\n")[0].splitlines()[1:]
    cuts = [slice(a, b) for a, b in zip(EDGES, (*EDGES[1:], None), strict=True)]
    return {line.split()[0]: [line[cut].strip() for cut in cuts] for line in table}


def test_what_runs_here(capsys):
    assert main(["doctor", "cpu", "interpret", "cuda:sm_80@sim", "hip:gfx942@sim"]) == 0
    out = capsys.readouterr().out
    assert "tile-core          0.1.0" in out
    found = rows(out)
    assert set(found) == {"cpu", "interpret", "cuda:sm_80@sim", "hip:gfx942@sim"}
    for compiles, _, runs, emulated in found.values():
        assert compiles.startswith("yes, ")
        assert runs == "yes"
        assert emulated == "-"  # it was not asked for
    assert found["cpu"][1].startswith("TVM ")


def test_who_stands_in_for_a_machine_that_is_not_here():
    found = doctor.examined("hip:gfx942")
    assert found.emulated == "yes, @isa and @sim"
    assert found.compiles.startswith("yes")
    assert found.tool != "-"


def test_what_does_not_work_comes_with_the_way_out(capsys):
    assert main(["doctor", "cpu", "cuda:sm_99", "hip:gfx1"]) == 1
    out = capsys.readouterr().out
    assert rows(out)["cuda:sm_99"] == ["no", "-", "no", "-"]
    assert "\ncuda:sm_99: no NVIDIA architecture is called 'sm_99'\n  did you mean" in out
    assert "\nhip:gfx1: no AMD architecture that is known here is called 'gfx1'\n  use" in out


def test_plugins_that_are_disabled_and_not_installed_are_told(monkeypatch):
    host = PluginHost(["toy", "nosuch"])
    monkeypatch.setattr("tile_core.plugins.host.default_host", lambda: host)
    told = [line for line in doctor._settings() if "which is not installed" in line]
    assert told == [
        "TILE_DISABLE_PLUGINS names 'nosuch', which is not installed: "
        "cpu, cuda, hip, interpret, sim, toy are\n"
    ]


def test_packages_that_are_missing_come_with_the_way_to_get_them(monkeypatch):
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", version)
    assert doctor._package("tile-sim", doctor.PACKAGES["tile-sim"]) == (
        "tile-sim           -               runs code for GPUs on this CPU: "
        "pip install 'tile-api[sim]'\n"
    )


def test_settings_that_are_set(monkeypatch):
    for name, value in (
        ("TILE_VERIFY", "1"),
        ("TILE_SIM_ASYNC", "soon"),
        ("TL_CUTLASS_PATH", "/cutlass"),
    ):
        monkeypatch.setenv(name, value)
    told = [*doctor._settings()]
    assert "TILE_VERIFY=1\n" in told
    assert "TILE_SIM_ASYNC=soon  means nothing: set it to late, early or random\n" in told
    assert "TL_CUTLASS_PATH=/cutlass  changes nothing: nothing of it is used\n" in told


def test_a_wrong_result_is_told():
    class Wrong:
        def __call__(self, a: np.ndarray, b: np.ndarray) -> None:
            b[:] = a

    told = doctor._result(Wrong(), parse_target_spec("cpu"))
    assert told == "yes, with a wrong result"
    assert not doctor.Finding("cpu", "yes, 1.00 s", told).is_well


def test_reasons_are_told_once(capsys):
    assert main(["doctor", "tpu", "tpu:1"]) == 1
    out = capsys.readouterr().out
    assert out.count("no backend serves target 'tpu") == 1
    assert "\ntpu, tpu:1: no backend serves target 'tpu'" in out


def test_who_is_missing_is_named_where_nothing_emulates(monkeypatch):
    host = installed_plugins()
    monkeypatch.setattr(type(host), "executors", lambda self: {})
    monkeypatch.setattr("tile_core.plugins.host.default_host", lambda: host)
    found = doctor.examined("hip:gfx942")
    assert found.compiles.startswith("yes")
    assert found.emulated == "no"
    assert "@sim" in found.errors[0].message
    assert found.errors[0].hint
