"""Programs with a mistake in them, and the message that the user gets, in full."""

from __future__ import annotations

import linecache
import pickle
import textwrap
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import TileError

FILE = "program.py"
LAUNCH = """\
@T.prim_func
def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
    with T.Kernel(4, threads=128) as bx:
        S = T.alloc_shared((16, 16), "float32")
        F = T.alloc_fragment((16, 16), "float32")
"""


@dataclass(frozen=True)
class Mistake:
    """A mistake, made on purpose.

    Parameters
    ----------
    whole
        Whether the text is all of the program; else it is the body of `LAUNCH`, whose line 6
        it begins with.
    """

    name: str  # what is wrong, in a few words
    program: str  # the text of a program in which `T`, `tile` and `np` are known
    message: str  # all that the user reads
    whole: bool = False

    def __str__(self) -> str:
        return self.name

    def text(self) -> str:
        """Return the whole program."""
        text = textwrap.dedent(self.program).strip("\n") + "\n"
        return text if self.whole else LAUNCH + textwrap.indent(text, " " * 8)

    def error(self) -> TileError:
        """Return what running the program raises; it can be sent to another process."""
        text = self.text()
        linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
        code = compile(text, FILE, "exec", dont_inherit=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(TileError) as caught:
                exec(code, names_of_programs())
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        return caught.value

    @property
    def expected(self) -> str:
        """The message without the indentation of the test."""
        return textwrap.dedent(self.message).strip("\n")


def names_of_programs() -> dict[str, object]:
    """Return the names that programs find."""
    return {"T": T, "tile": tile, "np": np, "__name__": "program"}
