"""``tile env``, and every variable of the table, through processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tile_api.cli import main
from tile_api.settings.variables import variables

GOOD = {
    "TILE_TARGET": "cuda:sm_80@sim",
    "TILE_FORCE_TARGET": "interpret",
    "TILE_NUM_THREADS": "3",
    "TILE_CUDA_COMPILER": "nvrtc",
    "TILE_HIP_COMPILER": "clang",
    "TILE_DISABLE_PLUGINS": "toy",
    "TILE_DISABLE_CACHE": "yes",
    "TILE_CACHE_DIR": "/tmp/cache",
    "TILE_CACHE_SIZE": "500M",
    "TILE_TUNE_BUDGET": "30s",
    "TILE_TUNE_AGAIN": "on",
    "TILE_TUNE_DIR": "/tmp/tune",
    "TILE_TUNE_TABLES": "a.json:b.json",
    "TILE_TUNE_DISABLE_CACHE": "1",
    "TILE_TUNE_WORKERS": "2",
    "TILE_TUNE_CPU_SHARE": "0.5",
    "TILE_TUNE_MAX_WORKERS": "4",
    "TILE_LOGS": "+layout,codegen,-cache",
    "TILE_KEEP": "ir,src,asm,trace",
    "TILE_KEEP_DIR": "/tmp/kept",
    "TILE_VERBOSE": "true",
    "TILE_FULL_TRACEBACK": "1",
    "TILE_INTERPRET": "0",
    "TILE_CHECK": "race,oob,uninit",
    "TILE_VERIFY": "off",
    "TILE_SIM_SCHEDULE": "random:7",
    "TILE_SIM_ASYNC": "early",
    "TILE_SIM_THREADS": "1",
    "TILE_SIM_TIME_LIMIT": "2.5",
    "TILE_PRETENDED_GPU": "sm_90,memory=80",
}
"""A value for each variable."""

WRONG = {
    "TILE_NUM_THREADS": ("-1", "a number of threads; 0 follows torch or OpenMP"),
    "TILE_DISABLE_CACHE": ("maybe", "1, true, yes or on, or 0, false, no or off"),
    "TILE_CACHE_SIZE": ("lots", "a size such as 500M or 4GiB; 0 keeps nothing on disk"),
    "TILE_TUNE_BUDGET": ("soon", "model, a time such as 10s or 2m, or full"),
    "TILE_TUNE_AGAIN": ("2", "1, true, yes or on, or 0, false, no or off"),
    "TILE_TUNE_DISABLE_CACHE": ("x", "1, true, yes or on, or 0, false, no or off"),
    "TILE_TUNE_WORKERS": ("two", "a number of processes; -1 means not set"),
    "TILE_TUNE_CPU_SHARE": ("1.5", "a share above 0, and at most 1"),
    "TILE_TUNE_MAX_WORKERS": ("few", "a number of processes; -1 means not set"),
    "TILE_LOGS": ("+layuot", None),
    "TILE_KEEP": ("sass", "some of ir, src, asm and trace"),
    "TILE_VERBOSE": ("very", "1, true, yes or on, or 0, false, no or off"),
    "TILE_FULL_TRACEBACK": ("?", "1, true, yes or on, or 0, false, no or off"),
    "TILE_INTERPRET": ("x", "1, true, yes or on, or 0, false, no or off"),
    "TILE_CHECK": ("races", None),
    "TILE_VERIFY": ("each", "1, true, yes or on, or 0, false, no or off"),
    "TILE_SIM_SCHEDULE": ("random:x", "forward, reverse, or random:SEED with a number"),
    "TILE_SIM_ASYNC": ("now", "late, early or random"),
    "TILE_SIM_THREADS": ("1.5", "a number of threads; 0 means one per CPU"),
    "TILE_SIM_TIME_LIMIT": ("-1", "a number of seconds; 0 means no limit"),
    "TILE_PRETENDED_GPU": ("nonsense", None),
}
"""Values that mean nothing, and what is allowed (None where that is a list of names)."""

ANYTHING = {
    "TILE_TARGET", "TILE_FORCE_TARGET", "TILE_CUDA_COMPILER", "TILE_HIP_COMPILER",
    "TILE_DISABLE_PLUGINS", "TILE_CACHE_DIR", "TILE_TUNE_DIR", "TILE_TUNE_TABLES", "TILE_KEEP_DIR",
}  # fmt: skip
"""Whose text is understood where it is used, with errors of its own."""

ROWS = {row.name: row for row in variables()}
ALIASES = {alias: row for row in variables() for alias in row.aliases}


def tile_env(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in an environment that has none of our variables but those."""
    known = {*ROWS, *ALIASES}
    clean = {name: value for name, value in os.environ.items() if name not in known}
    return subprocess.run(
        [sys.executable, "-m", "tile_api.cli", "env", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=clean | environment,
    )


def test_every_variable_is_known_here():
    assert set(GOOD) == set(ROWS)
    assert set(WRONG) | ANYTHING == set(ROWS)
    assert not set(WRONG) & ANYTHING


def test_nothing_is_set():
    done = tile_env("--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [each["variable"] for each in found] == [*ROWS]
    assert {each["source"] for each in found} == {""}


def test_everything_is_set():
    done = tile_env("--json", **GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    found = {each["variable"]: each for each in json.loads(done.stdout)}
    assert {name: each["value"] for name, each in found.items()} == GOOD
    assert {name: each["source"] for name, each in found.items()} == {name: name for name in GOOD}


def test_every_alias_stands_in_for_its_variable():
    values = {alias: GOOD[row.name] for alias, row in ALIASES.items()}
    done = tile_env("--json", **values)
    assert (done.returncode, done.stderr) == (0, "")
    sources = {each["variable"]: each["source"] for each in json.loads(done.stdout)}
    assert {name: source for name, source in sources.items() if source} == {
        row.name: alias for alias, row in ALIASES.items()
    }


def test_everything_is_wrong():
    """Each value that means nothing is told with its variable, itself, and what is allowed."""
    done = tile_env(**{name: value for name, (value, _) in WRONG.items()})
    assert done.returncode == 1
    for name, (value, allowed) in WRONG.items():
        assert f"{name}={value}, which means nothing\n" in done.stdout
        assert f"[TL1002] the environment variable {name} is {value!r}" in done.stderr
        if allowed is not None:
            assert f"{name} is {value!r}\nhint: set it to {allowed}\n" in done.stderr or (
                f"hint: set it to {allowed}\n" in done.stderr
            )
    assert (
        "TILE_LOGS is '+layuot': there is no 'layuot'\nhint: set it to all, or some of cache, "
        in (done.stderr)
    )
    assert "TILE_CHECK is 'races': there is no 'races'\nhint: set it to some of all, none, oob" in (
        done.stderr
    )


def test_some_by_any_of_their_names(monkeypatch, capsys):
    monkeypatch.setenv("TILELANG_VERBOSE", "1")
    monkeypatch.delenv("TILE_LOGS", raising=False)
    assert main(["env", "TILELANG_VERBOSE", "logs"]) == 0
    assert capsys.readouterr().out == (
        "TILELANG_VERBOSE=1\n"
        "    Tell the phases of each compilation, and their times, on stderr. Setting: verbose.\n"
        "    Also: TILELANG_VERBOSE.\n"
        "\n"
        "TILE_LOGS (nothing)\n"
        "    What is told on stderr, and through the loggers `tile.CATEGORY`: a line about each\n"
        "    named category, the whole text with a + before it, nothing with a -. Setting: logs.\n"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("TILE_LOG", "did you mean TILE_LOGS or TILE_TARGET or TILE_VERBOSE?"),
        ("banana", "`tile env` lists all of them"),
    ],
)
def test_there_is_no_such_setting(name, hint, capsys):
    assert main(["env", name]) == 1
    assert capsys.readouterr().err == f"[TL1002] there is no setting {name!r}\nhint: {hint}\n"
