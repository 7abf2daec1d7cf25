"""Which variant of a bundle runs on the machine at hand, and the kernel in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tile_launch import cpu_driver
from tile_launch.bundle import Bundle, Variant, read_bundle
from tile_launch.driver import Driver
from tile_launch.errors import NoVariant, TileError
from tile_launch.launcher import as_it_is, callable_of
from tile_launch.manifest_json import parse_manifest
from tile_launch.streams import allocator, device_of, stream_reader

if TYPE_CHECKING:
    from tile_launch.kernel import LoadedKernel


def _cuda() -> Driver:
    from tile_launch import cuda_driver

    return cuda_driver.installed_driver()


def _hip() -> Driver:
    from tile_launch import hip_driver

    return hip_driver.installed_driver()


_GPUS: dict[str, Callable[[], Driver]] = {"cuda": _cuda, "hip": _hip}


def load(path: str | os.PathLike[str], target: str | None = None) -> LoadedKernel:
    """Return the kernel of a bundle, ready to run on this machine.

    Parameters
    ----------
    path
        Of the bundle.
    target
        A variant, such as ``"cuda:sm_80"``, or a kind of machine, such as ``"cpu"``. None
        takes the best variant for the first GPU that has one, else for the processor.

    Raises
    ------
    NoVariant
        If no variant runs here; it says why not.
    InvalidBundle, NewerBundle
        If the file cannot be understood.
    MissingFeature
        If the driver that the variant needs cannot be used.
    """
    variant = choose(read_bundle(path), target, os.fspath(path))
    from tile_launch.kernel import LoadedKernel

    return LoadedKernel(variant.manifest, runner_of(variant), variant.code, loaded_again)


def loaded_again(text: str, code: bytes) -> LoadedKernel:
    """Return a kernel that was loaded in another process.

    A machine that cannot run it says so when it is called.
    """
    from tile_launch.kernel import LoadedKernel

    variant = Variant(parse_manifest(text), code)
    try:
        run = runner_of(variant)
    except TileError as fault:
        run = partial(_refuse, fault)
    return LoadedKernel(variant.manifest, run, code, loaded_again)


def _refuse(fault: TileError, *args: object) -> None:
    raise fault.with_traceback(None)


def runner_of(
    variant: Variant, told: Callable[[TileError], Exception] = as_it_is
) -> Callable[..., None]:
    """Return ``run(*args)``: one checked argument per parameter, outputs among them."""
    manifest, code = variant.manifest, variant.code
    family = manifest.machine.family
    if family == "cpu":
        driver: Driver = cpu_driver.open_library(manifest, code)
        streams, places = _the_only_one, _the_only_one
    else:
        driver = _GPUS[family]()
        streams, places = stream_reader(family), device_of
    return callable_of(manifest, code, driver, streams, places, allocator(driver.allocate), told)


def _the_only_one(*of: Any) -> int:
    """Return the number of the processor, and of its stream."""
    return 0


def choose(bundle: Bundle, target: str | None = None, where: str = "the bundle") -> Variant:
    """Return the variant for the machine at hand."""
    wanted = [v for v in bundle.variants if _is_wanted(v, target)]
    reasons = {}
    fitting = []
    for variant in wanted:
        reason = reason_against(variant)
        if reason is None:
            fitting.append(variant)
        reasons[variant.target] = reason or ""
    if not fitting and target is not None and reasons:
        told = "; ".join(f"for {name} cannot run here: {why}" for name, why in reasons.items())
        raise NoVariant(
            f"the variant of {where} {told}",
            hint="run it on a machine that has this, or save a variant for this one: "
            "kernel.save(path, targets=['cpu'])",
        )
    if not fitting:
        inside = ", ".join(v.target for v in bundle.variants)
        told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise NoVariant(
            f"{where} has no variant for {target or 'this machine'}; it has {inside}"
            + (f" ({told})" if told else ""),
            hint=f"save one: kernel.save(path, targets=[{target or 'cpu'!r}])",
        )
    return max(fitting, key=_rank)


def _is_wanted(variant: Variant, target: str | None) -> bool:
    machine = variant.manifest.machine
    return target is None or target in (machine.target, machine.family)


def reason_against(variant: Variant) -> str | None:
    """Return why a variant cannot run on this machine; None if it can."""
    machine = variant.manifest.machine
    if machine.family == "cpu":
        lacking = cpu_driver.missing_features(variant.manifest)
        return f"the processor lacks {', '.join(lacking)}" if lacking else None
    try:
        driver = _GPUS[machine.family]()
        if driver.runs(machine.name):
            return None
        return f"the GPU is {driver.architecture()}"
    except TileError as error:
        return error.message


def _rank(variant: Variant) -> tuple[bool, int, str]:
    """Order variants that run here: GPUs before the processor, then the most of instructions."""
    machine = variant.manifest.machine
    is_gpu = machine.family != "cpu"
    return is_gpu, len(machine.features), machine.name
