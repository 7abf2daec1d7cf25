"""Tuning from end to end: look into tables, else search, remember, and compile the best."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tile_api.autotuner.configs import Config
from tile_api.autotuner.identity import canonical
from tile_api.autotuner.inputs import Inputs
from tile_api.autotuner.job import Job
from tile_api.autotuner.machine import machine_name, require_machine, tells_time
from tile_api.autotuner.options import Task, TuneSettings
from tile_api.autotuner.outcome import OK, UNTRIED, Candidate
from tile_api.autotuner.ranking import (
    Expected,
    distinct,
    expected_here,
    expected_of,
    ranked,
    traced,
    with_twins,
)
from tile_api.autotuner.search import Search, untraced
from tile_api.autotuner.session import TuningSession, workplace
from tile_api.autotuner.store import TuneStore
from tile_api.autotuner.table import Record, Table, TuningKey, table_of
from tile_api.kernel import CompiledKernel
from tile_api.settings.budget import Budget, parse_budget
from tile_core.errors import NoConfigWorks, Note, TileError
from tile_core.plugins.backend import Backend
from tile_core.progress import Progress
from tile_core.target import GPUS, Target

_RANKED_IN = 0.6
"""The share of the time after which candidates are tried in the order known by then."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result of tuning.

    Parameters
    ----------
    kernel
        The best one, compiled; it knows its ``config``, ``latency`` and ``ref_latency``.
    func
        The traced function.
    config
        The chosen configuration.
    latency
        Milliseconds of a call: measured, or what the cost model expects if nothing was run;
        ``nan`` if nobody knows.
    ref_latency
        Milliseconds of the reference, or None.
    source
        ``"table"``, ``"model"`` or ``"search"``.
    candidates
        What became of each, the best first; empty if the result was known before.
    table
        The records behind it.
    """

    kernel: CompiledKernel
    func: Any
    config: Config
    latency: float
    ref_latency: float | None
    source: str
    candidates: tuple[Candidate, ...] = ()
    table: Table = field(default_factory=Table)


def tune(task: Task) -> Tuned:
    """Return the best kernel of a task.

    Raises
    ------
    NoConfigWorks
        If every configuration failed or gave wrong results.
    MeasuringImpossible
        If there is nothing to measure on.
    TuningError
        If what was asked makes no sense.
    TileError
        Whatever is wrong with the target.
    """
    start = time.monotonic()
    settings = TuneSettings.from_environment()
    _, target = _resolved(task)
    budget = _budget(task, settings, target)
    place = place_of(task, target)
    store = TuneStore(settings, _tables(task))
    if not settings.again:
        known = store.read(place)
        record = known.best(place, [c.key for c in task.configs])
        if record is not None:
            return _from_table(task, record, table_of(known.at(place)))
    if not budget.runs:
        return _by_model(task, target)
    require_machine(target)
    return _searched(task, target, budget, store, place, settings.workers, start)


def chosen_function(task: Task) -> Any:
    """Return the traced function of the best configuration that is known, or expected.

    Nothing is compiled and nothing runs.
    """
    settings, (_, target) = TuneSettings.from_environment(), _resolved(task)
    place = place_of(task, target)
    known = TuneStore(settings, _tables(task)).read(place)
    record = known.best(place, [c.key for c in task.configs])
    if record is not None:
        return task.trace(_config_of(task, record).values)
    candidates = _modelled(task, target)
    for candidate in candidates:
        if candidate.outcome.status == UNTRIED:
            return candidate.func
    raise _nothing_works(task, candidates)


def place_of(task: Task, target: Target) -> TuningKey:
    """Return what tables call a task on this machine."""
    bucket = canonical(task.bucket)
    return TuningKey(task.name, task.identity, str(target), machine_name(target), bucket)


def _resolved(task: Task) -> tuple[Backend, Target]:
    """Return who serves the task's target, and the exact target, as `tile_api.compile` would."""
    from tile_api.settings import Settings
    from tile_core.plugins.host import default_host

    settings = Settings.from_environment()
    asked = task.compile_options.get("target")
    spec = settings.forced_target or (settings.target if asked is None else asked)
    return default_host().resolve("interpret" if settings.interpret else spec)


