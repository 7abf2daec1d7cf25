"""Callers in C: what they know, what they leave to Python, and that nothing is held or lost."""

from __future__ import annotations

import ctypes
import gc
import shutil
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tile_runtime.native.caller import Caller, Outcome, Parameter, Slot, Start
from tile_runtime.native.installed import library_folder
from tile_runtime.native.layouts import Interface, Kind, Source, Width
from tile_runtime.native.learning import MOST_ATTEMPTS, Learner
from tile_runtime.native.library import (
    build_library,
    c_compiler,
    file_name,
    is_supported,
    open_library,
    ready_library,
)
from tile_runtime.native.starting import Starter

TENSOR = Parameter(Kind.TENSOR)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if not is_supported() or shutil.which(c_compiler()[0]) is None:
        pytest.skip("needs CPython and a C compiler")
    found = ready_library(tmp_path_factory.mktemp("native"), c_compiler())
    assert found is not None
    return found


@dataclass
class Code:
    """Compiled code that notes the 64 bits of each argument, and returns a number."""

    slots: tuple[Slot, ...]
    returns: int = 0
    calls: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
        self.entry = kind(self._run)

    def _run(self, row: Any) -> int:
        places = [row[k] for k in range(len(self.slots))]
        self.calls.append(tuple(ctypes.c_int64.from_address(place).value for place in places))
        return self.returns

    def start(self, **changes: Any) -> Start:
        function = ctypes.cast(self.entry, ctypes.c_void_p).value
        told = {"failed": refuse, "keep": (self,)} | changes
        return Start(Interface.ROW, function or 0, 0, self.slots, **told)


def refuse(kind: int, number: int) -> None:
    raise ArithmeticError(kind, number)


def addresses(*positions: int) -> tuple[Slot, ...]:
    return tuple(Slot(Source.ADDRESS, position, Width.POINTER) for position in positions)


NOTHING = Outcome((), (), ())


def one_tensor(library: Any, *like: Any, parameter: Parameter = TENSOR) -> tuple[Caller, Code]:
    """Return a caller of code with one tensor, which knows the kinds of `like`."""
    caller, code = Caller(library, [parameter]), Code(addresses(0))
    for tensor in like:
        assert caller.remember((tensor,), code.start(), NOTHING)
    return caller, code


def knows(caller: Caller, *args: Any) -> bool:
    return caller.call(*args) is not NotImplemented


# Kinds -------------------------------------------------------------------------------------


def test_arrays_of_other_kinds_are_not_known(library: Any) -> None:
    base = np.arange(24, dtype=np.int32).reshape(4, 6).copy()
    caller, code = one_tensor(library, base)
    assert knows(caller, base.copy())
    frozen = base.copy()
    frozen.flags.writeable = False
    for other in (
        base[::-1],
        base.T,
        base[:, ::2],
        base[:3],
        base[:0],
        base.reshape(24),
        base.reshape(2, 2, 6),
        base.astype(">i4"),
        base.astype(np.uint32),
        base.astype(np.float32),
        frozen,
        base.view(np.recarray),
        base[0, 0],
        memoryview(base),
        [1, 2],
        "text",
        None,
    ):
        assert not knows(caller, other), other
    assert not knows(caller)
    assert not knows(caller, base, base)
    assert len(code.calls) == 1


@pytest.mark.parametrize(
    "tensor",
    [
        np.zeros((), np.float64),
        np.zeros((0, 3), np.float64),
        np.zeros((1,) * 8, np.int8),
        np.broadcast_to(np.float32(1), (2, 3)),
        np.arange(6)[::-1],
        None,
    ],
    ids=["rank 0", "no elements", "rank 8", "broadcast", "backwards", "None"],
)
def test_what_passed_checks_is_known(library: Any, tensor: Any) -> None:
    caller, code = one_tensor(library, tensor)
    assert caller.call(tensor) is None
    address = 0 if tensor is None else tensor.__array_interface__["data"][0]
    assert code.calls == [(address,)]


def test_tensors_of_many_dimensions_are_pythons_matter(library: Any) -> None:
    caller, code = Caller(library, [TENSOR]), Code(addresses(0))
    tensor = np.zeros((1,) * 9)
    assert not caller.remember((tensor,), code.start(), NOTHING)
    assert not knows(caller, tensor)


