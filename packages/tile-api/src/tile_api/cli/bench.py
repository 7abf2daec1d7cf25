"""``tile bench``: time a kernel or a function of a file, beside others that do the same."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tile_api.cli.kernels import add_kernel, arguments_in, chosen, is_function, names_in
from tile_api.cli.source import arrays_like, require_arguments
from tile_core.errors import FrontendValueError

if TYPE_CHECKING:
    from tile_core.target import Target

NUMPY = "numpy"
"""What a function of whole arrays is beside unless other references are named: itself, as NumPy."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Time a @tile.function, a @T.prim_func, or what a @tile.jit function makes, on random "
        "arguments, in turn with references: functions of the file that take the same arguments "
        "and return the same. Results are compared first. Or show a run that was saved: "
        "tile bench new.json --than old.json. Ends with 1 if results differ."
    )
    add_kernel(parser, such_as="cpu")
    parser.add_argument(
        "--like",
        action="append",
        default=[],
        metavar="ARRAY",
        help="shape and type of an argument of a @tile.function, such as q=4x1024x64:float16",
    )
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="NAME",
        help="a function of the file to compare with; numpy is a @tile.function without the "
        "decorator; can be given several times",
    )
    parser.add_argument(
        "--rep", type=float, default=200, metavar="MS", help="how long each is timed (200)"
    )
    parser.add_argument("--json", action="store_true", help="print what --than reads")
    parser.add_argument(
        "--than", type=Path, metavar="FILE", help="a run that was saved, to compare times with"
    )


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the process ends with."""
    then = None if args.than is None else _saved(args.than)
    now = _saved(Path(args.place)) if args.place.endswith(".json") else _measured(args)
    sys.stdout.write(json.dumps(now, indent=1) + "\n" if args.json else told(now, then))
    return 1 if any(row["differs"] for row in now["rows"]) else 0


def told(now: Mapping[str, Any], then: Mapping[str, Any] | None = None) -> str:
    """Return the table of a run, with the times of another if it is given.

    Times are medians; as many calls lie within the spread of them as do not.

    Examples
    --------
    >>> row = {"name": "f", "milliseconds": 2.0, "spread": 0.1, "differs": ""}
    >>> other = {**row, "name": "numpy", "milliseconds": 3.0}
    >>> print(told({"what": "f(x=8:float32) on cpu", "rows": [row, other]}), end="")
    f(x=8:float32) on cpu
    name            ms     \u00b1 ms  ratio
    f                2     0.1   1.00
    numpy            3     0.1   1.50
    """
    before = {} if then is None else {r["name"]: r["milliseconds"] for r in then["rows"]}
    lines = [str(now["what"]), f"{'name':<12}{'ms':>6}{'± ms':>9}{'ratio':>7}"]
    if then is not None:
        lines[-1] += f"{'then ms':>10}{'now/then':>10}"
        if then["what"] != now["what"]:
            lines[:1] = [f"now   {now['what']}", f"then  {then['what']}"]
    ours = now["rows"][0]["milliseconds"]
    for row in now["rows"]:
        name, ms = row["name"], row["milliseconds"]
        line = f"{name:<12}{ms:>6.4g}{row['spread']:>8.2g}{ms / ours:>7.2f}"
        if name in before:
            line += f"{before[name]:>10.4g}{ms / before[name]:>10.2f}"
        lines.append(line + (f"  differs: {row['differs']}" if row["differs"] else ""))
    return "\n".join(lines) + "\n"


def _saved(path: Path) -> dict[str, Any]:
    """Return a run that ``--json`` printed."""
    try:
        found = json.loads(path.read_text())
        for row in found["rows"]:
            row["name"] + row["differs"], row["milliseconds"] + row["spread"]
        return dict(found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FrontendValueError(
            f"{path} is no run that was saved: {error}",
            hint="tile bench FILE:NAME --json > run.json",
        ) from None


def _measured(args: argparse.Namespace) -> dict[str, Any]:
    from tile_api.autotuner.machine import machine_name, require_machine
    from tile_api.tensors import torch_device
    from tile_api.timing.devices import clock_of
    from tile_api.timing.interleaved import timed_interleaved

    file, _, name = args.place.partition(":")
    names = names_in(file)
    found = chosen(names, file, name, functions=True)
    run, inputs, target, what = (_of_arrays if is_function(found) else _of_tiles)(found, args)
    require_machine(target, "time it on the machine that it is for")
    calls = {what.partition("(")[0]: run} | _references(names, found, args.against)
    differs = {each: _differs(run, call, inputs) for each, call in calls.items()}
    clock = clock_of("cpu" if target.runs_on_host else torch_device(target.kind))
    timings = timed_interleaved({n: partial(f, *inputs) for n, f in calls.items()}, clock, args.rep)
    rows = [
        {
            "name": each,
            "milliseconds": timing.median,
            "spread": (timing.quantile(0.75) - timing.quantile(0.25)) / 2,
            "calls": timing.calls,
            "clock": timing.clock,
            "differs": differs[each],
        }
        for each, timing in timings.items()
    ]
    return {"what": f"{what} on {machine_name(target)}", "rows": rows}


Measured: TypeAlias = "tuple[Callable[..., Any], Sequence[Any], Target, str]"
"""What runs, on which arguments, for which target; and what tables call it."""


def _of_arrays(found: Any, args: argparse.Namespace) -> Measured:
    import numpy as np

    from tile_api.arrays.inputs import supplies
    from tile_api.integrations.torch_gpus import gpu_arrays
    from tile_core.plugins.host import default_host

    given, like = arguments_in(args.args), arrays_like(args.like)
    require_arguments(found, (*like, *given))
    function = found.on(args.target) if args.target else found
    target = default_host().resolve(args.target or "cpu")[1]
    made = {
        s.parameter.name: s.array(np.random.default_rng(0))
        for s in supplies(function.equations(**like, **given))
        if s.parameter.name in like
    }
    on_gpu = None if target.runs_on_host else gpu_arrays()
    arrays = [made[name] if on_gpu is None else on_gpu(made[name]) for name in like]
    call = partial(_by_name, function, (*like,), given)
    told = ", ".join(args.like)
    return call, arrays, target, f"{found.__name__}({told})"


def _of_tiles(found: Any, args: argparse.Namespace) -> Measured:
    from tile_api.compiling import compile
    from tile_api.settings import override
    from tile_core.plugins.host import default_host

    if args.like:
        raise FrontendValueError(
            "--like is for functions of whole arrays", hint="leave it out: kernels have shapes"
        )
    given = arguments_in(args.args)
    with override(**({"forced_target": args.target} if args.target else {})):
        kernel = found(**given) if hasattr(found, "get_tir") else compile(found)
    told = ", ".join(f"{name}={value}" for name, value in given.items())
    name = getattr(found, "__name__", None) or found.kernel.name
    target = default_host().resolve(kernel.target)[1]
    return kernel, kernel.get_profiler().inputs(), target, f"{name}({told})"


def _references(names: Mapping[str, Any], found: Any, asked: Sequence[str]) -> dict[str, Any]:
    """Return what else is timed, by name."""
    others = {}
    for name in asked or ([NUMPY] if is_function(found) else []):
        other = found.func if name == NUMPY and is_function(found) else names.get(name)
        if not callable(other):
            known = ", ".join(n for n, v in names.items() if inspect.isfunction(v)) or "none"
            raise FrontendValueError(
                f"the file has no function {name!r} to compare with", hint=f"it has {known}"
            )
        others[name] = other
    return others


def _by_name(function: Any, names: Sequence[str], given: Mapping[str, Any], *arrays: Any) -> Any:
    return function(**dict(zip(names, arrays, strict=True)), **given)


def _differs(ours: Callable[..., Any], other: Callable[..., Any], inputs: Sequence[Any]) -> str:
    """Return in what the results of another differ; kernels that return nothing are not asked."""
    from tile_api.timing.compare import assert_outputs_close

    got = ours(*inputs)
    if got is None or other is ours:
        return ""
    try:
        assert_outputs_close(got, other(*inputs), 1e-2, 1e-2, 0.01)
    except AssertionError as error:
        return str(error)
    return ""
