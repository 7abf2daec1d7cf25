"""What ranks do in tests, where they are processes that import it by name."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np

import tile_api as tile
from support import rank_kernels
from support.example_files import load
from tile_core.ir.buffer import Scope, static_value
from tile_core.ir.parser import parse_kernel
from tile_core.ir.ranks import is_symmetric
from tile_core.ops.operator_table import OPERATORS
from tile_launch.errors import RankError, RankLost
from tile_launch.ranks import segments
from tile_launch.ranks.symmetric import SymmetricTensor


def sums(ranks, dtype, shape):
    """Write into this rank's copy, and add up what the others wrote."""
    x, y = ranks.zeros(shape, dtype), ranks.zeros(3, "int64")
    assert (x.local == 0).all()
    ranks.barrier()
    x.local[...] = 1 + ranks.rank
    y.local[:] = 10 * ranks.rank
    ranks.barrier()
    found = [int(x.at(rank).sum()) for rank in range(ranks.size)]
    ranks.barrier()
    x.at((ranks.rank + 1) % ranks.size)[...] = 7
    ranks.barrier()
    assert (x.local == 7).all()
    return found, y.everyone[:, 1].tolist(), len(os.listdir("/proc/self/fd"))


def killed(ranks, victim):
    x = ranks.zeros(4)
    ranks.barrier()
    if ranks.rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    try:
        ranks.barrier()
    except RankLost as error:
        again = []
        for use in (ranks.barrier, lambda: ranks.zeros(3)):
            try:
                use()
            except RankLost as same:
                again.append(str(same) == str(error))
        x.everyone[:] = 1  # memory of the dead stays
        return str(error).partition(" process")[0], time.monotonic() - start < 5, again
    return "nothing was noticed"


def late(ranks):
    if ranks.rank == 1:
        time.sleep(0.6)
    ranks.barrier()


def forked(ranks):
    pid = os.fork()
    if pid == 0:
        try:
            ranks.barrier()
        except RankError as error:
            os._exit(7 if "is a fork of it" in str(error) else 1)
        os._exit(2)
    ranks.barrier()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def gone(ranks):
    """Make a tensor, which needs memory of a process that ends then."""
    if ranks.rank == 1:
        meet = ranks._meeting.meet

        def last(*what):
            meet(*what)
            os._exit(3)

        ranks._meeting.meet = last
    else:
        segment_of = segments.segment_of
        segments.segment_of = lambda *peer: (time.sleep(0.5), segment_of(*peer))[1]
    ranks.zeros(4)


HANDED_ON = """\
kernel handed_on[s: int64, f: int64](A: global float32[ranks, 8] strides [s, 1], \
B: global float32[8], F: global.signals uint32[ranks, 4] strides [f, 16], rank: int32, \
ranks: int32):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (32, 1, 1):
    @copy(src=B[0:8], dst=A[(rank + 1) % ranks:1, 0:8])
    @signal(flag=F[(rank + 1) % ranks:1, 2:1], value=1)
    @wait_signal(flag=F[rank:1, 2:1], value=1)
    @copy(src=A[rank:1, 0:8], dst=B[0:8])
"""
"""Each rank hands what it has to the next one."""


def compiled(text):
    """Compile a kernel of tile IR for this machine."""
    return tile.compile(parse_kernel(text, OPERATORS, str), target="cpu")


def handed_on(ranks, times):
    """Hand numbers on, and return which one this rank has."""
    kernel = compiled(HANDED_ON)
    a, b, f = ranks.zeros(8), np.full(8, ranks.rank, "float32"), ranks.signals(4)
    for _ in range(times):
        kernel(a, b, f)
    return int(b[0])


def killed_inside(ranks, text):
    """Wait in a kernel for what never comes, until one of the ranks is killed there."""
    kernel = compiled(text)
    arguments = ranks.zeros(8), np.zeros(8, "float32"), ranks.signals(4)
    if ranks.rank == 1:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
    kernel(*arguments)


def interrupted(ranks, text):
    """Wait in a kernel for what never comes, until one of the ranks is interrupted there."""
    kernel = compiled(text)
    arguments = ranks.zeros(8), np.zeros(8, "float32"), ranks.signals(4)
    if ranks.rank == 1:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        kernel(*arguments)
    except KeyboardInterrupt:
        return "interrupted"


def in_a_part(ranks):
    """Let processes 1 and 2 be ranks of a group of their own, beside that of all."""
    import torch.distributed as dist

    group = dist.new_group([1, 2])
    found = None
    if ranks.rank:
        part = tile.ranks.join(group)
        assert (part.rank, part.size) == (ranks.rank - 1, 2)
        x = part.zeros(4, "int32")
        x.local[:] = ranks.rank
        part.barrier()
        found = x.everyone.sum(1).tolist()
    ranks.barrier()
    return found


def rank_part(ranks, name, args, position):
    """Launch a kernel of `rank_kernels` three times on what this rank has; return a result."""
    kernel = getattr(rank_kernels, name)
    compiled_kernel, given, own = tile.compile(kernel, target="cpu"), iter(args), []
    for param in kernel.params[:-2]:
        if param.scope is Scope.SIGNALS:
            own.append(ranks.signals(static_value(param.shape[1]) or ranks.size))
        elif is_symmetric(param, kernel.kernel):
            own.append(ranks.zeros(next(given).shape[1:]))
        else:
            own.append(next(given)[ranks.rank].copy())
    first = None
    for _ in range(3):
        own[position][...] = np.nan
        for one in own:
            if isinstance(one, SymmetricTensor):
                one.local[...] = 0  # others read and write it in the launch only
        compiled_kernel(*own)
        first = own[position].copy() if first is None else first
        np.testing.assert_array_equal(own[position], first)
    return own[position]


def example_part(ranks, name, *parts):
    """Run an example on what this rank has of its arguments."""
    return load(name).run(ranks, *[part[ranks.rank] for part in parts])
