"""Callers in C: what they know, what they leave to Python, and that nothing is held or lost."""

from __future__ import annotations

import ctypes
import gc
import math
import struct
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from support.native_calls import TENSOR, Code, addresses, library_in, refuse
from tile_launch.native.c_structures import ArgumentKind, Interface, Source, Width
from tile_launch.native.caller import Caller, CallResult, Parameter, Slot, Start


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return library_in(tmp_path_factory.mktemp("native"))


NOTHING = CallResult((), (), ())


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
        Parameter(ArgumentKind.INT, low=-128, high=127),
        Parameter(ArgumentKind.INT, low=0, high=(1 << 64) - 1),
        Parameter(ArgumentKind.FLOAT),
        Parameter(ArgumentKind.FLOAT),
        Parameter(ArgumentKind.BOOL),
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


@pytest.mark.parametrize("largest", [65504.0, 3.4028234663852886e38])
def test_floats_that_do_not_fit_are_pythons_matter(library: Any, largest: float) -> None:
    caller = Caller(library, [Parameter(ArgumentKind.FLOAT, largest=largest)])
    code = Code((Slot(Source.SCALAR, 0, Width.DOUBLE),))
    assert caller.remember((1.0,), code.start(), NOTHING)
    for fits in (0.0, largest, -largest, math.inf, -math.inf, math.nan):
        assert knows(caller, fits)
    for beyond in (math.nextafter(largest, math.inf), -1.01 * largest, 10**39):
        assert not knows(caller, beyond)


def test_numbers_of_keys_are_told_apart_by_their_bits(library: Any) -> None:
    code = Code((Slot(Source.SCALAR, 0, Width.DOUBLE),))
    caller = Caller(library, [Parameter(ArgumentKind.FLOAT, is_keyed=True)])
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
    caller = Caller(library, [Parameter(ArgumentKind.OUTPUT, alignment=128)])
    code = Code(addresses(0))
    outcome = CallResult(((0, lambda: made[-1]),), (0,), ())
    assert caller.remember((), code.start(), outcome)
    assert caller.call() is NotImplemented
    made.pop()
    assert caller.call() is aligned
    assert code.calls == [(aligned.ctypes.data,)]


def test_outputs_that_are_no_tensors_are_pythons_matter(library: Any) -> None:
    caller, code = Caller(library, [Parameter(ArgumentKind.OUTPUT)] * 2), Code(addresses(0, 1))
    outcome = CallResult(((0, lambda: np.zeros(2)), (1, lambda: [1])), (0, 1), ())
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
    caller, code = Caller(library, [Parameter(ArgumentKind.OUTPUT)] * 2), Code(addresses(0, 1))
    outcome = CallResult(tuple(enumerate(makers)), (0, 1), ())
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
    parameters = [TENSOR, Parameter(ArgumentKind.INT, low=-(1 << 31), high=(1 << 31) - 1)]
    parameters += [Parameter(ArgumentKind.OUTPUT), Parameter(ArgumentKind.OUTPUT)]
    address = ctypes.CDLL(None).abs  # of C: takes what is there, and returns a number
    function = ctypes.cast(address, ctypes.c_void_p).value or 0
    makers = ((2, lambda: np.zeros(2)), (3, lambda: np.zeros(3)))
    start = Start(Interface.ROW, function, 0, addresses(0), refuse)
    caller = Caller(library, parameters)
    assert caller.remember((array, 10**9), start, CallResult(makers, (3, 2), ()))

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
