"""Words in shared memory that threads of several processes wait on: Linux's futexes.

What waits and wakes goes through the kernel, whose locks order it. An addition there is indivisible
and a full barrier, on every machine: Python has no other atomic access to memory.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import sys
from typing import Any

from tile_launch.errors import RankError

_NUMBERS = {"x86_64": 202, "aarch64": 98}  # of the system call
_WAIT, _WAKE, _WAKE_OP = 0, 1, 5  # of words that several processes map
_ADD, _OP_SHIFT, _OPERAND_SHIFT, _OPERAND_MASK = 1, 28, 12, 0xFFF
_ALL = 2**31 - 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_int64))


def _system_call() -> Any:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return call


_syscall = _system_call()
_number = ctypes.c_long(_NUMBERS.get(platform.machine(), -1))


def require_futexes() -> None:
    """Raise `RankError` where this machine has none."""
    if sys.platform != "linux" or _number.value < 0:
        raise RankError(
            f"ranks share memory on Linux, on x86-64 and AArch64; this is {sys.platform} on "
            f"{platform.machine()}",
            hint="the reference interpreter runs all ranks in one process: target='interpret'",
        )


def load(address: int) -> int:
    """Return the word at an address."""
    return ctypes.c_uint32.from_address(address).value


def wait(address: int, seen: int, seconds: float) -> bool:
    """Sleep while the word at `address` is `seen`; False if `seconds` have passed."""
    whole = int(seconds)
    span = _Timespec(whole, int((seconds - whole) * 1e9))
    code = _syscall(
        _number, ctypes.c_void_p(address), _WAIT, ctypes.c_uint32(seen), ctypes.byref(span)
    )
    return code == 0 or ctypes.get_errno() != errno.ETIMEDOUT


def wake(address: int) -> None:
    """Wake all that sleep on the word at `address`."""
    _syscall(_number, ctypes.c_void_p(address), _WAKE, _ALL)


def add(address: int, amount: int) -> None:
    """Add a number of 12 bits to the word at `address`, then wake all that sleep on it."""
    pointer = ctypes.c_void_p(address)
    operation = _ADD << _OP_SHIFT | (amount & _OPERAND_MASK) << _OPERAND_SHIFT
    code = _syscall(_number, pointer, _WAKE_OP, _ALL, None, pointer, ctypes.c_uint32(operation))
    if code < 0:
        raise OSError(ctypes.get_errno(), f"futex word at {address:#x}")