def _budget(task: Task, settings: TuneSettings, target: Target) -> Budget:
    """Return the kernel's own budget, else the environment's, else everything that tells."""
    if task.options.budget is not None:
        return parse_budget(task.options.budget)
    if settings.budget is not None:
        return settings.budget
    return Budget(runs=tells_time(target))


def _tables(task: Task) -> list[Path]:
    table = task.options.table
    return [] if table is None else [Path(str(table))]


def _from_table(task: Task, record: Record, table: Table) -> Tuned:
    config = _config_of(task, record)
    func = task.trace(config.values)
    kernel = _compiled(task, func, config)
    latency = record.milliseconds if record.milliseconds is not None else float("nan")
    return _noted(Tuned(kernel, func, config, latency, record.reference, "table", table=table))


def _config_of(task: Task, record: Record) -> Config:
    return next(c for c in task.configs if c.key == record.config)


def _by_model(task: Task, target: Target) -> Tuned:
    """Return the first candidate in the model's order that compiles; nothing is run."""
    candidates = _modelled(task, target)
    for at, candidate in enumerate(candidates):
        if candidate.outcome.status != UNTRIED:
            continue
        try:
            kernel = _compiled(task, candidate.func, candidate.config)
        except TileError as error:
            candidates[at] = candidate.with_outcome(untraced(error))
            continue
        cost = candidate.estimate
        latency = float("nan") if cost is None else cost
        found = Tuned(kernel, candidate.func, candidate.config, latency, None, "model")
        return _noted(replace(found, candidates=tuple(candidates)))
    raise _nothing_works(task, candidates)


def _modelled(task: Task, target: Target) -> list[Candidate]:
    """Return candidates in the order of the cost model, which runs here."""
    candidates = traced(task.configs, task.trace, task.options.timeout)
    return ranked(candidates, expected_of(candidates, target, task.options.sizes))


def _expected(
    task: Task,
    budget: Budget,
    jobs: Mapping[int, Job],
    files: Mapping[int, Path],
    bench: TuningSession,
) -> dict[int, Expected]:
    """Return what is expected of candidates; for that there is a part of the time.

    It is asked here if the compiler is loaded here, while the other processes load it; else they
    are asked.
    """
    deadline = None
    if budget.seconds is not None:
        deadline = time.monotonic() + budget.seconds * _RANKED_IN
    if _resolved(task)[0].compiler in sys.modules:
        return expected_here(jobs, task.options.sizes, deadline)
    paths = [str(path) for path in files.values()]
    replies = bench.expect(paths, task.options.sizes, task.options.timeout, deadline)
    return {
        number: Expected(reply["milliseconds"], reply["program"])
        for number, reply in zip(files, replies, strict=True)
        if reply["ok"]
    }


def _searched(
    task: Task,
    target: Target,
    budget: Budget,
    store: TuneStore,
    place: TuningKey,
    workers: int,
    start: float,
) -> Tuned:
    count, executor = min(workers, len(task.configs)), task.options.executor
    with workplace(count, str(target), executor) as bench:
        bench.start()
        log = store.log(place)
        candidates = traced(task.configs, task.trace, task.options.timeout, log.known(), log.note)
        jobs, files = _jobs(task, target, candidates, bench.folder)
        candidates = ranked(candidates, _expected(task, budget, jobs, files, bench))
        device = "cuda" if target.kind in GPUS else None
        inputs = Inputs(bench.folder, jobs, task.options, task.inputs, device)
        tried = distinct(candidates)
        progress = Progress(f"tuning {task.name}", len(tried), budget.seconds)
        search = Search(tried, files, bench, inputs, log, progress, task.options, budget, start)
        try:
            found = with_twins(search.run(), candidates)
            best = search.best
            reference = None if best is None else inputs.measure_reference(best)
            if best is not None:
                _adopt(task, best, bench.cache)
        finally:
            progress.close()
    if best is None:
        log.close()  # the next search tries all of them again
        raise _nothing_works(task, found)
    records = _records(place, found, reference)
    store.add(records, place)
    log.close()
    kernel = _compiled(task, best.func, best.config)
    tuned = Tuned(kernel, best.func, best.config, best.score, reference, "search")
    return _noted(replace(tuned, candidates=tuple(found), table=table_of(records)))


