"""The order in which candidates are tried: the cost model's, the best first."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from tile_api.autotuner.configs import Config
from tile_api.autotuner.isolated_calls import rehearsed
from tile_api.autotuner.job import Job
from tile_api.autotuner.outcome import FAILED, UNTRIED, Candidate, TrialOutcome
from tile_api.autotuner.search import untraced
from tile_core.errors import TileError
from tile_core.target import GPUS

Trace = Callable[[Mapping[str, Any]], Any]
Note = Callable[[str, TrialOutcome], None]


def traced(
    configs: Sequence[Config],
    trace: Trace,
    timeout: float,
    known: Mapping[str, TrialOutcome] | None = None,
    note: Note = lambda config, outcome: None,
) -> list[Candidate]:
    """Return a candidate for each configuration; what cannot be traced has failed.

    `trace` runs the user's function, whose exceptions are outcomes like any other, and which may
    hang or end its process (see `rehearsed`): `note` is told of those. What is `known` to have
    failed is not tried; `timeout` are seconds for each.
    """
    failures = {k: o for k, o in (known or {}).items() if o.status == FAILED}
    found = {
        number: Candidate(number, config, outcome=failures[config.key])
        for number, config in enumerate(configs)
        if config.key in failures
    }
    left = [number for number in range(len(configs)) if number not in found]
    calls = [functools.partial(trace, configs[number].values) for number in left]
    with closing(rehearsed(calls, timeout)) as outcomes:
        for place, outcome in outcomes:
            number, config = left[place], configs[left[place]]
            if outcome is not None:
                note(config.key, outcome)
                found[number] = Candidate(number, config, outcome=outcome)
                continue
            try:
                found[number] = Candidate(number, config, calls[place]())
            except (Exception, SystemExit) as error:
                found[number] = Candidate(number, config, outcome=untraced(error))
    return [found[number] for number in range(len(configs))]


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a candidate before anything is compiled: see `Candidate`."""

    milliseconds: float | None
    program: str = ""


def ranked(candidates: Sequence[Candidate], expected: Mapping[int, Expected]) -> list[Candidate]:
    """Return candidates, the cheapest by the cost model first.

    Those that it has no opinion of come after those that it has, in the order given: it may be
    that they cannot be lowered at all, and the compiler says why.
    """
    unknown = Expected(None)
    told = [(c, expected.get(c.number, unknown)) for c in candidates]
    priced = [replace(c, estimate=e.milliseconds, program=e.program) for c, e in told]
    return sorted(priced, key=lambda c: (c.estimate is None, c.estimate or 0.0, c.number))


def distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates without those that become the same program as one before them."""
    seen: set[str] = set()
    found = []
    for candidate in candidates:
        if not candidate.program or candidate.program not in seen:
            found.append(candidate)
            seen.add(candidate.program)
    return found


def with_twins(tried: Sequence[Candidate], everything: Sequence[Candidate]) -> list[Candidate]:
    """Return all candidates, with what is known of the same program; the best first."""
    by_number = {c.number: c for c in tried}
    by_program = {c.program: c for c in tried if c.program}
    found = []
    for candidate in everything:
        twin = by_number.get(candidate.number) or by_program.get(candidate.program)
        found.append(candidate if twin is None else candidate.with_outcome(twin.outcome))
    chosen = {c.number: place for place, c in enumerate(tried)}
    last = len(chosen)
    return sorted(found, key=lambda c: (c.rank[:-1], chosen.get(c.number, last), c.number))


def expected_of(
    candidates: Sequence[Candidate], target: object, sizes: Mapping[str, int]
) -> dict[int, Expected]:
    """Return what the cost model expects of the candidates that could be traced."""
    return {
        c.number: Expected(price_of(c.func, target, c.config.pass_configs, sizes))
        for c in candidates
        if c.outcome.status == UNTRIED
    }


def expected_here(
    jobs: Mapping[int, Job], sizes: Mapping[str, int], deadline: float | None
) -> dict[int, Expected]:
    """Return what is expected of kernels, of as many as there is time for (a monotonic clock)."""
    found = {}
    for number, job in jobs.items():
        if deadline is not None and time.monotonic() > deadline:
            break
        found[number] = expected_of_job(job, sizes)
    return found


def expected_of_job(job: Job, sizes: Mapping[str, int]) -> Expected:
    """Return what is expected of a kernel."""
    return Expected(
        price_of(job.kernel, job.target, job.pass_configs, sizes),
        program_of(job.kernel, job.target, job.pass_configs),
    )


def price_of(
    func: object, target: object, pass_configs: Mapping[Any, object], sizes: Mapping[str, int]
) -> float | None:
    """Return the milliseconds that the cost model expects, or None if it cannot tell."""
    from tile_api.cost import estimate

    numbers: dict[str, Any] = {name: int(size) for name, size in sizes.items()}
    try:
        found = estimate(func, target, pass_configs=dict(pass_configs) or None, **numbers)
    except (TileError, ArithmeticError, LookupError, TypeError, ValueError):
        return None
    return float(found.milliseconds)


def program_of(func: object, target: object, pass_configs: Mapping[Any, object]) -> str:
    """Return what names the program that a kernel becomes; empty if it becomes none.

    On a processor many block shapes become one program. On GPUs the plan counts, too: it has the
    shape of launches.
    """
    from tile_api.compile_request import request
    from tile_api.settings import Settings
    from tile_core import driver
    from tile_core.plugins.host import default_host

    try:
        kernel, spec, options = request(
            func, None, None, target, pass_configs, None, Settings.from_environment()
        )
        lowered = driver.lower(kernel, spec, default_host(), options)
        texts = [str(options.pass_configs), lowered.text("lowered")]
        if lowered.target.kind in GPUS:
            texts.append(lowered.text("planned"))
    except TileError:
        return ""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
