"""Mistakes between ranks, one changed line each: found, and at which line."""

import importlib.util
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import rank_kernels, ranks_in_one
from tile_core.errors import DataRace, Deadlock, TileError
from tile_core.interp.execution_state import InterpretOptions
from tile_core.interp.launch import interpret

SOURCE = Path(rank_kernels.__file__).read_text()
SIZES = (rank_kernels.M, rank_kernels.N, rank_kernels.K)
FOUND = (DataRace, Deadlock)


@dataclass(frozen=True)
class Mistake:
    """A line of a kernel as it is and as somebody may write it, and what the report shows."""

    name: str
    kernel: str
    right: str
    wrong: str
    shows: str
    least: int = 2  # ranks from which on it is one

    @property
    def source(self):
        """The kernels, with the mistake."""
        head, _, rest = SOURCE.partition(f"def {self.kernel}(")
        body, mark, tail = rest.partition("@T.prim_func")
        assert body.count(self.right) == 1, self.name
        return f"{head}def {self.kernel}({body.replace(self.right, self.wrong)}{mark}{tail}"


MISTAKES = (
    Mistake("no wait", "gather_by_pull", "T.wait_signal(F[p], 1)", "pass",
            "T.copy(A.at(p)[:, :], a)"),
    Mistake("no wait for a put", "gather_by_push", "T.wait_signal(F[p], 1)", "pass",
            "T.copy(W[p, :, :], a)"),
    Mistake("wait for another flag", "gather_by_push", "T.wait_signal(F[p], 1)",
            "T.wait_signal(F[T.rank()], 1)", "T.copy(W[p, :, :], a)"),
    Mistake("signal to another flag", "gather_by_push", "T.signal(F.at(p)[T.rank()])",
            "T.signal(F.at(p)[p])", "[p"),
    Mistake("no signal", "gather_by_push", "T.signal(F.at(p)[T.rank()])", "pass",
            "T.wait_signal(F[p], 1)"),
    Mistake("signal above the copy", "gather_by_push",
            "T.copy(a, W.at(p)[T.rank(), :, :])\n                T.signal(F.at(p)[T.rank()])",
            "T.signal(F.at(p)[T.rank()])\n                T.copy(a, W.at(p)[T.rank(), :, :])",
            "W"),
    Mistake("signal to oneself alone", "reduced_in_two_shots", "T.signal(F.at(p)[0])",
            "T.signal(F[0])", "W"),
    Mistake("one expected too many", "reduced_in_two_shots", "T.wait_signal(F[0], T.ranks())",
            "T.wait_signal(F[0], T.ranks() + 1)", "T.wait_signal(F[0], T.ranks() + 1)"),
    Mistake("one expected too few", "reduced_in_two_shots", "T.wait_signal(F[0], T.ranks())",
            "T.wait_signal(F[0], T.ranks() - 1)", "T.copy(W[p, :], row)"),
    Mistake("the other counter", "reduced_in_two_shots", "T.wait_signal(F[1], T.ranks())",
            "T.wait_signal(F[0], T.ranks())", "T.copy(S[p, :], row)"),
    Mistake("waiting before signalling", "reduced_in_two_shots",
            "for s in T.serial(T.ranks()):\n            p = (T.rank() + s) % T.ranks()\n"
            "            T.copy(X",
            "T.wait_signal(F[0], 1)\n        for s in T.serial(T.ranks()):\n"
            "            p = (T.rank() + s) % T.ranks()\n            T.copy(X",
            "T.wait_signal(F[0], 1)"),
    Mistake("all put into one place", "reduced_in_two_shots", "W.at(p)[T.rank(), :])",
            "W.at(p)[0, :])", "W.at(p)[0, :])"),
    Mistake("no credit waited for", "ring", "T.wait_signal(C[s % 2], s // 2)", "pass",
            "T.copy(row, W.at(after)[s % 2, :])", 4),
    Mistake("one credit too few", "ring", "T.wait_signal(C[s % 2], s // 2)",
            "T.wait_signal(C[s % 2], (s - 1) // 2)", "W", 4),
    Mistake("no credit given", "ring", "T.signal(C.at(before)[s % 2])", "pass",
            "T.wait_signal(C[s % 2], s // 2)", 4),
    Mistake("credit before the row is read", "ring",
            "T.copy(W[s % 2, :], row)\n            T.signal(C.at(before)[s % 2])",
            "T.signal(C.at(before)[s % 2])\n            T.copy(W[s % 2, :], row)", "W", 4),
    Mistake("one slot where there are two", "ring", "T.copy(row, W.at(after)[s % 2, :])",
            "T.copy(row, W.at(after)[0, :])", "W", 3),
    Mistake("the same neighbour on both sides", "ring", "T.signal(F.at(after)[s % 2])",
            "T.signal(F.at(before)[s % 2])", "W", 3),
    Mistake("no barrier before reading", "exchanged",
            "T.barrier_ranks(F)\n            T.copy(W.at", "T.copy(W.at", "W"),
    Mistake("no barrier before writing again", "exchanged",
            "row)\n            T.barrier_ranks(F)\n        T.copy(row, Y",
            "row)\n        T.copy(row, Y", "W"),
    Mistake("blocks that share a slot", "exchanged",
            "T.barrier_ranks(F)\n            T.copy(W.at",
            "T.barrier_ranks(F, 0)\n            T.copy(W.at", "W"),
    Mistake("a put instead of an addition", "added_up", "T.atomic_add(W.at(0)[:], row)",
            "T.copy(row, W.at(0)[:])", "T.copy(row, W.at(0)[:])"),
)  # fmt: skip


