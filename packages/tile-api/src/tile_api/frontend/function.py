"""`T.prim_func`: a decorated function becomes a kernel in tile IR."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType
from typing import Any

from tile_api.frontend.builder import Builder, tracing
from tile_api.frontend.host_statements import with_launches
from tile_api.frontend.python_errors import explained
from tile_api.frontend.rewrite import Rewritten, rewrite_function
from tile_api.frontend.source import FunctionSource, calling_span, evaluate_annotations, read_source
from tile_api.frontend.statements import activation_factory
from tile_api.frontend.symmetric import SymmetricValue, with_rank_parameters
from tile_api.frontend.types import PointerSpec, TensorSpec
from tile_api.frontend.values import BufferValue
from tile_api.frontend.vector_buffers import parameter_value
from tile_api.tracebacks import concise
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import FrontendTypeError, MissingReturn, Note, SignatureError, Span, TileError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import Node, walk
from tile_core.ir.printer import print_kernel, symbols_of
from tile_core.ir.stmt import Alloc, For, Kernel, KernelOptions, Launch, Let, Parallel, Pipelined
from tile_core.ir.verify_parallel import verify_parallel
from tile_core.ops.verify_barriers import verify_barriers
from tile_core.ops.verify_reducers import verify_reducers
from tile_core.ops.verify_tile_bounds import verify_tile_bounds
from tile_core.pass_manager.instrumentation import timed
from tile_core.records import Uncopied


class PrimFunc(Uncopied):
    """A traced kernel, not yet compiled. Immutable.

    Pickled, it is its tile IR: the Python function stays behind.

    Attributes
    ----------
    kernel : tile_core.ir.stmt.Kernel
        Its tile IR.
    params : tuple of Buffer or Var
        The parameters in call order; tensors declared with `T.empty` come last.
    attrs : mapping
        What `T.func_attr` attached.
    orig_func : function
        The Python function it was traced from, in the process that traced it.
    """

    __slots__ = ("__name__", "__wrapped__", "_attrs", "_kernel", "_orig_func")

    def __init__(
        self, kernel: Kernel, orig_func: Callable[..., Any] | None, attrs: Mapping[str, object]
    ) -> None:
        set_ = object.__setattr__
        set_(self, "_kernel", kernel)
        set_(self, "_orig_func", orig_func)
        set_(self, "_attrs", dict(attrs))
        set_(self, "__name__", kernel.name)
        if orig_func is not None:
            set_(self, "__wrapped__", orig_func)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what `pickle` writes: the tile IR and the attributes."""
        return PrimFunc, (self.kernel, None, self._attrs)  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: object) -> None:
        raise FrontendTypeError(
            "a PrimFunc cannot be changed", span=calling_span(), hint="trace another one"
        )

    @property
    def kernel(self) -> Kernel:
        """The kernel in tile IR."""
        return self._kernel  # type: ignore[no-any-return,attr-defined]

    @property
    def params(self) -> tuple[Buffer | Var, ...]:
        """The parameters in call order."""
        return self.kernel.params

    @property
    def buffer_map(self) -> dict[Buffer | Var, BufferValue | SymmetricValue]:
        """The tensor parameters as kernels see them, by parameter; addresses are int64."""
        int64 = dtype_of("int64")
        return {
            param: parameter_value(replace(param, dtype=int64) if param.dtype.is_handle else param)
            for param in self.params
            if isinstance(param, Buffer)
        }

    @property
    def attrs(self) -> dict[str, object]:
        """A copy of the attached attributes."""
        return {"global_symbol": self.kernel.name, **self._attrs}  # type: ignore[attr-defined]

    @property
    def orig_func(self) -> Callable[..., Any]:
        """The Python function.

        Raises
        ------
        FrontendTypeError
            If the prim func was unpickled: functions do not travel.
        """
        found = self._orig_func  # type: ignore[attr-defined]
        if found is None:
            raise FrontendTypeError(
                f"the Python function of {self.name!r} stayed where it was traced",
                span=calling_span(),
                hint="print its tile IR: kernel.script()",
            )
        return found  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.kernel.name

    def script(self) -> str:
        """Return the printed tile IR."""
        return print_kernel(self.kernel)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: a kernel runs after it was compiled."""
        raise FrontendTypeError(
            f"the kernel {self.name!r} is not compiled and cannot be called",
            span=calling_span(),
            hint="compile it first: tile.compile(kernel)(A, B), or decorate a factory with "
            "@tile.jit",
        )

    def __repr__(self) -> str:
        return f"<PrimFunc {self.name}>"


@concise
def prim_func(
    func: Callable[..., Any] | None = None,
    private: bool = False,
    check_well_formed: bool = True,
    *,
    eager_jit: bool = False,
    **options: Any,
) -> Any:
    """Trace `func` now and return the kernel.

    Parameters
    ----------
    func
        Each parameter is annotated with a tensor declaration (`T.Tensor`, `T.StridedTensor`),
        a scalar dtype (`T.int32`) or `T.ptr`. Its body is executed once, as a tracer.
    private, check_well_formed, options
        Accepted for compatibility; of the `options` there is `is_stir`.
    eager_jit
        Must be false: `tile_api.jit` makes a function that is traced when it is called.

    Raises
    ------
    SignatureError
        If a parameter has no usable annotation.
    FrontendError
        If the body contains what has no meaning in a kernel.
    """
    unknown = set(options) - {"is_stir"} | ({"eager_jit"} if eager_jit else set())
    if unknown:
        told = f"T.prim_func has no option {sorted(unknown)[0]!r}"
        raise FrontendTypeError(told, span=calling_span(), hint="use @T.prim_func alone")
    if func is None:
        return prim_func
    source = read_source(func)
    rewritten = rewrite_function(source, kind="prim_func", references={})
    builder = Builder(source.function.__name__)
    annotations = evaluate_annotations(source.function)
    params = parameters(source, annotations)
    values = {name: handle(p, annotations[name]) for name, p in params.items()}
    run_traced(builder, source, rewritten, values)
    kernel = finish(builder, tuple(params.values()), source.span)
    return PrimFunc(kernel, source.function, builder.attrs)


@timed("trace", "frontend")
def run_traced(
    builder: Builder, source: FunctionSource, rewritten: Rewritten, values: Mapping[str, Any]
) -> None:
    """Execute the body once; errors get the user's line that was being executed."""
    traced = rewritten.build(activation_factory(rewritten.table, "prim_func"))
    with tracing(builder), user_errors(builder, source.file):
        traced(**values)


