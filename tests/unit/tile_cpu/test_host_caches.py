"""Facts of caches are those that the system tells; what it does not tell stays the row's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tile_core.target import Target
from tile_cpu import versions
from tile_cpu.host_caches import HostCache, linux_caches, macos_caches, with_caches
from tile_cpu.machine import MACHINES

ROW = MACHINES["alderlake"]


def put(root: Path, cpu: int, siblings: str, *caches: tuple[str, str, str, str, str]) -> None:
    """Write what Linux shows of a processor: of each cache level, type, size, ways and users."""
    topology = root / f"cpu{cpu}" / "topology"
    topology.mkdir(parents=True)
    (topology / "thread_siblings_list").write_text(siblings + "\n")
    names = ("level", "type", "size", "ways_of_associativity", "shared_cpu_list")
    for index, facts in enumerate(caches):
        place = root / f"cpu{cpu}" / "cache" / f"index{index}"
        place.mkdir(parents=True)
        for name, value in zip(names, facts, strict=True):
            (place / name).write_text(value + "\n")


def test_a_core_has_its_share_of_the_second_level_and_reach_of_the_last(tmp_path: Path) -> None:
    """Two threads of a core share what is the core's; four cores share the second level here."""
    put(
        tmp_path,
        0,
        "0-1",
        ("1", "Data", "48K", "12", "0-1"),
        ("1", "Instruction", "32K", "8", "0-1"),
        ("2", "Unified", "4M", "16", "0-7"),
        ("3", "Unified", "36864K", "12", "0-7"),
    )
    found = linux_caches(tmp_path, [0])
    assert found == [
        HostCache(1, 48 << 10, 12),
        HostCache(2, 1 << 20, 16),
        HostCache(3, 36 << 20, 12),
    ]
    wanted = replace(ROW, l1_ways=12, l2_bytes=1 << 20, l2_ways=16, l3_bytes=36 << 20)
    assert with_caches(ROW, found) == wanted


def test_the_smaller_cores_of_a_hybrid_processor_decide(tmp_path: Path) -> None:
    put(tmp_path, 0, "0", ("1", "Data", "48K", "12", "0"), ("2", "Unified", "1280K", "10", "0"))
    put(tmp_path, 5, "5", ("1", "Data", "32K", "8", "5"), ("2", "Unified", "2048K", "16", "4-7"))
    found = with_caches(ROW, linux_caches(tmp_path, range(6)))
    assert (found.l1_bytes, found.l1_ways) == (32 << 10, 8)
    assert (found.l2_bytes, found.l2_ways) == (512 << 10, 16)


@pytest.mark.parametrize("size", ["", "0K", "K", "unknown", "12"])
def test_what_is_hidden_stays_the_row_s(tmp_path: Path, size: str) -> None:
    put(tmp_path, 0, "", ("1", "Data", size, "", ""), ("2", "Unified", "2048K", "0", "?"))
    assert with_caches(ROW, linux_caches(tmp_path, [0])) == replace(ROW, l2_bytes=2 << 20)
    assert linux_caches(tmp_path / "nothing", [0]) == []


def test_macos_tells_the_fast_cores() -> None:
    told = {"l1dcachesize": 128 << 10, "l2cachesize": 16 << 20, "cpusperl2": 4}
    found = macos_caches(lambda name: told.get(name.rpartition(".")[2], 0))
    assert found == [HostCache(1, 128 << 10), HostCache(2, 4 << 20)]
    assert macos_caches(lambda name: 0) == []


@pytest.mark.parametrize("fact", ["l1_bytes", "l1_ways", "l2_bytes", "l2_ways", "l3_bytes"])
def test_a_kernel_for_other_caches_is_another_kernel(
    fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target("cpu", "alderlake")
    before = versions.toolchain(target)["machine"]
    monkeypatch.setitem(MACHINES, "alderlake", replace(ROW, **{fact: 12345}))
    assert versions.toolchain(target)["machine"] != before
