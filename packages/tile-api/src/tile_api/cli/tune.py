"""``tile tune``: find the best configuration of a kernel of a file, and look at results."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_core.errors import FrontendValueError, TuningError

if TYPE_CHECKING:
    from tile_api.autotuner.table import Record, Table, TuningKey
    from tile_api.autotuner.tune import Tuned

_CONFIGS = """write --configs '{"block_M": [64, 128]}' for all combinations, or a list of objects"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of the verb."""
    parser.usage = (
        "tile tune FILE[:NAME] [--args JSON] [--budget TIME] [--configs JSON] [--target T]\n"
        "       tile tune ls [TABLE ...]\n"
        "       tile tune show NAME [TABLE ...]\n"
        "       tile tune merge TABLE TABLE ... -o TABLE"
    )
    parser.description = (
        "Tune a @tile.autotune function, or a @tile.jit function with --configs. "
        "Results are kept in TILE_TUNE_DIR, where programs find them; tables are JSON files."
    )
    parser.add_argument("what", metavar="FILE[:NAME]|ls|show|merge", help="what to do")
    parser.add_argument("rest", nargs="*", metavar="NAME|TABLE", help="for ls, show and merge")
    parser.add_argument(
        "--args", default="{}", metavar="JSON", help='of the function: {"M": 512, "N": 512}'
    )
    parser.add_argument("--budget", help="model, a time such as 60s or 2m, or full")
    parser.add_argument("--configs", metavar="JSON", help="instead of those of the decorator")
    parser.add_argument("--target", help="as everywhere; that of the decorator goes first")
    parser.add_argument("--again", action="store_true", help="although there is a result")
    parser.add_argument("--json", action="store_true", help="for programs: one list or object")
    parser.add_argument("-o", "--out", type=Path, metavar="TABLE", help="write the result here")
    parser.set_defaults(refuse=parser.error)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return what the process ends with."""
    if args.what == "merge":
        return _merge(args)
    if args.what == "ls":
        return _list(_tables(args.rest), as_json=args.json)
    if args.what == "show":
        if not args.rest:
            args.refuse("show what? write: tile tune show NAME")
        return _show(args.rest[0], _tables(args.rest[1:]), as_json=args.json)
    if args.rest:
        args.refuse(f"one kernel at a time: {args.rest[0]!r} is too much")
    return _tune(args)


# Tuning ------------------------------------------------------------------------------------


def _tune(args: argparse.Namespace) -> int:
    from tile_api.autotuner.store import add_to_table, read_table
    from tile_api.cli.kernels import arguments_in, kernel_in
    from tile_api.settings import override

    arguments = arguments_in(args.args)
    if args.out is not None and args.out.exists():
        read_table(args.out)  # one that is none is told before the search
    factory = _factory(kernel_in(args.what), args)
    again: dict[str, Any] = {"tune_again": True} if args.again else {}
    with override(**again, **({"target": args.target} if args.target else {})):
        start = time.perf_counter()
        tuned = factory.tune(**arguments)
        took = time.perf_counter() - start
    if args.out is not None:
        with _writing(args.out):
            add_to_table(args.out, tuned.table)
    sys.stdout.write(_json_of(tuned) if args.json else _told(factory.__name__, tuned, took))
    return 0


def _factory(found: Any, args: argparse.Namespace) -> Any:
    from dataclasses import replace

    from tile_api.autotuner.decorator import AutotunedFactory, autotune
    from tile_api.settings.budget import parse_budget

    if isinstance(found, AutotunedFactory):
        factory = found
        if args.configs is not None:
            factory = factory.with_configs(_configs(args.configs))
    elif args.configs is None:
        raise TuningError(
            f"{args.what} is not decorated with @tile.autotune, and there is no --configs",
            hint=_CONFIGS,
        )
    else:
        factory = autotune(found, configs=_configs(args.configs))
    if args.budget is not None:
        parse_budget(args.budget)
        factory = factory.with_options(replace(factory.options, budget=args.budget))
    return factory


def _configs(text: str) -> list[Mapping[str, Any]]:
    """Return configurations: a list of objects, or all combinations of an object of lists."""
    try:
        found = json.loads(Path(text[1:]).read_text() if text.startswith("@") else text)
    except ValueError as error:
        raise FrontendValueError(f"--configs is not JSON: {error}", hint=_CONFIGS) from None
    except OSError as error:
        raise FrontendValueError(f"--configs: {error}", hint=_CONFIGS) from None
    if isinstance(found, dict):
        lists = [v if isinstance(v, list) else [v] for v in found.values()]
        return [dict(zip(found, values, strict=True)) for values in itertools.product(*lists)]
    if isinstance(found, list) and all(isinstance(item, dict) for item in found):
        return found
    raise FrontendValueError(f"--configs is {text}", hint=_CONFIGS)


def _told(name: str, tuned: Tuned, took: float) -> str:
    how = {
        "search": f"measured in {took:.1f} s",
        "model": "expected by the cost model; nothing was run",
        "table": "known from a table",
    }[tuned.source]
    lines = [f"{name}: {tuned.config}", f"{tuned.latency:.4g} ms, {how}"]
    if tuned.ref_latency is not None:
        lines.append(f"{tuned.ref_latency:.4g} ms takes the reference")
    for candidate in tuned.candidates:
        outcome, expected = candidate.outcome, candidate.estimate
        time_of = f"{outcome.milliseconds:.4g}" if outcome.visits else "-"
        model = "-" if expected is None else f"{expected:.4g}"
        why = f"  {outcome.code}: {outcome.message}" if outcome.code else ""
        lines.append(f"{time_of:>10} {model:>10}  {outcome.status:<8} {candidate.config}{why}")
    if tuned.candidates:
        lines.insert(2, f"{'ms':>10} {'model ms':>10}  {'outcome':<8} configuration")
    return "\n".join(lines) + "\n"


def _json_of(tuned: Tuned) -> str:
    from tile_api.autotuner.identity import plain

    found = {
        "config": plain(tuned.config.given),
        "milliseconds": tuned.latency,
        "reference": tuned.ref_latency,
        "source": tuned.source,
        "candidates": [
            {
                "config": plain(c.config.given),
                "status": c.outcome.status,
                "milliseconds": c.outcome.milliseconds if c.outcome.visits else None,
                "estimate": c.estimate,
                "code": c.outcome.code,
                "message": c.outcome.message,
            }
            for c in tuned.candidates
        ],
    }
    return json.dumps(found, indent=1) + "\n"


# Results -----------------------------------------------------------------------------------


def _tables(paths: Sequence[str]) -> Table:
    """Return what the named tables hold, or those that programs find."""
    from tile_api.autotuner.options import TuneSettings
    from tile_api.autotuner.store import TuneStore, read_table
    from tile_api.autotuner.table import merged

    if paths:
        return merged(read_table(Path(path)) for path in paths)
    settings = TuneSettings.from_environment()
    kept = [table for _, table in TuneStore(settings).tables()]
    return merged([*kept, *(read_table(path) for path in settings.tables)])


def _list(table: Table, *, as_json: bool) -> int:
    rows = [(place, table.at(place), table.best(place)) for place in table.places()]
    if as_json:
        sys.stdout.write(json.dumps([_row(*row) for row in rows], indent=1) + "\n")
        return 0
    for place, records, best in rows:
        time_of = "-" if best is None else f"{best.milliseconds:.4g} ms"
        config = "nothing works" if best is None else best.config
        sys.stdout.write(
            f"{place.name:<20} {place.kernel[:8]}  {place.target:<14} {time_of:>12}  {config}  "
            f"for {place.bucket}, {len(records)} tried on {place.machine}\n"
        )
    sys.stdout.write(f"{len(rows)} {'result' if len(rows) == 1 else 'results'}\n")
    return 0


def _row(place: TuningKey, records: Sequence[Record], best: Record | None) -> dict[str, Any]:
    return {
        "name": place.name,
        "kernel": place.kernel,
        "target": place.target,
        "machine": place.machine,
        "bucket": json.loads(place.bucket),
        "tried": len(records),
        "config": None if best is None else json.loads(best.config),
        "milliseconds": None if best is None else best.milliseconds,
    }


def _show(name: str, table: Table, *, as_json: bool) -> int:
    from tile_api.autotuner.table import table_of, text_of_table

    chosen = [p for p in table.places() if p.name == name or p.kernel.startswith(name)]
    if not chosen:
        raise TuningError(
            f"there is no result for {name!r}",
            hint="tile tune ls lists them: name a function, or the first digits of its digest",
        )
    if as_json:
        keys = {place.key for place in chosen}
        records = [r for r in table.records if r.place.key in keys]
        sys.stdout.write(text_of_table(table_of(records)))
        return 0
    for place in chosen:
        sys.stdout.write(f"{place.name} {place.kernel} for {place.target} on {place.machine}\n")
        sys.stdout.write(f"  {place.bucket}\n")
        for record in table.at(place):
            time_of = "-" if record.milliseconds is None else f"{record.milliseconds:.4g}"
            why = f"  {record.code}" if record.code else ""
            sys.stdout.write(f"{time_of:>10}  {record.status:<8} {record.config}{why}\n")
    return 0


def _merge(args: argparse.Namespace) -> int:
    from tile_api.autotuner.store import read_table, write_table
    from tile_api.autotuner.table import merged

    if args.out is None or not args.rest:
        args.refuse("write: tile tune merge A.json B.json -o C.json")
    table = merged(read_table(Path(path)) for path in args.rest)
    with _writing(args.out):
        write_table(args.out, table)
    sys.stdout.write(f"{args.out}: {len(table.records)} records of {len(table.places())} results\n")
    return 0


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Tell of a file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise TuningError(
            f"{path} cannot be written: {error.strerror or error}",
            hint="name a file in a folder that exists and that you may write",
        ) from None
