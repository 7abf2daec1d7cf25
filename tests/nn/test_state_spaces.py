"""`tile_nn.causal_conv1d`, `mamba_chunk_scan` and `selective_state_update`, step by step."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import tile_nn
from support.nn_kernels import EMULATED, Case, require_accurate, require_gradients


def wide_of(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def convolution(
    x, weight, bias=None, initial_states=None, *, activation=None, return_final_states=False
):
    channels, width = weight.shape
    before = (
        x.new_zeros(x.shape[0], channels, width - 1) if initial_states is None else initial_states
    )
    known = torch.cat([before.to(x.dtype), x], dim=-1)
    wide = [None if t is None else wide_of(t) for t in (known, weight, bias)]
    y = F.conv1d(wide[0], wide[1][:, None], wide[2], groups=channels)
    y = (F.silu(y) if activation else y).to(x.dtype)
    return (y, known[..., x.shape[-1] :]) if return_final_states else y


def one_step(state, x, dt, a, b, c, d=None, z=None, dt_bias=None, *, dt_softplus=False):
    kept, type_of_x = state.dtype, x.dtype
    state, x, dt, a, b, c = map(wide_of, (state, x, dt, a, b, c))
    b, c = (t.repeat_interleave(x.shape[1] // t.shape[1], 1)[:, :, None] for t in (b, c))
    dt = dt if dt_bias is None else dt + dt_bias
    dt = F.softplus(dt, threshold=1000) if dt_softplus else dt
    state = torch.exp(dt * a)[..., None, None] * state + (dt[..., None] * x)[..., None] * b
    y = (state * c).sum(-1)
    if d is not None:
        y = y + (d if d.ndim == 2 else d[:, None]) * x
    y = y if z is None else y * F.silu(wide_of(z))
    return y.to(type_of_x), state.to(kept)


def all_steps(
    x, dt, a, b, c, d=None, z=None, dt_bias=None, initial_states=None, *, dt_softplus=False,
    return_final_states=False,
):  # fmt: skip
    batch, length, heads, width = x.shape
    state = wide_of(x).new_zeros(batch, heads, width, b.shape[3])
    state = state if initial_states is None else wide_of(initial_states)
    given = []
    for t in range(length):
        gate = None if z is None else z[:, t]
        now = x[:, t], dt[:, t], a, b[:, t], c[:, t]
        y, state = one_step(state, *now, d, gate, dt_bias, dt_softplus=dt_softplus)
        given.append(y)
    return (torch.stack(given, 1), state) if return_final_states else torch.stack(given, 1)


def of_channels(batch, channels, length, width, more=(), **settings):
    def arguments(random):
        def normal(*shape):
            return torch.randn(shape, generator=random, dtype=torch.float64)

        shapes = {"bias": (channels,), "initial_states": (batch, channels, width - 1)}
        made = {"x": normal(batch, channels, length), "weight": normal(channels, width)}
        return made | {n: normal(*shapes[n]) for n in more}

    return Case(tile_nn.causal_conv1d, convolution, arguments, settings)


def of_heads(batch, length, heads, width, groups, size, more=(), **settings):
    """A scan, or a step if there is no length."""

    def arguments(random):
        def normal(*shape):
            return torch.randn(shape, generator=random, dtype=torch.float64)

        steps = (batch,) if length is None else (batch, length)
        states = (batch, heads, width, size)
        shapes = {"d": (heads,), "z": (*steps, heads, width), "dt_bias": (heads,)}
        shapes |= {"initial_states": states, "dt": (*steps, heads)}
        made = {} if length is not None else {"state": normal(*states)}
        dt = normal(*steps, heads)
        return (
            made
            | {
                "x": normal(*steps, heads, width),
                "dt": dt if settings.get("dt_softplus") else dt.abs(),
                "a": -normal(heads).exp(),
                "b": normal(*steps, groups, size),
                "c": normal(*steps, groups, size),
            }
            | {n: normal(*shapes[n]) for n in more}
        )

    kernels = (tile_nn.selective_state_update, one_step)
    return Case(
        *(kernels if length is None else (tile_nn.mamba_chunk_scan, all_steps)), arguments, settings
    )


CASES = {
    ("filter", "float32"): of_channels(2, 5, 13, 4, ("bias",), activation="silu"),
    ("states", "bfloat16"): of_channels(
        1, 3, 7, 3, ("initial_states",), return_final_states=True, activation="swish"
    ),
    ("one element", "float16"): of_channels(
        2, 3, 1, 4, ("bias", "initial_states"), return_final_states=True
    ),
    ("as wide as one", "float64"): of_channels(1, 2, 5, 1, return_final_states=True),
    ("scan", "float32"): of_heads(1, 21, 2, 5, 1, 7, return_final_states=True),
    ("scan of all", "float32"): of_heads(
        2, 9, 4, 3, 2, 5, ("d", "z", "dt_bias", "initial_states"), dt_softplus=True,
        return_final_states=True,
    ),
    ("scan of 16 bits", "bfloat16"): of_heads(1, 5, 2, 8, 1, 4, ("d",), dt_softplus=True),
    ("scan of 64 bits", "float64"): of_heads(1, 4, 1, 3, 1, 2, ("z",)),
    ("one step of a scan", "float32"): of_heads(1, 1, 2, 3, 1, 2, return_final_states=True),
    ("step", "float32"): of_heads(3, None, 4, 5, 2, 7, ("d", "z", "dt_bias"), dt_softplus=True),
    ("step of 16 bits", "bfloat16"): of_heads(1, None, 2, 4, 1, 3),
}  # fmt: skip


@pytest.mark.parametrize("row", CASES, ids=", ".join)
@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_on_the_host(target, row):
    require_accurate(CASES[row], row[1], target)


@pytest.mark.filterwarnings("ignore:.* is whole in each thread:tile_launch.errors.TileWarning")
@pytest.mark.parametrize("target", EMULATED)
def test_emulated(target):
    require_accurate(CASES["scan of 16 bits", "bfloat16"], "bfloat16", target)


@pytest.mark.parametrize(
    "row",
    [
        ("filter", "float32"),
        ("states", "bfloat16"),
        ("scan of 16 bits", "bfloat16"),
        ("step", "float32"),
    ],
    ids=", ".join,
)
def test_gradients(row):
    require_gradients(CASES[row], row[1])


def test_two_calls_are_one():
    x, weight = torch.randn(2, 3, 12), torch.randn(3, 4)
    whole = tile_nn.causal_conv1d(x, weight)
    one, states = tile_nn.causal_conv1d(x[..., :5], weight, return_final_states=True)
    other = tile_nn.causal_conv1d(x[..., 5:], weight, None, states)
    assert torch.equal(torch.cat([one, other], dim=-1), whole)


def test_nothing():
    empty = torch.empty
    assert tile_nn.causal_conv1d(empty(0, 3, 5), empty(3, 4)).shape == (0, 3, 5)
    y, states = tile_nn.causal_conv1d(empty(2, 3, 0), empty(3, 4), return_final_states=True)
    assert (y.shape, states.shape) == ((2, 3, 0), (2, 3, 3))
    assert torch.equal(states, torch.zeros(2, 3, 3))
    given = empty(0, 5, 2, 3), empty(0, 5, 2), empty(2), empty(0, 5, 1, 4), empty(0, 5, 1, 4)
    assert tile_nn.mamba_chunk_scan(*given).shape == (0, 5, 2, 3)
