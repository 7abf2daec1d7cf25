"""Inputs of candidates, and what the right results are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tile_api.autotuner.identity import canonical
from tile_api.autotuner.job import Job, read_tensors, write_tensors
from tile_api.autotuner.options import TuneOptions
from tile_api.autotuner.outcome import WRONG, Candidate, TrialOutcome, failure_of
from tile_api.autotuner.session import TuningSession
from tile_api.timing.compare import listed
from tile_core.arith.evaluate import evaluate
from tile_core.dtypes import DType
from tile_core.errors import TuningError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.stmt import Kernel


@dataclass(frozen=True, slots=True)
class KernelParam:
    """A parameter as ``supply_prog`` sees it.

    Parameters
    ----------
    name
        As in the kernel.
    dtype
        Of the elements: ``"float32"``.
    shape
        In elements; empty for a scalar. An extent that `supply_prog` settles, by the tensor that
        it returns, is still a symbol.
    """

    name: str
    dtype: str
    shape: tuple[Any, ...]

    def torch_dtype(self) -> Any:
        """Return the ``torch.dtype`` that stores such elements."""
        from tile_api.tensors import torch_storage
        from tile_core.dtypes import dtype_of

        return torch_storage(dtype_of(self.dtype))

    def is_scalar(self) -> bool:
        """Tell whether it is a number."""
        return not self.shape


class Inputs:
    """Files with inputs and right results, made once for candidates with the same parameters.

    Inputs are those `given`, by the call or by `set_autotune_inputs`, or as the options say; the
    reference gets its tensors on `device`: ``"cuda"``, or None for the host.
    """

    def __init__(
        self,
        folder: Path,
        jobs: dict[int, Job],
        options: TuneOptions,
        given: Sequence[Any] | None,
        device: str | None = None,
    ) -> None:
        self._folder, self._jobs, self._options, self._given = folder, jobs, options, given
        self._device = device
        self._files: dict[str, Path] = {}

    def file(self, candidate: Candidate) -> str:
        """Return the file with the inputs of a candidate."""
        params = passed_parameters(self._jobs[candidate.number].kernel, self._options.sizes)
        key = canonical([[p.name, p.dtype, p.shape] for p in params])
        if not self._options.cache_input_tensors and self._options.supply_prog is not None:
            key += f"#{candidate.number}"
        if key not in self._files:
            path = self._folder / f"inputs-{len(self._files)}"
            self._write(path, params)
            self._files[key] = path
        return str(self._files[key])

    def check(self, candidate: Candidate, job: str, bench: TuningSession) -> TrialOutcome | None:
        """Run a candidate once in the process that measures; return what is wrong, or None."""
        inputs, timeout = self.file(candidate), self._options.timeout
        if not self._options.checks:
            reply = bench.ask_meter("check", timeout, job=job, inputs=inputs)
            return None if reply["ok"] else failure_of(reply)
        expected = self._expected(inputs)
        if self._options.manual_check_prog is None:
            o = self._options
            reply = bench.ask_meter(
                "check",
                timeout,
                job=job,
                inputs=inputs,
                expected=str(expected),
                tolerances=[o.atol, o.rtol, o.max_mismatched_ratio],
            )
            return None if reply["ok"] else failure_of(reply)
        outputs = self._folder / "outputs"
        reply = bench.ask_meter("check", timeout, job=job, inputs=inputs, outputs=str(outputs))
        if not reply["ok"]:
            return failure_of(reply)
        return self._checked_by_user(inputs, outputs, expected)

    # Inside --------------------------------------------------------------------------------

    def _write(self, path: Path, params: Sequence[KernelParam]) -> None:
        given = self._given
        if given is None and self._options.supply_prog is not None:
            supplied = self._options.supply_prog(list(params))
            given = list(supplied) if isinstance(supplied, list | tuple) else [supplied]
        if given is None:
            kind = getattr(self._options.supply_type, "name", None) or "Auto"
            write_tensors(path, [_made(p, n, kind, self._options) for n, p in enumerate(params)])
            return
        if len(given) != len(params):
            names = ", ".join(p.name for p in params)
            raise TuningError(
                f"{len(given)} inputs were supplied for {len(params)} parameters: {names}",
                hint="supply one for each parameter that is passed to the kernel",
            )
        write_tensors(path, given)

    def _expected(self, inputs: str) -> Path:
        """Return the file with the inputs as the reference left them, and what it returned."""
        path = Path(f"{inputs}-expected")
        if not path.exists():
            assert self._options.ref_prog is not None, "there is something to compare with"
            args = [_for_user(value, self._device) for value in read_tensors(inputs)]
            returned = self._options.ref_prog(*args)
            write_tensors(path, [*args, *listed(returned)])
        return path

    def measure_reference(self, candidate: Candidate) -> float | None:
        """Return milliseconds of a call of the reference: the median of a few."""
        if self._options.ref_prog is None:
            return None
        from tile_api.timing.bench import do_bench

        args = [_for_user(value, self._device) for value in read_tensors(self.file(candidate))]
        reference, rep = self._options.ref_prog, self._options.rep
        where = self._device or "cpu"
        found = do_bench(lambda: reference(*args), 0, rep, return_mode="median", device=where)
        return float(found)

    def _checked_by_user(self, inputs: str, outputs: Path, expected: Path) -> TrialOutcome | None:
        count = len(read_tensors(inputs))
        ours, theirs = read_tensors(outputs), read_tensors(expected)
        got = [_for_user(v, self._device) for v in (ours[count:] or ours)]
        right = [_for_user(v, self._device) for v in (theirs[count:] or theirs)]
        assert self._options.manual_check_prog is not None, "the user checks"
        try:
            self._options.manual_check_prog(
                got[0] if len(got) == 1 else got, right[0] if len(right) == 1 else right
            )
        except Exception as error:
            told = str(error).partition("\n")[0] or type(error).__name__
            return TrialOutcome(WRONG, "AssertionError", told)
        return None


def open_parameters(params: Sequence[Any], out_idx: Any) -> list[tuple[Any, KernelParam]]:
    """Return the parameters that a caller passes, as they are and as `supply_prog` sees them.

    Symbols in their shapes stay; parameters at `out_idx` are returned.
    """
    places = [] if out_idx is None else [out_idx] if isinstance(out_idx, int) else out_idx
    returned = {place % len(params) for place in places}
    passed = [p for number, p in enumerate(params) if number not in returned]
    return [(p, KernelParam(p.name, str(p.dtype), getattr(p, "shape", ()))) for p in passed]


def passed_parameters(kernel: Kernel, sizes: Any) -> list[KernelParam]:
    """Return the parameters that a caller passes, with their shapes as numbers."""
    found = []
    for number, param in enumerate(kernel.params):
        if number in kernel.outputs:
            continue
        if isinstance(param, Buffer):
            shape = tuple(_extent(extent, sizes, param) for extent in param.shape)
            found.append(KernelParam(param.name, str(param.dtype), shape))
        else:
            found.append(KernelParam(param.name, str(getattr(param, "dtype", "int32")), ()))
    return found


def _extent(extent: Any, sizes: Any, param: Buffer) -> int:
    values: dict[Var, int] = {}
    for var in free_variables(extent):
        if var.name not in sizes:
            raise TuningError(
                f"tuning needs a value for the dimension {var.name!r} of {param.name}",
                span=param.span,
                hint=f"call with tensors, or write sizes={{{var.name!r}: 1024}}",
            )
        values[var] = int(sizes[var.name])
    return int(evaluate(extent, values))


def _made(param: KernelParam, number: int, kind: str, options: TuneOptions) -> Any:
    """Return a generated input, the same in every search."""
    from tile_api.timing.supply import make_array
    from tile_core.dtypes import dtype_of

    if param.is_scalar():
        if param.name not in options.sizes:
            raise TuningError(
                f"tuning needs a value for the parameter {param.name!r}",
                hint=f"write sizes={{{param.name!r}: 1}}, or supply_prog=lambda params: [...]",
            )
        return options.sizes[param.name]
    dtype: DType = dtype_of(param.dtype)
    return make_array(param.shape, dtype, kind, seed=number)


def _for_user(value: Any, device: str | None) -> Any:
    """Return an argument as the user's functions get it: torch's tensor if torch is there."""
    import numpy as np

    from tile_api.tensors import torch_if_installed

    if not isinstance(value, np.ndarray) or torch_if_installed() is None:
        return value
    from tile_api.tensors import tensor_of

    return tensor_of(value, device)
