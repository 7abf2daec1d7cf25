"""TL5001: a compiler was missing or failed; its output is attached."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support.mistakes import Mistake
from tile_core.errors import ToolchainError

CALL = """
@T.prim_func
def kernel(A: T.Tensor((16,), "int32")):
    with T.Kernel(1):
        T.import_source({source!r})
        A[0] = T.call_extern("int32", "nowhere", A[1])
tile.compile(kernel, target="cpu", compile_flags={flags!r})
"""
UNKNOWN = Mistake(
    "a function that does not exist",
    CALL.format(source="int somewhere(int x) { return x; }", flags=[]),
    """
    [TL5001] the kernel calls the C function 'nowhere', which neither its own C text nor this process has
     --> program.py:5:16
      |
    5 |         A[0] = T.call_extern("int32", "nowhere", A[1])
      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: bring it along: T.import_source("... nowhere(...) { ... }"), or load the library that has it with ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    """,  # noqa: E501
    whole=True,
)


def test_message():
    error = UNKNOWN.error()
    assert type(error) is ToolchainError
    assert str(error) == UNKNOWN.expected


@pytest.mark.parametrize(
    ("source", "flags", "told"),
    [
        ("\nint nowhere(int x) { return y; }", [], r"import_source:2:\d+: error: .*y"),
        ("int nowhere(int x) { return x; }", ["--no-such-flag"], "no-such-flag"),
    ],
    ids=["text that is no C", "a flag that the compiler does not know"],
)
def test_the_words_of_the_compiler_are_attached(source, flags, told):
    """Compilers differ in their words; ours around them are the same."""
    error = Mistake("", CALL.format(source=source, flags=flags), "", whole=True).error()
    first, *words = error.message.splitlines()
    assert re.fullmatch(r"\[TL5001\]|\S+ does not accept the kernel's C code:", first)
    assert re.search(told, "\n".join(words))
    assert "lines are counted from the first of the text given to T.import_source" in error.hint


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    text = CALL.format(source="int nowhere(int x) { return x; }", flags=[])
    assert str(Mistake("", text, "", whole=True).error()) == (
        "[TL5001] a kernel brings C code along (T.import_source), and there is no C compiler\n"
        " --> program.py:6:1\n"
        "  |\n"
        '6 | tile.compile(kernel, target="cpu", compile_flags=[])\n'
        "  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: install gcc or clang, or point CC at a compiler"
    )


def test_without_tvm():
    program = (
        "import sys; sys.modules['tvm'] = None\n"
        "from tile_api.autotuner.probe import add_one\n"
        "import tile_api, tile_core.errors\n"
        "try: tile_api.compile(add_one, target='cpu')\n"
        "except tile_core.errors.TileError as error: print(error)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == (
        "[TL5001] kernels for the CPU are compiled by TVM, which is not installed\n"
        "hint: pip install 'apache-tvm>=0.27.0.post1,<0.28'\n"
    )
