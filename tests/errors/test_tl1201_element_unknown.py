"""TL1201: an element of an array is asked for before a kernel has computed it."""

from __future__ import annotations

import pytest

from support.captured_arrays import refusal, told
from tile_core.errors import ElementUnknown

TRUTH = "the truth of an array is known only when the kernel runs, and Python asks for it now"
CHOOSE = (
    "np.where chooses element by element, & and | join conditions; or decide outside of the "
    "function"
)
ELEMENT = "an element of an array is known only when the kernel runs, and Python asks for it now"
KEEP = "keep it an array of no dimensions; or decide outside of the function"


@pytest.mark.parametrize(
    "line",
    [
        "if x.sum() > 0: return x",
        "while x.any(): pass",
        "return x if x[0, 0] == 1 else y",
        "return bool(x)",
        "return x and y",
        "return 0.0 in x",
        "return 0 < x < 1",
        "return max(x, 3)",
        "assert x.shape and np.all(x > 0)",
    ],
)
def test_a_truth(program, line):
    assert refusal(program, line, ElementUnknown) == told("TL1201", line, TRUTH, CHOOSE)


@pytest.mark.parametrize(
    "line",
    [
        "return x * float(x[0, 0])",
        "return int(x.max())",
        "return x.item()",
        "return x.tolist()",
        "return x[x[0, 0]:]",
        "return np.zeros(x[0, 0])",
        "return [x[k] for k in range(x[0, 0])]",
        "return round(x[0, 0])",
        "return np.linspace(0, x[0, 0], 5)",
        "print(f'{x[0, 0]:.2f}')",
    ],
)
def test_an_element(program, line):
    assert refusal(program, line, ElementUnknown) == told("TL1201", line, ELEMENT, KEEP)


@pytest.mark.parametrize("line", ["return np.float32(x)", "return np.vectorize(abs)(x)"])
def test_an_array_of_numpy(program, line):
    hint = (
        "NumPy's functions take captured arrays; np.take(table, x, axis=0) is table[x]; or decide "
        "outside of the function"
    )
    assert refusal(program, line, ElementUnknown) == told("TL1201", line, ELEMENT, hint)


@pytest.mark.parametrize("returned", ["None", "'text'", "{'x': x}"])
def test_what_is_returned(program, returned):
    kind = type(eval(returned, {"x": None})).__name__
    assert refusal(program, f"return {returned}", ElementUnknown) == (
        f"[TL1201] f returns {kind}, which is no array\n"
        " --> program.py:1:1\n  |\n1 | def f(x, y):\n  | ^^^^^^^^^^^^\n"
        "hint: return one array, or a tuple of arrays"
    )


def test_printing_shows_shape_and_type(program, capsys):
    refusal(program, "print(x, x[0, 0])", ElementUnknown)  # and it returns None
    assert capsys.readouterr().out == (
        "<x, an array of float32, shape (x0=4, x1=6); computed in a kernel> "
        "<array of float32, shape (); computed in a kernel>\n"
    )
