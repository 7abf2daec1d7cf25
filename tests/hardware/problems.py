"""Problems that fill a GPU: made there, from a seed, and solved there in double precision.

Packs carry the machine code of their kernels and no data. Sums of products of small whole numbers
are exact in any order, so that every element must be right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hardware.cases import Argument, Case
from hardware.comparing import Difference

Tensors = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """What is asked of a kernel.

    Parameters
    ----------
    make
        ``make(torch, draw, shapes)`` returns tensors by parameter, outputs excepted; `draw` makes
        whole numbers ``draw(name, low, high)`` of the parameter's shape and type.
    solve
        ``solve(torch, inputs)`` returns what comes out, by parameter, in double precision.
    relative, absolute
        How far results may be off.
    """

    make: Callable[[Any, Callable[..., Any]], Tensors]
    solve: Callable[[Any, Tensors], Tensors]
    relative: float = 0.0
    absolute: float = 0.0


def _factors(torch: Any, draw: Callable[..., Any]) -> Tensors:
    return {"A": draw("A", -2, 3), "B": draw("B", -2, 3)}


def _product(torch: Any, given: Tensors) -> Tensors:
    return {"C": given["A"].double() @ given["B"].double()}


def _factors_to_add(torch: Any, draw: Callable[..., Any]) -> Tensors:
    return {**_factors(torch, draw), "C": draw("C", 0, 1)}


def _bytes(torch: Any, draw: Callable[..., Any]) -> Tensors:
    """Return factors of bytes whose scales are powers of two."""
    scales = {name: draw(name, 0, 3) for name in ("scale_A", "scale_B")}
    scales = {name: torch.exp2(values - 10) for name, values in scales.items()}
    return {"A": draw("A", -3, 4), "B": draw("B", -3, 4), **scales}


def _scaled_product(torch: Any, given: Tensors) -> Tensors:
    sums = given["A"].double() @ given["B"].double().T
    return {"C": sums * given["scale_A"].double()[:, None] * given["scale_B"].double()}


def _queries(torch: Any, draw: Callable[..., Any]) -> Tensors:
    return {name: draw(name, -1000, 1001) / 500 for name in "QKV"}


def _attention(is_causal: bool) -> Callable[[Any, Tensors], Tensors]:
    def solve(torch: Any, given: Tensors) -> Tensors:
        """Return attention and the logarithms of its norms, a head at a time."""
        q, k, v = (given[name].double().transpose(1, 2) for name in "QKV")
        tokens = q.shape[2]
        hidden = torch.ones(tokens, tokens, device=q.device).triu(1).bool()
        out, norms = torch.empty_like(q), torch.empty(q.shape[:3], device=q.device).double()
        for batch in range(q.shape[0]):
            for head in range(q.shape[1]):
                scores = q[batch, head] @ k[batch, head].T / math.sqrt(q.shape[3])
                if is_causal:
                    scores.masked_fill_(hidden, -math.inf)
                out[batch, head] = scores.softmax(-1) @ v[batch, head]
                norms[batch, head] = scores.logsumexp(-1) * math.log2(math.e)
        return {"O": out.transpose(1, 2), "lse": norms}

    return solve


PROBLEMS = {
    "product": Problem(_factors, _product),
    "sum of products": Problem(_factors_to_add, _product),
    "product of bytes": Problem(_bytes, _scaled_product),
    "attention": Problem(_queries, _attention(False), 1e-2, 2e-3),
    "causal attention": Problem(_queries, _attention(True), 1e-2, 2e-3),
}


def prepared(
    torch: Any, device: str, case: Case, run: Callable[..., None], dtype: Callable[[str], Any]
) -> Callable[[int], list[Difference]]:
    """Return what makes the problem of a seed, runs it, and says where results are wrong.

    Parameters
    ----------
    run
        Launches on all parameters and waits.
    dtype
        Returns torch's type for an element type.
    """
    problem = PROBLEMS[case.problem]
    told = {argument.name: argument for argument in case.arguments}

    def solve(seed: int) -> list[Difference]:
        source = torch.Generator(device).manual_seed(seed)

        def draw(name: str, low: int, high: int) -> Any:
            kind, shape = dtype(told[name].dtype), told[name].shape
            values = torch.randint(low, high, shape, generator=source, device=device)
            return values.to(kind)

        given = problem.make(torch, draw)
        expected = problem.solve(torch, given)
        for name, argument in told.items():
            if name not in given:
                given[name] = torch.full(
                    argument.shape, math.nan, dtype=dtype(argument.dtype), device=device
                )
        passed = [given[argument.name] for argument in case.arguments]
        run(*passed)
        found = [_compared(torch, problem, told[n], expected[n], given[n]) for n in expected]
        return [each for each in found if each is not None]

    return solve


def _compared(
    torch: Any, problem: Problem, argument: Argument, expected: Any, got: Any
) -> Difference | None:
    """Return where a tensor is wrong; what is expected is rounded to its type first."""
    want, have = expected.to(got.dtype).double(), got.double()
    near = (have - want).abs() <= problem.relative * want.abs() + problem.absolute
    if bool(near.all()):
        return None
    index = tuple(int(i) for i in torch.nonzero(~near)[0])
    norm = float((have - want).norm() / want.norm())
    wrong = int((~near).sum())
    return Difference(
        argument.name, index, float(want[index]), float(have[index]), wrong, near.numel(), norm
    )
