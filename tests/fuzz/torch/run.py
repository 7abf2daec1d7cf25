"""Run random functions of torch, and say what is wrong with values and gradients."""

from __future__ import annotations

import gc
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch

from fuzz.run import SECONDS, Ended, Finding, Outcome, in_child, module, symptom
from fuzz.torch.program import Program

TARGETS = ("interpret", "cpu", "compiled")
"""Functions of arrays on two targets, and graphs through `torch.compile`."""
OFF = {"rtol": 1e-5, "atol": 1e-6}
"""How far off a right result is at most: all are computed in 64 bits."""


def one(program: Program, target: str) -> Finding | None:
    """Run a function on a target in this process; return what is wrong."""
    from tile_core.errors import TileError, UnknownArrayFunction

    warnings.simplefilter("ignore")
    f = module(program.text).f
    wanted = _run(f, program)
    try:
        found = _run(_on(target, f), program)
    except UnknownArrayFunction:
        return None  # not all of torch is captured
    except TileError as error:
        return Finding(target, "refused", symptom(str(error).splitlines()[0]), str(error))
    except Exception as error:
        last = f"{type(error).__name__}: {error}".splitlines()[0]
        return Finding(target, "raised", symptom(last), traceback.format_exc())
    for what, right, got in zip(("the value", *("a gradient",) * 9), wanted, found, strict=False):
        wrong = _wrong(right, got)
        if wrong:
            return Finding(target, "wrong", f"{what}: {symptom(wrong)}", f"{what}: {wrong}")
    return None


def _on(target: str, f: Callable[..., Any]) -> Callable[..., Any]:
    import tile_api as tile

    if target == "compiled":
        torch._dynamo.reset()
        made: Callable[..., Any] = torch.compile(f, backend="tile")
        return made
    return tile.function(f, target=target)


def _run(f: Callable[..., Any], program: Program) -> list[torch.Tensor]:
    """Return the value, and gradients of it weighted by its places."""
    given = [x.requires_grad_() for x in program.arguments()]
    value = f(*given)
    weights = torch.arange(1.0, 1 + value.numel(), dtype=value.dtype).reshape(value.shape).cos()
    found = [None] * len(given)
    if value.requires_grad:
        found = [*torch.autograd.grad((value * weights).sum(), given, allow_unused=True)]
    zipped = zip(found, given, strict=True)
    return [value.detach(), *(torch.zeros_like(x) if g is None else g for g, x in zipped)]


def _wrong(right: torch.Tensor, got: Any) -> str:
    if got.dtype != right.dtype or got.shape != right.shape:
        return f"{got.dtype} of {tuple(got.shape)}, not {right.dtype} of {tuple(right.shape)}"
    if torch.allclose(got, right, **OFF):
        return ""
    return (
        f"off by {float((got - right).abs().max())}; {got.flatten()[:8]}, not {right.flatten()[:8]}"
    )


def run(program: Program, targets: Sequence[str], seconds: float = SECONDS) -> Outcome:
    """Run a function on targets, each in a process of its own."""
    findings = []
    for target in targets:
        found = in_child(lambda target=target: one(program, target), seconds)
        if isinstance(found, Ended):
            found = Finding(target, found.kind, found.what, found.said)
        if found is not None:
            findings.append(found)
    return Outcome(tuple(findings), {})


def serve(pipe: Connection) -> None:
    """Run the functions that come through a pipe, and send what is wrong with each."""
    torch.set_num_threads(1)  # this process is a fork
    gc.freeze()
    while True:
        program, targets = pipe.recv()
        for target in targets:
            pipe.send(one(program, target))


def reproduction(program: Program, target: str) -> str:
    """Return a function and its arguments as Python."""
    return (
        f"# on {target}, arguments of {program.shapes}: np.random.default_rng({program.seed})"
        f".standard_normal of each\n{program.text}"
    )
