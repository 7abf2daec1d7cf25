"""The text of a kernel in which each block sorts a row by the digits of its elements.

The last digit comes first: a pass puts elements in the order of a digit, and leaves those in their
order that have the same one. What comes before each digit is counted; where all elements have the
same, there is no pass.
"""

from __future__ import annotations

from tile_api.arrays.equations.expressions import Expr
from tile_api.arrays.planning.sorts import Digits, digits_of, length_of
from tile_api.arrays.printing.kernel_text import KernelText
from tile_api.arrays.printing.recurrence_text import SteppedWriter


class SortingWriter(SteppedWriter):
    """Writes a kernel of a recurrence that sorts."""

    def kernel(self) -> KernelText:
        """Write everything."""
        tiles, of, digits = self.tiles, self.of, digits_of(self.of)
        for name, text in self.plan.combined:
            tiles.prologue.append(f"            {name} = {text}")
        size, first = length_of(of), digits.count % 2  # the last pass ends in part 0
        for k in self.count:
            name = self.text.buffers[of.after, k] = tiles.fresh("sorted")
            tiles.allocations.append(f'{name} = T.alloc_shared((2, {size}), "int64")')
        for k in self.count:
            start, dims = self.recurrence.starts[k], self._tile(k)
            self._put(self.text.buffers[of.after, k], start, dims, str(first))
        self._passes(digits, size, first)
        self.text.part = ("0",)
        for o in self.plan.finals:
            self._result(o)
        return self._function()

    def _passes(self, digits: Digits, size: int, first: int) -> None:
        """Write the passes from the last digit to the first one."""
        tiles = self.tiles
        names = [self.text.buffers[self.of.after, k] for k in self.count]
        elements = names[0]
        counts, here, before, at = map(tiles.fresh, ("counts", "here", "before", "at"))
        n, p, d, digit, count = map(tiles.fresh, ("n", "p", "d", "digit", "count"))
        width = 1 << digits.width
        tiles.allocations += [
            f'{counts} = T.alloc_shared(({digits.count}, {width}), "int32")',
            f'{here} = T.alloc_var("int32")',
            f'{before} = T.alloc_var("int32")',
        ]

        def digit_of(part: str | int, place: str) -> str:
            shift = f"{digits.first} + {digits.width} * {p}" if digits.first else (
                f"{digits.width} * {p}")  # fmt: skip
            return f"(({elements}[{part}, {place}] ^ {digits.flipped}) >> ({shift})) & {width - 1}"

        moved = [f"{name}[1 - {here}, {at}] = {name}[{here}, {n}]" for name in names]
        copied = [f"{name}[0, {n}] = {name}[1, {n}]" for name in names]
        for line in (
            f"{here} = {first}",
            f"T.fill({counts}, 0)",
            f"for {n} in T.serial({size}):",
            f"    for {p} in T.unroll({digits.count}):",
            f"        {digit} = {digit_of(first, n)}",
            f"        {counts}[{p}, {digit}] = {counts}[{p}, {digit}] + 1",
            f"for {p} in T.serial({digits.count}):",
            f"    if {counts}[{p}, {digit_of(here, '0')}] < {size}:",
            f"        {before} = 0",
            f"        for {d} in T.serial({width}):",
            f"            {count} = {counts}[{p}, {d}]",
            f"            {counts}[{p}, {d}] = {before}",
            f"            {before} = {before} + {count}",
            f"        for {n} in T.serial({size}):",
            f"            {digit} = {digit_of(here, n)}",
            f"            {at} = {counts}[{p}, {digit}]",
            *(f"            {line}" for line in moved),
            f"            {counts}[{p}, {digit}] = {at} + 1",
            f"        {here} = 1 - {here}",
            f"if {here} == 1:",
            f"    for {n} in T.Parallel({size}):",
            *(f"        {line}" for line in copied),
        ):
            tiles.put(line)

    def _is_own(self, x: Expr) -> bool:
        """Tell whether a tile holds nothing but a carried value: the other part is beside it."""
        return False
