"""Compiled kernels as Python functions: one generated function fills slots and launches."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tile_core.errors import EmptyGridError, LaunchError
from tile_core.ir.arith import as_expr
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.evaluate import free_variables, is_host_evaluable
from tile_core.ir.expr import Expr, Extent, Var
from tile_core.ir.stmt import Check, Let
from tile_core.plugins.calling import address_of, solutions, strides_of, symbol_text, unmet
from tile_core.plugins.host_text import host_text
from tile_core.simt.alignment import alignments, misaligned
from tile_core.simt.limits import check_grid
from tile_core.simt.program import DeviceFunction, DeviceProgram
from tile_cuda.driver import Driver, LaunchConfig

_SLOTS = {
    "bool": "c_bool",
    "float32": "c_float",
    "float64": "c_double",
    **{f"{sign}int{bits}": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}

_Loaded: TypeAlias = "tuple[int, tuple[int, ...]]"
"""The context of a device, and the kernels' handles in it."""


def callable_of(
    program: DeviceProgram,
    cubin: bytes,
    driver: Driver,
    stream_of: Callable[[int], int],
    device_of: Callable[..., int],
    empty: Callable[..., Any],
) -> Callable[..., None]:
    """Return ``run(*args)``: one checked argument per parameter, outputs among them.

    The launch goes to the stream that `stream_of` names and is not waited for; it can be
    captured in a graph. Slots for parameters are each thread's own, so several threads may
    launch at once; each device gets its own copy of the machine code, loaded at first use.
    Launches go to the device of the tensors, whatever device the thread works with otherwise.

    Parameters
    ----------
    stream_of
        Raw handle of the current stream of a device.
    device_of
        Number of the device that holds the tensors among the arguments.
    empty
        ``empty(shape, dtype, device)`` allocates a workspace.
    """
    text = launcher_source(program)
    loaded: dict[int, _Loaded] = {}

    def elsewhere(context: int, device: int, args: Sequence[Any]) -> None:
        with driver.inside(context, device):
            names["run"](*args)

    names: dict[str, Any] = {
        "address": address_of,
        "strides": strides_of,
        "solved": lambda *args: solutions(program.kernel.params, _symbols(program), args),
        "cdiv": lambda a, b: -(-a // b),
        "handles": _loader(program, cubin, driver, loaded),
        "loaded": loaded,
        "device_of": device_of,
        "stream_of": stream_of,
        "read_context": driver.reader_of_context(),
        "elsewhere": elsewhere,
        "empty": empty,
        "launch": driver.library.cuLaunchKernelEx,
        "refused": lambda code, number, grid: _refused(driver, code, program, number, grid),
        "no_blocks": _no_blocks,
        "unmet": lambda step: _unmet(program, step),
        "misaligned": lambda *found: _misaligned(program, found),
        "local": threading.local(),
        "Slots": lambda: _Slots(program),
    }
    exec(compile(text, f"<launcher of {program.kernel.name}>", "exec"), names)
    run: Callable[..., None] = names["run"]
    return run


def _loader(
    program: DeviceProgram, cubin: bytes, driver: Driver, loaded: dict[int, _Loaded]
) -> Callable[[int], _Loaded]:
    """Return what gives the functions of a device, and puts them into `loaded` at first use."""
    guard = threading.Lock()

    def handles(device: int) -> _Loaded:
        with guard:
            if device not in loaded:
                context = driver.context(device)
                with driver.inside(context, device):
                    module = driver.load(cubin)
                    functions = tuple(
                        driver.function(module, f.name, f.shared_bytes) for f in program.functions
                    )
                loaded[device] = context, functions
            return loaded[device]

    return handles


def launcher_source(program: DeviceProgram) -> str:
    """Return the text of a Python function that launches the kernel."""
    kernel = program.kernel
    arguments = [f"a{k}" for k in range(len(kernel.params))]
    known: dict[Buffer | Var, str] = dict(zip(kernel.params, arguments, strict=True))
    tensors = [known[p] for p in kernel.params if isinstance(p, Buffer)]
    lines = ["try:", "    slots = local.slots", "except AttributeError:",
             "    slots = local.slots = Slots()",
             f"device = device_of({', '.join(tensors)})",
             "context, functions = loaded.get(device) or handles(device)",
             "read_context(slots.context_address)",
             "if slots.context.value != context:",
             f"    return elsewhere(context, device, [{', '.join(arguments)}])",
             "stream = stream_of(device)"]  # fmt: skip
    lines += _addresses(program, known)
    symbols = _symbols(program)
    texts = [symbol_text(kernel.params, arguments, symbol) for symbol in symbols]
    if None in texts:
        lines.append(f"known = solved({', '.join(arguments)})")
    for position, (symbol, text) in enumerate(zip(symbols, texts, strict=True)):
        known[symbol] = f"s{position}"
        lines.append(f"s{position} = {f'known[{position}]' if text is None else text}")
    number = 0
    for step in program.steps:
        if isinstance(step, Let):
            known[step.var] = f"h{len(known)}"
            lines.append(f"{known[step.var]} = {_text(step.value, known)}")
        elif isinstance(step, Check) and _is_own(step, program):
            lines.append(f"if not {_text(step.cond, known)}: unmet({program.steps.index(step)})")
        elif isinstance(step, DeviceFunction):
            for buffer in program.workspaces:
                if buffer in step.arguments and buffer not in known:
                    known[buffer] = f"w{len(known)}"
                    lines += _allocation(buffer, known)
            lines += _launch(step, number, known)
            number += 1
    return "\n".join([f"def run({', '.join(arguments)}):", *(f"    {x}" for x in lines)]) + "\n"


def _allocation(workspace: Buffer, known: Mapping[Buffer | Var, str]) -> list[str]:
    """Return the lines that allocate a workspace; the call keeps it until its end."""
    name, shape = known[workspace], ", ".join(_text(extent, known) for extent in workspace.shape)
    return [
        f"{name} = empty(({shape},), {str(workspace.dtype)!r}, device)",
        f"{_address(name)} = address({name})",
    ]


def _is_own(check: Check, program: DeviceProgram) -> bool:
    """Whether a condition needs what the host computes between launches.

    Those of arguments alone are checked with the arguments.
    """
    named = {step.var for step in program.steps if isinstance(step, Let)}
    used = free_variables(check.cond)
    return not named.isdisjoint(used) and is_host_evaluable(check.cond, used)


def _unmet(program: DeviceProgram, number: int) -> None:
    step = program.steps[number]
    assert isinstance(step, Check), "a condition's number"
    raise unmet(step)


def _addresses(program: DeviceProgram, known: Mapping[Buffer | Var, str]) -> list[str]:
    """Return the lines that find out where tensors begin, and refuse what threads cannot read."""
    tensors = [known[p] for p in program.kernel.params if isinstance(p, Buffer)]
    lines = []
    if tensors:  # of torch, most of the time
        lines += ["try:", *(f"    {_address(t)} = {t}.data_ptr()" for t in tensors)]
        lines += ["except AttributeError:", *(f"    {_address(t)} = address({t})" for t in tensors)]
    wide = [(known[p], multiple) for p, multiple in alignments(program).items()]
    if wide:
        wrong = " or ".join(f"{_address(text)} & {multiple - 1}" for text, multiple in wide)
        found = ", ".join(_address(text) for text, _ in wide)
        lines.append(f"if {wrong}: misaligned({found})")
    return lines


def _address(tensor: str) -> str:
    """Return the name of the address where an argument or a workspace begins."""
    return f"at_{tensor}"


def _misaligned(program: DeviceProgram, addresses: Sequence[int]) -> None:
    for (param, multiple), address in zip(alignments(program).items(), addresses, strict=True):
        if address % multiple:
            raise misaligned(program.kernel.name, param, address, multiple)


def _launch(function: DeviceFunction, number: int, known: Mapping[Buffer | Var, str]) -> list[str]:
    """Return the lines that fill the slots of one launch and start it."""
    lines = [f"f = slots.launches[{number}]", *(["values = f.values"] if function.params else ())]
    for position, argument in enumerate(function.arguments):
        text = known[argument]
        value = _address(text) if isinstance(argument, Buffer) else text
        lines.append(f"values[{position}].value = {value}")
    extents = [_text(extent, known) for extent in _grid(function)]
    fixed = [static_value(extent) for extent in _grid(function)]
    varying = [axis for axis, extent in enumerate(fixed) if extent is None]
    if varying:
        lines.append("grid = f.grid")
        lines += [f"grid[{axis}] = g{axis} = {extents[axis]}" for axis in varying]
    names = [f"g{axis}" if axis in varying else extents[axis] for axis in range(3)]
    empty = [f"{name} < 1" for name, e in zip(names, fixed, strict=True) if e is None or e < 1]
    if empty:
        lines.append(f"if {' or '.join(empty)}: no_blocks(({', '.join(names)}))")
    return [
        *lines,
        "f.config.stream = stream",
        f"code = launch(f.config_address, functions[{number}], f.parameters_address, None)",
        f"if code: refused(code, {number}, ({', '.join(names)}))",
    ]


def _grid(function: DeviceFunction) -> tuple[Extent, ...]:
    """Return the extents of a grid along all three axes."""
    extents: list[Extent] = [*function.launch.grid, 1, 1]
    return tuple(extents[:3])


class _Launch:
    """The memory that the driver reads at one launch: extents, and where parameters lie."""

    __slots__ = ("config", "config_address", "grid", "parameters", "parameters_address", "values")

    def __init__(self, function: DeviceFunction) -> None:
        self.config = LaunchConfig()
        self.config.block[:] = function.launch.threads
        self.config.shared_bytes = function.shared_bytes
        self.config_address = ctypes.addressof(self.config)
        self.grid = self.config.grid
        self.grid[:] = [static_value(e) or 0 for e in _grid(function)]
        self.values = [_slot(argument) for argument in function.arguments]
        addresses = [ctypes.addressof(value) for value in self.values]
        self.parameters = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        self.parameters_address = ctypes.addressof(self.parameters)


class _Slots:
    """What one thread of Python lets the driver read and write."""

    __slots__ = ("context", "context_address", "launches")

    def __init__(self, program: DeviceProgram) -> None:
        self.context = ctypes.c_void_p()
        self.context_address = ctypes.addressof(self.context)
        self.launches = [_Launch(function) for function in program.functions]


def _slot(argument: Buffer | Var) -> Any:
    if isinstance(argument, Buffer) or argument.dtype.is_handle:
        return ctypes.c_uint64()
    name = _SLOTS.get(str(argument.dtype))
    if name is None:
        raise LaunchError(
            f"a scalar of {argument.dtype} cannot be passed to a kernel",
            hint="declare the parameter as float32 and convert it in the kernel",
        )
    return getattr(ctypes, name)()


def _symbols(program: DeviceProgram) -> list[Var]:
    """Return the scalars of the launches that no parameter and no host step names."""
    named = {*program.kernel.params, *(s.var for s in program.steps if isinstance(s, Let))}
    found: dict[Var, None] = {}
    for step in program.steps:
        if isinstance(step, DeviceFunction):
            scalars = (a for a in step.arguments if isinstance(a, Var))
            extents = (*step.launch.grid, *(e for w in program.workspaces for e in w.shape))
            sizes = (v for extent in extents for v in free_variables(extent))
            found |= {v: None for v in (*scalars, *sizes) if v not in named}
        elif isinstance(step, Let) or _is_own(step, program):
            value = step.value if isinstance(step, Let) else step.cond
            found |= {v: None for v in free_variables(value) if v not in named}
    return list(found)


def _text(extent: Expr | int, known: Mapping[Buffer | Var, str]) -> str:
    return host_text(as_expr(extent), known)


def _refused(
    driver: Driver, code: int, program: DeviceProgram, number: int, grid: tuple[int, int, int]
) -> None:
    """Say why a launch failed: our reason if there is one, else the driver's."""
    function = program.functions[number]
    check_grid(grid, program.machine, function.launch)
    driver.check(code, f"to launch {function.name}")


def _no_blocks(grid: tuple[int, int, int]) -> None:
    raise EmptyGridError(
        f"a grid of {grid[0]} x {grid[1]} x {grid[2]} blocks has nothing to run",
        hint="pass tensors whose extents are at least 1",
    )