@contextmanager
def user_errors(builder: Builder, file: str) -> Iterator[None]:
    """Give errors of the user's code their place and, where they have none, a code."""
    try:
        yield
    except TileError as error:
        error.at(builder.span)
        raise
    except Exception as error:
        coded = explained(error, file)
        if coded is None:
            raise
        raise coded.at(builder.span) from error


def handle(param: Buffer | Var, annotation: Any) -> Any:
    """Return what the user holds for a parameter that `annotation` declares."""
    if not isinstance(param, Buffer):
        return param
    spec = _declaration(annotation)
    return parameter_value(param, spec.lanes if isinstance(spec, TensorSpec) else 1)


def parameters(source: FunctionSource, annotations: Mapping[str, Any]) -> dict[str, Buffer | Var]:
    """Return the kernel parameters that a signature declares, in order."""
    result: dict[str, Buffer | Var] = {}
    for name, parameter in inspect.signature(source.function).parameters.items():
        span = source.parameter_span(name)
        check_parameter(parameter, source.function, span)
        if parameter.default is not parameter.empty:
            raise SignatureError(
                f"the kernel parameter {name!r} cannot have a default value",
                span=span,
                hint="remove the default; compile-time parameters belong to the @tile.jit factory",
            )
        if name not in annotations:
            raise SignatureError(
                f"parameter {name!r} of the kernel {source.function.__name__!r} has no annotation",
                span=span,
                hint=f'annotate it: {name}: T.Tensor((M, N), "float32"), or {name}: T.int32',
            )
        result[name] = declared_parameter(name, annotations[name], span)
    return result


def check_parameter(parameter: inspect.Parameter, function: FunctionType, span: Span) -> None:
    """Refuse parameters that cannot be passed by name."""
    kinds: dict[Any, str] = {
        inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
        inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments",
        inspect.Parameter.VAR_KEYWORD: "takes any keyword arguments",
    }
    reason = kinds.get(parameter.kind)
    if reason is not None:
        told = f"parameter {parameter.name!r} of the kernel {function.__name__!r} {reason}"
        raise SignatureError(told, span=span, hint="a kernel has a fixed list of named parameters")


