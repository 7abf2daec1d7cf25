"""Manifests as JSON and back; what is read is checked completely before it is used."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn, TypeVar

from tile_launch import expressions
from tile_launch.dtypes import bits_of
from tile_launch.errors import InvalidBundle, NewerBundle
from tile_launch.expressions import Expression
from tile_launch.manifest import (
    SCHEMA,
    Address,
    Argument,
    Check,
    Condition,
    Launch,
    Let,
    MachineRequirements,
    Manifest,
    Parameter,
    Scalar,
    Status,
    Step,
    Tensor,
    TensorMap,
    Value,
    Workspace,
)
from tile_launch.verify_manifest import check

_R = TypeVar("_R")
_KINDS = {
    Tensor: "tensor", Scalar: "scalar", Address: "address", Value: "value", TensorMap: "map",
    Status: "status",
    Let: "let", Check: "check", Launch: "launch",
}  # fmt: skip
"""Records that stand where others could: JSON says which."""


def to_json(manifest: Manifest) -> dict[str, Any]:
    """Return a manifest as data that JSON can say."""
    return {"schema": SCHEMA, **_data(manifest)}


def _data(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        kind = _KINDS.get(type(value))
        found = {} if kind is None else {"kind": kind}
        return found | {f.name: _data(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_data(item) for item in value]
    return dict(value) if isinstance(value, dict) else value


def text_of_manifest(manifest: Manifest) -> str:
    """Return the text of a manifest: the same manifest gives the same text."""
    return json.dumps(to_json(manifest), indent=1, sort_keys=True, allow_nan=False) + "\n"


def parse_manifest(text: str | bytes, where: str = "the manifest") -> Manifest:
    """Return the manifest that `text` says."""
    return from_json(load_json(text, where), where)


def load_json(text: str | bytes, where: str) -> Any:
    """Return what a JSON text says."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidBundle(f"{where} is not JSON: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def check_schema(data: Any, where: str) -> None:
    """Refuse what was written in a form that is not known."""
    version = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InvalidBundle(f"{where} does not say which form it has")
    if version > SCHEMA:
        raise NewerBundle(
            f"{where} has form {version}; this version of tile-launch reads up to {SCHEMA}",
            hint="pip install --upgrade tile-launch",
        )


def from_json(data: Any, where: str = "the manifest") -> Manifest:
    """Return the manifest that `data` says, as read from JSON."""
    check_schema(data, where)
    reader = Reader(data, where)
    found = Manifest(
        kernel=reader.text("kernel"),
        machine=reader.record("machine", _machine),
        parameters=reader.records("parameters", _parameter),
        steps=reader.records("steps", _step),
        symbols=reader.texts("symbols"),
        workspaces=reader.records("workspaces", _workspace),
        outputs=reader.numbers("outputs"),
        conditions=reader.records("conditions", _condition),
        failures=reader.strings("failures"),
        prints=reader.flag("prints"),
        provenance=reader.texts("provenance"),
    )
    check(found, where)
    return found


