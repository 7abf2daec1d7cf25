"""The text of launchers: Python that turns the arguments of a kernel into launches."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.ir.arith import as_expr
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.evaluate import free_variables, is_host_evaluable
from tile_core.ir.expr import Expr, Extent, Var
from tile_core.ir.stmt import Check, Let
from tile_core.plugins.calling import symbol_text
from tile_core.plugins.host_text import host_text
from tile_core.simt.alignment import alignments
from tile_core.simt.program import DeviceFunction, DeviceProgram, TensorMap


def launcher_source(program: DeviceProgram) -> str:
    """Return the text of a Python function ``run`` that launches the kernel.

    Before   A: (m, 8), B: (m, 8), vectors of 16 bytes;  launch ((m + 3) // 4)
    After    which device, in whose context;  at_a0 = a0.data_ptr();  at_a1 = a1.data_ptr()
             if at_a0 & 15 or at_a1 & 15: misaligned(at_a0, at_a1)
             s0 = a0.shape[0];  values[0].value = at_a0;  ...;  grid[0] = g0 = (s0 + 3) // 4
             launch(...)

    What it calls is what `tile_cuda.launcher.callable_of` gives it. Extents that are known at
    compile time are written when the slots are made, not in each call.
    """
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
    symbols = symbols_of(program)
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
                if buffer in step.tensors and buffer not in known:
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


def _launch(function: DeviceFunction, number: int, known: Mapping[Buffer | Var, str]) -> list[str]:
    """Return the lines that fill the slots of one launch and start it."""
    lines = [f"f = slots.launches[{number}]", *(["values = f.values"] if function.params else ())]
    for position, argument in enumerate(function.arguments):
        if isinstance(argument, TensorMap):
            continue
        text = known[argument]
        value = _address(text) if isinstance(argument, Buffer) else text
        lines.append(f"values[{position}].value = {value}")
    extents = [_text(extent, known) for extent in grid_of(function)]
    fixed = [static_value(extent) for extent in grid_of(function)]
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
        *_row(function, number, known),
        "f.config.stream = stream",
        f"code = launch(f.config_address, functions[{number}], row, None)",
        f"if code: refused(code, {number}, ({', '.join(names)}))",
    ]


def _row(function: DeviceFunction, number: int, known: Mapping[Buffer | Var, str]) -> list[str]:
    """Return the lines that find the addresses of the parameters.

    They are always the same, but those of tensor maps: what these say follows from where their
    tensors begin and from the symbols in their extents.
    """
    tensors, symbols = key_of_maps(function)
    if not tensors:
        return ["row = f.parameters_address"]
    parts = (*(_address(known[t]) for t in tensors), *(known[v] for v in symbols))
    return [f"key = ({', '.join(parts)},)", f"row = f.rows.get(key) or mapped(f, {number}, key)"]


def key_of_maps(function: DeviceFunction) -> tuple[list[Buffer], list[Var]]:
    """Return the tensors with maps, and the scalars that these depend on."""
    maps = [a for a in function.arguments if isinstance(a, TensorMap)]
    tensors = dict.fromkeys(described.tensor for described in maps)
    symbols = dict.fromkeys(v for described in maps for v in symbols_of_map(described))
    return list(tensors), list(symbols)


def symbols_of_map(described: TensorMap) -> list[Var]:
    """Return the scalars that a tensor map depends on, beside the address of its tensor."""
    sizes = (described.offset, *described.extents, *described.strides)
    return list(dict.fromkeys(v for size in sizes for v in free_variables(size)))


def grid_of(function: DeviceFunction) -> tuple[Extent, ...]:
    """Return the extents of a grid along all three axes."""
    extents: list[Extent] = [*function.launch.grid, 1, 1]
    return tuple(extents[:3])


def symbols_of(program: DeviceProgram) -> list[Var]:
    """Return the scalars of the launches that no parameter and no host step names."""
    named = {*program.kernel.params, *(s.var for s in program.steps if isinstance(s, Let))}
    found: dict[Var, None] = {}
    for step in program.steps:
        if isinstance(step, DeviceFunction):
            maps = (a for a in step.arguments if isinstance(a, TensorMap))
            scalars = (
                *(a for a in step.arguments if isinstance(a, Var)),
                *(v for described in maps for v in symbols_of_map(described)),
            )
            extents = (*step.launch.grid, *(e for w in program.workspaces for e in w.shape))
            sizes = (v for extent in extents for v in free_variables(extent))
            found |= {v: None for v in (*scalars, *sizes) if v not in named}
        elif isinstance(step, Let) or _is_own(step, program):
            value = step.value if isinstance(step, Let) else step.cond
            found |= {v: None for v in free_variables(value) if v not in named}
    return list(found)


def _text(extent: Expr | int, known: Mapping[Buffer | Var, str]) -> str:
    return host_text(as_expr(extent), known)
