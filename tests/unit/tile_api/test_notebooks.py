"""What notebooks show of kernels, estimates and layouts: well-formed, and nothing of it runs."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import tile_api as tile
import tile_api.language as T

n = T.dynamic("n")


@T.prim_func
def scaled(A: T.Tensor((n, 64), "float32"), B: T.Tensor((n, 64), "float32")):
    with T.Kernel(T.ceildiv(n, 8), threads=128) as i:
        for r, c in T.Parallel(8, 64):
            B[i * 8 + r, c] = T.if_then_else(A[i * 8 + r, c] < 1, 2.0, 3.0)


def texts(html: str) -> list[str]:
    """Return the texts of a piece of a page, which has to be well-formed."""
    return [text.strip() for text in ElementTree.fromstring(f"<div>{html}</div>").itertext()]


def test_a_kernel_tells_what_it_is() -> None:
    told = texts(tile.compile(scaled, target="cpu")._repr_html_())
    assert told[:3] == [
        "Signature",
        "scaled[n: int32](A: global float32[n, 64], B: global float32[n, 64])",
        "Target",
    ]
    assert told[4] == "Launch"
    assert told[5].endswith("blocks of 128 threads")


def test_an_estimate_shows_what_it_is_made_of() -> None:
    found = tile.estimate(scaled, target="cuda:sm_90a", n=4096)
    html = found._repr_html_()
    told = texts(html)
    assert told[0] == str(found).splitlines()[0]
    assert html.count("<meter ") == len(found.parts)
    assert {p.name for p in found.parts} <= set(told)
    assert '<meter value="1.000">' in html  # the longest


@pytest.mark.parametrize(
    ("layout", "cells"),
    [
        (T.Layout((4, 6), lambda i, j: (j, i)), 24),
        (T.Fragment((4, 4), forward_fn=lambda i, j: (i * 4 + j, 0)), 16),
    ],
    ids=["layout", "fragment"],
)
def test_a_layout_is_a_picture(layout, cells) -> None:
    root = ElementTree.fromstring(layout._repr_svg_())
    assert sum(tag.tag.endswith("rect") for tag in root.iter()) == cells


def test_a_picture_that_nobody_can_read_is_not_made() -> None:
    sizes = [(128, rows) for rows in (128, 129)]
    made = [T.Layout(size, lambda i, j: (j, i)) for size in sizes]
    made += [T.Fragment(size, forward_fn=lambda i, j: (i, j)) for size in sizes]
    assert [layout._repr_svg_() is None for layout in made] == [False, True, False, True]
