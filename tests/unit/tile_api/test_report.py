"""Reports: what they tell of a kernel, and that their pages are sound."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

import tile_api as tile
import tile_api.language as T
from support.tiled_gemms import tiled_gemm
from tile_api.cli import main
from tile_api.report import ReportRequest, collect, page_of
from tile_api.report.assembly import lines_of_assembly
from tile_api.report.code import difference
from tile_api.report.markup import element
from tile_api.report.model import Line, Row, SourceLine
from tile_api.report.programs import compared, whole
from tile_api.report.source_lines import SourceLines
from tile_core.compilation.options import BuildOptions
from tile_core.errors import Span
from tile_core.plugins.host import default_host

gemm = tiled_gemm(128, 128, 128, stages=3)
VOID = {"br", "col", "hr", "img", "input", "link", "meta"}


class Page(HTMLParser):
    """Elements of a page, by nesting; it fails where one is not closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.headings: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        assert len(found) == len(attributes), f"an attribute of {tag} stands twice"
        # The keyboard goes along in the order of the page.
        assert found.get("tabindex", "0") in ("0", "-1")
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if "href" in found else []
        self.sources += [found["src"]] if "src" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass  # closed by itself

    def handle_endtag(self, tag):
        assert [tag] == self.open[-1:], f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append((self.open[-1], data))


def report_on(func, target):
    return collect(ReportRequest(func.kernel, target, BuildOptions(), default_host()))


@pytest.fixture(scope="module")
def ampere():
    return report_on(gemm, "cuda:sm_80")


def test_pages_are_well_formed_and_all_links_lead_somewhere(ampere):
    page = Page(page_of(ampere))
    assert len(page.ids) == len(set(page.ids))
    assert {link for link in page.links if not link.startswith("#")} == set()
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert all(source.startswith("data:") for source in page.sources)


def test_steps_show_what_each_pass_changed(ampere):
    steps = {step.name: step for step in ampere.steps}
    planned = steps["plan_pipelines"]
    gone = [row.line.text.strip() for row in planned.rows if row.change == "gone"]
    new = [row.line.text.strip() for row in planned.rows if row.change == "new"]
    assert "pipelined step: int32 in range(0, 4) stages 3:" in gone
    assert "@copy_wait(pending=1)" in new
    assert (planned.added, planned.removed) == (len(new), len(gone))
    assert (
        planned.summary
        == "Return `kernel` with its pipelined loops as explicit software pipelines."
    )
    assert steps["eliminate_dead_code"].kind == "same"
    assert steps["eliminate_dead_code"].rows == ()
    asides = [
        row.line.aside for row in steps["infer_layouts"].rows if "alloc A_tile" in row.line.text
    ]
    assert "by gemm" in asides[0]


def test_lines_lead_to_those_of_the_user(ampere):
    [source] = ampere.sources
    lowered, printed, _ = ampere.texts
    products = [x for x in (*lowered.lines, *printed.lines) if "mma_m16n8k16" in x.text]
    assert len(products) == 2
    for line in products:
        assert source.lines[line.at.line - source.first].strip() == "T.gemm(A_tile, B_tile, sums)"


def test_what_cannot_be_told_is_told_why():
    report = report_on(gemm, "cpu")
    assert report.counts is None
    assert report.missing["counters"] == "no emulator runs kernels for this target"
    assert "nothing is asynchronous" in report.missing["pipeline"]
    assert [step.name for step in report.steps if not step.summary] == []
    told = {part: f"nobody made {part}" for part in ("counters", "pipeline", "resources", "asm")}
    text = page_of(replace(report, missing=told))
    assert [part for part, why in told.items() if why not in text] == []
    page = Page(page_of(report))
    assert ("h2", "Counters") in page.headings
    assert all("&" not in text for _, text in page.headings)


def test_counters_are_those_of_the_emulator():
    kernel = tile.compile(gemm, target="cuda:sm_80@sim")
    built = kernel._built
    report = collect(
        ReportRequest(gemm.kernel, built.target, BuildOptions(), default_host(), counters=True)
    )
    loads = [c for c in report.counts if (c.cost.memory, c.cost.is_write) == ("global", False)]
    [source] = report.sources
    texts = [source.lines[c.at.line - source.first].strip() for c in loads]
    assert texts == [
        "T.copy(A[by * rows, step * depth], A_tile)",
        "T.copy(B[step * depth, bx * columns], B_tile)",
    ]
    assert [c.cost.bytes for c in loads] == [2 * 2 * 64 * 128 * 2] * 2
    assert [c.cost.ratio for c in loads] == [1.0, 1.0]
    assert "no compiler tells" in report.missing["resources"]


