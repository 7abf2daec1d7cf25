"""Every verb of ``tile`` as a shell starts it: help, wrong use, and what is loaded for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tile_api.cli import VERBS, main

HERE = Path(__file__).parent
WRONG: dict[str, list[str]] = {
    "bench": [],
    "bundle": ["inspect"],
    "cache": ["eat"],
    "check": ["none.py"],
    "completion": ["cmd"],
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


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("verb", VERBS)
def test_help(verb):
    done = tile(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: tile {verb}")


@pytest.mark.in_turn(3)
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


SHELL = shutil.which("sh")
WRITING = {"completion": ["bash"], "doctor": ["cpu"], "env": [], "explain": ["TL1001"]}
"""Verbs that write what needs no kernel; of the others, the help."""
ASKED = {verb: [verb, *WRITING.get(verb, ["--help"])] for verb in VERBS}
ASKED |= {"help": ["--help"], "version": ["--version"], "failure": ["explain", "TL0"]}
ENDS = {">&-": 0, "2>&-": 141, "<&- >&- 2>&-": 0, "": 141, "2>&1": 141, ">/dev/full": 1}
"""What a process ends with whose output nobody reads, by how the shell redirects it."""


@pytest.mark.in_turn(3)
@pytest.mark.skipif(not SHELL, reason="this machine has no shell")
@pytest.mark.parametrize("redirected", ENDS)
def test_output_that_nobody_reads_ends_every_verb_quietly(redirected):
    """A stream that is closed from the start discards what is written, as /dev/null does."""
    if redirected == ">/dev/full" and not Path("/dev/full").exists():
        pytest.skip("this machine has no full disk to write to")
    read, write = os.pipe()
    os.close(read)
    for name, arguments in ASKED.items():
        command = [sys.executable, "-m", "tile_api.cli", *arguments]
        done = subprocess.run(
            [SHELL, "-c", f'exec "$@" {redirected}', "sh", *command],
            stdout=write, stderr=subprocess.PIPE, text=True, check=False,
            env=os.environ | {"PYTHONUNBUFFERED": ""},
        )  # fmt: skip
        status, first = ENDS[redirected], ["tile"] if redirected == ">/dev/full" else []
        if name == "failure":  # it writes nothing but what is wrong
            status = 141 if redirected == "2>&1" else 1
            first = [] if "2" in redirected else ["[TL1002]", "hint"]
        said = [text.split()[0].rstrip(":") for text in done.stderr.splitlines()]
        assert (done.returncode, said) == (status, first), name
    os.close(write)


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


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["docter"], "doctor"),
        (["run", "--targt", "cpu", "x.py"], "--target"),
        (["lower", "x.py", "--stage", "planed"], "planned"),
        (["cache", "purne"], "prune"),
        (["frobnicate"], None),
    ],
)
def test_a_misspelled_word_is_guessed(arguments, meant, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.endswith(f"; did you mean {meant}?\n") if meant else "did you mean" not in said


@pytest.mark.skipif(not shutil.which("bash"), reason="this machine has no bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tile doc", {"doctor"}),
        ("tile run --tar", {"--target"}),
        ("tile run --target cuda:sm_90", {"cuda:sm_90a", "cuda:sm_90a@sim"}),
        ("tile cache p", {"prune"}),
        ("tile check conf", {"conftest.py"}),
    ],
)
def test_bash_completes_words(line, offered, capsys):
    assert main(["completion", "bash"]) == 0
    words = line.split()
    driver = (
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'\n"
        f"_shtab_tile tile '{words[-1]}' '{words[-2]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    done = subprocess.run(
        ["bash", "-c", f"{capsys.readouterr().out}\n{driver}"],
        capture_output=True, text=True, check=False, cwd=HERE,
    )  # fmt: skip
    assert {word.strip() for word in done.stdout.splitlines()} == offered, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_scripts_for_shells(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "doctor" in capsys.readouterr().out


def test_without_what_writes_scripts_the_way_out_is_told(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert capsys.readouterr().err == (
        "[TL5001] completion scripts are written by shtab, which is not installed\n"
        "hint: pip install 'tile-api[completion]'\n"
    )


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


PROGRAMS = {
    "syntax": ("def f(:\n    pass\n", ["SyntaxError"]),
    "import": ("import no_such_module\n", ["ModuleNotFoundError", "line 1, in <module>"]),
    "own": ("def f():\n    raise KeyError(7)\nf()\n", ["KeyError: 7", "line 2, in f"]),
    "file": ("open('/no/such/file')\n", ["FileNotFoundError", "line 1, in <module>"]),
}
"""Files that cannot run, and what python says of them."""


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "verb", ["bench", "check", "lower", "reduce", "report", "run", "source", "tune"]
)
def test_errors_of_a_program_are_told_without_our_lines(verb, program, tmp_path, capsys):
    text, told = PROGRAMS[program]
    file = tmp_path / "program.py"
    file.write_text(text)
    assert main([verb, str(file)]) == 1
    found = capsys.readouterr().err
    assert all(part in found for part in told)
    assert str(file) in found
    assert "tile_api" not in found
    assert "runpy" not in found