def _jobs(
    task: Task, target: Target, candidates: list[Candidate], folder: Path
) -> tuple[dict[int, Job], dict[int, Path]]:
    """Write the candidates' kernels into files; those that cannot be written have failed."""
    from tile_api.compile_request import kernel_of, with_outputs
    from tile_api.pass_configs import normalise_pass_configs

    jobs, files = {}, {}
    options = task.compile_options
    flags = options.get("compile_flags") or ()
    for at, candidate in enumerate(candidates):
        if candidate.outcome.status != UNTRIED:
            continue
        path = folder / f"candidate-{candidate.number}"
        try:
            kernel = with_outputs(kernel_of(candidate.func), options.get("out_idx"))
            passes = normalise_pass_configs(_pass_configs(task, candidate.config))
            listed = flags.split() if isinstance(flags, str) else list(flags)
            job = Job(kernel, str(target), passes, listed)
            job.write(path)
        except Exception as error:
            candidates[at] = candidate.with_outcome(untraced(error))
            continue
        jobs[candidate.number], files[candidate.number] = job, path
    return jobs, files


def _pass_configs(task: Task, config: Config) -> dict[Any, object]:
    return {**(task.compile_options.get("pass_configs") or {}), **config.pass_configs}


def _compiled(task: Task, func: Any, config: Config) -> CompiledKernel:
    from tile_api.compiling import compile

    options = {**task.compile_options, "pass_configs": _pass_configs(task, config) or None}
    return compile(func, **options)


def _adopt(task: Task, best: Candidate, cache: Path) -> None:
    """Put the best kernel, which workers compiled, into the user's cache if there is one."""
    from tile_api.cache import is_cache_enabled
    from tile_api.compile_keys import compile_key
    from tile_api.disk_cache import disk_cache
    from tile_api.disk_cache.store import DiskCache

    own = disk_cache()
    if not is_cache_enabled() or not own.limit:
        return
    options = {k: task.compile_options.get(k) for k in ("out_idx", "target", "compile_flags")}
    passes = _pass_configs(task, best.config) or None
    key = compile_key(best.func, pass_configs=passes, **options)
    entry = DiskCache(cache, own.limit).find(key.digest, str(key))
    if entry is not None:
        own.keep(key.digest, entry)


def _noted(tuned: Tuned) -> Tuned:
    tuned.kernel.update_tuner_result(tuned.latency, tuned.config.given, tuned.ref_latency)
    return tuned


def _records(
    place: TuningKey, candidates: Sequence[Candidate], reference: float | None
) -> list[Record]:
    now = round(time.time(), 3)
    found = []
    for candidate in candidates:
        outcome = candidate.outcome
        if outcome.status == UNTRIED:
            continue
        key, status, code = candidate.config.key, outcome.status, outcome.code
        times = (outcome.milliseconds, reference) if status == OK else (None, None)
        found.append(Record(place, key, status, times[0], outcome.is_final, times[1], code, now))
    return found


def _nothing_works(task: Task, candidates: Sequence[Candidate]) -> NoConfigWorks:
    told: dict[tuple[str, str], list[Config]] = {}
    for candidate in sorted(candidates, key=lambda c: c.number):
        outcome = candidate.outcome
        if outcome.status != UNTRIED:
            told.setdefault((outcome.code, outcome.message), []).append(candidate.config)
    notes = []
    for (code, text), configs in list(told.items())[:5]:
        why = f"wrong results: {text}" if code == "AssertionError" else f"[{code}] {text}"
        more = f" and {len(configs) - 1} more" if len(configs) > 1 else ""
        notes.append(Note(f"{configs[0]}{more}: {why}"))
    count = len(candidates)
    which = "the only configuration" if count == 1 else f"none of {count} configurations"
    return NoConfigWorks(
        f"{which} of {task.name} {'does not work' if count == 1 else 'works'}",
        notes=tuple(notes),
        hint="call it with one of them to see the whole error: the values are its arguments",
    )
