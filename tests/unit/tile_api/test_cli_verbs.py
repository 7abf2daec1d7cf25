"""Every verb of ``tile`` as a shell starts it: help, wrong use, and what is loaded for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tile_api.cli import VERBS

WRONG: dict[str, list[str]] = {
    "bundle": ["inspect"],
    "cache": ["eat"],
    "check": ["none.py"],
    "doctor": ["--loudly"],
    "env": ["--loudly"],
    "explain": ["--loudly"],
    "lower": ["kernels.py", "--stage", "nowhere"],
    "reduce": [],
    "report": [],
    "run": ["--as-tilelang"],
    "source": ["program.py", "--tier", "beginner"],
    "tune": [],
}
"""What makes no sense, by verb."""


def tile(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tile_api.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "100", **environment},
    )


def test_every_verb_is_known_here():
    assert set(WRONG) == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help(verb):
    done = tile(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: tile {verb}")


@pytest.mark.parametrize("verb", VERBS)
def test_wrong_use_is_a_sentence_and_ends_with_2(verb):
    done = tile(verb, *WRONG[verb])
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    usage, last = done.stderr.splitlines()[0], done.stderr.splitlines()[-1]
    assert usage.startswith("usage: tile")
    assert last.startswith("tile")
    assert "error: " in last
    assert "Traceback" not in done.stderr


def test_without_a_verb():
    done = tile()
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "tile: error: the following arguments are required: VERB"
    )


def test_a_verb_that_does_not_exist():
    done = tile("compile")
    assert done.returncode == 2
    assert "invalid choice: 'compile'" in done.stderr


def test_version():
    from tile_api import __version__

    assert tile("--version").stdout == f"tile {__version__}\n"


def test_help_of_all_loads_none():
    code = (
        "import sys\n"
        "from tile_api.cli import VERBS, main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as left:\n    assert left.code == 0\n"
        "loaded = [v for v in VERBS if f'tile_api.cli.{v}' in sys.modules]\n"
        "heavy = [m for m in ('numpy', 'torch', 'tvm') if m in sys.modules]\n"
        "heavy += [m for m in sys.modules if m.startswith('tile_core.')]  # no module of it\n"
        "sys.exit(repr(loaded + heavy) if loaded + heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for verb, line in VERBS.items():
        assert f"\n    {verb}" in done.stdout
        assert line.split()[0] in done.stdout
