"""``tile explain``: pages of errors, in a checkout and in a wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tile_api.cli import main
from tile_api.error_explanations import error_pages

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "errors"


@pytest.mark.parametrize(
    "asked", ["TL6503", "tl6503", "6503", "[TL6503]", "DataRace", "datarace", "TL6503:"]
)
def test_the_page_of_an_error(asked, capsys):
    assert main(["explain", asked]) == 0
    assert capsys.readouterr().out == (PAGES / "TL6503.md").read_text()


def test_several_pages(capsys):
    assert main(["explain", "TL6501", "TL6502"]) == 0
    one, other = ((PAGES / f"{code}.md").read_text() for code in ("TL6501", "TL6502"))
    assert capsys.readouterr().out == f"{one}\n{other}"


def test_all_codes(capsys):
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(path.stem for path in PAGES.glob("TL*.md"))
    told = next(line for line in lines if line.startswith("TL6503"))
    assert told.split(maxsplit=2)[1:] == [
        "DataRace",
        "Two threads touched one element without synchronisation in between.",
    ]


def test_every_page_has_a_summary():
    for page in error_pages().values():
        assert page.summary.endswith("."), page.code
        assert not page.summary.startswith("#"), page.code


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("TL6593", "did you mean TL6503 or TL6509? `tile explain` lists all of them"),
        ("DataRaces", "did you mean TL6503? `tile explain` lists all of them"),
        ("banana", "`tile explain` lists all of them"),
    ],
)
def test_there_is_no_such_error(asked, hint, capsys):
    assert main(["explain", asked]) == 1
    assert capsys.readouterr().err == f"[TL1002] there is no error {asked!r}\nhint: {hint}\n"


def test_who_reads_an_error_on_a_terminal_is_told_of_its_page(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["explain", "banana"]) == 1
    assert capsys.readouterr().err.endswith("\n`tile explain TL1002` tells more\n")


def test_the_pages_are_in_the_wheel(tmp_path):
    """What users install has them, too: built from a checkout, and from a source distribution."""
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    place = ROOT / "packages" / "tile-api"
    subprocess.run([*build, "-t", "wheel"], cwd=place, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = [n for n in opened.namelist() if n.startswith("tile_api/error_pages/")]
        assert {Path(n).name for n in names} == {path.name for path in PAGES.glob("*.md")}
        opened.extractall(tmp_path / "installed")
    code = (
        "import sys, tile_api.cli\n"
        "assert 'installed' in tile_api.cli.__file__, tile_api.cli.__file__\n"
        "sys.exit(tile_api.cli.main(['explain', 'TL6503']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
    )  # fmt: skip
    assert done.stdout == (PAGES / "TL6503.md").read_text(), done.stderr


def test_the_pages_are_in_the_source_distribution(tmp_path):
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t", "sdist"]
    place = ROOT / "packages" / "tile-api"
    subprocess.run(build, cwd=place, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {Path(n).name for n in opened.getnames() if "/src/tile_api/error_pages/" in n}
    assert names == {path.name for path in PAGES.glob("*.md")}
