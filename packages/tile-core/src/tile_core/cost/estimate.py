"""What is told about the cost of a kernel: the time, what it is made of, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Part:
    """How long one resource of the machine is busy, or one thing is waited for.

    Parameters
    ----------
    name
        Such as ``"matrix products"`` or ``"memory"``.
    milliseconds
        Parts overlap: their sum is more than the time of the kernel.
    why
        The numbers that it follows from.
    """

    name: str
    milliseconds: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The time that a model expects of a kernel, which nothing has run.

    Parameters
    ----------
    kernel, target, machine
        What was looked at, and whose table of speeds was used.
    milliseconds
        Of one call, without the host.
    parts
        What the time is made of, the longest first.
    bound
        The name of the part that decides.
    flops
        Operations by kind: ``"float16 products"``, ``"arithmetic"``, ``"functions"``.
    nbytes
        Bytes moved by level: ``"global reads"``, ``"global writes"``, ``"memory"``,
        ``"shared"``, and whatever else the machine has.
    occupancy
        Resident warps as a part of the most, or busy threads as a part of all.
    occupancy_why
        What limits it.
    notes
        What had to be assumed.
    """

    kernel: str
    target: str
    machine: str
    milliseconds: float
    parts: tuple[Part, ...]
    bound: str
    flops: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    nbytes: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    occupancy: float | None = None
    occupancy_why: str = ""
    notes: tuple[str, ...] = ()

    @property
    def total_flops(self) -> float:
        """Operations of all kinds."""
        return sum(self.flops.values())

    @property
    def tflops(self) -> float:
        """Operations per second, in units of 10**12."""
        return self.total_flops / max(self.milliseconds, 1e-12) / 1e9

    @property
    def global_bytes(self) -> float:
        """Bytes that blocks read from tensors and write to them."""
        return sum(n for level, n in self.nbytes.items() if level.startswith("global "))

    @property
    def bandwidth(self) -> float:
        """Bytes of tensors read and written per second, in GB/s."""
        return self.global_bytes / max(self.milliseconds, 1e-12) / 1e6

    def __str__(self) -> str:
        head = f"{self.kernel} on {self.target} ({self.machine}): {duration(self.milliseconds)}"
        lines = [f"{head}, bound by {self.bound}"]
        width = max((len(p.name) for p in self.parts), default=0)
        for part in self.parts:
            share = part.milliseconds / self.milliseconds if self.milliseconds else 0.0
            time = f"{duration(part.milliseconds):>10} {share:>5.0%}"
            lines.append(f"  {part.name:<{width}} {time}  {part.why}")
        rows = [f"{amount(n)} {kind}" for kind, n in self.flops.items() if n]
        lines.append(f"  operations: {', '.join(rows) or 'none'}; {self.tflops:.3g} TFLOP/s")
        rows = [f"{amount(n)}B {level}" for level, n in self.nbytes.items() if n]
        lines.append(f"  bytes: {', '.join(rows) or 'none'}; {self.bandwidth:.3g} GB/s of tensors")
        if self.occupancy is not None:
            lines.append(f"  occupancy: {self.occupancy:.0%}, {self.occupancy_why}")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return what notebooks show: the parts with bars, the longest of which decides."""
        longest = max((part.milliseconds for part in self.parts), default=0.0) or 1.0
        rows = "".join(
            f"<tr><th>{escape(p.name)}</th><td>{duration(p.milliseconds)}</td><td>"
            f'<meter value="{p.milliseconds / longest:.3f}"></meter></td>'
            f'<td style="text-align:left">{escape(p.why)}</td></tr>'
            for p in self.parts
        )
        first, *rest = str(self).splitlines()
        told = "".join(f"<p>{escape(line.strip())}</p>" for line in rest[len(self.parts) :])
        return f"<p>{escape(first)}</p><table>{rows}</table>{told}"


def duration(milliseconds: float) -> str:
    """Return a time in a unit that suits it.

    Examples
    --------
    >>> duration(0.00123), duration(12.3), duration(4567.0)
    ('1.23 us', '12.3 ms', '4.57 s')
    """
    if milliseconds < 1:
        return f"{milliseconds * 1e3:.3g} us"
    return f"{milliseconds:.3g} ms" if milliseconds < 1000 else f"{milliseconds / 1e3:.3g} s"


def amount(number: float) -> str:
    """Return a number with a decimal prefix.

    Examples
    --------
    >>> amount(2147483648.0), amount(12.0), amount(1536.0)
    ('2.15 G', '12 ', '1.54 k')
    """
    for unit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g} {prefix}"
    return f"{number:.3g} "