def kernel_with(mistake, tmp_path):
    path = tmp_path / f"mistaken_{abs(hash(mistake.name))}.py"
    path.write_text(mistake.source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[path.stem]
    return getattr(module, mistake.kernel)


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name)
def test_mistake_is_found(mistake, order, tmp_path):
    kernel = kernel_with(mistake, tmp_path)
    for ranks in range(mistake.least, max(5, mistake.least + 1)):

        def call(made, args):
            interpret(made.kernel, args, options=InterpretOptions(block_order=order))

        with pytest.raises(FOUND) as told:
            ranks_in_one.run(kernel, mistake.kernel, ranks, SIZES, call)
        assert mistake.shows in str(told.value), str(told.value)


def test_a_hang_names_each_wait_what_it_lacks_and_who_signals(tmp_path):
    mistake = next(m for m in MISTAKES if m.name == "one expected too many")
    kernel = kernel_with(mistake, tmp_path)
    with pytest.raises(Deadlock) as told:
        ranks_in_one.run(
            kernel, mistake.kernel, 3, SIZES, lambda made, args: interpret(made.kernel, args)
        )
    text = str(told.value)
    for rank in range(3):
        assert f"block 0 of rank {rank} waits" in text
        assert f"F[0] of rank {rank} must be at least 4, and is 3" in text
    assert "F is raised here" in text
    assert "T.signal(F.at(p)[0])" in text


def test_races_of_two_launches_of_different_ranks():
    """Launches of one rank follow each other; nothing orders those of two."""
    import numpy as np

    import tile_api as tile
    import tile_api.language as T

    def traced(shift):
        @T.prim_func
        def kernel(A: T.Symmetric((4,), "int32"), B: T.Tensor((4,), "int32")):
            with T.Kernel(2, threads=32) as bx:
                if bx == 0:
                    T.fill(A, T.rank())
            with T.Kernel(1, threads=32):
                T.copy(A.at((T.rank() + shift) % T.ranks()), B)

        return tile.ranks_as_blocks(kernel).kernel

    interpret(traced(0), [np.zeros((3, 4), "int32") for _ in range(2)])
    with pytest.raises(DataRace, match="of rank 1 without a signal"):
        interpret(traced(1), [np.zeros((3, 4), "int32") for _ in range(2)])


@pytest.mark.parametrize("resident", [1, 2, 0])
def test_blocks_that_wait_for_later_ones_of_their_rank(resident):
    """Where blocks of a rank run one after the other, the first waits for ever."""
    import numpy as np

    import tile_api as tile
    import tile_api.language as T

    def traced(waits, signals):
        @T.prim_func
        def kernel(F: T.Signals((1,)), A: T.Symmetric((4,), "int32")):
            with T.Kernel(2, threads=32) as bx:
                if bx == waits:
                    T.wait_signal(F[0])
                    T.clear(A)
                if bx == signals:
                    T.signal(F.at((T.rank() + 1) % T.ranks())[0])

        return tile.ranks_as_blocks(kernel).kernel

    options = InterpretOptions(resident=resident)
    interpret(traced(1, 0), [np.zeros((3, 4), "int32")], options=options)
    if resident == 1:
        with pytest.raises(Deadlock, match="block 0 of rank 0 waits"):
            interpret(traced(0, 1), [np.zeros((3, 4), "int32")], options=options)
    else:
        interpret(traced(0, 1), [np.zeros((3, 4), "int32")], options=options)


@pytest.mark.parametrize(
    ("signals", "wait", "ordered"),
    [
        ([(1, 0), (1, 1)], 2, (1, 1)),
        ([(1, 0), (1, 1)], 1, (0, 0)),  # either may have come alone
        ([(1, 0), (1, 0)], 1, (1, 0)),  # two of one block: the first has
        ([(1, 0), (2, 1)], 2, (0, 1)),
        ([], 0, (0, 0)),
    ],
)
def test_what_a_wait_is_sure_of(signals, wait, ordered):
    import numpy as np

    from tile_core.interp.clocks import Flag

    flag, times = Flag(), [0, 0]
    for value, party in signals:
        times[party] += 1
        flag.values.append(value)
        flag.clocks.append(np.array([times[p] if p == party else 0 for p in (0, 1)]))
    assert tuple(flag.known(wait, 2)) == ordered


def test_every_mistake_is_one_of_a_kernel_that_is_right():
    names = {m.kernel for m in MISTAKES}
    assert all(hasattr(rank_kernels, name) for name in names)
    pairs = itertools.combinations([m.name for m in MISTAKES], 2)
    assert all(a != b for a, b in pairs)
    assert issubclass(DataRace, TileError)
