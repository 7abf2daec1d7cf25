"""Fixtures and options for all tests."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import re
import signal
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.internal import constants_ast
from hypothesis.internal.conjecture import providers

from support.followed import following, is_followed
from support.pretended_machine import pretend_from_environment
from support.slow_tests import Stopwatch
from support.smoke import is_smoke, share_of
from support.turns import VARIABLE, left_to_others, names_tests, require_shares, take_turn, turn_of
from tile_core.plugins.host import PluginHost, installed_plugins

# Tests see what this checkout compiles; those of the cache on disk name a folder of their own.
os.environ["TILE_CACHE_SIZE"] = "0"
logging.getLogger().addHandler(logging.NullHandler())  # nothing that is logged goes to stderr
# Who reads of a failing test is a developer.
os.environ.setdefault("TILE_FULL_TRACEBACK", "1")
pretend_from_environment()

hypothesis.settings.register_profile("dev", deadline=None, max_examples=50)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=40, derandomize=True)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
if hypothesis.settings().derandomize:
    # Examples would depend on the constants in all modules that happen to be loaded: other tests
    # would change them, and so would naming one file. Reading them takes each worker 9 s, too.
    vars(providers)["_get_local_constants"] = constants_ast.Constants

Golden = Callable[..., None]
PROVED: set[Any] = set()
"""Launches whose barriers this process has proved: kernels come back in many tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files that differ instead of failing",
    )
    parser.addoption(
        "--measure-slow-tests",
        action="store_true",
        help="measure the tests that run, and write which of them are slow",
    )


TURN = pytest.StashKey["int | None"]()


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGINT raise, as in a terminal: shells start what runs beside them with it ignored.

    Workers are told whose turn it is: they are given files, whatever the command line names.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    told = getattr(config, "workerinput", {})
    config.stash[TURN] = told["turn"] if "turn" in told else turn_of(names_tests(config))
    if config.option.measure_slow_tests:
        config.pluginmanager.register(Stopwatch())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["turn"] = node.config.stash[TURN]


def pytest_report_header(config: pytest.Config) -> str | None:
    turn = config.stash[TURN]
    return None if turn is None else f"rows of tests in turn: {VARIABLE}={turn} repeats the choice"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file of tests that ``-m smoke`` leaves out whole."""
    is_left_out = config.option.markexpr == "smoke" and collection_path.name.startswith("test_")
    return True if is_left_out and not share_of(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for garbage after collecting, and never again among what collecting leaves.

    Then seldom: most tests make trees that die young, and leave nothing in circles. Hypothesis
    goes through all objects the first time, which are few before collecting.
    """
    hypothesis.find(hypothesis.strategies.booleans(), bool)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 10, 10)


TESTS_RUN = itertools.count(1)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Look now and then for garbage among what is new, and never again among what stays.

    Tests that ask for it, and the end of the session, would go through all that caches keep.
    """
    if next(TESTS_RUN) % 200 == 0:
        gc.collect()
        gc.freeze()


def is_backwards(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this worker reads test files from the last to the first.

    Every other one does, so that each compiles half of what is new, and reads what others wrote.
    """
    return int(environment.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 2 == 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if isinstance(collector, pytest.Directory) and is_backwards():
        report.result.reverse()
    return report


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Leave rows to other turns when all parameters of a test are known."""
    yield
    require_shares(metafunc)  # also where all rows are due
    turn = metafunc.config.stash[TURN]
    if turn is not None:
        take_turn(metafunc, turn)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:  # all workers need one order
        items.sort(key=lambda item: item.path.parts)
    turn = config.stash[TURN]
    if turn is not None and (left := left_to_others(items, turn)):
        gone = {*left}
        items[:] = [item for item in items if item not in gone]
        config.hook.pytest_deselected(items=left)
    for item in items:
        if re.search("<.* at 0x[0-9a-f]+>", item.nodeid):  # each worker has another address
            raise pytest.UsageError(f"{item.nodeid} has no name of its own: give it `ids`")
        if is_smoke(item.path, item.name):
            item.add_marker(pytest.mark.smoke)


@pytest.fixture(scope="session")
def host() -> PluginHost:
    """Every plugin that is installed."""
    return installed_plugins()


@pytest.fixture(autouse=True)
def barriers_are_followed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Prove the barriers of every kernel that a test lowers, in turn; see `support.followed`."""
    is_wrong = request.node.get_closest_marker("wrong_barriers") is not None
    turn = request.config.stash[TURN]
    if not is_wrong and not is_followed(request.path, request.node.name, turn):
        yield
        return
    with following(PROVED) as followed:
        yield
    assert bool(followed.wrong) is is_wrong, "\n\n".join(followed.wrong) or "nothing is found"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with the one that was reviewed.

    ``golden(text)`` compares with ``expected/<module>/<test>.txt`` beside the test;
    ``golden(text, "asm")`` with ``….asm.txt``, for tests that pin more than one text.
    """
    module = Path(request.path)
    folder = module.parent / "expected" / module.stem.removeprefix("test_")
    test = re.sub(r"\W+", "_", request.node.name.removeprefix("test_")).strip("_")

    def check(text: str, part: str = "") -> None:
        path = folder / f"{test}{'.' if part else ''}{part}.txt"
        text = text.rstrip("\n") + "\n"
        known = path.read_text() if path.exists() else None
        if known == text:
            return
        if request.config.getoption("--update-golden"):
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert known is not None, f"{path} is missing; write it with --update-golden"
        assert text.splitlines() == known.splitlines()

    return check
