"""Results as text: a line when a problem is done, a table of all, and the goals at the end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contestant import OURS
from problem import Problem
from problems import all_problems, tiny_problems

KNOWN = {p.name: p for p in (*all_problems(), *tiny_problems())}
HEAD = (
    f"{'problem':<18} {'us':>9} {'rate':>12} {'peak':>5} {'rank':>6} {'model/t':>7}  "
    "ratios to peers; best configuration"
)


@dataclass(frozen=True, slots=True)
class Goal:
    """What the geometric mean of ratios to a peer should reach.

    Parameters
    ----------
    problems
        Beginnings of their names.
    """

    title: str
    problems: tuple[str, ...]
    peer: str
    least: float


GEMM = tuple(f"M{number}" for number in range(8))
FLASH = ("FA-16k", "FA0", "FA1", "FA2", "FA3", "FA4")
GOALS = (
    Goal("GEMM M0-M7", GEMM, "cuBLAS", 1.0),
    Goal("GEMM M0-M7", GEMM, "TileLang", 1.05),
    Goal("GEMM M0-M7", GEMM, "Triton", 1.0),
    Goal("attention", FLASH, "SDPA cudnn", 1.1),
    Goal("attention", FLASH, "SDPA flash", 1.3),
    Goal("attention", FLASH, "TileLang", 1.1),
    Goal("attention", FLASH, "Triton", 1.3),
    Goal("latent attention", ("MLA",), "TileLang", 1.0),
    Goal("chunk scan", ("CC",), "Triton", 1.7),
    Goal("chunk state", ("CT",), "Triton", 2.1),
)


def best_of(result: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the fastest of our configurations that are right, and what is told of it."""
    own = {n: c for n, c in result["contestants"].items() if n.startswith(OURS) and time_of(c)}
    return min(own.items(), key=lambda item: time_of(item[1])) if own else None


def time_of(contestant: Mapping[str, Any]) -> float:
    """Return the median in microseconds, of the race if there was one; 0 if it was not timed."""
    sample = contestant.get("sample")
    return float(sample["median"] if sample else contestant.get("quick_us", 0.0))


def ratios(result: Mapping[str, Any]) -> dict[str, float]:
    """Return how many times as long each peer takes."""
    best = best_of(result)
    if best is None:
        return {}
    return {
        name: time_of(c) / time_of(best[1])
        for name, c in result["contestants"].items()
        if not name.startswith(OURS) and time_of(c)
    }


def rate(problem: Problem, microseconds: float) -> tuple[float, str]:
    """Return GB/s or TFLOP/s."""
    if problem.is_rate_of_bytes:
        return problem.nbytes / microseconds / 1e3, "GB/s"
    return problem.flops / microseconds / 1e6, "TFLOP/s"


def line(name: str, result: Mapping[str, Any], plan: Mapping[str, Any], peaks: Any) -> str:
    """Return a problem as a line of the table."""
    problem, best = KNOWN[name], best_of(result)
    if best is None:
        return f"{name:<18} none of our kernels ran"
    entry = plan[name][int(best[0].split()[1])]
    us = time_of(best[1])
    value, unit = rate(problem, us)
    peak = peaks.get("copy_gbps" if problem.is_rate_of_bytes else "float16_tflops")
    share = f"{value / peak:.0%}" if peak else "-"
    model = entry["model_us"]
    told = f"{model / us:7.2f}" if model else f"{'-':>7}"
    rank = f"{entry['model_rank']}/{len(plan[name])}"
    peers = ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in ratios(result).items())
    if problem.mark is not None:
        peers += f", {problem.mark[0]}'s paper {value / problem.mark[1]:.2f}"
    return (
        f"{name:<18} {us:>9.1f} {value:>7.1f} {unit:<7}{share:>4} {rank:>6} {told}  "
        f"{peers or 'no peers'}; {entry['config']}"
    )


def lines(results: Mapping[str, Any], plan: Mapping[str, Any], fresh: str) -> Iterator[str]:
    """Yield what is new: the machine, or a problem with whatever went wrong."""
    if fresh == "machine":
        machine = results["machine"]
        peaks = ", ".join(f"{name} {value:.0f}" for name, value in machine["peaks"].items())
        yield f"{machine['device']}: {peaks}; {machine['packages']}"
        yield HEAD
        return
    result = results["problems"][fresh]
    yield line(fresh, result, plan, results["machine"].get("peaks", {}))
    for name, told in result["contestants"].items():
        if told["status"] not in ("right", "mark"):
            yield f"    {name}: {told['status']}: {told.get('why', '')}"
        elif not told.get("repeats", True):
            yield f"    {name}: two runs on the same inputs differ"


def table(results: Mapping[str, Any], plan: Mapping[str, Any]) -> list[str]:
    """Return all problems, and those that were left out."""
    peaks = results["machine"].get("peaks", {})
    found = [HEAD, *(line(name, r, plan, peaks) for name, r in results["problems"].items())]
    return [*found, *(f"{name:<18} skipped: {why}" for name, why in results["skipped"].items())]


def summary(results: Mapping[str, Any], plan: Mapping[str, Any]) -> list[str]:
    """Return the goals, and how well the cost model chose among configurations."""
    found = []
    for goal in GOALS:
        values = [
            of_peers[goal.peer]
            for name, result in results["problems"].items()
            if name.startswith(goal.problems) and goal.peer in (of_peers := ratios(result))
        ]
        if values:
            mean, word = geometric_mean(values), "goal"
            found.append(
                f"{goal.title}: {mean:.2f} of {goal.peer} over {len(values)} problems, "
                f"{word} {goal.least:.2f}: {'reached' if mean >= goal.least else 'missed'}"
            )
    picks = [pick for name, r in results["problems"].items() if (pick := choice(r, plan[name]))]
    if picks:
        mean = geometric_mean(picks)
        found.append(f"the cost model's first choice reaches {mean:.2f} of the best, on average")
    return found


def choice(result: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> float | None:
    """Return what the cost model's first choice reaches of the fastest, both timed quickly."""
    times = {
        number: told["quick_us"]
        for number in range(len(entries))
        if (told := result["contestants"].get(f"{OURS} {number}")) and "quick_us" in told
    }
    if len(times) < 2:
        return None
    first = min(times, key=lambda number: entries[number]["model_rank"])
    return float(min(times.values()) / times[first])


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers."""
    return math.exp(sum(map(math.log, values)) / len(values))