class Reader:
    """Reads the members of a JSON object, and says where what it refuses stands."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, dict):
            raise InvalidBundle(f"{where} is no object")
        self.data, self.where = data, where

    def _get(self, name: str, kind: type) -> Any:
        value = self.data.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            told = "is missing" if name not in self.data else f"is no {kind.__name__}"
            raise InvalidBundle(f"{self.where}: {name} {told}")
        return value

    def text(self, name: str) -> str:
        """Return a text."""
        return str(self._get(name, str))

    def dtype(self, name: str = "dtype") -> str:
        """Return the name of an element type."""
        value = self.text(name)
        if not 0 < bits_of(value) <= 64:
            raise InvalidBundle(f"{self.where}: {value!r} is no element type")
        return value

    def number(self, name: str) -> int:
        """Return an integer that is not negative."""
        value = int(self._get(name, int))
        if not 0 <= value < 1 << 63:
            raise InvalidBundle(f"{self.where}: {name} cannot be {value}")
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value."""
        return bool(self._get(name, bool))

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return integers that are not negative."""
        values = self._get(name, list)
        return tuple(
            Reader({"item": value}, f"{self.where}: {name}").number("item") for value in values
        )

    def strings(self, name: str) -> tuple[str, ...]:
        """Return texts in their order."""
        found = self._get(name, list)
        if not all(isinstance(value, str) for value in found):
            raise InvalidBundle(f"{self.where}: {name} holds what is no text")
        return tuple(found)

    def texts(self, name: str) -> dict[str, str]:
        """Return texts by their names."""
        found = self._get(name, dict)
        if not all(isinstance(value, str) for value in found.values()):
            raise InvalidBundle(f"{self.where}: {name} holds what is no text")
        return dict(found)

    def expression(self, name: str) -> Expression:
        """Return an expression."""
        if name not in self.data:
            raise InvalidBundle(f"{self.where}: {name} is missing")
        return expressions.read(self.data[name], f"{self.where}: {name}")

    def expressions(self, name: str) -> tuple[Expression, ...]:
        """Return several expressions."""
        values = self._get(name, list)
        return tuple(expressions.read(value, f"{self.where}: {name}") for value in values)

    def record(self, name: str, make: Callable[[Reader], _R]) -> _R:
        """Return what `make` makes of an object."""
        return make(Reader(self.data.get(name), f"{self.where}: {name}"))

    def records(self, name: str, make: Callable[[Reader], _R]) -> tuple[_R, ...]:
        """Return what `make` makes of each object of a list."""
        found = self._get(name, list)
        return tuple(
            make(Reader(item, f"{self.where}: {name}[{number}]"))
            for number, item in enumerate(found)
        )

    def unknown(self, what: str) -> InvalidBundle:
        """Return the error that nothing is known of this kind of record."""
        return InvalidBundle(f"{self.where}: {self.data.get('kind')!r} is no {what}")


def _machine(r: Reader) -> MachineRequirements:
    return MachineRequirements(
        family=r.text("family"),
        name=r.text("name"),
        max_grid=r.numbers("max_grid"),
        features=r.strings("features"),
    )


def _parameter(r: Reader) -> Parameter:
    match r.data.get("kind"):
        case "scalar":
            return Scalar(name=r.text("name"), dtype=r.dtype())
        case "tensor":
            strides = None if r.data.get("strides") is None else r.expressions("strides")
            shape = r.expressions("shape")
            if strides is not None and len(strides) != len(shape):
                raise InvalidBundle(f"{r.where}: {len(strides)} strides for {len(shape)} axes")
            return Tensor(
                name=r.text("name"),
                dtype=r.dtype(),
                shape=shape,
                strides=strides,
                alignment=r.number("alignment"),
                is_used=r.flag("is_used"),
                is_written=r.flag("is_written"),
            )
    raise r.unknown("parameter")


def _workspace(r: Reader) -> Workspace:
    return Workspace(name=r.text("name"), dtype=r.dtype(), shape=r.expressions("shape"))


def _condition(r: Reader) -> Condition:
    return Condition(value=r.expression("value"), kind=r.text("kind"), message=r.text("message"))


def _step(r: Reader) -> Step:
    match r.data.get("kind"):
        case "let":
            return Let(variable=r.text("variable"), value=r.expression("value"))
        case "check":
            return Check(condition=r.expression("condition"), message=r.text("message"))
        case "launch":
            return _launch(r)
    raise r.unknown("step")


def _launch(r: Reader) -> Launch:
    grid, block = r.expressions("grid"), r.numbers("block")
    if not len(grid) == len(block) == 3 or 0 in block:
        raise InvalidBundle(f"{r.where}: grids and blocks have three extents")
    return Launch(
        name=r.text("name"),
        symbol=r.text("symbol"),
        grid=(grid[0], grid[1], grid[2]),
        block=(block[0], block[1], block[2]),
        arguments=r.records("arguments", _argument),
        cluster=r.numbers("cluster"),
        shared_bytes=r.number("shared_bytes"),
        may_overlap=r.flag("may_overlap"),
        cooperative=r.flag("cooperative"),
    )


def _argument(r: Reader) -> Argument:
    match r.data.get("kind"):
        case "address":
            return Address(tensor=r.text("tensor"))
        case "value":
            return Value(variable=r.text("variable"), dtype=r.dtype())
        case "map":
            return _tensor_map(r)
        case "status":
            return Status()
    raise r.unknown("argument")


def _tensor_map(r: Reader) -> TensorMap:
    extents, strides = r.expressions("extents"), r.expressions("strides")
    box, steps = r.numbers("box"), r.numbers("element_strides")
    if not (1 <= len(extents) <= 5 and len(extents) == len(box) == len(steps)):
        raise InvalidBundle(f"{r.where}: {len(extents)} dimensions, and boxes of {len(box)}")
    if len(strides) != len(extents) - 1:
        raise InvalidBundle(f"{r.where}: {len(strides)} strides for {len(extents)} dimensions")
    return TensorMap(
        name=r.text("name"),
        tensor=r.text("tensor"),
        dtype=r.dtype(),
        offset=r.expression("offset"),
        extents=extents,
        strides=strides,
        box=box,
        element_strides=steps,
        swizzle=r.number("swizzle"),
        interleave=r.number("interleave"),
        fill=r.text("fill"),
        l2_promotion=r.number("l2_promotion"),
    )
