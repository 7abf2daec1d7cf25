"""What a run says: a line for each failure, and a row for each feature."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from hardware.features import rank_of

GOOD = ("passed", "accepted")
STATUSES = ("passed", "accepted", "wrong", "stray", "refused", "fault", "hung", "died", "skipped")
"""Of cases: results agree; the driver accepts it; they do not agree; memory beside a tensor was
written; the kernel was not started; it failed; it did not end; its process did not; not tried."""


def line_of(record: dict[str, Any]) -> str:
    """Return a line for people."""
    told = record.get("message", "")
    if record.get("wrong_launches"):
        told += f" ({record['wrong_launches']} of {record['launches']} launches)"
    return f"{record['status']:8} {record.get('seconds', 0):8.3f} s  {record['case']}  {told}"


def summary(records: Sequence[dict[str, Any]]) -> str:
    """Return the table by feature, and what no case that is right uses."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        for feature in record["features"]:
            counts[feature][record["status"]] += 1
    total = Counter(record["status"] for record in records)
    shown = [status for status in STATUSES if total[status]]
    width = max([len(feature) for feature in counts] + [8])
    rows = [f"{'':{width}} " + " ".join(f"{status:>8}" for status in shown)]
    for feature in sorted(counts, key=lambda f: (rank_of(f), f)):
        numbers = " ".join(f"{counts[feature][s] or '·':>8}" for s in shown)
        rows.append(f"{feature:{width}} {numbers}")
    rows.append(f"{'all':{width}} " + " ".join(f"{total[s]:>8}" for s in shown))
    return "\n".join([*rows, "", *suspects(records)])


def suspects(records: Iterable[dict[str, Any]]) -> list[str]:
    """Return what failing cases use and no good one does, and the simplest case of each.

    Where all features of a failing case also work somewhere, it is their combination, the sizes,
    or the types.
    """
    tried = [record for record in records if record["status"] != "skipped"]
    proven = {f for record in tried if record["status"] in GOOD for f in record["features"]}
    found: dict[tuple[str, ...], list[str]] = {}
    for record in tried:
        if record["status"] not in GOOD:
            unproven = tuple(f for f in record["features"] if f not in proven)
            found.setdefault(unproven, []).append(record["case"])
    if not found:
        return ["nothing failed"]
    lines = []
    for features, names in sorted(found.items(), key=lambda item: (not item[0], -len(item[1]))):
        what = f"never right: {', '.join(features)}" if features else "features that work elsewhere"
        lines.append(f"{what}: {len(names)} cases, the simplest is {names[0]}")
    return lines
