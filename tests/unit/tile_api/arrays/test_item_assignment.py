"""``y[key] = value`` is NumPy's, or refused: other names and views of `y` see it."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import assert_agrees, filled, outputs, written
from tile_api.arrays.function import Function
from tile_core.errors import (
    ArrayShapeError,
    DataDependentShape,
    ImmutableArray,
    UnknownArrayFunction,
)

X, V = filled((4, 5), "int32", 1), filled((5,), "int32", 2)
K, Y = np.array([2, 0, 2, 1]), np.array([4, 0, 3, 3])
PROGRAMS = """
u[0] = 1
u[:, 1] = v[:4]
u[1:3, ::2] = v[:3]
u[::-1] = v
u[::-2, 1] = np.arange(2)
u[..., 0] = u[..., 1]
u[...] = 3
u[-1, -1] = x[0, 0]
u[None, 1:3] = v[None, None]
u[5:] = 1; u[1:1] = v
u[u < 0] = 0
u[(u < 0) & (x > -3)] = -u[0, 0]
u[u[:, 0] > 0] = v
u[:, v > 0] = 7
u[1, v > 0] = 7
u[..., v > 0] = np.arange(4)[:, None]
u[[1, 3]] = v
u[[1, 1]] = np.stack([v, 2 * v])
u[np.array([True, False, True, False])] = 0
u[k] = np.arange(20).reshape(4, 5)
u[k] = 5
u[[0]] = 5; u[:, [0]] = 3; u[[0], 1] = 9; u[k[:1]] = 7; u[[[0]], [[2]]] = 4
u = u[:1]; u[[0]] = 2; u[u > 2] = 0; u = u[:, :1]; u[k[:1] * 0] += 1; u[0, 0] -= 3
u = u[:0]; u[:] = 1; u[u > 2] = 0
u = u > 0; u[0] = 2; u[1, 1:] = False; u[:, 0] = v[:4]
u = u[:, :0]; u[0] = 1; u[[0, 1]] = 2
u[np.arange(2), np.arange(2) + 1] = 1; u[-np.arange(3), 0] = np.arange(3)
u[:, k] = np.arange(4)
u[k, y] = np.arange(4)
u[np.arange(4), y] -= 1
u[np.arange(3), y[:3]] = 9
u[k[:2, None], y[None, :3]] = v[:3]
u[np.ix_([0, 2], [1, 3])] = 0
u[np.triu_indices(4, 1, 5)] = 0
u = np.zeros((3, 4, 5), "int32"); u[:, k[:2], 1] = np.arange(6).reshape(3, 2)
u = np.zeros((3, 4, 5), "int32"); u[k[:2], :, y[:2]] = np.arange(8).reshape(2, 4)
u = np.zeros((19, 3), "int32"); u[np.arange(18) % 7 * 2] = np.arange(18)[:, None]
u = np.full((2, 3), 7, "uint8"); u[:, 0] = v[0] * 100; u[0, 1:] = 2.75
u = np.empty(4, "int32"); (u[0], u[1], u[2], u[3]) = x[0].sum(), x[1].max(), v.min(), 3.9
u[1:] = u[:-1]; u[:-1] = u[1:]
u[1:-1] += v; u[0] *= 2; u[0, 0] += 1; u[1:3, 2:] -= u[:2, :3]
w = u + 1; u[0] = 3; u = u + w
w = u; w[0] = 3
w = u[1:]; w[0] = 1; w[1] += 2
w = u[1:]; u[2] = 9; u[0] = w[1]
w = u[1:, ::2]; w[:, 1][0] = 8; u[3] = w[0].sum()
w = u[1:]; w += 1; u[:-1] = w
u[1][2] = 3; u[0][1:3] += 4; u[-1][u[0] > 0] = 0
for row in u: row[0] = row.sum()
for r in range(3): u[r + 1] += u[r]
first = u[0, 0]; u[0, 0] = 7; u[1, 1] = first
u[0] = 1; u = u.T.reshape(-1); u[::3] = 2
u = np.concatenate([u, u[:1]]); u[-1] = u[0]; u = np.stack([u, u * 2]); u[1, 2] = 0
a, b = u[:2], u[2:]; a[:] = b; b[0] = 1
u.fill(3); u[1:].fill(v[0])
u.sort(); u[:, 1].sort(); u[1:].sort(axis=0)
np.copyto(u, v); np.copyto(u[1], x[0], where=v > 0)
np.put(u, [3, -1, 3], v[:2]); np.put(u[1:, ::2], k, 7)
u.put(k * 9, x, mode="wrap"); np.put(u, v * 8, x + 1, "clip"); np.put(u, k, [])
np.put_along_axis(u, k[:, None], 1.7, 1); np.put_along_axis(u, k[None, :1], v, 0)
np.put_along_axis(u, np.stack([v % 4, -1 - v % 4]), x[:2] * 10, axis=0)
np.put_along_axis(u, np.argsort(u, -1), np.arange(5), -1); np.put_along_axis(u, k, y, None)
np.putmask(u, u > 0, v); np.putmask(u, x, [2.5]); np.putmask(u[1], v > 0, x[0, :2])
np.place(u, u > 0, v); np.place(u, x.T, [1.5, 2]); np.place(u[:, 1], k > 0, [9])
np.putmask(u, x, []); np.putmask(u, x.T, 5)
np.add(u, v, out=u); np.abs(x, u); np.clip(u, 0, 2, out=u); np.multiply(u[1:], 2, out=u[1:])
np.sum(x, 0, out=u[0]); np.maximum.accumulate(u, 1, out=u); z = np.negative(u, out=u); z[0] = 3
np.add(u, 1, out=u[::-1]); np.cumsum(x, 1, out=u); np.matmul(x, x.T @ x, out=u)
np.fill_diagonal(u, 7); np.fill_diagonal(u[1:], [1, 2]); np.fill_diagonal(u[:, 1:], v)
u = u[:0]; np.put(u, k[:0], 1); np.putmask(u, u > 0, 1); np.place(u, u > 0, 1)
""".strip().splitlines()


@pytest.mark.parametrize("line", PROGRAMS)
def test_as_numpy(line) -> None:
    assert_agrees(written(line), X, V, K, Y, exact=True)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("line", PROGRAMS)
def test_kernels_write_as_numpy(line, target) -> None:
    f = written(line)
    np.testing.assert_array_equal(Function(f, target=target)(X, V, K, Y), f(X, V, K, Y))


KEYS = ["0", "-1", "1:", ":-1", "::2", "::-1", "1:3", "..."]


@pytest.mark.parametrize("seed", range(60))
def test_random_assignments_views_and_names(seed) -> None:
    random = np.random.default_rng(seed)
    lines, names = [], ["u"]
    for _ in range(6):
        name, key = names[random.integers(len(names))], KEYS[random.integers(8)]
        other = names[random.integers(len(names))]
        match random.integers(5):
            case 0:
                names.append(f"w{len(names)}")
                lines.append(
                    f"{names[-1]} = {name}[{key}]" if name == "u" else f"{names[-1]} = {name}"
                )
            case 1:
                lines.append(f"{name}[{key}] = {random.integers(9)}")
            case 2:
                lines.append(f"{name}[{key}] += {other}.sum()")
            case 3:
                lines.append(f"{name} *= {random.integers(1, 4)}")
            case _:
                names.append(f"w{len(names)}")
                lines.append(f"{names[-1]} = {name} + {other}.max()")
    f = written("; ".join([*lines, f"u = u.sum() + {' + '.join(f'{n}.sum()' for n in names)}"]))
    assert_agrees(f, X, V, K, Y, exact=True)


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("u[0] = np.ones(4)", ArrayShapeError, "do not fit"),
        ("u[0] = x", ArrayShapeError, r"a value of shape \(4, 5\) for elements of shape \(5,\)"),
        ("u[0] = 2**40", UnknownArrayFunction, "out of bounds for int32"),
        ("np.add(u, 1, out=x)", ImmutableArray, "np.add is to write into `out`"),
        ("w = np.ones(u.shape, int); np.add(u, 0.5, out=w)", UnknownArrayFunction, "and `out` has"),
        ("np.sum(u, 0, out=u[0, :3])", ArrayShapeError, "do not fit: x1=5 and 3"),
        ("np.fill_diagonal(u[0], 1)", ArrayShapeError, "1 dimensions, which have no diagonal"),
        ("np.place(u, v > 0, 1)", ArrayShapeError, "a mask of 5 elements for 20"),
        ("np.place(u, u > 0, [])", ArrayShapeError, "no values"),
        ("np.put(u, 20, 1)", ArrayShapeError, "index 20 of a dimension of 20"),
        ("np.put_along_axis(u, k, 1, 0)", ArrayShapeError, "2 and 1 dimensions"),
        ("np.putmask(x, x > 0, 1)", ImmutableArray, "np.putmask writes into the argument x"),
        ("u[9] = 1", ArrayShapeError, "index 9 of a dimension of 4"),
        ("u[u > 0] = v", DataDependentShape, "how many elements a mask chooses"),
        ("u[v > 0, k] = 1", ArrayShapeError, "a mask of shape"),
        ("u[u[:, 0] > 0, k] = 1", DataDependentShape, "how many elements a mask chooses"),
        ("w = u.T; u[0] = 1; u = w", ImmutableArray, "changed in place under another name"),
        ("w = u.T; w[0] = 1", ImmutableArray, "changed in place under another name"),
    ],
)  # fmt: skip
def test_what_is_refused(line, error, message) -> None:
    with pytest.raises(error, match=message):
        outputs(written(line), X, V, K, Y)


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_steps_write_into_what_they_take(target) -> None:
    def scanned(start, x):
        def step(c, v):
            c += v
            v[0] = 9
            c[-1] = v.sum()
            return c, (c, v)

        return tile.scan(step, start, x)

    def flat(start, x):
        last, (sums, rows) = scanned(start, x)
        return last, sums, rows

    start, x = filled((3,), "int32", 1), filled((4, 3), "int32", 2)
    before = start.copy(), x.copy()
    wanted = flat(start, x)
    for found, right in zip(Function(flat, target=target)(start, x), wanted, strict=True):
        np.testing.assert_array_equal(found, right)
    np.testing.assert_array_equal(wanted[1][0][:2], start[:2] + x[0][:2])
    for old, now in zip(before, (start, x), strict=True):
        np.testing.assert_array_equal(now, old)


def test_sizes_that_are_symbols() -> None:
    @Function
    def shifted(x):
        y = np.zeros_like(x)
        y[1:] = x[:-1]
        y[0] = x[-1]
        return y

    for size in (2, 5, 9, 30, 31):
        x = filled((size, 3), "float32", size)
        np.testing.assert_array_equal(shifted(x), np.roll(x, 1, axis=0))
