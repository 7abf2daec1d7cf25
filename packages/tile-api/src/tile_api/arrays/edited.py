"""Files of kernels that users edited: read, and run in place of generated ones."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import types
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tile_api import settings
from tile_api.arrays.equations.equations import Equations
from tile_api.arrays.equations.listing import digest, listed
from tile_api.arrays.equations.sizes import valued
from tile_api.arrays.printing.program_text import LAUNCH
from tile_core.errors import KernelFileError, Note, OtherEquations, Span, TileError

_HEAD = re.compile(r"^Equations ([0-9a-f]{16}):\n\n((?:    .*\n?)+)", re.MULTILINE)
_PRINTED = "print one: {}.source(...) is such a file"


@dataclass(frozen=True)
class EditedKernels:
    """The `launch` of a file.

    Parameters
    ----------
    launch
        It takes the arrays of the equations, and returns their results.
    target
        What kernels run on that name no target; None leaves it to the settings.
    """

    equations: Equations
    file: str
    text: str
    launch: Callable[..., Any]
    target: str | None

    @property
    def span(self) -> Span:
        """The line that defines `launch`."""
        lines = self.text.splitlines()
        line = next(n for n, text in enumerate(lines, 1) if text.startswith(f"def {LAUNCH}("))
        return Span(self.file, line, 0, len(lines[line - 1]))

    def results(self, arrays: Iterable[Any]) -> list[Any]:
        """Run the kernels.

        Raises
        ------
        KernelFileError
            If the file raises, or returns something else than the results.
        """
        try:
            with self._settings():
                held = [*arrays]
                found = self.launch(*held)
        except TileError:
            raise
        except Exception as error:
            raise _raised(self.file, error) from error
        single = self.equations.structure is None
        results = [found] if single else [*found] if isinstance(found, (tuple, list)) else []
        parameters = zip(self.equations.parameters, held, strict=True)
        shapes = {p.name: x.shape for p, x in parameters}
        values = {s: shapes[p.name][k] for s, (p, k) in self.equations.symbols.items()}
        wanted = [
            _kind(replace(o, shape=tuple(valued(n, values) for n in o.shape)))
            for o in self.equations.outputs
        ]
        given = [_kind(x) for x in results]
        if given != wanted:
            raise KernelFileError(
                f"{LAUNCH} in {self.file} returns {', '.join(given) or type(found).__name__}, "
                f"and {self.equations.name} has {', '.join(wanted)}",
                span=self.span,
                hint="return the results, in the order of the equations",
            )
        return results

    def _settings(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.target is None else settings.override(target=self.target)


def _kind(x: Any) -> str:
    """Return the type and shape of an array as text; the type of what is no array."""
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        return type(x).__name__
    return f"{str(x.dtype).removeprefix('torch.')}[{', '.join(map(str, x.shape))}]"


def place_of(name: str, function: types.FunctionType) -> Path:
    """Return the path of a file that is named beside a function: from the function's own folder."""
    folder = Path(function.__code__.co_filename).parent
    beside = folder / name
    return beside if beside.is_file() else Path(name)


def read_kernels(path: Path, equations: Equations, target: str | None) -> EditedKernels:
    """Return the kernels of a file.

    Raises
    ------
    KernelFileError
        If it is no file of kernels, or not one for these arrays.
    OtherEquations
        If it was printed for other equations.
    """
    file = str(path)
    hint = _PRINTED.format(equations.name)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise KernelFileError(f"{file} cannot be read: {reason}", hint=hint) from error
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        tree = ast.parse(text, file)
    except SyntaxError as error:
        line, column = error.lineno or 1, (error.offset or 1) - 1
        raise KernelFileError(
            f"{file} is no Python: {error.msg}", span=Span(file, line, column, column + 1)
        ) from error
    _require_equations(file, tree, equations, hint)
    names: dict[str, Any] = {"__name__": path.stem, "__file__": file}
    try:
        exec(compile(tree, file, "exec"), names)
    except TileError:
        raise
    except Exception as error:
        raise _raised(file, error) from error
    return EditedKernels(equations, file, text, _launch(file, names, equations, hint), target)


def _launch(
    file: str, names: dict[str, Any], equations: Equations, hint: str
) -> Callable[..., Any]:
    launch = names.get(LAUNCH)
    wanted = [p.tensor for p in equations.parameters]
    if not isinstance(launch, types.FunctionType) or launch.__code__.co_filename != file:
        raise KernelFileError(
            f"{file} defines no function {LAUNCH}({', '.join(wanted)})", hint=hint
        )
    found = [*inspect.signature(launch).parameters]
    if found != wanted:
        line = launch.__code__.co_firstlineno
        width = len(linecache.getline(file, line).rstrip())
        raise KernelFileError(
            f"{LAUNCH} in {file} takes ({', '.join(found)}), and {equations.name} has the "
            f"arrays ({', '.join(wanted)})",
            span=Span(file, line, 0, width),
            hint="take them all, in this order",
        )
    return launch


def _require_equations(file: str, tree: ast.Module, equations: Equations, hint: str) -> None:
    """Raise unless the file was printed for `equations`."""
    head = _HEAD.search(ast.get_docstring(tree, clean=False) or "")
    if head is None:
        raise KernelFileError(
            f"{file} does not begin with the equations that it computes", hint=hint
        )
    lines = listed(equations)
    if head[1] == digest(lines):
        return
    written: list[str] = []
    for line in head[2].splitlines():
        if line.startswith(" " * 8) and written:
            written[-1] += f" {line.strip()}"
        else:
            written.append(line.strip())
    notes = [Note(f"in the file: {line}") for line in written if line not in lines]
    notes += [Note(f"now: {line}") for line in lines if line not in written]
    place = linecache.getlines(file).index(f"Equations {head[1]}:\n") + 1
    raise OtherEquations(
        f"the kernels in {file} are for other equations than {equations.name} has for these "
        "arguments",
        span=Span(file, place, 0, len(f"Equations {head[1]}:")),
        notes=tuple(notes) or (Note("the equations are the same, and the digest was edited"),),
        hint=f"print the file anew, {equations.name}.source(...), and carry the edits over",
    )


def _raised(file: str, error: Exception) -> KernelFileError:
    """Return the error for one that the code of a file raised, at the last line of the file."""
    at, frame = None, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == file:
            at = frame.tb_lineno
        frame = frame.tb_next
    span = None
    if at is not None:
        text = linecache.getline(file, at).rstrip()
        span = Span(file, at, len(text) - len(text.lstrip()), len(text))
    return KernelFileError(f"{file} raises {type(error).__name__}: {error}", span=span)
