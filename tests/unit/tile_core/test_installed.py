"""What is installed is told as `importlib.metadata` tells it."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import zipfile
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from tile_core.installed import EntryPoint, distribution, entry_points

POINTS = """# of a test
[other]
a = b

[tile]
one = one_module
  two=two.inner:made.it [extra]
#x = y
"""


def lay(place: Path, folder: str, *, version: str = "1.0", points: str = POINTS) -> None:
    """Lay the metadata of a distribution into a folder."""
    info = place / folder
    info.mkdir(parents=True)
    name = "METADATA" if folder.endswith("dist-info") else "PKG-INFO"
    (info / name).write_text(f"Name: made-here\nVersion: {version}\n\nVersion: 9.9\n")
    (info / "entry_points.txt").write_text(points)


def theirs(group: str = "tile") -> list[EntryPoint]:
    found = importlib.metadata.entry_points(group=group)
    return [EntryPoint(entry.name, entry.value) for entry in found]


def test_all_that_is_installed_here() -> None:
    every = list(importlib.metadata.distributions())
    assert len(every) > 20
    for one in every:
        found = distribution(one.metadata["Name"])
        assert found is not None
        first = importlib.metadata.distribution(one.metadata["Name"])
        assert found.version == first.version
        assert found.read_text("RECORD") == first.read_text("RECORD")
    for group in {entry.group for one in every for entry in one.entry_points}:
        assert entry_points(group) == theirs(group)


@pytest.mark.parametrize("folder", ["Made_Here-1.0.dist-info", "made.here-1.0-py3.11.egg-info"])
def test_both_kinds_of_folders(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path, folder)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    expected = [EntryPoint("one", "one_module"), EntryPoint("two", "two.inner:made.it [extra]")]
    assert entry_points("tile") == theirs() == expected
    for name in ("made-here", "made_here", "Made.Here"):
        found = distribution(name)
        assert found is not None
        assert found.version == importlib.metadata.version(name) == "1.0"
        assert found.read_text("RECORD") is None
    assert distribution("made") is None


def test_metadata_that_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old-0.5.egg-info").write_text("Metadata-Version: 1.0\nVersion: 0.5\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = distribution("old")
    assert found is not None
    assert found.version == importlib.metadata.version("old") == "0.5"
    assert entry_points("tile") == theirs() == []


def test_the_first_of_a_name_hides_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path / "near", "made_here-2.0.dist-info", version="2.0", points="[tile]\nnew = m\n")
    lay(tmp_path / "far", "made_here-1.0.dist-info")
    places = [str(tmp_path / name) for name in ("absent", "near", "far")]
    monkeypatch.setattr(sys, "path", places)
    found = distribution("made-here")
    assert found is not None
    assert found.version == importlib.metadata.version("made-here") == "2.0"
    assert entry_points("tile") == theirs() == [EntryPoint("new", "m")]


def test_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, "made_here-1.0.dist-info")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [""])
    assert len(entry_points("tile")) == len(theirs()) == 2


def test_what_is_installed_meanwhile_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert distribution("made-here") is None
    lay(tmp_path, "made_here-1.0.dist-info")
    os.utime(tmp_path, ns=(1, 1))  # clocks of files are coarse
    found = distribution("made-here")
    assert found is not None
    assert found.version == "1.0"


def test_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "made.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("made_here-1.0.dist-info/METADATA", "Name: made-here\nVersion: 1.0\n")
        archive.writestr("made_here-1.0.dist-info/entry_points.txt", POINTS)
    monkeypatch.setattr(sys, "path", [str(path)])
    found = distribution("made-here")
    assert found is not None
    assert found.version == "1.0"
    assert distribution("other") is None
    assert entry_points("tile") == theirs()
    assert len(theirs()) == 2


def test_eggs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path / "made_here-1.0-py3.11.egg", "EGG-INFO")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "made_here-1.0-py3.11.egg")])
    assert entry_points("tile") == theirs()
    assert len(theirs()) == 2


def test_importers_that_find_distributions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, "made_here-1.0.dist-info")

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            return None

        @staticmethod
        def find_distributions(context: Any) -> Any:
            here = importlib.metadata.DistributionFinder.Context(
                name=context.name, path=[str(tmp_path)]
            )
            return PathFinder.find_distributions(here)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert entry_points("tile") == theirs()
    assert EntryPoint("one", "one_module") in theirs()
    found = distribution("made_here")
    assert found is not None
    assert found.version == "1.0"


def test_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_by_a_test.py").write_text("class A:\n    class B:\n        pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = EntryPoint("x", "loaded_by_a_test").load()
    assert module.__name__ == "loaded_by_a_test"
    for value in ("loaded_by_a_test:A.B", "loaded_by_a_test : A.B [extra]"):
        assert EntryPoint("x", value).load() is module.A.B
    with pytest.raises(AttributeError, match="C"):
        EntryPoint("x", "loaded_by_a_test:A.C").load()
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        EntryPoint("x", "no_such_module").load()
