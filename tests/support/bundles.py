"""Bundles whose machine code is no code: for tests of all that comes before a launch."""

from __future__ import annotations

from pathlib import Path

from tile_launch.bundle import Variant, write_bundle
from tile_launch.manifest import (
    Address,
    Condition,
    Launch,
    MachineRequirements,
    Manifest,
    Scalar,
    Tensor,
    Value,
)


def numbers(target: str = "cuda:sm_80", **changes: object) -> Manifest:
    """Return ``numbers(A: float32[m, 8], scale: float32) -> B: float32[m, 8]`` on m blocks."""
    family, _, name = target.partition(":")
    shape = ("m", 8)
    launch = Launch(
        name="numbers",
        symbol="numbers",
        grid=("m", 1, 1),
        block=(32, 1, 1),
        arguments=(
            Address(tensor="A"),
            Value(variable="scale", dtype="float32"),
            Address(tensor="B"),
            Value(variable="m", dtype="int32"),
        ),
        shared_bytes=1024,
    )
    told = {
        "kernel": "numbers",
        "machine": MachineRequirements(
            family=family, name=name, max_grid=(2**31 - 1, 65535, 65535)
        ),
        "parameters": (
            Tensor(name="A", dtype="float32", shape=shape, is_written=False),
            Scalar(name="scale", dtype="float32"),
            Tensor(name="B", dtype="float32", shape=shape),
        ),
        "symbols": {"m": "int32"},
        "steps": (launch,),
        "outputs": (2,),
        "conditions": (
            Condition(value="m", kind="grid", message="the grid's x extent m"),
            Condition(value=("<=", "m", 1000), kind="assume", message="m <= 1000"),
        ),
        "provenance": {"compiler": "by hand"},
    }
    return Manifest(**{**told, **changes})  # type: ignore[arg-type]


def bundle_of_numbers(path: Path, *targets: str) -> None:
    """Write a bundle of `numbers` for each of the targets, or for a CUDA GPU."""
    write_bundle(path, [Variant(numbers(t), b"\x7fELF code") for t in targets or ("cuda:sm_80",)])
