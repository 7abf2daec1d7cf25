"""The backend of `torch.compile`: torch's graphs as kernels of whole arrays.

What runs is a graph of torch's again, in which stages of kernels are single nodes.
"""

from __future__ import annotations

import functools
import logging
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from tile_api.arrays.capturing.torch_names import FUNCTIONS
from tile_api.arrays.function_caches import MOST_SIGNATURES
from tile_api.cache import KernelCache
from tile_api.integrations.torch_decompositions import decompositions
from tile_api.settings import Settings
from tile_api.torch_compile.captured import Captured, Functions, apart, is_one_kernel
from tile_api.torch_compile.explanations import CompiledGraph, InKernels, InTorch
from tile_api.torch_compile.nodes import Kind, device_of, kind_of, name_of, refusal
from tile_api.torch_compile.stages import Stage, Step, steps_of
from tile_api.torch_compile.strides import choose_strides
from tile_api.torch_compile.symbolic_shapes import Symbolic, Traced
from tile_core.errors import FrontendTypeError, TileError
from tile_core.spelling import nearest

_LOG = logging.getLogger("tile.torch")


@dataclass(frozen=True)
class Options:
    """What `torch.compile(..., options={...})` sets.

    Parameters
    ----------
    target
        What kernels run on, as `tile.compile` takes it; tensors elsewhere stay with torch. None:
        ``TILE_TARGET``, else the device of the tensors.
    explain
        A list that gets a `CompiledGraph` for each graph that is compiled.
    """

    target: str | None = None
    explain: list[CompiledGraph] | None = None


