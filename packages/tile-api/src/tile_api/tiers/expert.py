"""`kernel.source(tier="expert")`: a kernel for a GPU as the program of one thread."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from tile_api.tiers.line_breaks import PAD, WIDTH, broken
from tile_api.tiers.thread_names import ThreadNames
from tile_api.tiers.thread_text import no_form, written
from tile_core.errors import Span, UnsupportedOnTarget
from tile_core.ir import stmt as s
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import const
from tile_core.ir.expr import Const, Expr, Extent, Load, Var
from tile_core.ir.node import Node, nodes_of
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
    program = lowered.module
    if not isinstance(program, DeviceProgram):
        raise UnsupportedOnTarget(
            f"{lowered.target} has no programs of threads, as GPUs have",
            hint='compile for a GPU, which need not be here: target="cuda:sm_80@sim"; '
            'kernel.ir("planned") shows the tiles of this target',
        )
    options = lowered.options
    target = f"{lowered.target.kind}:{program.machine.name}"
    return ExpertText(program, target).text(options.pass_configs, options.compile_flags)


class ExpertText:
    """The text of one program."""

    def __init__(self, program: DeviceProgram, target: str) -> None:
        self.program, self.target = program, target
        self.names = ThreadNames()
        self.lines: list[str] = []
        self.body: s.Stmt = s.Seq(())  # of the launch at hand
        self.place: Span | None = None  # what T.line said last
        self.is_told = False
        self.shown: tuple[str, int] | None = None  # what comments of C++ showed last
        self.seen: set[Buffer] = set()  # in statements so far

    def text(self, configs: Sequence[tuple[str, object]], flags: Sequence[str]) -> str:
        """Return the file."""
        kernel = self.program.kernel
        name = kernel.name if kernel.name.isidentifier() else "kernel"
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
        if flags:
            words.append(f"compile_flags={tuple(flags)!r}")
        self._workspaces()
        for step in self.program.steps:
            self._step(step)
        head = [_HEAD.format(name=kernel.name, target=self.target), *symbols]
        head += [
            "",
            *_call_lines("@T.threads", words, 0, ""),
            *_call_lines(f"def {name}", params, 0, ":"),
        ]
        body = self.lines or [f"{PAD}pass"]
        return "\n".join([*head, *body]) + "\n" + _MAIN.format(name=name, target=self.target)

    # The kernel ----------------------------------------------------------------------------

    def _symbol(self, var: Var) -> str:
        name, _ = self.names.bind(var)
        told = [repr(var.name), f'"{var.dtype}"', *_promises(var)]
        return f"{name} = T.dynamic({', '.join(told)})"

    def _kept(self, param: Buffer | Var) -> str:
        name = self.names.keep(param)
        if name is None:
            raise no_form(f"the parameter {param.name!r}")
        return name

    def _parameter(self, param: Buffer | Var, name: str) -> str:
        if isinstance(param, Buffer):
            if not set(self.program.kernel.params).isdisjoint(nodes_of(param, Var)):
                raise no_form(f"the shape of {param.name!r}, which names a parameter,")
            shape = self._shape(param.shape)
            if param.strides is None:
                return f'{name}: T.Tensor({shape}, "{param.dtype}")'
            strides = self._shape(param.strides)
            return f'{name}: T.StridedTensor({shape}, {strides}, "{param.dtype}")'
        if param.contract is not None:
            told = [repr(param.name), f'"{param.dtype}"', *_promises(param)]
            return f"{name}: T.dynamic({', '.join(told)})"
        return f"{name}: T.{'ptr' if param.dtype.is_handle else param.dtype}"

    def _workspaces(self) -> None:
        for buffer in self.program.workspaces:
            name, words = self.names.bind(buffer)
            self._line(
                1, f"{name} = T.alloc_global({self._shape(buffer.shape)}, "
                f'"{buffer.dtype}"{_words(words)})'
            )  # fmt: skip

    def _step(self, step: s.Let | s.Check | DeviceFunction) -> None:
        if isinstance(step, DeviceFunction):
            self._launch(step)
        else:
            self._statement(step, 1)

    # One launch ----------------------------------------------------------------------------

    def _launch(self, function: DeviceFunction) -> None:
        launch = function.launch
        self.body = launch.body
        self.names.expect(launch.body)
        self.shown = None
        told = [f"grid={self._shape(launch.grid)}", f"threads={tuple(launch.threads)!r}"]
        if function.name != self.program.kernel.name:
            told.append(f"name={_quoted(function.name)}")
        passed = [self._given(function, k) for k in range(len(function.params))]
        tensors = [b for b in self.program.kernel.params if isinstance(b, Buffer)]
        with self.names.scope(), self.names.shadowing([*tensors, *self.program.workspaces]):
            params = [
                self._argument(*given)
                for given in zip(function.params, function.arguments, passed, strict=True)
            ]
            shared = [self._shared(buffer, at) for buffer, at in function.shared.items()]
            indices: dict[str, str] = {}
            for var in (*launch.block_vars, *launch.thread_vars):
                name, _ = self.names.bind(var)
                indices[name] = var.name
            told += _launch_words(function, indices)
            self._line(1, "with T.launch(")
            for word in told:
                self._line(2, f"{word},")
            self.lines += _dict_lines("params", params) + _dict_lines("shared", shared)
            self._line(1, f") as ({', '.join(indices)}):")
            start = len(self.lines)
            self.seen = {p for p in function.params if isinstance(p, Buffer)}
            for buffer in (*self.seen, *function.shared):
                self._views_of(buffer, 2)
            self._block(launch.body, 2)
            if len(self.lines) == start:
                self._line(2, "pass")

    def _given(self, function: DeviceFunction, position: int) -> str:
        """Return what the host passes, in the names that are seen outside of the launch."""
        param, argument = function.params[position], function.arguments[position]
        if isinstance(argument, TensorMap):
            return self._map(argument)
        if isinstance(argument, Buffer):
            assert isinstance(param, Buffer)
            if param.strides is not None or param.origin is not None:
                raise no_form(f"the tensor {param.name!r}")
            return f'{self.names.of(argument)}, {self._shape(param.shape)}, "{param.dtype}"'
        return self.names.of(argument)

    def _argument(self, param: Buffer | Var, argument: object, told: str) -> str:
        if not isinstance(param, Buffer) and not isinstance(argument, TensorMap):
            return f"{told}={told}"
        name, words = self.names.bind(param)
        if isinstance(argument, TensorMap):
            variable = {"variable": param.name} if param.name != argument.name else {}
            label = {"name": argument.name} if name != argument.name else {}
            return f"{name}=T.tensor_map({told}{_words({**label, **variable})})"
        return f"{name}=T.flat({told}{_words(words)})"

    def _map(self, told: TensorMap) -> str:
        w = self._written
        parts = [self.names.of(told.tensor), f'dtype="{told.dtype}"']
        if not (isinstance(told.offset, Const) and told.offset.value == 0):
            parts.append(f"offset={w(told.offset)}")
        parts += [f"extents={self._shape(told.extents)}", f"strides={self._shape(told.strides)}"]
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
        name, words = self.names.bind(buffer)
        if buffer.scope is not Scope.SHARED:
            words = {**words, "scope": buffer.scope.value}
        return f'{name}=T.view({offset}, {self._shape(buffer.shape)}, "{buffer.dtype}"' + (
            f"{_words(words)})"
        )

    # Statements ----------------------------------------------------------------------------

    def _line(self, depth: int, text: str) -> None:
        self.lines += broken(text, depth)

    def _written(self, expr: Extent) -> str:
        return written(expr, self.names.of)

    def _shape(self, extents: Sequence[Extent]) -> str:
        inside = ", ".join(map(self._written, extents))
        return f"({inside},)" if len(extents) == 1 else f"({inside})"

    def _block(self, body: s.Stmt, depth: int) -> None:
        for stmt in body.body if isinstance(body, s.Seq) else (body,):
            self._statement(stmt, depth)

    def _inner(self, body: s.Stmt, depth: int) -> None:
        start = len(self.lines)
        with self.names.scope():
            if self._shows_first(body):
                self._line(depth, "pass")  # the block counts: texts of IR show in which one
            self._block(body, depth)
        if len(self.lines) == start:
            self._line(depth, "pass")

    def _shows_first(self, body: s.Stmt) -> bool:
        """Whether a block of one statement is the first to show a view of shared memory."""
        if not isinstance(body, s.Seq) or len(body.body) != 1 or isinstance(body.body[0], s.Seq):
            return False
        shown = {b for child in _own(body.body[0]) for b in nodes_of(child, Buffer)}
        return not shown <= self.seen

    def _tell(self, stmt: s.Stmt, depth: int) -> None:
        """Say where a statement was written, if that is another place than before."""
        span = stmt.span
        if span is None and isinstance(stmt, s.Evaluate):
            span = stmt.value.span
        key = None if span is None else (span.file, span.line)
        told = None if self.place is None else (self.place.file, self.place.line)
        if key is None:
            if self.is_told and (told is None or told == self.shown):
                return
        elif key == told:
            self.shown = key
            return
        self.place, self.is_told = span, True
        self.shown = key or self.shown
        text = "" if span is None else f'"{PurePath(span.file).name}", {span.line}'
        self._line(depth, f"T.line({text})")

    def _statement(self, stmt: s.Stmt, depth: int) -> None:
        if not isinstance(stmt, s.Seq):
            for part in _own(stmt):
                self._tensors_at(part, depth)
            self._tell(stmt, depth)
            self.seen |= {b for child in _own(stmt) for b in nodes_of(child, Buffer)}
        w = self._written
        match stmt:
            case s.Seq():
                self._line(depth, "with T.block():")
                self._inner(stmt, depth + 1)
            case s.Let(var=var, value=value):
                text = w(value)
                name, words = self.names.bind(var)
                if value.dtype != var.dtype:
                    raise no_form(f"{var.name!r} of another type than its value")
                self._line(depth, f"{name} = T.let({text}{_words(words)})" if words else
                           f"{name} = {text}")  # fmt: skip
            case s.Alloc(buffer=buffer):
                self._alloc(buffer, depth)
                self._views_of(buffer, depth)
            case s.Store(buffer=buffer, indices=indices, value=value):
                place = self._written_place(buffer, indices)
                self._line(depth, f"{place} = {w(value)}")
            case s.Evaluate(value=value):
                self._line(depth, w(value))
            case s.For():
                self._for(stmt, depth)
            case s.While(cond=cond, body=body):
                self._line(depth, f"while {w(cond)}:")
                self._inner(body, depth + 1)
            case s.If():
                self._if(stmt, depth, "if")
            case s.Break():
                self._line(depth, "break")
            case s.Continue():
                self._line(depth, "continue")
            case s.Check(cond=cond, message=message, kind=kind):
                if kind is s.CheckKind.ASSUME:
                    self._line(depth, f"T.assume({w(cond)}, {message!r})")
                else:
                    self._line(depth, f"assert {w(cond)}, {message!r}")
            case _:
                raise no_form(f"a statement of kind {type(stmt).__name__}")

    def _written_place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        return self._written(Load(buffer, indices))

    def _alloc(self, buffer: Buffer, depth: int) -> None:
        name, words = self.names.bind(buffer)
        if buffer.origin is not None or buffer.strides is not None:
            raise no_form(f"the buffer {buffer.name!r}")
        if buffer.scope is Scope.VAR:
            self._line(depth, f'{name} = T.alloc_var("{buffer.dtype}"{_words(words)})')
        elif buffer.scope in (Scope.LOCAL, Scope.REDUCER):
            if buffer.scope is not Scope.LOCAL:
                words = {**words, "scope": buffer.scope.value}
            shape = self._shape(buffer.shape)
            self._line(depth, f'{name} = T.alloc_local({shape}, "{buffer.dtype}"{_words(words)})')
        else:
            raise no_form(f"an allocation in {buffer.scope.value}")

    def _views_of(self, base: Buffer, depth: int) -> None:
        """Declare the views of a buffer, and the views of these."""
        for view in dict.fromkeys(nodes_of(self.body, Buffer)):
            if view.origin is base:
                self._view(view, self.names.of(base), depth)
                self._views_of(view, depth)

    def _view(self, view: Buffer, base: str, depth: int) -> None:
        name, words = self.names.bind(view)
        if isinstance(view.origin, Expr) and view.scope is not Scope.GLOBAL:
            words = {**words, "scope": view.scope.value}
        shape = self._shape(view.shape)
        self._line(depth, f'{name} = T.view({base}, 0, {shape}, "{view.dtype}"{_words(words)})')

    def _tensors_at(self, part: Node, depth: int) -> None:
        """Declare tensors at addresses where they are first seen."""
        for buffer in dict.fromkeys(nodes_of(part, Buffer)):
            if isinstance(buffer.origin, Expr) and buffer not in self.names:
                self._view(buffer, self._written(buffer.origin), depth)

    def _for(self, loop: s.For, depth: int) -> None:
        w = self._written
        bounds = [w(loop.start), w(loop.stop), w(loop.step)]
        dtype = loop.var.dtype
        if any(e.dtype != dtype for e in (loop.start, loop.stop, loop.step)):
            raise no_form(f"the loop over {loop.var.name!r}")
        if bounds[2] == w(const(1, dtype)):
            bounds.pop()
            if bounds[0] == w(const(0, dtype)):
                bounds.pop(0)
        with self.names.scope():
            name, words = self.names.bind(loop.var)
            self._line(
                depth, f"for {name} in T.{loop.kind.value}({', '.join(bounds)}{_words(words)}):"
            )
            self._inner(loop.body, depth + 1)

    def _if(self, stmt: s.If, depth: int, word: str) -> None:
        self._line(depth, f"{word} {self._written(stmt.cond)}:")
        self._inner(stmt.then, depth + 1)
        match stmt.otherwise:
            case None:
                return
            case s.If() as otherwise:
                self._tensors_at(otherwise.cond, depth)
                self._if(otherwise, depth, "elif")
            case otherwise:
                self._line(depth, "else:")
                self._inner(otherwise, depth + 1)


def _launch_words(function: DeviceFunction, indices: dict[str, str]) -> list[str]:
    """Return what a launch says beside its extents, where that is not the usual."""
    renamed = {name: own for name, own in indices.items() if name != own}
    words = [f"cluster={function.launch.cluster!r}"] if function.launch.cluster else []
    words += [f"names={renamed!r}"] if renamed else []
    words += [f"resident={function.resident}"] if function.resident != 1 else []
    words += ["cooperative=True"] if function.cooperative else []
    words += [f"shared_bytes={function.shared_bytes}"] if function.shared_bytes else []
    return words


def _own(stmt: s.Stmt) -> list[Node]:
    """Return what a statement itself speaks of, without blocks in it."""
    blocks = (s.Seq, s.For, s.While, s.If)
    return [child for child in stmt.children() if not isinstance(child, blocks)]


def _promises(var: Var) -> list[str]:
    promised = var.contract or ANY_EXTENT
    told = [f"min={promised.low}"] if promised.low else []
    told += [] if promised.high is None else [f"max={promised.high}"]
    return told + ([f"multiple_of={promised.multiple_of}"] if promised.multiple_of > 1 else [])


def _words(words: dict[str, Any]) -> str:
    return "".join(f", {key}={_quoted(value)}" for key, value in words.items())


def _quoted(value: object) -> str:
    """Return the text of a constant, strings between double quotes as everywhere."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _plain(configs: dict[str, object]) -> str:
    for key, value in configs.items():
        if not isinstance(value, (bool, int, float, str, type(None))):
            raise no_form(f"the value of {key!r}")
    return repr(configs)


def _call_lines(start: str, words: Sequence[str], depth: int, end: str) -> list[str]:
    whole = f"{PAD * depth}{start}({', '.join(words)}){end}"
    if len(whole) <= WIDTH:
        return [whole]
    inside = [f"{PAD * (depth + 1)}{word}," for word in words]
    return [f"{PAD * depth}{start}(", *inside, f"{PAD * depth}){end}"]


def _dict_lines(key: str, entries: Sequence[str]) -> list[str]:
    if not entries:
        return []
    inside = [line for entry in entries for line in broken(f"{entry},", 3)]
    return [f"{PAD * 2}{key}=dict(", *inside, f"{PAD * 2}),"]
