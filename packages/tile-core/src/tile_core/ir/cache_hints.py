"""Hints for what the second-level cache keeps, as calls of the device header carry them.

A hint is a constant behind the template arguments of a call, and may be left out:
``device("tensor_load", 2, *hint("evict_first"), …)`` prints as ``tile::tensor_load<2,
tile::evict_first>(…)``. It says how soon the bytes of the access are given up for others:
first, last, or like any. Source: PTX ISA, "createpolicy", ".level::cache_hint".
"""

from __future__ import annotations

from tile_core.errors import InternalError
from tile_core.ir.expr import Const, Expr

FEATURE = "cache_hint"
"""What machines have whose loads and stores take such hints."""

POLICIES = ("evict_first", "evict_last", "evict_normal")
"""What programs may ask for; a call has its number, from 1 on."""

_HINTED = """
    load store async_copy tensor_load tensor_load_multicast tensor_store tensor_reduce_add
    tensor_reduce_min tensor_reduce_max bulk_load bulk_store bulk_reduce_add
"""
HINTED = frozenset(_HINTED.split())
"""Calls that take a hint. Its number stands in front of an address or a map, never a constant."""


def hint(policy: str | None) -> tuple[int, ...]:
    """Return the arguments that say `policy`, none where there is no hint.

    Raises `InternalError` if there is no such hint; the language knows them all.
    """
    if policy is None:
        return ()
    if policy not in POLICIES:
        raise InternalError(f"no cache does {policy!r}")
    return (POLICIES.index(policy) + 1,)


def hint_name(name: str, arg: Expr) -> str | None:
    """Return the policy that an argument of the call `name` stands for, if it is one."""
    if name not in HINTED or not isinstance(arg, Const):
        return None
    return POLICIES[int(arg.value) - 1]
