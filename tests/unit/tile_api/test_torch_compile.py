"""`torch.compile(backend="tile")`: right against eager, and what is told of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from support.listening import listening
from support.torch_models import GPTBlock, MambaBlock, ResNetBlock
from tile_api.arrays import running
from tile_api.torch_compile.backend import Options, explain, lowered, tile_backend
from tile_api.torch_compile.explanations import CompiledGraph
from tile_core.errors import FrontendTypeError

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own
F = torch.nn.functional
PACKAGE = Path(__file__).parents[3] / "packages/tile-api"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def compiled(function: Any, told: list[CompiledGraph], **options: Any) -> Any:
    settings = {"target": "cpu", "explain": told}
    return torch.compile(function, backend=tile_backend, options=settings, **options)


def results(function: Any, inputs: tuple[Any, ...], parameters: Any = ()) -> list[Any]:
    """Return outputs, then gradients of what has some, then inputs as they are left."""
    torch.manual_seed(0)
    given = [
        x.detach().clone(memory_format=torch.preserve_format).requires_grad_(x.requires_grad)
        if isinstance(x, torch.Tensor) else x
        for x in inputs
    ]  # fmt: skip
    for p in parameters:
        p.grad = None
    made = function(*given)
    outputs = list(made) if isinstance(made, (tuple, list)) else [made]
    graded = [y for y in outputs if isinstance(y, torch.Tensor) and y.requires_grad]
    if graded:
        torch.stack([y.float().square().sum() for y in graded]).sum().backward()
    found = outputs + [x.grad for x in given if isinstance(x, torch.Tensor)]
    found += [p.grad for p in parameters]
    return found + [x for x in given if isinstance(x, torch.Tensor)]


def agree(
    function: Any, *inputs: Any, error: float = 1e-4, fullgraph: bool = True, **options: Any
) -> list[CompiledGraph]:
    """Compare with eager mode, and return what was told."""
    told: list[CompiledGraph] = []
    parameters = [*function.parameters()] if isinstance(function, torch.nn.Module) else []
    wanted = results(function, inputs, parameters)
    found = results(compiled(function, told, fullgraph=fullgraph, **options), inputs, parameters)
    for right, got in zip(wanted, found, strict=True):
        if isinstance(right, torch.Tensor):
            torch.testing.assert_close(got, right, rtol=error, atol=error, equal_nan=True)
        else:
            assert got == right
    return told


def test_it_is_declared_to_torch() -> None:
    declared = f'tile = "{tile_backend.__module__}:{tile_backend.__qualname__}"'
    text = (PACKAGE / "pyproject.toml").read_text()
    assert f"[project.entry-points.torch_dynamo_backends]\n{declared}\n" in text
    installed = entry_points(group="torch_dynamo_backends", name="tile")
    assert all(found.load() is tile_backend for found in installed)


def test_layers_are_products_with_what_follows() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.GELU(), torch.nn.Linear(24, 6))
    forward, backward = agree(model, torch.randn(10, 12, requires_grad=True))
    assert (forward.kind, forward.kernels, forward.in_torch) == ("forward", 2, ())
    assert (backward.kind, backward.in_torch) == ("backward", ())
    assert [step.operations for step in forward.steps] == [("addmm", "gelu"), ("addmm_1",)]
    assert "T.gemm" in forward.steps[0].source()


def test_what_follows_a_product_is_in_its_kernel_in_whatever_shape() -> None:
    def mixed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.gelu(x @ w) + x

    with torch.no_grad():
        (told,) = agree(mixed, plain(2, 3, 8), plain(8, 8))
    assert (told.kernels, told.in_torch) == (1, ())
    turned = agree(lambda x, w: (x @ w).view(3, 2, 4).transpose(0, 1) + 1, plain(6, 8), plain(8, 4))
    assert [graph.in_torch for graph in turned] == [()]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("model", [GPTBlock(16, 2), ResNetBlock(4)], ids=["gpt", "resnet"])
def test_blocks_of_models_train(model: torch.nn.Module) -> None:
    torch.manual_seed(0)
    model = model.eval()  # twice the same: no statistics are moved
    told = agree(model, torch.randn(model.example, requires_grad=True))
    assert [graph.kind for graph in told] == ["forward", "backward"]
    ours = {t.operation for graph in told for t in graph.in_torch}
    assert ours <= {"aten.convolution.default", "aten.convolution_backward.default"}


def test_a_mamba_block_runs() -> None:
    torch.manual_seed(0)
    model = MambaBlock(8, 2, 4, 4)
    with torch.no_grad():
        (told,) = agree(model, torch.randn(model.example))
    assert {t.operation for t in told.in_torch} <= {
        "aten.convolution.default",
        "aten.cumsum.default",
    }


def test_attention_by_hand_is_one_kernel() -> None:
    def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        seen = torch.ones(q.shape[-2], k.shape[-2]).tril() == 1
        scores = (q @ k.transpose(-1, -2) / 2).masked_fill(~seen, -torch.inf)
        return torch.softmax(scores, -1) @ v

    q, k, v = (plain(2, 2, 16, 8) + n for n in range(3))
    (told,) = agree(attended, q, k, v)
    assert (told.kernels, told.in_torch) == (1, ())


def test_rows_that_see_nothing_are_zero() -> None:
    inputs = [plain(1, 2, 16, 8) + n for n in range(3)]
    mask = torch.ones(16, 16).tril(-1).bool()
    (told,) = agree(F.scaled_dot_product_attention, *inputs, mask)
    assert (told.kernels, told.in_torch) == (2, ())  # torch makes numbers of the mask first


def _written(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.add_(1)
    y[0] = 0
    return y.relu_()


def _aliased(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return views of an input, of what a kernel made, and what reads such views."""
    y = x * 2
    rows = y.view(4, 2, 6)[:, 1]
    return rows, rows.t() + 1, y.view(torch.int32)[1:] + 1, x.unflatten(0, (4, 2)).transpose(1, 2)


