"""``tile reduce``: make a failing kernel small, and write what a report of it needs."""

from __future__ import annotations

import argparse
import math
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_api.cli.kernels import add_kernel
from tile_core.errors import FrontendValueError, ToolchainError

if TYPE_CHECKING:
    from tile_api.reducing.failure import Failure, RunOutcome
    from tile_api.reducing.trial import Plan
    from tile_api.reducing.workers import Trials
    from tile_core.ir.stmt import Kernel

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.description = (
        "Take away from a kernel what its failure does not need. What the kernel does "
        "is found out by a trial: an error, a result other than the reference interpreter's, a "
        "crash, or no end; options below fix what counts as the same failure."
    )
    add_kernel(parser, such_as="cuda:sm_80@sim")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report.zip"),
        metavar="PLACE",
        help="a folder, or an archive if it ends in .zip (report.zip)",
    )
    parser.add_argument(
        "--as-tilelang", action="store_true", help="let 'import tilelang' find this project"
    )
    parser.add_argument(
        "--bisect-passes",
        action="store_true",
        help="name the pass after which the result is wrong, as far as the interpreter runs what "
        "passes leave, or the optional pass without which it is right",
    )
    same = parser.add_argument_group("what counts as the same failure (what the kernel does)")
    same.add_argument(
        "--code", type=_code, metavar="TLnnnn", help="an error of this code, whatever it says"
    )
    same.add_argument("--message", metavar="TEXT", help="an error that says this")
    same.add_argument("--crash", action="store_true", help="a crash, or no end within --timeout")
    same.add_argument(
        "--wrong-against", choices=("interpreter",), help="a result other than the interpreter's"
    )
    _add_trials(parser.add_argument_group("trials"))


