"""The text of launchers: Python that turns the arguments of a kernel into launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_launch.driver import Driver
from tile_launch.errors import InvalidBundle
from tile_launch.expressions import Expression, text_of, variables_of
from tile_launch.manifest import Address, Check, Launch, Let, Manifest, Tensor, Value, Workspace
from tile_launch.symbol_solver import symbol_text


def launcher_source(manifest: Manifest, driver: Driver) -> str:
    """Return the text of a Python function ``run`` that launches the kernel.

    Before   A: (m, 8), B: (m, 8), vectors of 16 bytes;  launch ((m + 3) // 4)
    After    which device, in whose context;  at_a0 = a0.data_ptr();  at_a1 = a1.data_ptr()
             if at_a0 & 15 or at_a1 & 15: misaligned(at_a0, at_a1)
             s0 = a0.shape[0];  values[0].value = at_a0;  ...;  g0 = (s0 + 3) // 4
             launch(...)

    What it calls is what `tile_launch.launcher.callable_of` gives it. Extents that are known
    at compile time are written when the slots are made, not in each call. No text of the
    manifest gets into the function: only names that are made here, and numbers.
    """
    arguments = [f"a{k}" for k in range(len(manifest.parameters))]
    pairs = [*zip(manifest.parameters, arguments, strict=True)]
    tensors = {p.name: text for p, text in pairs if isinstance(p, Tensor)}
    known = {p.name: text for p, text in pairs if not isinstance(p, Tensor)}
    if len(tensors) + len(known) != len(arguments):
        raise InvalidBundle(f"two parameters of {manifest.kernel} have one name")
    lines = ["try:", "    slots = local.slots", "except AttributeError:",
             "    slots = local.slots = Slots()",
             *_places(manifest, [*tensors.values()]),
             "context, functions = loaded.get(device) or handles(device)",
             "read_context(slots.context_pointer)",
             "if slots.context.value != context:",
             f"    return elsewhere(context, device, [{', '.join(arguments)}])",
             "stream = stream_of(device)"]  # fmt: skip
    lines += _alignments(manifest, tensors)
    lines += _symbols(manifest, arguments, known)
    lines += _steps(manifest, tensors, known, driver)
    body = [f"        {line}" for line in lines]
    head = [f"def run({', '.join(arguments)}):", "    try:"]
    tail = [
        "    except Fault as fault:",
        "        raise told(fault) from None",
        "    except ArithmeticError as error:",
        "        raise told(undefined(error)) from None",
    ]
    return "\n".join([*head, *body, *tail]) + "\n"


def _steps(
    manifest: Manifest, tensors: dict[str, str], known: dict[str, str], driver: Driver
) -> list[str]:
    """Return the lines of what the host does, in order."""
    lines: list[str] = []
    number = 0
    for position, step in enumerate(manifest.steps):
        if isinstance(step, Let):
            text = text_of(step.value, known)
            known[step.variable] = f"h{position}"
            lines.append(f"h{position} = {text}")
        elif isinstance(step, Check):
            lines.append(f"if not {text_of(step.condition, known)}: unmet({position})")
        else:
            used = tensors_of(step)
            for index, workspace in enumerate(manifest.workspaces):
                if workspace.name in used and workspace.name not in tensors:
                    tensors[workspace.name] = f"w{index}"
                    lines += _allocation(workspace, f"w{index}", index, known)
            lines += _launch(step, number, tensors, known, driver)
            number += 1
    return lines


def _allocation(workspace: Workspace, name: str, index: int, known: Mapping[str, str]) -> list[str]:
    """Return the lines that allocate a workspace; the call keeps it until its end."""
    shape = "".join(f"{text_of(extent, known)}, " for extent in workspace.shape)
    return [
        f"{name} = empty(({shape}), workspaces[{index}].dtype, device)",
        f"{_address(name)} = address({name})",
    ]


def _places(manifest: Manifest, tensors: Sequence[str]) -> list[str]:
    """Return the lines that find out on which device tensors lie, and where they begin.

    On GPUs they are torch's most of the time, which are asked without detours.
    """
    anywhere = [
        f"device = device_of({', '.join(tensors)})",
        *(f"{_address(t)} = address({t})" for t in tensors),
    ]
    if manifest.machine.family == "cpu" or not tensors:
        return anywhere
    first, *others = tensors
    elsewhere = " or ".join(f"{t}.get_device() != device" for t in others)
    return [
        "try:",
        f"    device = {first}.get_device()",
        *([f"    if {elsewhere}: {anywhere[0]}"] if others else ()),
        *(f"    {_address(t)} = {t}.data_ptr()" for t in tensors),
        "except AttributeError:",
        *(f"    {line}" for line in anywhere),
    ]


def _symbols(manifest: Manifest, arguments: Sequence[str], known: dict[str, str]) -> list[str]:
    """Return the lines that find the variables in shapes and strides; name them in `known`."""
    symbols = symbols_of(manifest)
    texts = [symbol_text(manifest.parameters, arguments, symbol) for symbol in symbols]
    lines = [f"known = solved({', '.join(arguments)})"] if None in texts else []
    asked = [_tensor_in(text or "") for text in texts]
    for position, (symbol, text) in enumerate(zip(symbols, texts, strict=True)):
        known[symbol] = f"s{position}"
        found = f"known[{position}]" if text is None else text
        tensor = asked[position]
        if tensor and asked.count(tensor) > 1:  # torch makes a shape each time
            if asked.index(tensor) == position:
                lines.append(f"n_{tensor} = {tensor}.shape")
            found = found.replace(f"{tensor}.shape[", f"n_{tensor}[")
        lines.append(f"s{position} = {found}")
    if not any(texts):
        return lines
    values = "".join(f"s{position}, " for position in range(len(symbols)))
    return [
        "try:",
        *(f"    {line}" for line in lines),
        "except AttributeError:",  # of a tensor that is None, as the kernel does not use it
        f"    {values}= solved({', '.join(arguments)})",
    ]


def _tensor_in(text: str) -> str:
    """Return the argument whose shape a text asks for, or nothing."""
    before, shape, _ = text.partition(".shape[")
    return before.lstrip("(") if shape else ""


def _alignments(manifest: Manifest, tensors: Mapping[str, str]) -> list[str]:
    """Return the lines that refuse tensors whose vectors threads cannot read."""
    lines = []
    wide = [(tensors[p.name], p.alignment) for p in aligned_parameters(manifest)]
    if wide:
        wrong = " or ".join(f"{_address(text)} & {multiple - 1}" for text, multiple in wide)
        found = ", ".join(_address(text) for text, _ in wide)
        lines.append(f"if {wrong}: misaligned({found})")
    return lines


def aligned_parameters(manifest: Manifest) -> list[Tensor]:
    """Return the tensors that must begin at multiples of more than their elements."""
    found = [p for p in manifest.parameters if isinstance(p, Tensor) and p.alignment > 1]
    for param in found:
        if param.alignment & (param.alignment - 1):
            raise InvalidBundle(f"{param.name}: {param.alignment} is no power of two")
    return found


def _address(tensor: str) -> str:
    """Return the name of the address where an argument or a workspace begins."""
    return f"at_{tensor}"


def _launch(
    launch: Launch,
    number: int,
    tensors: Mapping[str, str],
    known: Mapping[str, str],
    driver: Driver,
) -> list[str]:
    """Return the lines that fill the slots of one launch and start it."""
    filled = []
    for position, argument in enumerate(launch.arguments):
        if isinstance(argument, Address):
            filled.append((position, _address(_named(tensors, argument.tensor))))
        elif isinstance(argument, Value):
            filled.append((position, _named(known, argument.variable)))
    lines = [f"f = slots.launches[{number}]", *(["values = f.values"] if filled else ())]
    lines += [f"values[{position}].value = {text}" for position, text in filled]
    grid, empty = [], []
    for axis, extent in enumerate(launch.grid):
        is_fixed = isinstance(extent, int)
        text = text_of(extent, known)
        grid.append(text if is_fixed else f"g{axis}")
        if not is_fixed:
            lines.append(f"g{axis} = {text}")
        if not isinstance(extent, int) or extent < 1:
            empty.append(f"{grid[-1]} < 1")
    if empty:
        lines.append(f"if {' or '.join(empty)}: no_blocks(({', '.join(grid)}))")
    if launch.cooperative:
        lines.append(f"together({number}, functions[{number}], device, ({', '.join(grid)}))")
    return [
        *lines,
        *_row(launch, number, tensors, known),
        *driver.call_lines(launch, number, grid),
        f"if code: refused(code, {number}, ({', '.join(grid)}))",
    ]


def _row(
    launch: Launch, number: int, tensors: Mapping[str, str], known: Mapping[str, str]
) -> list[str]:
    """Return the lines that find the addresses of the parameters.

    They are always the same, but those of tensor maps: what these say follows from where their
    tensors begin and from the variables in their extents.
    """
    mapped, symbols = key_of_maps(launch)
    if not mapped:
        return ["row = f.parameters_pointer"]
    parts = (*(_address(_named(tensors, t)) for t in mapped), *(_named(known, s) for s in symbols))
    return [f"key = ({', '.join(parts)},)", f"row = f.rows.get(key) or mapped(f, {number}, key)"]


def _named(names: Mapping[str, str], name: str) -> str:
    if name not in names:
        raise InvalidBundle(f"nothing says what {name!r} is")
    return names[name]


def key_of_maps(launch: Launch) -> tuple[list[str], list[str]]:
    """Return the tensors with maps, and the variables that these depend on."""
    tensors = dict.fromkeys(described.tensor for described in launch.maps)
    symbols = dict.fromkeys(name for described in launch.maps for name in described.symbols)
    return list(tensors), list(symbols)


def tensors_of(launch: Launch) -> set[str]:
    """Return the tensors that a launch is passed, by their addresses or by maps."""
    addressed = {a.tensor for a in launch.arguments if isinstance(a, Address)}
    return addressed | {described.tensor for described in launch.maps}


def symbols_of(manifest: Manifest) -> list[str]:
    """Return the variables of the steps that no parameter and no step before them names."""
    named = {p.name for p in manifest.parameters}
    named |= {step.variable for step in manifest.steps if isinstance(step, Let)}
    found: dict[str, None] = {}
    for step in manifest.steps:
        expressions: list[Expression]
        if isinstance(step, Launch):
            values = [a.variable for a in step.arguments if isinstance(a, Value)]
            mapped = [name for described in step.maps for name in described.symbols]
            sizes = [extent for w in manifest.workspaces for extent in w.shape]
            expressions = [*values, *mapped, *step.grid, *sizes]
        else:
            expressions = [step.value if isinstance(step, Let) else step.condition]
        for expression in expressions:
            found |= {name: None for name in variables_of(expression) if name not in named}
    return list(found)
