"""Text depends on a function alone, not on what the process captured before."""

from __future__ import annotations

import gc

import numpy as np

import tile_api as tile
from tile_api.arrays.deriving import derive
from tile_api.arrays.gradients.stages import adjoint_of
from tile_api.arrays.planning.plan import Blocks


def wanted(x, w, b):
    y = np.exp(x) * np.exp(w) * b
    return (y * (b + w)).sum(axis=1) + (w * b).sum(), y


def in_one_order(x, w, b):
    return np.exp(x), np.exp(w), x * b, w * b, np.exp(w) * b


def in_another(x, w, b):
    return b * w, b + w, b * np.exp(w), np.exp(w), np.exp(x) * b, x * w


ARGUMENTS = [np.ones((8, 16)), np.ones(16), np.ones(16)]


def sources() -> tuple[str, str]:
    """Return kernels of a function, and those of its gradients."""
    function = tile.function(wanted)
    backward = adjoint_of(function.equations(*ARGUMENTS), ["x", "w"])
    return function.source(*ARGUMENTS), derive(backward, Blocks()).source


def test_what_was_captured_before_changes_no_text() -> None:
    found = set()
    for before in (in_one_order, in_another):
        gc.collect()  # equations of the last round
        kept = tile.function(before)
        kept.source(*ARGUMENTS)
        found.add(sources())
        del kept
    assert len(found) == 1