def test_many_parameters_are_pythons_matter(library: Any) -> None:
    arrays = [np.zeros(k + 1) for k in range(65)]
    most = Caller(library, [TENSOR] * 64)
    code = Code(addresses(*range(64)))
    assert most.remember(tuple(arrays[:64]), code.start(), NOTHING)
    assert most.call(*arrays[:64]) is None
    assert code.calls == [tuple(a.ctypes.data for a in arrays[:64])]
    more = Caller(library, [TENSOR] * 65)
    assert not more.remember(tuple(arrays), Code(addresses(0)).start(), NOTHING)
    assert not knows(more, *arrays)


def test_numbers(library: Any) -> None:
    parameters = [
        Parameter(Kind.INT, low=-128, high=127),
        Parameter(Kind.INT, low=0, high=(1 << 64) - 1),
        Parameter(Kind.FLOAT),
        Parameter(Kind.FLOAT),
        Parameter(Kind.BOOL),
    ]
    widths = (Width.INT, Width.INT, Width.FLOAT, Width.DOUBLE, Width.BOOL)
    code = Code(tuple(Slot(Source.SCALAR, k, width) for k, width in enumerate(widths)))
    caller = Caller(library, parameters)
    right = (-128, (1 << 63) - 1, 0.1, 1 << 60, True)
    assert caller.remember(right, code.start(), NOTHING)
    assert caller.call(*right) is None
    (found,) = code.calls
    assert found[:2] == right[:2]
    assert struct.pack("<q", found[2])[:4] == struct.pack("<f", 0.1)
    assert struct.pack("<q", found[3]) == struct.pack("<d", float(1 << 60))
    assert found[4] == 1
    for position, wrong in (
        *((0, -129), (0, 128), (0, True), (0, 1.0), (0, 1 << 200), (0, np.int8(1))),
        *((1, -1), (1, 1 << 63), (2, "1"), (2, True), (2, 1 << 2000), (2, np.float64(1))),
        *((4, 1), (4, 1.0), (4, np.True_)),
    ):
        args = [*right]
        args[position] = wrong
        assert not knows(caller, *args), wrong
    assert len(code.calls) == 1


def test_numbers_of_keys_are_told_apart_by_their_bits(library: Any) -> None:
    code = Code((Slot(Source.SCALAR, 0, Width.DOUBLE),))
    caller = Caller(library, [Parameter(Kind.FLOAT, is_keyed=True)])
    assert caller.remember((0.0,), code.start(), NOTHING)
    assert knows(caller, 0.0)
    assert knows(caller, 0)
    assert not knows(caller, -0.0)
    assert not knows(caller, float("nan"))


# What is not done --------------------------------------------------------------------------


def test_outputs_that_lie_badly_are_pythons_matter(library: Any) -> None:
    block = np.zeros(256, np.uint8)
    first = -block.ctypes.data % 128
    aligned, shifted = block[first : first + 8], block[first + 8 : first + 16]
    made = [aligned, shifted]
    caller = Caller(library, [Parameter(Kind.OUTPUT, alignment=128)])
    code = Code(addresses(0))
    outcome = Outcome(((0, lambda: made[-1]),), (0,), ())
    assert caller.remember((), code.start(), outcome)
    assert caller.call() is NotImplemented
    made.pop()
    assert caller.call() is aligned
    assert code.calls == [(aligned.ctypes.data,)]


def test_outputs_that_are_no_tensors_are_pythons_matter(library: Any) -> None:
    caller, code = Caller(library, [Parameter(Kind.OUTPUT)] * 2), Code(addresses(0, 1))
    outcome = Outcome(((0, lambda: np.zeros(2)), (1, lambda: [1])), (0, 1), ())
    assert caller.remember((), code.start(), outcome)
    assert caller.call() is NotImplemented
    assert not code.calls


@pytest.mark.parametrize("failing", [0, 1])
def test_a_maker_that_raises(library: Any, failing: int) -> None:
    def none_left() -> Any:
        raise MemoryError("none left")

    made: list[weakref.ref[Any]] = []

    def make() -> Any:
        array = np.zeros(2)
        made.append(weakref.ref(array))
        return array

    makers = [make, make]
    makers[failing] = none_left
    caller, code = Caller(library, [Parameter(Kind.OUTPUT)] * 2), Code(addresses(0, 1))
    outcome = Outcome(tuple(enumerate(makers)), (0, 1), ())
    assert caller.remember((), code.start(), outcome)
    with pytest.raises(MemoryError, match="none left"):
        caller.call()
    assert len(made) == failing
    assert not any(reference() is not None for reference in made)
    assert not code.calls