def test_everything_is_escaped():
    assert element("p", "<b>&", title='"<') == '<p title="&quot;&lt;">&lt;b&gt;&amp;</p>'
    line = Line("<script>alert(1)</script>", SourceLine(0, 1), "<i>")
    shown = "".join(difference([Row("new", line, 0, 1, ((1, 7),))]))
    assert "<script>" not in shown
    assert "&lt;<ins>script</ins>&gt;" in shown
    assert "&lt;i&gt;" in shown


@pytest.mark.parametrize("far", [0, 1, 2])
def test_lines_far_from_any_change_are_folded_if_they_are_several(far):
    same = [Row("same", Line(f"line {k}"), k, k) for k in range(1, 4 + far)]
    shown = "".join(difference([*same, Row("new", Line("line 0"), 0, 9)]))
    assert [f"line {k}" in shown for k in range(4 + far)] == [True] * (4 + far)
    assert ("2 lines that stayed" in shown) is (far == 2)
    assert "".join(difference(same)).count("line ") == len(same), "nothing changed: all are shown"


def test_differences_pair_lines_that_are_similar():
    old = [Line("a = 1"), Line("copy A[k], s"), Line("z")]
    new = [Line("a = 1"), Line("copy A[k + 2], s"), Line("z")]
    rows = compared(old, new)
    assert [(r.change, r.old, r.new) for r in rows] == [
        ("same", 1, 1),
        ("gone", 2, 0),
        ("new", 0, 2),
        ("same", 3, 3),
    ]
    [begin, end] = rows[2].marks[0]
    assert new[1].text[begin:end] == " + 2"
    assert [r.change for r in whole(old)] == ["same"] * 3


def test_kernels_found_in_a_cache_are_reported_on(tmp_path):
    first = tile.compile(gemm, target="cuda:sm_80")
    first.report(tmp_path / "a.html")
    again = tile.compile(gemm, target="cuda:sm_80")
    again.report(tmp_path / "b.html")
    steps = [Page((tmp_path / name).read_text()).ids for name in ("a.html", "b.html")]
    assert steps[0] == steps[1]


def test_the_command_writes_a_page(tmp_path, capsys):
    file = tmp_path / "double.py"
    file.write_text(
        "import tile_api.language as T\n\n@T.prim_func\n"
        "def double(A: T.Tensor((64,), 'float32'), B: T.Tensor((64,), 'float32')):\n"
        "    with T.Kernel(1, threads=64):\n"
        "        for i in T.Parallel(64):\n            B[i] = A[i] * 2\n"
    )
    path = tmp_path / "page.html"
    command = ["report", f"{file}:double", "--target", "hip:gfx942", "-o", str(path)]
    assert main(command) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert "B[i] = A[i] * 2" in path.read_text()
    assert main([*command[:-1], str(tmp_path / "none" / "page.html")]) == 1
    told = capsys.readouterr().err
    assert "cannot be written" in told
    assert "hint: name a file in a folder that exists" in told
    assert main(["report", str(file), "--target", "cpu", "--counters"]) == 1
    assert "no emulator that is installed runs its kernels" in capsys.readouterr().err


def test_assembly_leads_to_the_line_that_called(tmp_path):
    file = tmp_path / "user.py"
    file.write_text("a\nb\nc\n")
    places = SourceLines(Span(str(file), 1, 0, 1))
    text = f"""\t.loc 1 2 0
\tadd;
\t.loc 3 14 3, function_name $L0, inlined_at 1 3 5
\t.loc 4 29 3, function_name $L1, inlined_at 3 14 3
\tmul;
}}
\t.loc 5 1 1
\tret;
.file 1 "{file}"
.file 3 "tile.h"
.file 4 "half.h"
.file 5 "other.h"
"""
    lines = lines_of_assembly(text, places)
    found = {line.text.strip(): line.at for line in lines if line.text.endswith(";")}
    assert found == {"add;": SourceLine(0, 2), "mul;": SourceLine(0, 3), "ret;": None}


def test_assembly_of_kernels_leads_to_their_lines(ampere):
    [source] = ampere.sources
    products = {line.at for line in ampere.texts[2].lines if "mma.sync" in line.text}
    texts = {source.lines[at.line - source.first].strip() for at in products}
    assert texts == {"T.gemm(A_tile, B_tile, sums)"}


def test_programs_with_what_lowering_adds_to_calls_are_shown():
    @T.prim_func
    def totals(A: T.Tensor((64,), "float32"), B: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=64):
            i = T.get_thread_binding()
            B[i // 32] = T.warp_reduce_sum(A[i])

    lowered = report_on(totals, "hip:gfx942").texts[0]
    [line] = [line.text for line in lowered.lines if "warp_reduce_sum" in line.text]
    assert line.endswith("warp_reduce_sum[float32](A[tx], 32)")
