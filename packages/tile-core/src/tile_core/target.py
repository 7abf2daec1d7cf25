"""Targets: which machine a kernel is compiled for, and who executes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A machine, spelt ``kind[:arch][@executor]``.

    Parameters
    ----------
    kind
        The backend's name: ``cpu``, ``cuda``, ``hip``.
    arch
        The machine within the kind, such as ``haswell`` or ``sm_90a``; empty means the
        machine at hand.
    executor
        Who runs the code when it is not the machine itself, such as ``sim``; else empty.

    Examples
    --------
    >>> str(Target("cuda", "sm_90a", "sim"))
    'cuda:sm_90a@sim'
    """

    kind: str
    arch: str = ""
    executor: str = ""

    def __str__(self) -> str:
        arch = f":{self.arch}" if self.arch else ""
        executor = f"@{self.executor}" if self.executor else ""
        return f"{self.kind}{arch}{executor}"
