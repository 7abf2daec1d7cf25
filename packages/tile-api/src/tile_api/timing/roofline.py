"""What a kernel reaches of what its machine can do: the roofline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tile_api.cost import estimate
from tile_api.timing.record import Timing, gbps, tflops
from tile_core.arith.evaluate import evaluate
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import storages_read, storages_written
from tile_core.ir.free_variables import free_variables
from tile_core.ir.stmt import Kernel

if TYPE_CHECKING:
    from tile_api.callable_kernel import CallableKernel
    from tile_core.cost.roofline import Peaks
    from tile_core.plugins.host import PluginHost
    from tile_core.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """A measured kernel beside the peaks of its machine; ``str`` is a small table.

    Parameters
    ----------
    kernel, target
        What was measured.
    timing
        How long it took.
    flops, nbytes
        What it has to compute, and to move if each tensor goes from or to memory once.
    peaks
        What the machine does at most.
    dtype
        Of the factors of most of its products; empty if it has none.
    """

    kernel: str
    target: str
    timing: Timing
    flops: float
    nbytes: float
    peaks: Peaks
    dtype: str = ""

    @property
    def milliseconds(self) -> float:
        """The median call."""
        return self.timing.median

    @property
    def gflops(self) -> float:
        """10**9 operations per second."""
        return tflops(self.flops, self.milliseconds) * 1e3

    @property
    def gbps(self) -> float:
        """10**9 bytes per second."""
        return gbps(self.nbytes, self.milliseconds)

    @property
    def peak_gflops(self) -> float:
        """The most operations per second, of products of the kernel's type if it has any."""
        products = self.peaks.products
        rate = products.get(self.dtype, products.get("float32")) if self.dtype else None
        return (self.peaks.tflops if rate is None else rate) * 1e3

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.nbytes if self.nbytes else float("inf")

    @property
    def attainable_ms(self) -> float:
        """The time in which the machine could do it: arithmetic or memory, whichever is longer."""
        arithmetic = self.flops / self.peak_gflops / 1e6
        return max(arithmetic, self.nbytes / self.peaks.memory_gbps / 1e6)

    @property
    def bound(self) -> str:
        """``"arithmetic"`` or ``"memory"``: what would take longer at its peak."""
        arithmetic = self.flops / self.peak_gflops
        return "arithmetic" if arithmetic >= self.nbytes / self.peaks.memory_gbps else "memory"

    @property
    def fraction(self) -> float:
        """The share of the attainable speed; above 1 where caches spare memory."""
        return self.attainable_ms / self.milliseconds

    def __str__(self) -> str:
        head = f"{self.kernel} on {self.target} ({self.peaks.name}): {self.timing}"
        rows = (
            ("arithmetic", self.gflops, self.peak_gflops, "GFLOP/s"),
            ("memory", self.gbps, self.peaks.memory_gbps, "GB/s"),
        )
        lines = [head, f"  {'':<10} {'achieved':>10} {'peak':>10}"]
        for name, got, peak, unit in rows:
            mark = "  <- bound" if name == self.bound else ""
            lines.append(
                f"  {name:<10} {got:>10.4g} {peak:>10.4g} {unit:<7} {got / peak:>6.1%}{mark}"
            )
        at = f"{self.intensity:.3g} operations per byte"
        return "\n".join([*lines, f"  {self.fraction:.1%} of the roofline, at {at}"])


@dataclass(frozen=True, slots=True)
class Work:
    """What one call of a kernel has to do; `dtype` is of the factors of most products, if any."""

    flops: float
    nbytes: float
    dtype: str = ""

    @classmethod
    def of(
        cls,
        kernel: CallableKernel,
        sizes: Mapping[str, int],
        flops: float | None = None,
        nbytes: float | None = None,
    ) -> Work:
        """Return what is counted in a kernel, where it is not given."""
        dtype = ""
        if flops is None:
            extents = [e for p in kernel.params if isinstance(p, Buffer) for e in p.shape]
            symbols = {v.name for extent in extents for v in free_variables(extent)}
            known: dict[str, Any] = {k: v for k, v in sizes.items() if k in symbols}
            counted = estimate(kernel.tile_ir, kernel.target, **known)
            flops = counted.total_flops
            kinds = {k: n for k, n in counted.flops.items() if k.endswith(" products")}
            dtype = max(kinds, key=lambda k: kinds[k], default="").removesuffix(" products")
        return cls(
            flops, tensor_traffic(kernel.tile_ir, sizes) if nbytes is None else nbytes, dtype
        )


def roofline_of(
    kernel: CallableKernel, work: Work, timing: Timing, peaks: Peaks | None, machine: str = ""
) -> Roofline:
    """Return a measured kernel beside the peaks of its machine.

    Without `peaks` they are those of the machine that it was compiled for, of which `machine` names
    a row.
    """
    from tile_core.target import parse_target_spec

    if peaks is None:
        peaks = peaks_for(parse_target_spec(kernel.target), kernel.host, machine)
    return Roofline(
        kernel=kernel.tile_ir.name,
        target=kernel.target,
        timing=timing,
        flops=work.flops,
        nbytes=work.nbytes,
        peaks=peaks,
        dtype=work.dtype,
    )


def tensor_traffic(kernel: Kernel, sizes: Mapping[str, int]) -> float:
    """Return the bytes of a kernel's tensors, each read once and written once where it is."""
    read, written = storages_read(kernel.body), storages_written(kernel.body)
    total = 0.0
    for param in kernel.params:
        if isinstance(param, Buffer):
            times = (param in read) + (param in written)
            total += times * _elements(param, sizes) * param.dtype.bits / 8
    return total


def _elements(param: Buffer, sizes: Mapping[str, int]) -> int:
    count = 1
    for extent in param.shape:
        count *= int(evaluate(extent, {v: sizes[v.name] for v in free_variables(extent)}))
    return count


def peaks_for(target: Target, host: PluginHost, machine: str = "") -> Peaks:
    """Return what the machine of a target does at most."""
    backend, exact = host.resolve(target)
    if backend.peaks is None or exact.executor:
        raise UnsupportedOnTarget(
            f"nobody knows what {exact} does at most",
            hint="pass peaks=tile_core.cost.roofline.Peaks(…)",
        )
    return backend.peaks(exact, machine)