def _one_head_of_keys(q: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return attention of two heads to one, which is repeated as models do."""
    k = F.rms_norm((q @ w).view(1, -1, 1, 6).transpose(1, 2), (6,))
    k = k[:, :, None].expand(1, 1, 2, k.shape[2], 6).reshape(1, 2, -1, 6)
    return F.scaled_dot_product_attention(q.view(1, -1, 2, 6).transpose(1, 2), k, k)


def _input_written(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


def _partly_without_gradients(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = x * 2
    return y + x


def wide(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(shape, dtype=dtype, requires_grad=True)


def plain(*shape: int) -> torch.Tensor:
    return wide(*shape).detach()


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "written in place": (_written, (wide(4, 5),)),
    "an input is written": (_input_written, (plain(4, 5),)),
    "views of results": (_aliased, (plain(8, 6),)),
    "views": (lambda x: (x[:, ::2].T.reshape(-1) * 2, x.t(), x[1:]), (wide(4, 6),)),
    "None and numbers": (lambda x: (x + 1, None, x.sum(), 3), (wide(4, 6),)),
    "gradients of some": (lambda x, y, z: (x * y + z, y * 2), (wide(4, 5), plain(4, 5), wide(5))),
    "no gradients inside": (_partly_without_gradients, (wide(4, 5),)),
    "channels apart": (lambda x, w, b: F.conv1d(x, w, b, padding=2, groups=3)[..., :6],
                       (wide(2, 3, 6), wide(3, 1, 3), wide(3))),
    "a transpose": (lambda x: torch.softmax(x * 2, -1), (plain(6, 4, 5).permute(1, 2, 0),)),
    "gaps": (lambda x: (x[:, 1:3] * 2).sum(-1), (plain(4, 8, 5)[:, ::2],)),
    "broadcast": (lambda x: x * 2, (plain(4, 1).expand(4, 5),)),
    "an offset": (lambda x: (x * 2)[1:, 2:].sum(1), (plain(64)[8:40].view(4, 8),)),
    "heads side by side": (
        lambda q, k: F.scaled_dot_product_attention(q, k, k).transpose(1, 2).reshape(10, 12) * 2,
        (wide(2, 3, 5, 4), wide(2, 3, 5, 4))),
    "one head of keys": (_one_head_of_keys, (plain(1, 5, 12), plain(12, 6))),
    "no elements": (lambda x: (x * 2, x.sum(), x.sum(1)), (wide(0, 5),)),
    "a product over nothing": (lambda x, y: x @ y, (wide(4, 0), wide(0, 3))),
    "no dimensions": (lambda x, y: (x * y, y.sqrt()), (wide(), torch.tensor(2.0))),
    "integers": (lambda i: (i / 2, i % 5, i.sum(0), i > 2), (torch.arange(12).view(3, 4),)),
    "random numbers": (lambda x: F.dropout(F.relu(x), 0.5) + torch.rand_like(x), (wide(8, 9),)),
    "a loss": (lambda x: F.cross_entropy(x, torch.tensor([1, 2, 0])), (wide(3, 4),)),
    "complex numbers": (lambda x: torch.view_as_real(torch.view_as_complex(x) * 2j) + 1,
                        (plain(4, 2),)),
}  # fmt: skip


@pytest.mark.in_turn(8)
@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_eager_mode_computes(name: str) -> None:
    function, inputs = CASES[name]
    agree(function, *inputs)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_short_floats_are_as_exact_as_in_eager_mode(dtype: torch.dtype) -> None:
    def normed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(F.gelu(x @ w), (8,)) * x

    inputs = (wide(16, 8, dtype=dtype), wide(8, 8, dtype=dtype))
    exact = results(normed, tuple(x.detach().double().requires_grad_() for x in inputs))
    eager, ours = results(normed, inputs), results(compiled(normed, []), inputs)
    for right, peer, got in zip(exact, eager, ours, strict=True):
        assert got.dtype == peer.dtype
        apart = (got.double() - right).abs().max()
        assert apart <= 4 * (peer.double() - right).abs().max() + 1e-6


def test_elements_that_several_stages_read_are_computed_by_each() -> None:
    def moments(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.where(x > 0, y, 0.0)
        return z * 2 - (z * y).sum((0, 2), keepdim=True) - z.sum((0, 2), keepdim=True)

    (told,) = agree(moments, plain(3, 4, 5), plain(3, 4, 5) + 1)
    assert (len(told.steps), told.kernels) == (1, 2)  # sums, and what reads them


def test_tensors_that_lie_otherwise_than_was_told_are_read_all_the_same() -> None:
    def picked(x: torch.Tensor) -> torch.Tensor:
        return x[1:].t() * 2

    graph = make_fx(picked, tracing_mode="fake")(plain(4, 6))
    fast = lowered(graph, "inference", Options("cpu"))
    for x in (plain(4, 6), plain(6, 4).t(), plain(4, 12)[:, ::2], plain(4, 1).expand(4, 6)):
        torch.testing.assert_close(fast(x), picked(x))


def test_repeated_elements_are_read_wherever_dimensions_of_one_element_lie() -> None:
    def summed(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).sum(-1)

    told = plain(1, 1, 5, 6).expand(1, 3, 5, 6)
    fast = lowered(make_fx(summed, tracing_mode="fake")(told), "inference", Options("cpu"))
    rows = plain(5, 6).as_strided((1, 3, 5, 6), (0, 0, 6, 1))
    gaps = plain(1, 1, 5, 12)[..., ::2].expand(1, 3, 5, 6)
    assert rows.stride() != told.stride()
    for x in (told, rows, gaps):
        torch.testing.assert_close(fast(x), summed(x))


def test_strides_are_those_of_eager_mode() -> None:
    x = torch.randn(2, 4, 3, 3).to(memory_format=torch.channels_last)
    assert compiled(lambda x: x * 2, [])(x).stride() == x.stride()


def test_tensors_between_nodes_lie_as_their_kernels_read_them() -> None:
    def mixed(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = F.conv1d(x.transpose(1, 2), w, padding=2, groups=4)
        return y, (F.silu(y[..., :6]).transpose(1, 2) * 2).sum(-1)

    inputs = wide(2, 6, 4), wide(4, 1, 3)
    told = agree(mixed, *inputs)
    read = [x.shape for graph in told for step in graph.steps for x in getattr(step, "like", ())]
    assert (2, 8, 4) in read  # the convolution's (2, 4, 8), with channels beside each other
    eager, ours = mixed(*inputs)[0], compiled(mixed, [])(*inputs)[0]
    assert ours.stride() == eager.stride()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_inference(mode: Callable[[], Any]) -> None:
    with mode():
        (told,) = agree(torch.nn.Linear(5, 3), torch.randn(4, 5))
    assert (told.kind, told.kernels) == ("inference", 1)


def scaled_rows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ w, -1) * x.shape[0]


def flattened(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.gelu(x[:, None].expand(-1, 3, -1).reshape(-1, 4) @ w).view(x.shape[0], 3, -1)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("function", [scaled_rows, flattened])
def test_sizes_that_are_symbols_have_kernels_together(function, monkeypatch) -> None:
    count, told = 0, list[CompiledGraph]()

    def counted(*args: Any, real=running.compile_kernel, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return real(*args, **kwargs)

    monkeypatch.setattr(running, "compile_kernel", counted)
    fast = compiled(function, told, dynamic=True)
    w, made = wide(4, 3), []
    for rows in (5, 7, 6):
        x = plain(rows, 4)
        for right, got in zip(results(function, (x, w)), results(fast, (x, w)), strict=True):
            torch.testing.assert_close(got, right)
        made.append(count)
    assert made[0] == made[1] == made[2] > 0
    assert [graph.kind for graph in told] == ["forward", "backward"] * 3
    sizes = [str(graph).splitlines()[1].rpartition(": ") for graph in told[::2]]
    for rows, (text, _, tail) in zip((5, 7, 6), sizes, strict=True):
        assert f".shape[0] = {rows}, " in text
        assert tail == "kernels without symbols are for these sizes"


def test_stages_that_need_sizes_which_no_tensor_tells_are_compiled_for_each() -> None:
    def made(x: torch.Tensor) -> torch.Tensor:
        return (x.reshape(-1) * 2).view(x.shape[1], x.shape[0]) @ torch.ones(x.shape[0], 2)

    fast = compiled(made, told := [], dynamic=True)
    for shape in ((4, 6), (6, 4), (3, 8)):
        x = torch.randn(*shape)
        torch.testing.assert_close(fast(x), made(x))
    assert len(told) == 3


def test_kernels_run_on_an_emulated_gpu() -> None:
    told: list[CompiledGraph] = []
    settings = {"target": "cuda:sm_90a@sim", "explain": told}

    def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ w, -1)

    fast = torch.compile(scaled, backend=tile_backend, options=settings)
    x, w = plain(6, 4), plain(4, 5)
    torch.testing.assert_close(fast(x, w), scaled(x, w))
    assert told[0].in_torch == ()


def test_buffers_move_as_in_eager_mode() -> None:
    one, other = (torch.nn.BatchNorm1d(3) for _ in range(2))
    x = torch.randn(8, 3)
    torch.testing.assert_close(compiled(other, told := [])(x), one(x))
    assert [str(step) for step in told[0].in_torch] == [
        "aten.add.Tensor runs in torch: of one number: to call a kernel takes longer"
    ]
    for moved, right in zip(other.buffers(), one.buffers(), strict=True):
        torch.testing.assert_close(moved, right)


def test_what_reads_no_tensors_is_one_of_torch() -> None:
    """Totals of constants, as masks of packed sequences have them: kernels, torch, results read."""

    def packed(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        document = (torch.arange(4)[None].diff(dim=1) != 1).cumsum(-1)
        return document, w[document[0]], x * document

    told = agree(packed, torch.randn(5, 3), torch.randn(2, 3))
    assert any("it reads no tensors" in str(step) for step in told[0].in_torch)


def test_layers_that_are_alike_are_captured_once() -> None:
    """Sizes, scalars and what lies where make a difference, names of weights none."""

    def layers(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        for w in weights:
            x = torch.softmax(x @ w, -1) * 2
        return (x * 3).sum(0)

    told = agree(layers, *(torch.randn(*shape) for shape in ((5, 4), (4, 4), (4, 4), (4, 6))))
    functions = {step.operations: step.function for step in told[0].steps}
    first, second, wide = (f for names, f in functions.items() if "softmax" in names[0])
    assert first is second
    assert wide is not first
    assert len({*functions.values()}) == len(functions) - 1


def test_indices_outside_are_refused_by_torch() -> None:
    fast = compiled(lambda w, i: F.embedding(i, w) * 2, told := [])
    with pytest.raises(IndexError):
        fast(torch.randn(3, 4), torch.tensor([7]))
    assert [str(step) for step in told[0].in_torch] == [
        "aten.embedding.default runs in torch: torch checks that its indices are inside"
    ]


def test_an_explanation_tells_breaks_and_what_torch_runs() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = torch.cummax(x * 2, 0).values
        torch._dynamo.graph_break()
        return y + 1

    first, second = explain(broken, plain(3, 4))
    assert [t.operation for t in first.in_torch] == ["aten.cummax.default"]
    assert first.graph_break is not None
    assert second.graph_break is None
    lines = str(first).splitlines()
    assert lines[0] == "inference: 1 kernels, 1 operations of torch"
    assert f"aten.cummax.default runs in torch: {first.in_torch[0].reason}" in lines
    assert first.in_torch[0].reason == "torch's own takes less time for long rows"


def test_a_kernel_that_cannot_be_made_runs_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise FrontendTypeError("no kernel today")

    monkeypatch.setattr("tile_api.arrays.function.Function.kernels", fails)
    with listening("tile.torch", logging.WARNING) as records:
        (told,) = agree(lambda x: x * 2 + 1, plain(3, 4))
    assert {t.reason for t in told.in_torch} == {"no kernel today"}
    assert [r.getMessage() for r in records] == [
        "torch.compile: aten.mul.Tensor, aten.add.Tensor in torch, not in a kernel: no kernel today"
    ]


def test_unknown_options_are_refused() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as found:
        torch.compile(lambda x: x + 1, backend=tile_backend, options={"targt": "cpu"})(plain(3))
    inner = found.value.inner_exception
    assert isinstance(inner, FrontendTypeError)
    assert (inner.message, inner.hint) == (
        "torch.compile was given the option 'targt'",
        "there is 'target'",
    )
