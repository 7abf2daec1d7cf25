"""Whether what the compiler made of a launch goes well in every order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_core.ir.node import Node, contains, nodes_of, rewrite, walk
from tile_core.ir.stmt import For, Launch, Let, Seq, While
from tile_core.ops.control import GROUP, Barrier, PingPongOrder
from tile_core.ops.gemm import Gemm
from tile_core.records import replace
from tile_core.testing.protocol.events import Violation
from tile_core.testing.protocol.model_checker import explore
from tile_core.testing.protocol.order_independence import prove
from tile_core.testing.protocol.program import always, meaning_of, program_of
from tile_core.testing.protocol.values import Scenario


def violation_of(
    before: Launch,
    after: Launch,
    scenario: Scenario,
    *,
    host: Sequence[Let] = (),
    is_asynchronous: Callable[[Gemm], bool] = always,
) -> Violation | None:
    """Return what can go wrong in some order, None if nothing can.

    The user wrote `before`, and `after` is what runs.

    Raises `OverflowError` if one order does not decide, and there are too many others.
    """
    in_clusters = replace(before, cluster=after.cluster)  # compilers may choose these
    meant = meaning_of(in_clusters, scenario, host=host)
    for launch in with_and_without_turns(after):
        made = program_of(launch, scenario, meant, host=host, is_asynchronous=is_asynchronous)
        proved = prove(made)
        found = proved.violation
        if found is None and proved.unordered is not None:
            groups = program_of(
                launch,
                scenario,
                meant,
                host=host,
                is_asynchronous=is_asynchronous,
                unit=GROUP,
            )
            found = explore(groups).violation
        if found is not None:
            return found
    return None


def with_and_without_turns(launch: Launch) -> list[Launch]:
    """Return the launch, and what it is where groups do not take turns.

    Turns are given up in loops in which all threads meet (`tile_core.simt.thread_subsets`): whoever
    had the turn would wait for those who wait for it. What is right must not need them.
    """
    if not contains(launch.body, PingPongOrder):
        return [launch]

    def rule(node: Node) -> Node:
        return Seq(()) if isinstance(node, PingPongOrder) else node

    without = rewrite(launch, rule)
    loops = [*nodes_of(launch.body, For, While)]
    kinds = [{type(n) for n in walk(loop)} for loop in loops]
    given_up = any({PingPongOrder, Barrier} <= kind for kind in kinds)
    return [without] if given_up else [launch, without]