def test_what_code_returns_is_raised(library: Any) -> None:
    caller, code = one_tensor(library, np.zeros(3))
    code.returns = 1 << 20
    with pytest.raises(ArithmeticError, match=r"\(0, 1048576\)"):
        caller.call(np.zeros(3))
    code.returns = 0
    assert caller.call(np.zeros(3)) is None


def test_a_failure_without_a_reason_is_raised(library: Any) -> None:
    caller, code = Caller(library, []), Code((), returns=1)
    assert caller.remember((), code.start(failed=lambda kind, number: None), NOTHING)
    with pytest.raises(RuntimeError, match="a kernel failed for no stated reason"):
        caller.call()


def test_a_failed_assertion_is_raised_and_not_remembered(library: Any) -> None:
    def fail(row: Any) -> int:
        place = ctypes.c_int64.from_address(row[0]).value
        seen.append(ctypes.c_int32.from_address(place).value)
        ctypes.c_int32.from_address(place).value = 7
        return 0

    seen: list[int] = []
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))(fail)
    function = ctypes.cast(entry, ctypes.c_void_p).value or 0
    slots = (Slot(Source.STATUS, width=Width.POINTER),)
    caller = Caller(library, [])
    start = Start(Interface.ROW, function, 0, slots, refuse, keep=(entry,))
    assert caller.remember((), start, NOTHING)
    for _ in range(2):
        with pytest.raises(ArithmeticError, match=r"\(1, 7\)"):
            caller.call()
    assert seen == [0, 0]


@pytest.mark.parametrize(("stream", "error"), [("7", TypeError), (None, ZeroDivisionError)])
def test_streams_that_cannot_be_told(library: Any, stream: Any, error: type[Exception]) -> None:
    def stream_of(device: int) -> Any:
        assert device == 3
        return stream if stream is not None else 1 // 0

    caller, code = Caller(library, []), Code(())
    assert caller.remember((), code.start(stream_of=stream_of, device=3), NOTHING)
    with pytest.raises(error):
        caller.call()
    assert not code.calls


def test_contexts_that_cannot_be_told_are_pythons_matter(library: Any) -> None:
    """Device 0 is a context of HIP's: a call that fails must not look like it."""
    answers = [(0, 0), (0, 1), (7, 0)]

    def read(place: Any) -> int:
        code, context = answers[-1]
        place[0] = context
        return code

    reader = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64))(read)
    address = ctypes.cast(reader, ctypes.c_void_p).value
    caller, code = Caller(library, []), Code(())
    start = code.start(context=0, read_context=address, keep=(code, reader))
    assert caller.remember((), start, NOTHING)
    assert caller.call() is NotImplemented
    answers.pop()
    assert caller.call() is NotImplemented
    answers.pop()
    assert caller.call() is None


# Memory ------------------------------------------------------------------------------------


def test_forgetting_while_what_was_kept_calls_and_teaches(library: Any) -> None:
    """What a plan kept runs code when it goes; that must not find half of the plans."""
    caller, code = Caller(library, [TENSOR]), Code(addresses(0))
    found = []

    class Guest:
        def __init__(self, rows: int) -> None:
            self.rows = rows

        def __del__(self) -> None:
            found.append(any(knows(caller, np.zeros(rows)) for rows in range(1, 40)))
            caller.remember((np.zeros(100 + self.rows),), code.start(), NOTHING)

    for rows in range(1, 40):
        assert caller.remember((np.zeros(rows),), code.start(keep=(code, Guest(rows))), NOTHING)
    caller.forget()
    assert found == [False] * 39
    code.calls.clear()
    for rows in range(1, 40):
        assert not knows(caller, np.zeros(rows))
        assert knows(caller, np.zeros(100 + rows))
    assert len(code.calls) == 39


def test_what_was_called_last_is_forgotten_too(library: Any) -> None:
    caller, code = one_tensor(library, np.zeros(3))
    assert knows(caller, np.zeros(3))
    caller.forget()
    caller.remember((np.zeros(4),), code.start(), NOTHING)  # takes the memory of what went
    assert not knows(caller, np.zeros(3))


def test_kinds_beyond_the_most_begin_anew(library: Any) -> None:
    caller, code = Caller(library, [TENSOR]), Code(addresses(0))
    for rows in range(1, 1200):
        assert caller.remember((np.zeros(rows),), code.start(), NOTHING)
        assert knows(caller, np.zeros(rows))
    assert not knows(caller, np.zeros(1))


