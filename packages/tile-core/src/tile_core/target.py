"""Targets: which machine a kernel is compiled for, and who executes it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tile_core.errors import TargetError
from tile_core.records import dataclass

AUTO = "auto"
GPUS = ("cuda", "hip")
"""Kinds of machines that have memory of their own."""

KINDS_OF_OTHERS = {"llvm": "cpu", "c": "cpu", "rocm": "hip"}
"""Names that other tools give to the kinds of machine we know."""

_ARCH_KEYS = ("arch", "mcpu")
_DESCRIPTIVE_KEYS = frozenset({
    "device", "host", "keys", "kind", "l2_cache_size_bytes", "libs", "max_num_threads",
    "max_shared_memory_per_block", "max_threads_per_block", "model", "mtriple", "num-cores",
    "registers_per_block", "tag", "thread_warp_size",
})  # fmt: skip
"""Attributes of TVM targets that restate what the architecture already says."""

_NAME = r"[a-z][a-z0-9_]*"
_SPELLING = re.compile(rf"(?P<kind>{_NAME})(?::(?P<arch>[\w.+-]+))?(?:@(?P<executor>{_NAME}))?")
_HINT = "spell it kind[:arch][@executor], such as 'cpu', 'cpu:haswell', 'cuda:sm_90a' or 'auto'"


@dataclass(frozen=True, slots=True)
class Target:
    """A machine, spelt ``kind[:arch][@executor]``.

    Parameters
    ----------
    kind
        The backend's name: ``cpu``, ``cuda``, ``hip``.
    arch
        The machine within the kind, such as ``haswell`` or ``sm_90a``; empty means the
        machine at hand.
    executor
        Who runs the code when it is not the machine itself, such as ``sim``; else empty.

    Examples
    --------
    >>> str(Target("cuda", "sm_90a", "sim"))
    'cuda:sm_90a@sim'
    """

    kind: str
    arch: str = ""
    executor: str = ""

    @property
    def runs_on_host(self) -> bool:
        """Whether kernels work on tensors in host memory: on the CPU, and in every emulator."""
        return self.executor != "" or self.kind not in GPUS

    def __str__(self) -> str:
        arch = f":{self.arch}" if self.arch else ""
        executor = f"@{self.executor}" if self.executor else ""
        return f"{self.kind}{arch}{executor}"


def parse_target_spec(spec: object = None) -> Target:
    """Return the target meant by any accepted spelling, without asking whether it exists.

    Parameters
    ----------
    spec
        ``None`` or ``"auto"``; ``"kind[:arch][@executor]"``; a mapping or its JSON text,
        such as ``{"kind": "cuda", "arch": "sm_90"}``; flags after a kind, such as
        ``"cuda -arch=sm_90a"``; a TVM target; or a `Target`, returned as it is. ``llvm``
        and ``c`` mean ``cpu``, ``rocm`` means ``hip``.

    Raises
    ------
    TargetError
        If `spec` is none of these, or says something that would have to be ignored.

    Examples
    --------
    >>> parse_target_spec("cuda:sm_90a@sim")
    Target(kind='cuda', arch='sm_90a', executor='sim')
    >>> str(parse_target_spec({"kind": "llvm", "mcpu": "haswell"}))
    'cpu:haswell'
    >>> str(parse_target_spec("hip -mcpu=gfx942"))
    'hip:gfx942'
    """
    if spec is None:
        return Target(AUTO)
    if isinstance(spec, Target):
        return spec
    if isinstance(spec, str):
        return _from_text(spec.strip())
    if isinstance(spec, Mapping):
        return _from_attributes(spec.get("kind"), spec, spec)
    # A TVM target, recognised by its shape: this module must not import TVM.
    kind = getattr(getattr(spec, "kind", None), "name", None)
    attributes = getattr(spec, "attrs", None)
    if kind is not None and attributes is not None:
        return _from_attributes(kind, dict(attributes.items()), spec)
    raise TargetError(f"{spec!r} is not a target", hint=_HINT)


def _from_text(text: str) -> Target:
    if text.startswith("{"):
        return _from_json(text)
    if len(text.split()) > 1:
        return _from_flags(text)
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise TargetError(f"{text!r} is not a target", hint=_HINT)
    kind, arch, executor = match.groups(default="")
    if kind == AUTO and (arch or executor):
        raise TargetError(
            f"{text!r} asks for the machine at hand and describes it too",
            hint="write 'auto' alone, or name the kind of machine",
        )
    return Target(KINDS_OF_OTHERS.get(kind, kind), arch, executor)


def _from_json(text: str) -> Target:
    try:
        attributes = json.loads(text)
    except json.JSONDecodeError as error:
        raise TargetError(f"{text!r} is not JSON: {error}", hint=_HINT) from error
    return _from_attributes(attributes.get("kind"), attributes, text)


def _from_flags(text: str) -> Target:
    """Read ``kind -key=value -key value``."""
    kind, *words = text.replace("=", " ").split()
    if len(words) % 2 or not all(word.startswith("-") for word in words[::2]):
        raise TargetError(f"{text!r} is not a target", hint=_HINT)
    flags = {flag.lstrip("-"): value for flag, value in zip(words[::2], words[1::2], strict=True)}
    return _from_attributes(kind, flags, text)


def _from_attributes(kind: object, attributes: Mapping[Any, Any], spec: object) -> Target:
    if not isinstance(kind, str):
        raise TargetError(f"{spec!r} names no kind of machine", hint='write {"kind": "cuda", …}')
    unknown = sorted(str(k) for k in attributes if k not in _DESCRIPTIVE_KEYS | {*_ARCH_KEYS})
    if unknown:
        raise TargetError(
            f"target attributes {', '.join(unknown)} are not understood in {spec!r}",
            hint="name the machine with 'arch' or 'mcpu'; it implies its features",
        )
    named = [str(attributes[key]) for key in _ARCH_KEYS if attributes.get(key)]
    if len(named) > 1:
        raise TargetError(f"{spec!r} names two machines: {named[0]} and {named[1]}", hint=_HINT)
    arch = f":{named[0]}" if named else ""
    return _from_text(f"{kind}{arch}")
