"""Random numbers per thread as arithmetic, for targets without a generator of their own."""

from __future__ import annotations

import math

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, call, cast, const, select
from tile_core.ir.expr import BinaryOp, Call, Expr, Load, Var
from tile_core.ir.node import Node, nodes_of, rewrite
from tile_core.ir.stmt import Alloc, Evaluate, For, Kernel, Launch, Let, Seq, Stmt, Store
from tile_core.ir.visitor import map_launches
from tile_core.ops.random_loops import DRAWS
from tile_core.records import replace

_INT64, _UINT32, _UINT64 = dtype_of("int64"), dtype_of("uint32"), dtype_of("uint64")
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def lower_random(kernel: Kernel) -> Kernel:
    """Return `kernel` with its ``rng_*`` intrinsics written out: Philox, four words, ten rounds.

    Before   rng_init(seed, sequence, 0);  let r = rng_rand()
    After    alloc state[3], words[6]
             state[0] = seed;  state[1] = sequence;  state[2] = 0
             words[0:4] = state[2] // 4, sequence;  words[4:6] = seed
             for round in range(10): words = …
             let i = state[2] % 4;  state[2] += 1;  let r = words[i]

    The state is private to threads, so the numbers are those of the reference interpreter.
    Draws stand alone, as the values of names; others are left for the target to refuse.
    Returns the same object when nothing is drawn.

    References
    ----------
    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """

    def drawn(launch: Launch) -> Launch:
        if any(map(_is_init, nodes_of(launch.body, Call))):
            return replace(launch, body=_Generator().run(launch.body))
        return launch

    return map_launches(kernel, drawn)


def _is_init(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "rng_init"


class _Generator:
    """The generator of one launch: seed, sequence and draws so far; and room for a draw."""

    def __init__(self) -> None:
        self.state = Buffer("random_state", (3,), _INT64, Scope.LOCAL)
        self.words = Buffer("random_words", (6,), _UINT32, Scope.LOCAL)

    def run(self, body: Stmt) -> Stmt:
        changed = rewrite(Seq((body,)), self.rule)
        return Seq((Alloc(self.state), Alloc(self.words), *changed.body))

    def rule(self, node: Node) -> Node:
        if not isinstance(node, Seq):
            if isinstance(node, Evaluate) and isinstance(node.value, Call) and _is_init(node.value):
                return Seq(tuple(self.start(node.value)))
            return node
        body: list[Stmt] = []
        for stmt in node.body:
            match stmt:
                case Let(value=Call(function=function)) if function in DRAWS:
                    body += self.drawn(stmt, function)
                case _:
                    body.append(stmt)
        return replace(node, body=tuple(body)) if len(body) != len(node.body) else node

    def start(self, init: Call) -> list[Stmt]:
        """Return the stores that begin a sequence."""
        return [
            Store(self.state, (const(k),), cast(value, "int64"), span=init.span)
            for k, value in enumerate(init.args)
        ]

    def drawn(self, stmt: Let, function: str) -> list[Stmt]:
        """Return the statements that name the next number."""
        if function == "rng_rand":
            statements, value = self.word()
        elif function == "rng_rand_float":
            statements, value = self.uniform()
        else:
            first, squared = self.uniform()
            radius = Var("radius", dtype_of("float64"))
            root = call("sqrt", call("log", cast(squared, "float64")) * const(-2.0, radius.dtype))
            second, turn = self.uniform()
            angle = cast(turn, "float64") * const(2 * math.pi, radius.dtype)
            statements = [*first, Let(radius, root), *second]
            value = cast(radius * call("cos", angle), "float32")
        return [*statements, replace(stmt, value=value)]

    def uniform(self) -> tuple[list[Stmt], Expr]:
        """Return a float32 in (0, 1]."""
        statements, word = self.word()
        wide = dtype_of("float64")
        scaled = cast(word, "float64") * const(2.0**-32, wide) + const(2.0**-33, wide)
        return statements, cast(scaled, "float32")

    def word(self) -> tuple[list[Stmt], Expr]:
        """Return the statements that draw 32 bits, and the expression that then has them."""
        seed, sequence, count = (Load(self.state, (const(k),)) for k in range(3))
        drawn, pick = Var("drawn", _INT64), Var("pick", _INT64)
        halves = [h for value in (drawn >> 2, sequence, seed) for h in (value, value >> 32)]
        fill = [
            Store(self.words, (const(k),), cast(half, "uint32")) for k, half in enumerate(halves)
        ]
        turn = Var("turn", dtype_of("int32"))
        rounds = For(turn, const(0), const(_ROUNDS), const(1), self.round())
        advance = Store(self.state, (const(2),), drawn + 1)
        before: list[Stmt] = [Let(drawn, count), Let(pick, drawn & 3), *fill, rounds, advance]
        words = [Load(self.words, (const(k),)) for k in range(4)]
        value: Expr = words[-1]  # by selection: registers have no numbers at run time
        for k in reversed(range(3)):
            value = select(binary(BinaryOp.EQ, pick, k), words[k], value)
        return before, value

    def round(self) -> Stmt:
        """Return one round: two products, their halves mixed with the key, the next key."""
        names = [Var(f"w{k}", _UINT32) for k in range(6)]
        reads = [Let(v, Load(self.words, (const(k),))) for k, v in enumerate(names)]
        products = [Var(f"p{k}", _UINT64) for k in range(2)]
        multiplied = [
            Let(product, cast(factor, "uint64") * const(multiplier, _UINT64))
            for product, factor, multiplier in zip(
                products, names[0:3:2], _MULTIPLIERS, strict=True
            )
        ]
        high = [cast(p >> const(32, _UINT64), "uint32") for p in products]
        low = [cast(p, "uint32") for p in products]
        results = [
            high[1] ^ names[1] ^ names[4],
            low[1],
            high[0] ^ names[3] ^ names[5],
            low[0],
            names[4] + const(_WEYL[0], _UINT32),
            names[5] + const(_WEYL[1], _UINT32),
        ]
        writes = [Store(self.words, (const(k),), value) for k, value in enumerate(results)]
        return Seq((*reads, *multiplied, *writes))