def _add_trials(group: Any) -> None:
    add = group.add_argument
    values = 'of symbolic dimensions and scalars: {"n": 100}; others are 16 and 3'
    add("--values", default="{}", metavar="JSON", help=values)
    add("--seed", type=int, default=0, help="of the inputs (0)")
    share = "how far floats may be apart, in proportion to the largest of their tensor"
    add("--tolerance", type=_share, metavar="SHARE", help=share)
    late = "for one trial, after which the kernel is killed (20s)"
    add("--timeout", type=_seconds, default=20.0, metavar="TIME", help=late)
    budget = "for all of them, as 90s or 10m (60s); the best so far is kept"
    add("--budget", type=_seconds, default=60.0, metavar="TIME", help=budget)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; 0 if a report was written."""
    from tile_api.reducing.report import ReductionReport, write_report
    from tile_api.reducing.workers import Trials

    _require_one_failure(args)
    kernel, plan = _planned(args)
    with _interruptible(), closing(Trials(plan, args.timeout)) as tries:
        first = tries(kernel)
        if first.phase == "reference":  # an error, or it takes too long
            _tell(f"{first.told()}\nso runs are not compared with it")
            tries.plan = plan = replace(plan, until="run", checked=False)
            first = tries(kernel)
        _tell(f"{kernel.name} for {plan.target}: {first.told()}")
        failure = _wanted(args, kernel, first, plan)
        tries.plan = plan = _narrowed(plan, failure, kernel, tries)
        best, tried = _reduced(kernel, failure, tries, args.budget)
        if args.bisect_passes:
            _tell(_bisected(best, failure, tries))
        outcome = tries(best)
        if not failure.is_seen_in(outcome):
            _tell("the smallest kernel does not fail every time; the report says what it did first")
            outcome = first
        language = _in_the_language(best, failure, tries)
    source = Path(args.place.partition(":")[0])
    command = ["tile", "reduce", *_typed(args)]
    report = ReductionReport(kernel, best, outcome, plan, command, source, tried, language)
    try:
        write_report(report, args.out)
    except OSError as error:
        raise ToolchainError(
            f"the report cannot be written to {args.out}: {error.strerror or error}",
            hint="name a folder or an archive that you may write: --out report.zip",
        ) from error
    _tell(f"wrote {args.out}: look at it before you send it; it holds {source.name}")
    return 0


def _require_one_failure(args: argparse.Namespace) -> None:
    """Raise if options ask for failures of two kinds: a code and a message are of one error."""
    errors = [f"--{name}" for name in ("code", "message") if getattr(args, name) is not None]
    asked = [*errors[:1], *(["--crash"] if args.crash else [])]
    asked += ["--wrong-against"] if args.wrong_against else []
    if len(asked) > 1:
        raise FrontendValueError(
            f"{' and '.join(asked)} ask for failures of different kinds",
            hint="name one of them, or none to keep what the kernel does",
        )


def _planned(args: argparse.Namespace) -> tuple[Kernel, Plan]:
    """Return the kernel of the file, and how to try it."""
    from tile_api.cli.kernels import arguments_in, kernel_in, traced
    from tile_api.compile_request import kernel_of, with_outputs
    from tile_api.pass_configs import normalise_pass_configs
    from tile_api.reducing.trial import Plan
    from tile_api.settings import Settings

    values = arguments_in(args.values, "--values")
    with _alias(args):
        found = kernel_in(args.place)
        given: Mapping[str, Any] = found.options if hasattr(found, "get_tir") else {}
        kernel = kernel_of(traced(found, arguments_in(args.args)))
    kernel = with_outputs(kernel, given.get("out_idx"))
    _require_values(kernel, values)
    flags = given.get("compile_flags") or ()
    target = args.target or given.get("target") or Settings.from_environment().target
    return kernel, Plan(
        target=str(target),
        pass_configs=tuple(sorted(normalise_pass_configs(given.get("pass_configs")).items())),
        compile_flags=tuple(flags.split() if isinstance(flags, str) else flags),
        values=tuple(sorted(values.items())),
        seed=args.seed,
        tolerance=args.tolerance,
    )


def _require_values(kernel: Kernel, values: Mapping[str, Any]) -> None:
    """Raise if a value is no number, or is for what the kernel does not have."""
    from tile_core.ir.expr import Var
    from tile_core.ir.printer import symbols_of

    scalars = [p for p in kernel.params if isinstance(p, Var)]
    known = sorted({v.name for v in (*symbols_of(kernel), *scalars)})
    for name, value in values.items():
        if name not in known:
            raise FrontendValueError(
                f"--values names {name!r}, and {kernel.name} has no such size or scalar",
                hint=f"it has {', '.join(known) or 'none'}",
            )
        if not isinstance(value, int | float):
            raise FrontendValueError(
                f"--values has {value!r} for {name}, no number", hint=f'write {{"{name}": 100}}'
            )


def _alias(args: argparse.Namespace) -> AbstractContextManager[object]:
    """Return what lets TileLang programs find this project while they are traced, if asked for."""
    if not args.as_tilelang:
        return nullcontext()
    from tile_api.tilelang import install

    return install(args.target or "auto")


def _wanted(args: argparse.Namespace, kernel: Kernel, seen: RunOutcome, plan: Plan) -> Failure:
    """Return the failure to keep, or raise `NothingToReduce`."""
    from tile_api.reducing.failure import CRASH, ERROR, FINE, HANG, WRONG, Failure, same_as
    from tile_core.errors import NothingToReduce

    if args.crash:
        wanted, told = Failure(HANG if seen.kind == HANG else CRASH, seen.phase), "crash or hang"
    elif args.wrong_against:
        wanted, told = Failure(WRONG, seen.phase), "compute a wrong result"
    elif args.code or args.message is not None:
        wanted = Failure(ERROR, seen.phase, args.code or "", args.message or "")
        told = f"fail with {args.code or repr(args.message)}"
    else:
        wanted, told = same_as(seen), "fail"
    if seen.kind != FINE and wanted.is_seen_in(seen):
        return wanted
    if seen.kind == FINE or told == "fail":
        hint = "name the target and the sizes that fail: --target, --args, --values"
        but = f": {seen.told()}"
    else:
        hint = "leave --code, --message, --crash and --wrong-against out to reduce what it does"
        but = f", but with {seen.told()}" if "fail" in told else f": {seen.told()}"
    raise NothingToReduce(f"{kernel.name} does not {told} for {plan.target}{but}", hint=hint)


def _narrowed(plan: Plan, failure: Failure, kernel: Kernel, tries: Trials) -> Plan:
    """Return a plan that goes no further than where the kernel fails."""
    from tile_api.reducing.failure import WRONG
    from tile_api.reducing.trial import COMPILE, LOWER, RUN

    if failure.phase == "compile":
        tries.plan = replace(plan, until=LOWER)
        fails = failure.is_seen_in(tries(kernel))
        return tries.plan if fails else replace(plan, until=COMPILE)
    return plan if failure.kind == WRONG else replace(plan, until=RUN)


def _reduced(kernel: Kernel, failure: Failure, tries: Trials, budget: float) -> tuple[Kernel, int]:
    """Return the smallest kernel that was found, and how many were tried."""
    from tile_api.reducing.kernel_edits import statements
    from tile_api.reducing.search import reductions

    start, best, tried = time.monotonic(), kernel, 0
    _tell(f"{len(statements(kernel))} statements at first; Ctrl-C keeps the best so far")
    try:
        for step in reductions(kernel, lambda k: failure.is_seen_in(tries(k)), budget=budget):
            best, tried = step.kernel, step.tried
            spent = time.monotonic() - start
            _tell(f"{spent:6.1f} s  {len(statements(best)):4} statements  {step.by}")
    except KeyboardInterrupt:
        _tell("interrupted")
    if time.monotonic() - start >= budget:
        _tell(f"the budget of {budget:g} s is spent; a larger --budget may find a smaller one")
    return best, tried


def _bisected(kernel: Kernel, failure: Failure, tries: Trials) -> str:
    """Return which pass makes the kernel fail, in a sentence."""
    from tile_api.reducing.bisect import wrong_after, wrong_unless
    from tile_core.plugins.host import default_host

    plan = tries.plan
    found = wrong_after(kernel, plan, default_host())
    if found:
        return f"it goes wrong after the pass {found}"

    def fails(skipped: tuple[str, ...]) -> bool:
        tries.plan = replace(plan, skip=skipped)
        return failure.is_seen_in(tries(kernel))

    found = wrong_unless(plan, default_host(), fails)
    tries.plan = plan
    if found:
        return f"it does not fail without the pass {found}"
    return "no pass on whole kernels makes it wrong, nor does an optional one behind layouts"


def _in_the_language(kernel: Kernel, failure: Failure, tries: Trials) -> str | None:
    """Return a program in the language whose kernel is `kernel`, or fails as it does."""
    from tile_api.reducing.language_text import language_of
    from tile_api.tiers.developer import traced_again
    from tile_core.ir.structural_equality import structurally_equal

    text = language_of(kernel)
    again = None if text is None else traced_again(text, kernel)
    if again is None:
        return None
    if structurally_equal(again, kernel) or failure.is_seen_in(tries(again)):
        return text
    return None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM mean what Ctrl-C means."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not in the main thread: nobody's signals arrive here
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _typed(args: argparse.Namespace) -> list[str]:
    """Return the arguments again, those that are not as by default."""
    words = [args.place]
    defaults = {"args": "{}", "values": "{}", "seed": 0, "timeout": 20.0, "budget": 60.0}
    for name, value in vars(args).items():
        if name in ("place", "verb") or value is None or value is False:
            continue
        if defaults.get(name) == value:
            continue
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [f"{value}"])
    return words


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if found is None or float(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 90s, 10m or 1h")
    return float(found[1]) * _SECONDS[found[2]]


def _code(text: str) -> str:
    from tile_core import errors

    known = {getattr(found, "code", None) for found in vars(errors).values()}
    if re.fullmatch(r"TL\d{4}", text) is None or text not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is no code of an error: write one as TL6503")
    return text


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: write 0 or more, such as 1e-3")
    return share
