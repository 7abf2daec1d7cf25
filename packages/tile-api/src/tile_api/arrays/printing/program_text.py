"""A function's kernels as a program: a file that runs, and compares itself with NumPy."""

from __future__ import annotations

import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_api.arrays.equations.equations import Equations
from tile_api.arrays.equations.listing import digest, listed
from tile_api.arrays.equations.sizes import LEAST, usual
from tile_api.arrays.inputs import supplies
from tile_api.arrays.printing.kernel_text import KernelText, distinct
from tile_api.arrays.printing.numpy_source import function_in_numpy
from tile_api.arrays.printing.numpy_text import IN_NUMPY, equations_in_numpy, sizes_told
from tile_api.lowered import LoweredKernel
from tile_api.tiers.expert import expert_function
from tile_api.tiers.line_breaks import PAD, WIDTH, broken
from tile_core.dtypes import DType

LAUNCH = "launch"
"""What programs call the function that runs their kernels."""
IMPORTS = "import tile_api as tile\nimport tile_api.language as T\n"
_TOLERANCES = {"float16": 1e-2, "bfloat16": 5e-2}
_MAIN = """\
    with np.errstate(all="ignore"):
        wanted = {reference}(*arguments)
    found = {launch}(*arguments)
    for got, right in zip({found}, {wanted}, strict=True):
        got, right = (np.asarray(x).astype("float64") for x in (got, right))
        np.testing.assert_allclose(got, right, rtol={error}, atol={error})
        apart = np.abs(got - right).max(initial=0, where=np.isfinite(right))
        print(f"{name}: {{got.shape}}, at most {{apart:.1e}} from NumPy")
"""


