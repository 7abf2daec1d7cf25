"""One trial: compile a kernel, run it on seeded inputs, and see what becomes of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tile_api.reducing.failure import ERROR, FINE, WRONG, RunOutcome
from tile_core.arith.evaluate import evaluate
from tile_core.compilation.options import BuildOptions
from tile_core.driver import build, lower
from tile_core.errors import TileError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.node import walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import PluginHost

if TYPE_CHECKING:
    from tile_core.compilation.results import Built

LOWER, COMPILE, RUN, COMPARE = "lower", "compile", "run", "compare"
"""How far a trial goes; lowering needs no toolchain."""

SIZE, NUMBER = 16, 3
"""Values of symbolic dimensions and scalars that nothing else is said about."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How kernels are tried: `until` ``lower``, ``compile``, ``run`` or ``compare``.

    What a kernel itself asks for is added to the options; optional passes may be skipped. With
    `checked`, kernels that run must pass the interpreter's checks before: whoever looks for a crash
    wants none that the kernel is to blame for. `values` are of symbolic dimensions and scalars; for
    `tolerance` see `difference`.
    """

    target: str
    pass_configs: tuple[tuple[str, object], ...] = ()
    compile_flags: tuple[str, ...] = ()
    until: str = COMPARE
    checked: bool = True
    values: tuple[tuple[str, int | float], ...] = ()
    seed: int = 0
    tolerance: float | None = None
    skip: tuple[str, ...] = ()


def try_kernel(
    kernel: Kernel, plan: Plan, host: PluginHost, entering: Callable[[str], None] | None = None
) -> RunOutcome:
    """Return what becomes of `kernel`; nothing that it raises leaves.

    `entering` is told the name of each phase when it begins: of a kernel that takes the process
    down, it is the last thing that is known.
    """
    enter = entering or (lambda phase: None)
    phase = ["compile"]

    def begin(name: str) -> None:
        phase[0] = name
        enter(name)

    try:
        return _tried(kernel, plan, host, begin)
    except TileError as error:
        return RunOutcome(ERROR, phase[0], error.code, error.message, str(error))
    except Exception as error:
        lines = str(error).splitlines()
        text = "".join(traceback.format_exception(error))
        return RunOutcome(ERROR, phase[0], type(error).__name__, lines[0] if lines else "", text)


def _tried(
    kernel: Kernel, plan: Plan, host: PluginHost, begin: Callable[[str], None]
) -> RunOutcome:
    begin("compile")
    options = options_of(kernel, plan)
    if plan.until == LOWER:
        lower(kernel, plan.target, host, options)
        return RunOutcome(FINE)
    built = build(kernel, plan.target, host, options)
    if plan.until == COMPILE:
        return RunOutcome(FINE)
    arguments = arguments_of(kernel, dict(plan.values), plan.seed)
    expected = None
    if plan.checked or plan.until == COMPARE:
        begin("reference")
        expected = interpreted(kernel, arguments)
    begin("run")
    found = run_built(built, arguments)
    if expected is None or plan.until != COMPARE:
        return RunOutcome(FINE)
    told = difference(kernel, found, expected, plan.tolerance)
    return RunOutcome(WRONG, "run", message=told, text=told) if told else RunOutcome(FINE)


def options_of(kernel: Kernel, plan: Plan) -> BuildOptions:
    """Return what a plan, and the kernel itself, ask of a compilation."""
    own = kernel.options
    return BuildOptions(
        tuple(sorted({**dict(own.pass_configs), **dict(plan.pass_configs)}.items())),
        (*own.compile_flags, *plan.compile_flags),
        skip=plan.skip,
    )


def interpreted(kernel: Kernel, arguments: Sequence[Any]) -> list[Any]:
    """Run a kernel in the reference interpreter on copies of `arguments`, and return them."""
    from tile_core.testing.oracle import INTERPRETER, copies, runner

    results = copies(arguments)
    runner(INTERPRETER, PluginHost())(kernel, results)
    return results


def run_built(built: Built, arguments: Sequence[Any]) -> list[Any]:
    """Run a compiled kernel on copies of `arguments` and return them as it left them."""
    from tile_core.testing.oracle import copies

    results = copies(arguments)
    if built.runs_on_host:
        built.executable(*results)
        return results
    from tile_api.integrations.torch_gpus import run_on_gpu

    dtypes = [p.dtype if isinstance(p, Buffer) else None for p in built.kernel.params]
    return run_on_gpu(built.executable, results, dtypes)


def arguments_of(kernel: Kernel, values: dict[str, int | float], seed: int = 0) -> list[Any]:
    """Return seeded inputs for every parameter, outputs poisoned: small integers in any type.

    Symbolic dimensions and scalars without a value are 16 and 3.
    """
    import numpy as np

    from tile_core.testing.oracle import numbers, poison

    rng = np.random.default_rng(seed)
    known: dict[Any, Any] = {s: int(values.get(s.name, SIZE)) for s in symbols_of(kernel)}
    for param in kernel.params:
        if isinstance(param, Var):
            number = values.get(param.name, NUMBER)
            known[param] = float(number) if param.dtype.is_float else int(number)
    found: list[Any] = []
    for position, param in enumerate(kernel.params):
        if isinstance(param, Var):
            found.append(known[param])
            continue
        shape = tuple(int(evaluate(extent, known)) for extent in param.shape)
        make = poison if position in kernel.outputs else None
        array = poison(shape, param.dtype) if make else numbers(rng, shape, param.dtype)
        found.append(_strided(array, param, known))
    return found


def _strided(array: Any, param: Buffer, known: dict[Any, Any]) -> Any:
    """Return an array with the elements, and the distances that its parameter declares."""
    if param.strides is None:
        return array
    import numpy as np

    strides = [int(evaluate(stride, known)) for stride in param.strides]
    size = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
    room = np.zeros(max(size, 0), array.dtype)
    view = np.lib.stride_tricks.as_strided(
        room, array.shape, [s * array.itemsize for s in strides], writeable=True
    )
    view[...] = array
    return view


def difference(
    kernel: Kernel, found: Sequence[Any], expected: Sequence[Any], tolerance: float | None = None
) -> str:
    """Return where results differ by more than roundings explain, or an empty string.

    Integers must be equal. Floats may differ by `tolerance` times the largest number that is
    expected in their tensor; by default by what `tolerance_of` tells.
    """
    import numpy as np

    from tile_core.testing.oracle import unpack

    share = tolerance_of(kernel) if tolerance is None else tolerance
    for param, a, b in zip(kernel.params, found, expected, strict=True):
        if not isinstance(param, Buffer) or not isinstance(a, np.ndarray):
            continue
        shape = (*a.shape[:-1], a.shape[-1] * param.dtype.packing) if a.ndim else a.shape
        ours, theirs = (unpack(x, shape, param.dtype) for x in (a, b))
        wrong = np.argwhere(~_agree(ours, theirs, share if param.dtype.is_float else 0.0))
        if len(wrong):
            where = tuple(int(i) for i in wrong[0])
            return (
                f"{param.name}{list(where)} is {ours[where]}, not {theirs[where]}; "
                f"{len(wrong)} of {ours.size} elements differ"
            )
    return ""


def _agree(ours: Any, theirs: Any, share: float) -> Any:
    """Return which elements agree: NaN with NaN, infinities with themselves."""
    import numpy as np

    if not share:
        return (ours == theirs) | ((ours != ours) & (theirs != theirs))
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    allowed = share * max(1.0, float(finite.max()) if finite.size else 0.0)
    with np.errstate(invalid="ignore"):
        return (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed)


def tolerance_of(kernel: Kernel) -> float:
    """Return how far, in proportion, results may be apart: by the coarsest float of the kernel."""
    from tile_core.testing.oracle import TOLERANCES

    buffers = (node for node in walk(kernel) if isinstance(node, Buffer))
    known = (TOLERANCES.get(b.dtype.base) for b in buffers if b.dtype.is_float)
    return 4 * max((t.relative for t in known if t is not None), default=1e-5)
