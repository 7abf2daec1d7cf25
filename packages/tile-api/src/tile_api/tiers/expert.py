"""`kernel.source(tier="expert")`: a kernel for a GPU as the program of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_api.tiers.line_breaks import PAD, WIDTH, broken
from tile_api.tiers.statements import StatementText, extra, quoted
from tile_api.tiers.thread_text import no_form
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir import stmt as s
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.printer import symbols_of
from tile_core.simt.program import DeviceFunction, DeviceProgram, TensorMap
from tile_launch.contract import ANY_EXTENT

_HEAD = '''\
"""{name}: what one thread does on {target}."""

import tile_api as tile
import tile_api.language as T
'''
_MAIN = """\


if __name__ == "__main__":
    print(tile.compile({name}, target="{target}@sim").get_kernel_source())
"""


def expert_source(lowered: Any) -> str:
    """Return a Python program that compiles to the very C++ that a kernel was compiled to.

    Parameters
    ----------
    lowered
        What the driver made of the kernel.

    Raises
    ------
    UnsupportedOnTarget
        If the target is no GPU: there, nobody writes programs of threads.
    UnsupportedForm
        If part of the kernel cannot be written so.
    """
    text = _text_of(lowered)
    told = {"target": text.target}
    name, lines = text.function(text.program.kernel.name)
    head = _HEAD.format(name=text.program.kernel.name, **told)
    return "\n".join([head, *lines]) + "\n" + _MAIN.format(name=name, **told)


def expert_function(lowered: Any, wanted: str, docstring: str) -> list[str]:
    """Return the lines of `expert_source` that define the kernel, as a function.

    Parameters
    ----------
    wanted
        What it is called, where that is a name of Python.

    Raises
    ------
    UnsupportedOnTarget
        If the target is no GPU: there, nobody writes programs of threads.
    UnsupportedForm
        If part of the kernel cannot be written so.
    """
    return _text_of(lowered).function(wanted, docstring)[1]


def _text_of(lowered: Any) -> ExpertText:
    program = lowered.module
    if not isinstance(program, DeviceProgram):
        raise UnsupportedOnTarget(
            f"{lowered.target} has no programs of threads, as GPUs have",
            hint='compile for a GPU, which need not be here: target="cuda:sm_80@sim"; '
            'kernel.ir("planned") shows the tiles of this target',
        )
    return ExpertText(program, lowered)


class ExpertText:
    """The text of one program."""

    def __init__(self, program: DeviceProgram, lowered: Any) -> None:
        self.program = program
        self.target = f"{lowered.target.kind}:{program.machine.name}"
        self.options = lowered.options
        self.out = StatementText()

    def function(self, wanted: str, docstring: str = "") -> tuple[str, list[str]]:
        """Return the function's name, and its lines."""
        kernel, configs = self.program.kernel, self.options.pass_configs
        name = self.out.names.of_function(wanted)
        names = [self._kept(param) for param in kernel.params]
        symbols = [self._symbol(var) for var in symbols_of(kernel)]
        params = [self._parameter(*known) for known in zip(kernel.params, names, strict=True)]
        words = [f'target="{self.target}"']
        if name != kernel.name:
            words.append(f"name={kernel.name!r}")
        if kernel.outputs:
            words.append(f"outputs={kernel.outputs!r}")
        if kernel.sources:
            words.append(f"sources={kernel.sources!r}")
        if configs:
            words.append(f"pass_configs={_plain(dict(configs))}")
        if self.options.compile_flags:
            words.append(f"compile_flags={tuple(self.options.compile_flags)!r}")
        self._workspaces()
        for step in self.program.steps:
            self._step(step)
        return name, [
            *symbols,
            "",
            *_call_lines("@T.threads", words, ""),
            *_call_lines(f"def {name}", params, ":"),
            *([f'{PAD}"""{docstring}"""'] if docstring else []),
            *(self.out.lines or [f"{PAD}pass"]),
        ]

    # The kernel ----------------------------------------------------------------------------

    def _symbol(self, var: Var) -> str:
        name, _ = self.out.names.bind(var)
        told = [repr(var.name), f'"{var.dtype}"', *_promises(var)]
        return f"{name} = T.dynamic({', '.join(told)})"

    def _kept(self, param: Buffer | Var) -> str:
        name = self.out.names.keep(param)
        if name is None:
            raise no_form(f"the parameter {param.name!r}")
        return name

    def _parameter(self, param: Buffer | Var, name: str) -> str:
        if isinstance(param, Buffer):
            if not set(self.program.kernel.params).isdisjoint(nodes_of(param, Var)):
                raise no_form(f"the shape of {param.name!r}, which names a parameter,")
            shape = self.out.shape(param.shape)
            if param.strides is None:
                return f'{name}: T.Tensor({shape}, "{param.dtype}")'
            strides = self.out.shape(param.strides)
            return f'{name}: T.StridedTensor({shape}, {strides}, "{param.dtype}")'
        if param.contract is not None:
            told = [repr(param.name), f'"{param.dtype}"', *_promises(param)]
            return f"{name}: T.dynamic({', '.join(told)})"
        return f"{name}: T.{'ptr' if param.dtype.is_handle else param.dtype}"

    def _workspaces(self) -> None:
        for buffer in self.program.workspaces:
            name, words = self.out.names.bind(buffer)
            self.out.line(
                1, f"{name} = T.alloc_global({self.out.shape(buffer.shape)}, "
                f'"{buffer.dtype}"{extra(words)})'
            )  # fmt: skip

    def _step(self, step: s.Let | s.Check | DeviceFunction) -> None:
        if isinstance(step, DeviceFunction):
            self._launch(step)
        else:
            self.out.statement(step, 1)

    # One launch ----------------------------------------------------------------------------

    def _launch(self, function: DeviceFunction) -> None:
        launch = function.launch
        self.out.begin(launch, function.params)
        told = [f"grid={self.out.shape(launch.grid)}", f"threads={tuple(launch.threads)!r}"]
        if function.name != self.program.kernel.name:
            told.append(f"name={quoted(function.name)}")
        passed = [self._given(function, k) for k in range(len(function.params))]
        tensors = [b for b in self.program.kernel.params if isinstance(b, Buffer)]
        with self.out.names.scope(), self.out.names.shadowing([*tensors, *self.program.workspaces]):
            params = [
                self._argument(*given)
                for given in zip(function.params, function.arguments, passed, strict=True)
            ]
            shared = [self._shared(buffer, at) for buffer, at in function.shared.items()]
            indices: dict[str, str] = {}
            for var in (*launch.block_vars, *launch.thread_vars):
                name, _ = self.out.names.bind(var)
                indices[name] = var.name
            told += _launch_words(function, indices)
            self.out.line(1, "with T.launch(")
            for word in told:
                self.out.line(2, f"{word},")
            self.out.lines += _dict_lines("params", params) + _dict_lines("shared", shared)
            self.out.line(1, f") as ({', '.join(indices)}):")
            start = len(self.out.lines)
            given = [p for p in function.params if isinstance(p, Buffer)]
            for buffer in (*given, *function.shared):
                self.out.views_of(buffer, 2)
            self.out.block(launch.body, 2)
            if len(self.out.lines) == start:
                self.out.line(2, "pass")

    def _given(self, function: DeviceFunction, position: int) -> str:
        """Return what the host passes, in the names that are seen outside of the launch."""
        param, argument = function.params[position], function.arguments[position]
        if isinstance(argument, TensorMap):
            return self._map(argument)
        if isinstance(argument, Buffer):
            assert isinstance(param, Buffer)
            if param.strides is not None or param.origin is not None:
                raise no_form(f"the tensor {param.name!r}")
            return f'{self.out.names.of(argument)}, {self.out.shape(param.shape)}, "{param.dtype}"'
        return self.out.names.of(argument)

    def _argument(self, param: Buffer | Var, argument: object, told: str) -> str:
        if not isinstance(param, Buffer) and not isinstance(argument, TensorMap):
            return f"{told}={told}"
        name, words = self.out.names.bind(param)
        if isinstance(argument, TensorMap):
            variable = {"variable": param.name} if param.name != argument.name else {}
            label = {"name": argument.name} if name != argument.name else {}
            return f"{name}=T.tensor_map({told}{extra({**label, **variable})})"
        return f"{name}=T.flat({told}{extra(words)})"

    def _map(self, told: TensorMap) -> str:
        w = self.out.written
        parts = [self.out.names.of(told.tensor), f'dtype="{told.dtype}"']
        if not (isinstance(told.offset, Const) and told.offset.value == 0):
            parts.append(f"offset={w(told.offset)}")
        parts += [
            f"extents={self.out.shape(told.extents)}",
            f"strides={self.out.shape(told.strides)}",
        ]
        parts.append(f"box={told.box!r}")
        for key, usual in (
            ("element_strides", ()), ("swizzle", 0), ("interleave", 0), ("fill", "zero"),
            ("l2_promotion", 128),
        ):  # fmt: skip
            value = getattr(told, key)
            if value != usual:
                parts.append(f"{key}={value!r}")
        return ", ".join(parts)

    def _shared(self, buffer: Buffer, offset: int) -> str:
        name, words = self.out.names.bind(buffer)
        if buffer.scope is not Scope.SHARED:
            words = {**words, "scope": buffer.scope.value}
        return f'{name}=T.view({offset}, {self.out.shape(buffer.shape)}, "{buffer.dtype}"' + (
            f"{extra(words)})"
        )