@dataclass(frozen=True)
class Program:
    """A function with its kernels.

    Parameters
    ----------
    function, others
        What was captured, with its arguments beside arrays: it is copied where that is possible.
    """

    equations: Equations
    kernels: Sequence[KernelText]
    function: types.FunctionType
    others: Mapping[str, Any]

    def of_tiles(self) -> str:
        """Return the file with the kernels as they are compiled."""
        texts = [_short_lines(kernel.text.splitlines()) for kernel in distinct(self.kernels)]
        return self._file(texts, lambda kernel: f"{kernel.name}()")

    def of_threads(self, lowered: Mapping[str, LoweredKernel]) -> str:
        """Return the file with what each kernel became for one thread of a GPU, by its name.

        Raises
        ------
        UnsupportedOnTarget
            If the target is no GPU.
        """
        texts = []
        for kernel in distinct(self.kernels):
            made = lowered[kernel.name]
            told = f"Compute what one thread does for {', '.join(kernel.outputs)}."
            lines = expert_function(made.lowered, kernel.name, told)
            texts.append("\n".join(lines).lstrip("\n") + "\n")
        target = next((made.target for made in lowered.values()), "").removesuffix("@sim")
        return self._file(
            texts,
            lambda kernel: f"tile.compile({kernel.name}, target=TARGET)",
            f'\nTARGET = "{target}@sim"  # without @sim where the GPU is here\n',
        )

    def _file(
        self, texts: Sequence[str], made: Callable[[KernelText], str], constants: str = ""
    ) -> str:
        parameters = tuple(p.name for p in self.equations.parameters)
        reference = None
        if not self.equations.constants:
            reference = function_in_numpy(self.function, parameters, self.others)
        reference = reference or equations_in_numpy(self.equations)
        parts = [
            self._head(uses_math=any("math." in line for line in reference)) + constants,
            *texts,
            *map(_short_lines, (self._launch(made), reference, self._main())),
            'if __name__ == "__main__":\n    main()\n',
        ]
        return "\n\n".join(parts)

    def _head(self, *, uses_math: bool) -> str:
        lines = listed(self.equations)
        told = "\n".join(map(_wrapped, lines))
        is_short = any(str(t) not in np.sctypeDict for t in self._dtypes())
        imports = "import math\n\n" if uses_math else ""
        imports += "import ml_dtypes  # noqa: F401  (names of types)\n" if is_short else ""
        of_tile = IMPORTS
        if any(o.dtype.packing > 1 for o in self.equations.outputs):
            of_tile += "from tile_api.arrays.running import shaped\n"
        return (
            f'"""Kernels of {self.equations.name}, for arrays of these shapes and types.\n\n'
            f'Equations {digest(lines)}:\n\n{told}\n"""\n\n{imports}import numpy as np\n\n{of_tile}'
        )

    def _dtypes(self) -> list[DType]:
        parameters = [p.dtype for p in self.equations.parameters]
        return parameters + [o.dtype for o in self.equations.outputs]

    def _launch(self, made: Callable[[KernelText], str]) -> Iterator[str]:
        yield f"def {LAUNCH}({', '.join(p.tensor for p in self.equations.parameters)}):"
        yield '    """Run the kernels in their order."""'
        if self.equations.conditions or any(0 in o.shape for o in self.equations.outputs):
            yield from (f"    {line}" for line in sizes_told(self.equations))
        for text in self.equations.conditions:
            yield f"    if not ({text}):"
            yield f'        raise ValueError("these kernels are for sizes with {text}")'
        for p in self.equations.parameters:
            if p.shape == ():
                yield f"    {p.tensor} = {p.tensor}.reshape(1)"
        for kernel in self.kernels:
            yield f"    {', '.join(kernel.outputs)} = {made(kernel)}({', '.join(kernel.inputs)})"
        results = []
        for o in self.equations.outputs:
            if 0 in o.shape:
                results.append(f'np.empty({o.shape}, "{o.dtype}")')
            elif o.dtype.packing > 1:
                results.append(f"shaped({o.name}, {o.shape})")
            else:
                results.append(f"{o.name}.reshape(())" if o.shape == () else o.name)
        if self.equations.structure is None:
            yield f"    return {results[0]}"
        else:
            yield f"    return ({', '.join(results)}{',' * (len(results) == 1)})"

    def _main(self) -> Iterator[str]:
        is_single = self.equations.structure is None
        yield "def main():"
        yield '    """Compare with NumPy on random arrays."""'
        yield "    random = np.random.default_rng(0)"
        pad = ""
        if symbols := self.equations.symbols:
            pad = "    "
            yield f"    for {', '.join(symbols)}{',' * (len(symbols) == 1)} in {self._sizes()}:"
        yield f"{pad}    arguments = ["
        for s in supplies(self.equations):
            yield f"{pad}        {s.text()},  # {s.parameter.name}"
        yield f"{pad}    ]"
        text = _MAIN.format(
            reference=IN_NUMPY,
            launch=LAUNCH,
            found="[found]" if is_single else "found",
            wanted="[wanted]" if is_single else "wanted",
            error=max(_TOLERANCES.get(str(t), 1e-3) for t in self._dtypes()),
            name=self.equations.name,
        )
        yield from (f"{pad}{line}" for line in text.splitlines())

    def _sizes(self) -> list[tuple[int, ...]]:
        """Return values of symbols to compare with: the usual ones, few, more than a block."""
        symbols = self.equations.symbols
        asked = [
            tuple(usual(p.shape[k]) for p, k in symbols.values()),
            tuple(range(LEAST, LEAST + len(symbols))),
            tuple(range(67, 67 + 2 * len(symbols), 2)),
        ]
        conditions = self.equations.conditions

        def holds(values: tuple[int, ...]) -> bool:
            named = dict(zip(symbols, values, strict=True))
            return all(eval(text, {"__builtins__": {}}, dict(named)) for text in conditions)

        return [*dict.fromkeys(filter(holds, asked))]


def _wrapped(line: str) -> str:
    """Return a line of equations as it stands at the head of the file."""
    return textwrap.fill(
        line, WIDTH, initial_indent=PAD, subsequent_indent=PAD * 2,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _short_lines(lines: Iterable[str]) -> str:
    """Return lines as text, the long ones broken."""
    made: list[str] = []
    for line in lines:
        pad = line[: len(line) - len(line.lstrip())]
        if len(line) <= WIDTH:
            made.append(line)
        elif line.startswith(f"{pad}#"):
            made += textwrap.wrap(line, WIDTH, subsequent_indent=f"{pad}# ", break_long_words=False)
        else:
            made += broken(line.strip(), len(pad) // len(PAD))
    return "\n".join(made) + "\n"