def test_calls_and_misses_hold_nothing(library: Any) -> None:
    array, other = np.zeros(4), np.zeros(5)
    parameters = [TENSOR, Parameter(Kind.INT, low=-(1 << 31), high=(1 << 31) - 1)]
    parameters += [Parameter(Kind.OUTPUT), Parameter(Kind.OUTPUT)]
    address = ctypes.CDLL(None).abs  # of C: takes what is there, and returns a number
    function = ctypes.cast(address, ctypes.c_void_p).value or 0
    makers = ((2, lambda: np.zeros(2)), (3, lambda: np.zeros(3)))
    start = Start(Interface.ROW, function, 0, addresses(0), refuse)
    caller = Caller(library, parameters)
    assert caller.remember((array, 10**9), start, Outcome(makers, (3, 2), ()))

    def turn() -> None:
        try:
            caller.call(array, 10**9)
        except ArithmeticError:
            pass
        caller.call(other, 10**9)
        caller.call(array, 1 << 70)
        caller.call(array, 1.5)

    for _ in range(100):
        turn()
    gc.collect()
    counts = [sys.getrefcount(x) for x in (array, other, refuse, None, makers)]
    blocks = sys.getallocatedblocks()
    for _ in range(25_000):
        turn()
    gc.collect()
    now = [sys.getrefcount(x) for x in (array, other, refuse, None, makers)]
    assert all(abs(a - b) < 50 for a, b in zip(counts, now, strict=True))
    assert sys.getallocatedblocks() - blocks < 500


def test_what_was_learnt_goes_with_the_caller(library: Any) -> None:
    class Kept:
        pass

    kept = Kept()
    gone = weakref.ref(kept)
    caller, code = one_tensor(library)
    assert caller.remember((np.zeros(3),), code.start(keep=(code, kept)), NOTHING)
    call = caller.call
    del kept, caller
    assert gone() is not None
    assert call(np.zeros(3)) is None
    del call
    assert gone() is None


def test_forgetting_during_a_call_keeps_what_it_uses(library: Any) -> None:
    """Another thread may forget everything while the code runs."""
    caller = Caller(library, [TENSOR])
    inside, forgotten = threading.Event(), threading.Event()

    def wait(row: Any) -> int:
        inside.set()
        assert forgotten.wait(30)
        return 1

    entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))(wait)
    function = ctypes.cast(entry, ctypes.c_void_p).value or 0
    start = Start(Interface.ROW, function, 0, addresses(0), refuse, keep=(entry,))
    assert caller.remember((np.zeros(3),), start, NOTHING)
    del start, entry
    caught: list[Exception] = []

    def work() -> None:
        try:
            caller.call(np.zeros(3))
        except ArithmeticError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(30)
    caller.forget()
    gc.collect()
    forgotten.set()
    thread.join()
    assert [error.args for error in caught] == [(0, 1)]


# Learning ----------------------------------------------------------------------------------


def learner(library: Any, start: Callable[[Any], Start | None]) -> tuple[Learner, Iterator[bool]]:
    def run(array: Any) -> None:
        return None

    run.starter = Starter(start, frozenset(), (1,))  # type: ignore[attr-defined]
    made = Learner(run, lambda starter: [TENSOR], lambda: library)

    def turns() -> Iterator[bool]:
        while True:
            yield made.learn((sample[0],), (sample[0],), (), (), ())

    sample = [np.zeros(3)]
    made.sample = sample  # type: ignore[attr-defined]
    return made, turns()


def test_calls_that_stay_pythons_are_not_handed_over_for_ever(library: Any) -> None:
    """Such as those of a thread that works with another device: their kind is known."""
    code = Code(addresses(0))
    _, turns = learner(library, lambda args: code.start())
    told = [next(turns) for _ in range(MOST_ATTEMPTS + 1)]
    assert told == [True] * MOST_ATTEMPTS + [False]


def test_what_cannot_be_started_is_not_handed_over_for_ever(library: Any) -> None:
    _, turns = learner(library, lambda args: None)
    assert [next(turns) for _ in range(MOST_ATTEMPTS)] == [True] * (MOST_ATTEMPTS - 1) + [False]


def test_each_new_kind_is_one_to_go_on_for(library: Any) -> None:
    code = Code(addresses(0))
    made, turns = learner(library, lambda args: code.start())
    for rows in range(1, 100):
        made.sample[0] = np.zeros(rows)  # type: ignore[attr-defined]
        assert next(turns)
        assert made.call(np.zeros(rows)) is None