def _launch_words(function: DeviceFunction, indices: dict[str, str]) -> list[str]:
    """Return what a launch says beside its extents, where that is not the usual."""
    renamed = {name: own for name, own in indices.items() if name != own}
    words = [f"cluster={function.launch.cluster!r}"] if function.launch.cluster else []
    words += [f"names={renamed!r}"] if renamed else []
    words += [f"resident={function.resident}"] if function.resident != 1 else []
    words += ["cooperative=True"] if function.cooperative else []
    words += [f"shared_bytes={function.shared_bytes}"] if function.shared_bytes else []
    return words


def _promises(var: Var) -> list[str]:
    promised = var.contract or ANY_EXTENT
    told = [f"min={promised.low}"] if promised.low else []
    told += [] if promised.high is None else [f"max={promised.high}"]
    return told + ([f"multiple_of={promised.multiple_of}"] if promised.multiple_of > 1 else [])


def _plain(configs: dict[str, object]) -> str:
    for key, value in configs.items():
        if not isinstance(value, (bool, int, float, str, type(None))):
            raise no_form(f"the value of {key!r}")
    return repr(configs)


def _call_lines(start: str, words: Sequence[str], end: str) -> list[str]:
    whole = f"{start}({', '.join(words)}){end}"
    if len(whole) <= WIDTH:
        return [whole]
    return [f"{start}(", *(f"{PAD}{word}," for word in words), f"){end}"]


def _dict_lines(key: str, entries: Sequence[str]) -> list[str]:
    if not entries:
        return []
    inside = [line for entry in entries for line in broken(f"{entry},", 3)]
    return [f"{PAD * 2}{key}=dict(", *inside, f"{PAD * 2}),"]
