"""Blocks that are measured: the candidates of the model, by the autotuner, on the arrays of a call.

Results are kept in the tables of the autotuner, by the digest of the equations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tile_api.arrays.equations.equations import Equations, printed_name
from tile_api.arrays.equations.listing import digest, listed
from tile_api.arrays.equations.numerics import is_fast
from tile_api.arrays.equations.sizes import usual
from tile_api.arrays.planning.blocks import Choice
from tile_api.arrays.planning.plan import Blocks, resized
from tile_api.arrays.pricing import traced_text
from tile_api.arrays.printing.kernel_text import KernelText, Tensor, written
from tile_api.arrays.printing.program_text import IMPORTS
from tile_api.frontend.source import calling_span
from tile_api.pass_configs.keys import PassConfigKey
from tile_api.settings.budget import Budget, parse_budget
from tile_core.errors import TuningError
from tile_core.target import Target


def budget_of(tune: object, blocks: Blocks | None, kernels: str | None) -> Budget:
    """Return for how long candidates are measured.

    Raises
    ------
    TuningError
        If `tune` is no budget, or there is nothing to tune.
    """
    if tune is None:
        return Budget(runs=False)
    given = "blocks" if blocks is not None else "kernels" if kernels is not None else ""
    if given:
        raise TuningError(
            f"{given}= leaves nothing to tune",
            span=calling_span(),
            hint=f"leave out {given}= or tune=",
        )
    try:
        return parse_budget(tune)
    except TuningError as error:
        raise TuningError(error.message, span=calling_span(), hint=error.hint) from None


@dataclass(frozen=True)
class Tuner:
    """Measures candidates for the kernels of a function.

    Parameters
    ----------
    budget
        For all its kernels.
    arrays
        Those of a call, by the names of parameters.
    """

    budget: Budget
    arrays: Mapping[str, Any]

    def shared(self, kernels: int) -> Tuner:
        """Return one with the time for one of so many kernels."""
        seconds = self.budget.seconds
        return self if seconds is None else replace(self, budget=replace(
            self.budget, seconds=seconds / max(1, kernels)
        ))  # fmt: skip

    def best(
        self, equations: Equations, choice: Choice, tensors: Mapping[str, Tensor], target: Target
    ) -> Choice:
        """Return the fastest of the candidates of a choice.

        Raises
        ------
        MeasuringImpossible
            If the machine is not here.
        """
        from tile_api.autotuner.configs import Config
        from tile_api.autotuner.machine import machine_name
        from tile_api.autotuner.options import Task, TuneOptions
        from tile_api.autotuner.tune import tune

        found = {c.plan.blocks: c for c in choice.candidates if c.plan.blocks.parts == 1}
        if len(found) < 2 or choice.plan.blocks.parts > 1:
            return choice
        name = printed_name(equations.name)

        def text(blocks: Blocks) -> KernelText:
            return written(name, resized(choice.plan, blocks), tensors)

        def traced(values: Mapping[str, Any]) -> Any:
            kernel = text(Blocks(**values))
            return traced_text(name, f"{IMPORTS}\n\n{kernel.text}", [kernel])[0][0]

        first = text(choice.plan.blocks)
        sizes = {str(n): usual(n) for t in tensors.values() for n in t.shape}
        options = TuneOptions(budget=self.budget, sizes={n: sizes[n] for n in first.symbols})
        outputs = [k - len(first.outputs) for k in range(len(first.outputs))]
        passes = {PassConfigKey.TL_ENABLE_FAST_MATH: True} if is_fast() else None
        task = Task(
            name,
            digest(listed(equations)),
            {"kernel": ", ".join(first.outputs), "sizes": [usual(n) for t in first.inputs
                                                           for n in tensors[t].shape]},
            [Config(asdict(blocks)) for blocks in found],
            traced,
            {"target": str(target), "out_idx": outputs, "pass_configs": passes},
            options,
            [self._array(tensors[n], equations) for n in first.inputs],
        )  # fmt: skip
        tuned = tune(task)
        blocks = Blocks(**tuned.config.values)
        where = machine_name(target) if tuned.source != "model" else ""
        return replace(
            found[blocks], milliseconds=tuned.latency, is_ranked=True, measured=where,
            looked_at=len(found), candidates=(),
        )  # fmt: skip

    def _array(self, tensor: Tensor, equations: Equations) -> Any:
        """Return an argument of the call, or random numbers for what another kernel makes."""
        for p in equations.parameters:
            if p.tensor == tensor.name:
                x = self.arrays[p.name]
                return x if p.shape else x.reshape(1)
        shape = tuple(map(usual, tensor.shape))
        random = np.random.default_rng(0).standard_normal(shape)
        return random.astype(tensor.dtype.numpy()) if tensor.dtype.is_float else np.zeros(
            shape, tensor.dtype.numpy()
        )  # fmt: skip
