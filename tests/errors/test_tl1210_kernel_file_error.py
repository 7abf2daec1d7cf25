"""TL1210: a file of kernels that cannot stand for those of a function of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from support.edited_kernels import X, told, twice
from tile_core.errors import KernelFileError

PRINTED = twice.source(X)
ANEW = "hint: print one: twice.source(...) is such a file"
LAUNCH = "def launch(x):"


def with_launch(body: str, head: str = LAUNCH) -> str:
    """Return the printed file with another `launch`."""
    start, end = PRINTED.index(LAUNCH), PRINTED.index("def in_numpy")
    return f"{PRINTED[:start]}{head}\n    {body}\n\n\n{PRINTED[end:]}"


def line_of(text: str, part: str) -> int:
    return 1 + text[: text.index(part)].count("\n")


def carets(text: str, part: str) -> str:
    number = str(line_of(text, part))
    line = text.splitlines()[int(number) - 1]
    column = len(line) - len(line.lstrip())
    blank = " " * len(number)
    return (
        f"{blank}--> kernels.py:{number}:{column + 1}\n{blank} |\n{number} | {line}\n"
        f"{blank} | {' ' * column}{'^' * len(line.strip())}"
    )


def test_no_file(monkeypatch, tmp_path):
    text = told(None, KernelFileError, monkeypatch, tmp_path)
    assert text == (f"[TL1210] kernels.py cannot be read: No such file or directory\n{ANEW}")


def test_no_text(monkeypatch, tmp_path):
    text = told(b"\xff\xfe\x00", KernelFileError, monkeypatch, tmp_path)
    assert text == f"[TL1210] kernels.py cannot be read: it is no text\n{ANEW}"


def test_no_python(monkeypatch, tmp_path):
    text = told(
        PRINTED.replace("def launch(x):", "def launch(x)"), KernelFileError, monkeypatch, tmp_path
    )
    number = line_of(PRINTED, LAUNCH)
    blank = " " * len(str(number))
    assert text == (
        f"[TL1210] kernels.py is no Python: expected ':'\n{blank}--> kernels.py:{number}:14\n"
        f"{blank} |\n{number} | def launch(x)\n{blank} | {' ' * 13}^"
    )


def test_no_equations(monkeypatch, tmp_path):
    text = told('"""Kernels."""\n', KernelFileError, monkeypatch, tmp_path)
    assert text == (
        f"[TL1210] kernels.py does not begin with the equations that it computes\n{ANEW}"
    )


def test_no_launch(monkeypatch, tmp_path):
    text = told(
        PRINTED.replace("def launch(", "def start("), KernelFileError, monkeypatch, tmp_path
    )
    assert text == f"[TL1210] kernels.py defines no function launch(x)\n{ANEW}"


def test_other_parameters(monkeypatch, tmp_path):
    edited = with_launch("return x", "def launch(x, y):")
    text = told(edited, KernelFileError, monkeypatch, tmp_path)
    assert text == (
        "[TL1210] launch in kernels.py takes (x, y), and twice has the arrays (x)\n"
        f"{carets(edited, 'def launch')}\nhint: take them all, in this order"
    )


def test_kernels_that_raise(monkeypatch, tmp_path):
    edited = with_launch('return {}["x"]')
    text = told(edited, KernelFileError, monkeypatch, tmp_path)
    assert text == ("[TL1210] kernels.py raises KeyError: 'x'\n" + carets(edited, 'return {}["x"]'))


def test_files_that_raise(monkeypatch, tmp_path):
    edited = PRINTED.replace("import numpy as np\n", "import numpy as np\n1 / 0\n")
    text = told(edited, KernelFileError, monkeypatch, tmp_path)
    assert text == (
        "[TL1210] kernels.py raises ZeroDivisionError: division by zero\n" + carets(edited, "1 / 0")
    )


@pytest.mark.parametrize(
    ("returned", "what"),
    [("x[:2]", "float32[2, 5]"), ("x > 0", "bool[3, 5]"), ("None", "NoneType")],
)
def test_other_results(returned, what, monkeypatch, tmp_path):
    edited = with_launch(f"return {returned}")
    text = told(edited, KernelFileError, monkeypatch, tmp_path)
    assert text == (
        f"[TL1210] launch in kernels.py returns {what}, and twice has float32[3, 5]\n"
        f"{carets(edited, 'def launch')}\nhint: return the results, in the order of the equations"
    )


def test_mistakes_in_the_language_keep_their_own_code(monkeypatch, tmp_path):
    edited = PRINTED.replace("T.copy(", "T.no_such_copy(", 1)
    assert edited != PRINTED
    from tile_core.errors import UnknownName

    text = told(edited, UnknownName, monkeypatch, tmp_path)
    assert text.startswith("[TL1013]")
    assert "--> kernels.py:" in text


def test_it_is_mended_by_the_printed_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(PRINTED)
    from tile_api.arrays.function import Function

    edited = Function(twice.func, target="interpret", kernels="kernels.py")
    np.testing.assert_array_equal(edited(X), X * 2)