@pytest.mark.parametrize("lacking", ["starter", "parameters", "library"])
def test_what_c_cannot_do_is_asked_once(library: Any, lacking: str) -> None:
    asked = []

    def run(array: Any) -> None:
        return None

    if lacking != "starter":
        run.starter = Starter(lambda args: None, frozenset(), (1,))  # type: ignore[attr-defined]
    made = Learner(
        run,
        lambda starter: asked.append("p") or (None if lacking == "parameters" else [TENSOR]),
        lambda: asked.append("l"),
    )
    for _ in range(3):
        assert not made.learn((np.zeros(1),), (np.zeros(1),), (), (), ())
    assert asked == {"starter": [], "parameters": ["p"], "library": ["p", "l"]}[lacking]
    assert made.call(np.zeros(1)) is NotImplemented


# The library -------------------------------------------------------------------------------


def test_without_a_compiler_there_is_none(tmp_path: Path) -> None:
    for command in (["no-such-compiler"], ["false"]):
        assert build_library(tmp_path / "a", command) is None
        assert ready_library(tmp_path / "a", command) is None
    assert not list(tmp_path.rglob("*.*"))


def test_a_folder_that_cannot_be_written_has_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert ready_library(tmp_path / "file" / "native", c_compiler()) is None


def test_the_name_tells_the_interpreter(library: Any) -> None:
    from importlib.machinery import EXTENSION_SUFFIXES

    name = file_name()
    assert name.endswith(EXTENSION_SUFFIXES[0])
    assert f"{sys.version_info.major}{sys.version_info.minor}" in name


@pytest.mark.parametrize("text", [b"", b"no library", b"\x7fELF" + bytes(4000)])
def test_a_broken_file_is_made_anew(library: Any, tmp_path: Path, text: bytes) -> None:
    path = tmp_path / file_name()
    path.write_bytes(text)
    assert open_library(path) is None
    assert ready_library(tmp_path, c_compiler()) is not None
    assert path.stat().st_size > 5000


def test_another_library_of_that_name_is_not_used(library: Any, tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text("int other(void) { return 1; }\n")
    path = tmp_path / "other.so"
    subprocess.run([*c_compiler(), "-shared", "-fPIC", "-o", path, source], check=True)
    assert open_library(path) is None


def test_processes_make_it_at_once(library: Any, tmp_path: Path) -> None:
    text = (
        "import pathlib, sys\n"
        "from tile_runtime.native.library import c_compiler, ready_library\n"
        "assert ready_library(pathlib.Path(sys.argv[1]), c_compiler()) is not None\n"
    )
    command = [sys.executable, "-c", text, str(tmp_path / "new")]
    running = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(120) for process in running] == [0] * 4
    assert [path.name for path in (tmp_path / "new").iterdir()] == [file_name()]


def test_compilers_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "true -B 'a b'")
    assert c_compiler() == ["true", "-B", "a b"]
    for nothing in ("no-such-compiler -m64", "'", ""):
        monkeypatch.setenv("CC", nothing)
        assert c_compiler()[0] not in ("no-such-compiler", "'")


def test_where_the_library_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    for told, folder in (
        ({}, "/home/ada/.cache/tile/native"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/tile/native"),
        ({"XDG_CACHE_HOME": "x"}, "/home/ada/.cache/tile/native"),
        ({"TILE_CACHE_DIR": "~/c", "TILELANG_CACHE_DIR": "/d"}, "/home/ada/c/native"),
        ({"TILELANG_CACHE_DIR": "/d", "TILE_DISABLE_CACHE": "0"}, "/d/native"),
        ({"TILE_CACHE_SIZE": "0"}, None),
        ({"TILE_DISABLE_CACHE": "yes"}, None),
        ({"TILELANG_DISABLE_CACHE": "1"}, None),
    ):
        assert library_folder(told) == (None if folder is None else Path(folder))


def test_users_without_a_home_keep_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    assert library_folder({}) is None


def test_the_folder_is_where_kernels_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from tile_api.disk_cache.location import CacheSettings

    monkeypatch.setenv("HOME", "/home/ada")
    for told in ({}, {"XDG_CACHE_HOME": "/x"}, {"XDG_CACHE_HOME": "x"}, {"TILE_CACHE_DIR": "~/c"}):
        assert library_folder(told) == CacheSettings.from_environment(told).folder / "native"
