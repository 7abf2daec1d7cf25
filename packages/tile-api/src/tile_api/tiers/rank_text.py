"""Kernels across ranks in the spelling of the language of tiles."""

from __future__ import annotations

import ast

from tile_api.tiers.python_expressions import Named, called, name
from tile_api.tiers.tile_expressions import TileText
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.expr import Expr, Extent, Var
from tile_core.ir.ranks import is_symmetric, rank_parameters
from tile_core.ir.stmt import Check, Kernel, Stmt, flattened


class RankText(TileText):
    """Tensors that exist on each rank are those of a rank, and hidden parameters functions."""

    def __init__(self, named: Named, kernel: Kernel) -> None:
        super().__init__(named)
        self.kernel = kernel
        self.hidden: tuple[Var, ...] = rank_parameters(kernel) or ()
        self.copies = {
            p for p in kernel.params if isinstance(p, Buffer) and is_symmetric(p, kernel)
        }

    def is_hidden(self, var: Var) -> bool:
        """Whether users see nothing of a parameter or symbol."""
        strides = (b.strides[0] for b in self.copies if b.strides is not None)
        return any(var is other for other in (*self.hidden, *strides))

    def body(self) -> tuple[Stmt, ...]:
        """Return the statements of the kernel without those that say what ranks are."""
        statements = tuple(flattened(self.kernel.body))
        said = 2 if self.hidden and all(isinstance(s, Check) for s in statements[:2]) else 0
        return statements[said:]

    def parameter(self, param: Buffer) -> str:
        """Return the annotation of a tensor that exists on each rank."""
        shape = self.shape(param.shape[1:])
        if param.scope is Scope.SIGNALS:
            return f"T.Signals({shape})"
        return f'T.Symmetric({shape}, "{param.dtype}")'

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> ast.expr:
        """Return the place of an element, on its rank."""
        if buffer not in self.copies:
            return super().element(buffer, indices)
        rest = [self.of(index) for index in indices[1:]]
        where = rest[0] if len(rest) == 1 else ast.Tuple(rest, ast.Load())
        return ast.Subscript(self._copy(buffer, indices[0]), where, ast.Load())

    def region(self, region: Region) -> str:
        """Return a region, on its rank."""
        buffer = region.buffer
        if buffer not in self.copies:
            return super().region(region)
        place = ast.unparse(ast.fix_missing_locations(self._copy(buffer, region.starts[0])))
        starts, extents = region.starts[1:], region.extents[1:]
        if region.is_element:
            return f"{place}[{', '.join(map(self.written, starts))}]"
        pairs = zip(extents, buffer.shape[1:], strict=True)
        reaches_all = all(a is b or (isinstance(a, int) and a == static_value(b)) for a, b in pairs)
        if reaches_all and all(static_value(start) == 0 for start in starts):
            return place
        return f"{place}[{', '.join(map(self._span, starts, extents))}]"

    def _copy(self, buffer: Buffer, rank: Extent) -> ast.expr:
        own = name(self.named(buffer))
        if any(rank is hidden for hidden in self.hidden[:1]):
            return own
        return ast.Call(ast.Attribute(own, "at", ast.Load()), [self.of(rank)], [])

    def _var(self, expr: Var) -> ast.expr:
        for hidden, function in zip(self.hidden, ("rank", "ranks"), strict=False):
            if expr is hidden:
                return called((function,))
        return super()._var(expr)