def _declaration(annotation: Any) -> Any:
    """Return what an annotation declares, or what it returns if it is a function."""
    if callable(annotation) and not isinstance(annotation, (DType, TensorSpec, PointerSpec, type)):
        try:
            return annotation()
        except TypeError:  # it needs arguments: not the declaration of a parameter
            return annotation
    return annotation


def declared_parameter(name: str, annotation: Any, span: Span) -> Buffer | Var:
    """Return the parameter that `annotation` declares."""
    spec = _declaration(annotation)
    if isinstance(spec, str) and not isinstance(spec, DType):
        try:
            spec = dtype_of(spec)
        except FrontendTypeError:
            spec = annotation
    match spec:
        case TensorSpec():
            return spec.buffer(name, span)
        case BufferValue(buffer=buffer):
            return Buffer(name, buffer.shape, buffer.dtype, buffer.scope, buffer.strides, span=span)
        case PointerSpec():
            return Var(name, dtype_of("handle"), span=span)
        case DType():
            return Var(name, dtype_of(str(spec)), span=span)
        case Expr() if isinstance(spec, Var):
            return Var(name, spec.dtype, spec.contract, span=span)
    for python_type, dtype in ((int, "int32"), (float, "float32"), (bool, "bool")):
        if spec is python_type:
            return Var(name, dtype_of(dtype), span=span)
    raise SignatureError(
        f"the annotation of parameter {name!r} declares neither a tensor nor a scalar: "
        f"{annotation!r}",
        span=span,
        hint=f'write {name}: T.Tensor((M, N), "float32") or {name}: T.int32',
    )


def finish(builder: Builder, params: tuple[Buffer | Var, ...], span: Span | None) -> Kernel:
    """Return the kernel that the trace collected; `T.empty` tensors become parameters."""
    returned = builder.returned or ()
    for buffer in builder.outputs:
        if not any(buffer is r for r in returned):
            raise MissingReturn(
                f"the tensor {buffer.name!r} is declared with T.empty but not returned",
                span=buffer.span,
                hint=f"end the function with `return {buffer.name}`",
            )
    everything = (*params, *returned)
    options = KernelOptions(tuple(builder.pass_configs.items()), tuple(builder.compile_flags))
    kernel = Kernel(
        builder.name,
        everything,
        with_launches(builder.close()),
        tuple(range(len(params), len(everything))),
        tuple(builder.sources),
        options,
        span=span,
    )
    kernel = with_rank_parameters(kernel)
    _refuse_unbound(kernel)
    verify_parallel(kernel, frozenset(builder.accumulators))
    verify_reducers(kernel)
    verify_barriers(kernel)
    verify_tile_bounds(kernel)
    if _names_threads(kernel):
        from tile_core.ops.verify_uniform_regions import verify_common_places

        verify_common_places(kernel)
    if any(isinstance(n, Alloc) and n.buffer.scope is Scope.VAR for n in walk(kernel)):
        from tile_core.passes.define_variables import define_variables

        return define_variables(kernel)
    return kernel


def _names_threads(kernel: Kernel) -> bool:
    """Whether the index of a thread occurs: few kernels have one, and need to load what checks."""
    launches = [node for node in walk(kernel.body) if isinstance(node, Launch)]
    indices = {var for launch in launches for var in launch.thread_vars}
    return any(node in indices for launch in launches for node in walk(launch.body))


def _refuse_unbound(kernel: Kernel) -> None:
    """Raise for a symbol that no argument of a call determines."""
    known: set[Node] = {*kernel.params, *symbols_of(kernel)}
    used: dict[Var, Span | None] = {}
    for stmt in walk(kernel.body):
        match stmt:
            case Let(var=var) | For(var=var) | Pipelined(var=var):
                known.add(var)
            case Parallel(vars=vars_):
                known.update(vars_)
            case Launch(block_vars=blocks, thread_vars=threads):
                known.update((*blocks, *threads))
        if not isinstance(stmt, Expr):
            exprs = (child for child in stmt.children() if isinstance(child, Expr))
            for node in (n for expr in exprs for n in walk(expr)):
                if isinstance(node, Var):
                    used.setdefault(node, stmt.span)
    for var, span in used.items():
        if var not in known:
            raise SignatureError(
                f"no argument determines the symbol {var.name!r}",
                span=span,
                notes=(Note(f"{var.name} is made here", var.span),) if var.span else (),
                hint=f"use it as a dimension of a tensor parameter, or declare {var.name}: T.int32",
            )


__all__ = ["PrimFunc", "prim_func"]
