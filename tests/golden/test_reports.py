"""What a report tells of a kernel: facts, layouts, places, changes of each pass; no times."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from support.tiled_gemms import tiled_gemm
from tile_api.report import ReportRequest, collect
from tile_api.report.model import Drawn, Fact, KernelReport, Line, Row
from tile_core.compilation.options import BuildOptions
from tile_core.plugins.host import default_host

Golden = Callable[..., None]


def place(line: Line) -> str:
    """Return where the user wrote what a line comes from, and what is told beside it."""
    at = "" if line.at is None else f"{line.at.file}:{line.at.line}"
    return f"{at:6}{' | ' if line.aside else ''}{line.aside}"


def changed(row: Row) -> str:
    marks = " ".join(f"{a}-{b}" for a, b in row.marks)
    return f"    {row.change} {row.old} {row.new} [{marks}] {row.line.text.strip()[:80]}"


def drawn(one: Drawn) -> Iterator[str]:
    yield f"  {one.name}: {one.what}, {one.function}; {one.who} {one.remark}"
    if one.picture is not None:
        p = one.picture
        corner = [" ".join(f"{c.text}~{c.hue}" for c in cells[:4]) for cells in p.corner[:3]]
        yield f"    {p.rows} x {p.columns}, {p.legend}: {' / '.join(corner)}"


def facts(found: tuple[Fact, ...]) -> Iterator[str]:
    yield from (f"  {f.name}: {f.value} {f.remark}" for f in found if f.name != "Compiler")


def told(report: KernelReport) -> Iterator[str]:
    yield f"{report.name} for {report.target}"
    yield from facts(report.facts)
    yield f"counters are missing: {report.missing['counters']}"
    for remark, at in report.remarks:
        yield f"remark {remark.message} at {at and at.line}"
    if report.layouts is not None:
        for one in (*report.layouts.tiles, *report.layouts.loops):
            yield from drawn(one)
    for source in report.sources:
        yield f"source from {source.first}, {len(source.lines)} lines"
    for step in (s for s in report.steps if s.kind != "same"):
        yield f"{step.name} ({step.launch}, {step.kind})"
        yield from (changed(row) for row in step.rows if row.change != "same")
    for text in report.texts[:2]:  # others are the compiler's
        yield f"{text.name}: {text.title}; {text.explanation} {text.left_out} left out"
        yield from (f"    {place(line)} {line.text.strip()[:60]}" for line in text.lines)


def test_of_a_product(golden: Golden) -> None:
    kernel = tiled_gemm(128, 128, 128, stages=3).kernel
    request = ReportRequest(kernel, "cuda:sm_80", BuildOptions(), default_host())
    golden("\n".join(line.rstrip() for line in told(collect(request))))
