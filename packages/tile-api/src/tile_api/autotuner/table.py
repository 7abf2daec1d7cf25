"""Tables of results: JSON that can be read, merged and kept beside a program."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tile_api.autotuner.identity import canonical
from tile_api.autotuner.outcome import OK
from tile_core.errors import InvalidTuningTable

FORM = "tile tuning table 1"
"""The first line of meaning in a table; raised when its records change."""


@dataclass(frozen=True, slots=True)
class TuningKey:
    """What was tuned: results of one place compare with each other.

    `kernel` is the digest of what its author wrote, `bucket` the arguments that are not tuned, as
    JSON text.
    """

    name: str
    kernel: str
    target: str
    machine: str
    bucket: str

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two places one: the name is only for people."""
        return (self.kernel, self.target, self.machine, self.bucket)


@dataclass(frozen=True, slots=True)
class Record:
    """What became of one configuration (JSON text) in one place.

    `milliseconds` of a call are None if it does not work; `reference` is the time of the reference
    program, if it was measured, and `time` says when: seconds since 1970.
    """

    place: TuningKey
    config: str
    status: str
    milliseconds: float | None = None
    is_final: bool = False
    reference: float | None = None
    code: str = ""
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Table:
    """Records, at most one for each place and configuration; equal tables have equal text."""

    records: tuple[Record, ...] = ()

    def at(self, place: TuningKey) -> tuple[Record, ...]:
        """Return the records of a place, the best first."""
        return tuple(sorted((r for r in self.records if r.place.key == place.key), key=_rank))

    def best(self, place: TuningKey, configs: Iterable[str] | None = None) -> Record | None:
        """Return the record of the fastest of all configurations, or of those given as text."""
        allowed = None if configs is None else {*configs}
        for record in self.at(place):
            if record.status == OK and (allowed is None or record.config in allowed):
                return record
        return None

    def places(self) -> tuple[TuningKey, ...]:
        """Return what was tuned, in the order of names."""
        return tuple({r.place.key: r.place for r in self.records}.values())


def table_of(records: Iterable[Record]) -> Table:
    """Return a table; of records of one configuration in one place the latest stays.

    Which one stays does not depend on their order: ties are broken by their text.
    """
    kept: dict[tuple[str, ...], Record] = {}
    for record in records:
        key = (*record.place.key, record.config)
        other = kept.get(key)
        if other is None or _age(other) < _age(record):
            kept[key] = record
    order = sorted(kept.values(), key=lambda r: (r.place.name, r.place.key, _rank(r)))
    return Table(tuple(order))


def merged(tables: Iterable[Table]) -> Table:
    """Return one table of several; it is the same whatever their order, and however often."""
    return table_of(record for table in tables for record in table.records)


def text_of_table(table: Table) -> str:
    """Return a table as JSON, a line for each record."""
    lines = [json.dumps(_row(record), sort_keys=True) for record in table.records]
    body = ",\n".join(lines)
    return f'{{"form": "{FORM}", "records": [\n{body}\n]}}\n' if lines else _EMPTY


def parse_table(text: str, where: str) -> Table:
    """Return the table of a text."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidTuningTable(f"{where} is not JSON: {error}", hint=_HINT) from None
    if not isinstance(found, dict) or found.get("form") != FORM:
        form = found.get("form") if isinstance(found, dict) else None
        told = f"its form is {form!r}, not {FORM!r}" if form else "it does not tell its form"
        raise InvalidTuningTable(f"{where} is no tuning table: {told}", hint=_HINT)
    try:
        return table_of(_record(row) for row in found["records"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        told = f"{type(error).__name__}: {error}"
        raise InvalidTuningTable(f"{where} has a record that is none: {told}", hint=_HINT) from None


_EMPTY = f'{{"form": "{FORM}", "records": []}}\n'
_HINT = "name a file that tile tune wrote"


def _row(record: Record) -> dict[str, Any]:
    row = asdict(record)
    place = row.pop("place")
    place["bucket"] = json.loads(place["bucket"])
    return {**place, **row, "config": json.loads(record.config)}


def _record(row: Mapping[str, Any]) -> Record:
    name, kernel, target, machine = (
        str(row[part]) for part in ("name", "kernel", "target", "machine")
    )
    place = TuningKey(name, kernel, target, machine, canonical(row["bucket"]))
    return Record(
        place, canonical(row["config"]), str(row["status"]), _time(row["milliseconds"]),
        bool(row.get("is_final")), _time(row.get("reference")), str(row.get("code", "")),
        float(row.get("time", 0.0)),
    )  # fmt: skip


def _time(value: Any) -> float | None:
    if value is None:
        return None
    found = float(value)
    if not 0 <= found < float("inf"):
        raise ValueError(f"{found} milliseconds")
    return found


def _rank(record: Record) -> tuple[bool, bool, float, str]:
    """Order records: those that work, of them those of last rounds, of them the fastest."""
    time = float("inf") if record.milliseconds is None else record.milliseconds
    return (record.status != OK, not record.is_final, time, record.config)


def _age(record: Record) -> tuple[float, str]:
    return (record.time, canonical(_row(record)))
