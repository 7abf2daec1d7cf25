"""How long a kernel is expected to take, asked before anything is compiled."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.compilation.options import BuildOptions
from tile_core.compilation.planning import planned, refuse_wrong, resolved
from tile_core.cost.cost_request import CostQuestion, bind_sizes
from tile_core.cost.estimate import Estimate
from tile_core.cost.roofline import UNKNOWN, roofline
from tile_core.crash import guarded
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import PluginHost


def estimate(
    kernel: Kernel,
    spec: object,
    host: PluginHost,
    options: BuildOptions | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    machine: str = "",
) -> Estimate:
    """Return the time that a model of the machine expects of `kernel`; nothing is compiled.

    `sizes` are values of symbols in shapes, by name; `machine` names a table of speeds, empty for
    the one that the target suggests.
    Whatever is wrong with the kernel, the target or the sizes is a `TileError`.
    """
    backend, target, options = resolved(spec, host, options)
    refuse_wrong(kernel, target, host)
    bound = bind_sizes(kernel, sizes or {})
    with guarded(kernel, target, "plan"):
        plan = planned(kernel, target, options)
    question = CostQuestion(
        kernel=kernel, planned=plan, target=target, options=options, sizes=bound, machine=machine
    )
    with guarded(plan, target, "estimate"):
        if backend.estimate is not None:
            return backend.estimate(question)
        backend.lower(plan, target, options)  # refuses what cannot be lowered
        return roofline(question, notes=(UNKNOWN,))