def tile_backend(
    gm: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Compile a graph that Dynamo hands over: ``torch.compile(model, backend="tile")``.

    Parameters
    ----------
    options
        The fields of `Options`, by name.
    """
    given = _options(options or {})
    told = getattr(gm, "compile_subgraph_reason", None)
    graph_break = str(told.reason) if told is not None and told.graph_break else None

    def compiler(kind: str) -> Callable[..., Any]:
        def compiled(graph: GraphModule, inputs: Sequence[Any]) -> Any:
            settings = _for_tensors(given, inputs)
            device = device_of(settings.target)
            if any(map(_is_symbolic, inputs)):
                return make_boxed_func(_BySizes(graph, kind, settings, graph_break))
            choose_strides(graph, inputs, _in_torch(graph.graph, device), _kept(kind))
            made = lowered(graph, kind, settings, graph_break)
            _report_strides(graph)
            return make_boxed_func(made.forward)

        return compiled

    backend: Any = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions(FUNCTIONS),
        partition_fn=min_cut_rematerialization_partition,
    )
    made: Callable[..., Any] = backend(gm, example_inputs)
    return made


def _for_tensors(options: Options, inputs: Sequence[Any]) -> Options:
    """Return options with a target: that of the CPU if tensors are there, and no other is meant."""
    devices = {x.device.type for x in inputs if isinstance(x, torch.Tensor)}
    is_open = options.target is None and Settings.from_environment().target == "auto"
    return replace(options, target="cpu") if is_open and devices == {"cpu"} else options


def _kept(kind: str) -> int | None:
    """Return how many results of a graph are the program's: others are kept for gradients."""
    context = TracingContext.try_get()
    if kind != "forward" or context is None or context.fw_metadata is None:
        return None
    return int(context.fw_metadata.num_forward)


def _report_strides(graph: GraphModule) -> None:
    """Tell AOTAutograd how results lie in memory: the graph of gradients is compiled for that."""
    context = TracingContext.try_get()
    if context is not None and context.output_strides is not None:
        (output,) = (n for n in graph.graph.nodes if n.op == "output")
        values = [n.meta.get("val") if isinstance(n, Node) else None for n in output.args[0]]
        context.output_strides += [
            tuple(x.stride()) if isinstance(x, torch.Tensor) else None for x in values
        ]


def _options(given: Mapping[str, Any]) -> Options:
    known = [field.name for field in fields(Options)]
    for name in given:
        if name not in known:
            near = nearest(name, known)
            raise FrontendTypeError(
                f"torch.compile was given the option {name!r}",
                hint=f"there is {near!r}" if near else f"there are {', '.join(known)}",
            )
    return Options(**given)


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> list[CompiledGraph]:
    """Compile a function or module anew, run it, and return what became of each graph.

    A graph of gradients is made when they are first computed: it is among these if `function`
    computes them.
    """
    told: list[CompiledGraph] = []
    torch.compile(function, backend=tile_backend, options={"explain": told})(*args, **kwargs)
    return told


def _is_symbolic(x: Any) -> bool:
    if isinstance(x, torch.Tensor):
        return any(isinstance(n, torch.SymInt) for n in (*x.shape, *x.stride()))
    return isinstance(x, (torch.SymInt, torch.SymFloat))


class _BySizes:
    """A graph whose sizes are symbols: traced again for each sizes that it meets.

    Views and shapes of torch's graph are numbers there. Kernels are for all sizes, where what torch
    does with sizes lets them.
    """

    def __init__(
        self, graph: GraphModule, kind: str, options: Options, graph_break: str | None
    ) -> None:
        self.graph = graph
        self.rest = (kind, options, graph_break)
        self.known: KernelCache[GraphModule] = KernelCache(MOST_SIGNATURES)
        self.symbolic = Symbolic(graph.graph)

    def __call__(self, *args: Any) -> Any:
        key = tuple([(x.shape, x.stride()) if isinstance(x, torch.Tensor) else x for x in args])
        found = self.known.get(key)
        if found is None:
            with torch.no_grad():
                traced = make_fx(self.graph, tracing_mode="fake")(*args)
            for node in [n for n in traced.graph.nodes if n.target is operator.getitem]:
                if not node.users:  # which the graph with symbols does not have
                    traced.graph.erase_node(node)
            same = self.symbolic.traced(traced.graph)
            sizes = _sizes_of(self.graph, args)
            found = lowered(traced, *self.rest, sizes=sizes, traced=same)
            self.known.put(key, found)
        return found(*args)


def _sizes_of(graph: GraphModule, args: Sequence[Any]) -> tuple[str, ...]:
    """Return which sizes that are symbols are which numbers now."""
    made: dict[str, str] = {}
    nodes = (n for n in graph.graph.nodes if n.op == "placeholder")
    for node, x in zip(nodes, args, strict=True):
        value = node.meta.get("val")
        for k, n in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(n, torch.SymInt):
                made.setdefault(str(n), f"{node.name}.shape[{k}] = {int(x.shape[k])}")
    return tuple(made.values())


def lowered(
    gm: GraphModule,
    kind: str,
    options: Options,
    graph_break: str | None = None,
    sizes: tuple[str, ...] = (),
    traced: Traced | None = None,
) -> GraphModule:
    """Return a graph in which what can be captured is kernels.

    Parameters
    ----------
    sizes
        Those that torch leaves open, as they are in this graph.
    traced
        The graph with symbols for them, which may be known from other sizes.
    """
    functions = Functions(options.target)
    joins = functools.partial(is_one_kernel, functions=functions)
    known: dict[Stage, Captured] = {}
    steps, found = (traced and traced.known()) or ([], {})
    reasons = _in_torch(gm.graph, device_of(options.target)) | found
    while not steps or not _is_captured(steps, known, reasons, functions, traced):
        captured = {*gm.graph.nodes} - reasons.keys()
        steps = []
        for step in steps_of(gm.graph, captured.__contains__, joins):
            steps += apart(step, functions) if isinstance(step, Stage) else [step]
        if not steps:
            break
    if traced is not None:
        traced.keep(steps, reasons)
    if options.explain is not None:
        told = _told(steps, known, reasons)
        options.explain.append(CompiledGraph(kind, told, graph_break, sizes))
    return GraphModule(gm, _rewritten(gm.graph, steps, known))


def _in_torch(graph: Graph, device: str) -> dict[Node, str]:
    """Return what torch is known to run, and why."""
    reasons: dict[Node, str] = {}
    for node in graph.nodes:
        found = refusal(node, device)
        if found is None and name_of(node) == "getitem":
            found = reasons.get(node.args[0])
        if found is not None:
            reasons[node] = found
    return reasons


def _is_captured(
    steps: Sequence[Step],
    known: dict[Stage, Captured],
    reasons: dict[Node, str],
    functions: Functions,
    traced: Traced | None,
) -> bool:
    """Make kernels of the stages; False if some nodes turn out to be torch's."""
    is_whole = True
    for step in steps:
        if isinstance(step, Node) or step in known:
            continue
        better = _better_in_torch(step)
        if better is not None:
            reasons |= dict.fromkeys(_heavy(step), better)
            is_whole = False
            continue
        captured = Captured(step, functions, traced)
        try:
            if captured.is_symbolic and not _is_compiled(captured):
                captured = Captured(step, functions)
            captured.function.kernels(*captured.like)
        except Exception as error:  # whatever it is, torch can run the nodes
            text = error.message if isinstance(error, TileError) else f"{error!r}"
            at = captured.failed_at
            level = logging.WARNING if at is None else logging.DEBUG
            nodes = [at] if at is not None else _heavy(step)
            names = ", ".join(dict.fromkeys(str(n.target) for n in nodes))
            _LOG.log(level, "torch.compile: %s in torch, not in a kernel: %s", names, text)
            for n in nodes:
                parts = [user for user in n.users if user.target is operator.getitem]
                reasons |= dict.fromkeys([n, *parts], text)
            is_whole = False
        else:
            functions.keep(captured)
            known[step] = captured
    return is_whole


def _is_compiled(captured: Captured) -> bool:
    try:
        captured.function.kernels(*captured.like)
    except Exception:  # kernels of these sizes alone may do
        return False
    return True


def _heavy(stage: Stage) -> list[Node]:
    return [n for n in stage.nodes if kind_of(n) not in (Kind.CREATION, Kind.VIEW)]


def _better_in_torch(stage: Stage) -> str | None:
    """Return why torch runs a stage although kernels could; None if it does not."""
    if not stage.inputs:
        return "it reads no tensors, which tell where a kernel runs"
    tensors = [n.meta["val"] for n in (*stage.inputs, *stage.outputs)]
    is_small = all(isinstance(x, torch.Tensor) and x.numel() == 1 for x in tensors)
    if is_small and len(_heavy(stage)) == 1:  # nothing to fuse
        return "of one number: to call a kernel takes longer"
    return None


def _told(
    steps: Sequence[Step], known: Mapping[Stage, Captured], reasons: Mapping[Node, str]
) -> tuple[InKernels | InTorch, ...]:
    told: list[InKernels | InTorch] = []
    for step in steps:
        if isinstance(step, Stage):
            names = tuple(n.name for n in step.nodes)
            told.append(InKernels(names, known[step].function, known[step].like))
        elif step.op == "call_function" and step.target is not operator.getitem:
            told.append(InTorch(str(step.target), reasons[step]))
    return tuple(told)


def _rewritten(old: Graph, steps: Sequence[Step], known: Mapping[Stage, Captured]) -> Graph:
    """Return a graph of the steps, and of the views between them."""
    graph = Graph()
    copies: dict[Node, Node] = {}

    def of(node: Node) -> Node:
        """Return a node of the new graph; views are made where they are first read."""
        if node not in copies:
            for n in node.all_input_nodes:
                of(n)
            copies[node] = graph.node_copy(node, copies.__getitem__)
            if node.target is torch.ops.aten.view.default:  # strides may differ in dimensions of 1
                copies[node].target = torch.ops.aten.reshape.default
        return copies[node]

    for node in old.nodes:
        if node.op == "placeholder":
            of(node)
    for step in steps:
        if isinstance(step, Node):
            of(step)
            continue
        stage: Any = known[step]
        call = graph.call_function(stage, tuple(map(of, stage.bases)))
        for k, output in enumerate(step.outputs):
            copies[output] = graph.call_function(operator.getitem, (call, k))
    for node in old.nodes:
        if node.op == "output":
            of(node)
    graph.lint()
    return graph
