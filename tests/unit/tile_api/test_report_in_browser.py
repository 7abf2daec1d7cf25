"""Reports as a browser shows them."""

from __future__ import annotations

import pytest

from support.browser import find_browser, tab_of
from support.tiled_gemms import tiled_gemm
from tile_api.report import ReportRequest, write_report
from tile_core.compilation.options import BuildOptions
from tile_core.plugins.host import default_host

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

gemm = tiled_gemm(128, 128, 256, stages=3)
PARTS = ["overview", "source", "pipeline", "layouts", "remarks", "resources", "counters",
         "passes", "code", "times"]  # fmt: skip


@pytest.fixture(scope="module")
def tab():
    with tab_of(BROWSER) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for target in ("cpu", "cuda:sm_90a"):
        found[target] = folder / f"{target.replace(':', '-')}.html"
        write_report(
            ReportRequest(gemm.kernel, target, BuildOptions(), default_host()), found[target]
        )
    return found


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
@pytest.mark.parametrize("width", [1280, 400])
def test_pages_fit_their_windows_and_load_nothing(tab, pages, target, width):
    tab.open(pages[target], width)
    tab.run("for (const box of document.querySelectorAll('details')) box.open = true")
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("[...document.querySelectorAll('main > section')].map(s => s.id)") == PARTS
    assert tab.complaints == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
    assert tab.run("[...document.images].every(image => image.naturalWidth > 0)")


def test_contents_lead_to_parts_and_open_what_is_closed(tab, pages):
    tab.open(pages["cuda:sm_90a"], 1280)
    count = tab.run("document.querySelectorAll('nav a').length")
    assert count > len(PARTS)
    for k in range(count):
        tab.run(f"document.querySelectorAll('nav a')[{k}].click()")
        tab.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
        assert tab.run("""(() => {
            const target = document.getElementById(location.hash.slice(1));
            const closed = target.closest('details:not([open])');
            const { top } = target.getBoundingClientRect();
            const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
            return closed === null && (Math.abs(top) < 60 || end);
        })()"""), f"link {k}"
    assert tab.complaints == []


def test_choosing_a_line_marks_what_came_of_it(tab, pages):
    tab.open(pages["cuda:sm_90a"], 1280)
    color = "getComputedStyle(document.querySelector('#passes [data-at=\"{}\"]')).backgroundColor"
    at = tab.run("""[...document.querySelectorAll('#source .r')]
        .find(row => row.textContent.includes('T.gemm')).dataset.at""")
    before = tab.run(color.format(at))
    tab.run(f"document.querySelector('#source [data-at=\"{at}\"] .own').click()")
    assert tab.run(color.format(at)) != before
    assert "T.gemm(A_tile, B_tile, sums)" in tab.run("document.querySelector('.told').textContent")
    assert tab.run("getComputedStyle(document.querySelector('.next')).visibility") == "visible"
    tab.press("Escape")
    assert tab.run(color.format(at)) == before
    assert tab.run("document.querySelector('.origin').hidden")


def test_dark_pages_are_dark_and_the_keyboard_reaches_code(tab, pages):
    tab.open(pages["cuda:sm_90a"], 1280, dark=True)
    channels = tab.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert max(channels[:3]) < 64
    tab.press("Tab")
    assert tab.run("document.activeElement.className") == "skip"
    tab.press("Enter")
    assert tab.run("document.activeElement.id") == "main"
    tab.press("Tab")
    reached = tab.run("document.activeElement.closest('.code, .own, details') !== null")
    assert reached
