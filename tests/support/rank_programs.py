"""What ranks do in tests, where they are processes that import it by name."""

from __future__ import annotations

import os
import signal
import time

from tile_launch.errors import RankError, RankLost


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
