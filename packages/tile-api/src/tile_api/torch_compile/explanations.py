"""What `torch.compile` made of a function: kernels, what runs in torch instead, and why."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tile_api.arrays.function import Function


@dataclass(frozen=True)
class InTorch:
    """An operation that torch runs.

    Parameters
    ----------
    reason
        Why no kernel computes it.
    """

    operation: str
    reason: str

    def __str__(self) -> str:
        """Return a line."""
        return f"{self.operation} runs in torch: {self.reason}"


@dataclass(frozen=True)
class InKernels:
    """Operations that were captured as one function.

    Parameters
    ----------
    operations
        Their names in torch's graph, in order.
    function
        What was captured.
    like
        Tensors without elements, as the function takes them.
    """

    operations: tuple[str, ...]
    function: Function
    like: tuple[torch.Tensor, ...]

    @property
    def kernels(self) -> int:
        """The number of kernels."""
        return len(self.function.explain(*self.like).kernels)

    def source(self) -> str:
        """Return the kernels as a program of the developer's tier."""
        return self.function.source(*self.like)

    def __str__(self) -> str:
        """Return a line, and the function's explanation."""
        explained = str(self.function.explain(*self.like)).replace("\n", "\n  ")
        return f"{', '.join(self.operations)}:\n  {explained}"


@dataclass(frozen=True)
class CompiledGraph:
    """What became of one graph of torch.

    Parameters
    ----------
    kind
        "inference", "forward" or "backward".
    graph_break
        Why Dynamo ended the graph, if the function goes on after it.
    sizes
        Those that torch leaves open, as they are in these kernels.
    """

    kind: str
    steps: tuple[InKernels | InTorch, ...]
    graph_break: str | None = None
    sizes: tuple[str, ...] = ()

    @property
    def kernels(self) -> int:
        """The number of kernels."""
        return sum(step.kernels for step in self.steps if isinstance(step, InKernels))

    @property
    def in_torch(self) -> tuple[InTorch, ...]:
        """The operations that torch runs."""
        return tuple(step for step in self.steps if isinstance(step, InTorch))

    def __str__(self) -> str:
        """Return a paragraph for each step."""
        head = f"{self.kind}: {self.kernels} kernels, {len(self.in_torch)} operations of torch"
        tail = [] if self.graph_break is None else [f"the graph ends: {self.graph_break}"]
        if self.sizes:
            head += f"\nfor {', '.join(self.sizes)}: kernels without symbols are for these sizes"
        return "\n\n".join([head, *map(str, self.steps), *tail])
