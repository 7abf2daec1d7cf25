"""Every product of a warpgroup becomes its one instruction, with registers that stay in place."""

from __future__ import annotations

import re
import zlib

import pytest

from support.cuda_header import printed, ptx
from support.nvrtcs import NVRTCS, machine_code
from tile_core.errors import ToolchainError
from tile_cuda.machine_code import compile_source
from tile_cuda.wgmma_shapes import shape_flags

COLUMNS = range(8, 257, 8)
FORMS = ("ss", "ss_set", "rs", "rs_set")
FLOAT8 = ("tile::e4m3", "tile::e5m2")
TYPES = [
    *(("float", t, t) for t in ("half_t", "bfloat16_t", "float")),
    ("half_t", "half_t", "half_t"),
    *((sums, a, b) for sums in ("float", "half_t") for a in FLOAT8 for b in FLOAT8),
    *(("int", a, b) for a in ("tile::i8", "tile::u8") for b in ("tile::i8", "tile::u8")),
]
SHORT = {"half_t": "f16", "bfloat16_t": "bf16", "tile::e4m3": "e4m3", "tile::e5m2": "e5m2",
         "tile::i8": "s8", "tile::u8": "u8"}  # fmt: skip
MEMORY = {"float": "F", "half_t": "H", "int": "I"}
DEPTH = {"half_t": 16, "bfloat16_t": 16, "float": 8}


def product(form: str, n: int, sums: str, a: str, b: str, ta: int = 0, tb: int = 0) -> str:
    """Statements that multiply and store a sum; each text has a place of its own to store it."""
    place = hash_of(form, n, sums, a, b)
    left, right = (
        f"tile::wgmma_operand<128, 16, 1024>(tile::smem<{t}>({at}, 8192), n)"
        for t, at in ((a, 0), (b, 16384))
    )
    templates = f"{n}, {tb}" if form.startswith("rs") else f"{n}, {ta}, {tb}"
    lines = [f"tile::frag<{sums}, {n // 2}> d;"]
    if form.startswith("rs"):
        count = DEPTH.get(a, 32) // 2
        lines.append(f"tile::frag<{a}, {count}> r;")
        lines.append(f"tile::load<{count}>(r, tile::smem<{a}>(0, 8192) + (tid * {count}));")
        left = "r"
    if not form.endswith("set"):
        lines.append(f"const {sums} first = {MEMORY[sums]}[{place}];")
        lines.append(f"TILE_UNROLL for (int i = 0; i < {n // 2}; ++i) d[i] = first;")
        lines.append(f"tile::wgmma_pin<{n // 2}>(d);")
    lines += [
        "tile::wgmma_fence();",
        f"tile::wgmma_{form}<{templates}>(d, {left}, {right});",
        "tile::wgmma_commit();",
        "tile::wgmma_wait<0>();",
        f"tile::wgmma_pin<{n // 2}>(d);",
        f"tile::store<2>({MEMORY[sums]} + {place}, d + {n // 2 - 2});",
    ]
    return "{\n" + "\n".join(lines) + "\n}\n"


def hash_of(*what: object) -> int:
    """An even number below 2 ** 20 that hardly any other product has."""
    return zlib.crc32(repr(what).encode()) >> 12 & ~1


def opcode(n: int, sums: str, a: str, b: str) -> str:
    """The instruction in machine code, without its operands."""
    depth = DEPTH.get(a, 32)
    if sums == "int":
        return f"IGMMA.64x{n}x{depth}.{SHORT[a].upper()}.{SHORT[b].upper()}"
    wide = "F32" if sums == "float" else "F16"
    if a in FLOAT8:
        return f"QGMMA.64x{n}x{depth}.{wide}.{SHORT[a].upper()}.{SHORT[b].upper()}"
    suffix = {"bfloat16_t": ".BF16", "float": ".TF32"}.get(a, "")
    return f"HGMMA.64x{n}x{depth}.{wide}{suffix}"


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_every_type_in_every_form(form, nvrtc):
    bodies = [product(form, 32, *types) for types in TYPES]
    code = machine_code("".join(bodies), nvrtc)
    assert not re.search(r"C75\d\d", code.log)
    assert code.spills == 0
    for types in TYPES:
        assert code.counts[opcode(32, *types)] == 1, types
        left = "R" if form.startswith("rs") else "gdesc"
        assert re.search(rf"{re.escape(opcode(32, *types))} \S+ {left}", code.text), types


LITERALS = "-DTILE_WGMMA_LITERALS"
"""As for compilers before CUDA 12.6, which paste no texts into assembly."""


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("form", FORMS)
def test_old_compilers_get_the_same_instructions(form):
    rows = [(32, *types, 0, 0) for types in TYPES]
    turned = [(ta, tb) for ta in (0, 1) for tb in (0, 1) if ta == 0 or form.startswith("ss")]
    rows += [(32, *TYPES[0], ta, tb) for ta, tb in turned]
    body = "".join(product(form, *row) for row in rows)
    found = []
    for flags in ((), (LITERALS,)):
        text = ptx(body, "sm_90a", *shape_flags(body), *flags)
        lines = re.findall(r"(setp\.ne\.b32 p, \d, 0;)\s+(wgmma\.mma_async[^;]*;)", text)
        found.append([re.sub(r"%\w+", "r", " ".join(line)) for line in lines])
    assert found[0] == found[1]
    assert len(found[0]) == len(rows)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("nvrtc", NVRTCS, ids=str)
def test_old_compilers_get_the_same_machine_code(nvrtc):
    body = "".join(product(form, 48, *TYPES[1]) for form in FORMS)
    usual, literal = (machine_code(body, nvrtc, "sm_90a", *flags) for flags in ((), (LITERALS,)))
    assert usual.counts == literal.counts
    assert sum(n for o, n in literal.counts.items() if "GMMA" in o) == len(FORMS)


def several(form: str, steps: int, a: str = "half_t") -> str:
    """Statements that multiply over several steps: four side by side, the next ones far away."""
    chosen = f"16, 0, {steps}" if form.startswith("rs") else f"16, 0, 0, {steps}"
    left, right = (
        f"tile::wgmma_operand<128, 16, 1024, 2, 4, 512>(tile::smem<{a}>({at}, 16384), n)"
        for at in (0, 16384)
    )
    count = steps * DEPTH.get(a, 32) // 2
    return (
        f"tile::frag<{a}, {count}> r; tile::frag<float, 8> d;\n"
        f"TILE_UNROLL for (int i = 0; i < {count // 8}; ++i)"
        f" tile::load<8>(r + i * 8, tile::smem<{a}>(0, 16384) + (tid * {count} + i * 8));\n"
        "TILE_UNROLL for (int i = 0; i < 8; ++i) d[i] = F[i];\ntile::wgmma_pin<8>(d);\n"
        f"tile::wgmma_{form}<{chosen}>(d, {'r' if form.startswith('rs') else left}, {right});\n"
        "tile::wgmma_pin<8>(d); tile::store<2>(F, d + 2);"
    )


def told(text: str) -> list[tuple[str, str, str]]:
    """Return what each instruction is told: whether there are sums before, its A and its B.

    Of operands in shared memory the units of 16 bytes behind the tile, of others the registers.
    """
    added = {m[1]: int(m[2]) for m in re.finditer(r"add\.s32 \t(%r\d+), %r\d+, (\d+);", text)}
    wide = {m[1]: added[m[2]] for m in re.finditer(r"cvt\.u64\.u32 \t(%rd\d+), (%r\d+);", text)}
    units = {
        m[1]: str(wide[m[2]] - (1 << 16))
        for m in re.finditer(r"or\.b64  \t(%rd\d+), (%rd\d+), \d+;", text)
    }
    found, truth = [], ""
    for line in re.finditer(r"setp\.ne\.b32 p, (\d), 0;|wgmma\.mma_async[^;]*;", text):
        if line[1]:
            truth = line[1]
            continue
        a, b = re.search(r"\}, (\{.*\}|%rd\d+), (%rd\d+), p", line[0]).groups()
        found.append((truth, units.get(a, a), units[b]))
    return found


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("flags", [(), (LITERALS,)], ids=["usual", "literal"])
@pytest.mark.parametrize("steps", [2, 3, 4, 8])
@pytest.mark.parametrize("form", FORMS)
def test_steps_follow_each_other(form, steps, flags):
    body = several(form, steps)
    text = ptx(body, "sm_90a", *shape_flags(body), *flags)
    assert text.count("// begin inline asm\n\t{") == (3 if steps == 3 else 1)
    found = told(text)
    places = ["0", "2", "4", "6", "512", "514", "516", "518"][:steps]
    assert [truth for truth, _, _ in found] == ["0" if "set" in form else "1"] + ["1"] * (steps - 1)
    assert [b for _, _, b in found] == places
    if form.startswith("ss"):
        assert [a for _, a, _ in found] == places
        return
    loaded = ", ".join(re.findall(r"ld\.shared\.v4\.\w+ \t\{(.*)\}", text)).split(", ")
    assert [r for _, a, _ in found for r in a.strip("{}").split(", ")] == loaded
    assert len(set(loaded)) == 4 * steps


@pytest.mark.parametrize("a", ["float", "tile::e4m3"])
def test_steps_of_other_types_take_as_many_registers(a):
    body = several("rs", 4, a)
    text = ptx(body, "sm_90a", *shape_flags(body))
    assert [b for _, _, b in told(text)] == ["0", "2", "4", "6"]
    assert len({r for _, a, _ in told(text) for r in a.strip("{}").split(", ")}) == 16


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("sums", ["float", "half_t"])
@pytest.mark.parametrize("columns", [COLUMNS[:20], COLUMNS[20:]], ids=["narrow", "wide"])
def test_every_number_of_columns_is_assembled(columns, sums):
    bodies = [product("ss_set", n, sums, "half_t", "half_t") for n in columns]
    code = machine_code("".join(bodies), NVRTCS[0])
    assert {o for o in code.counts if "GMMA" in o} == {
        opcode(n, sums, "half_t", "half_t") for n in columns
    }


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("form", FORMS)
def test_every_number_of_columns_in_every_form(form):
    columns = COLUMNS if form.endswith("set") else COLUMNS[::5]  # lists are the same
    rows = [(n, *types) for types in (TYPES[0], TYPES[3]) for n in columns]
    rows += [(n, *TYPES[-1]) for n in columns if n in (8, 24) or n % 16 == 0]
    text = ptx("".join(product(form, *row) for row in rows), "sm_90a")
    for n, sums, a, _ in rows:
        kind = {"float": "f32", "half_t": "f16", "int": "s32"}[sums]
        found = re.search(
            rf"m64n{n}k{DEPTH.get(a, 32)}\.{kind}\.{SHORT[a]}\.{SHORT[a]} \{{([^}}]*)\}}", text
        )
        assert found, (n, sums)
        registers = found[1].split(", ")
        assert len(set(registers)) == len(registers) == (n // 4 if sums == "half_t" else n // 2)
    assert ".local" not in text


@pytest.mark.parametrize("ta", [0, 1])
@pytest.mark.parametrize("tb", [0, 1])
def test_operands_of_16_bits_lie_along_either_dimension(ta, tb):
    text = ptx(product("ss", 64, "float", "bfloat16_t", "bfloat16_t", ta, tb), "sm_90a")
    assert re.search(rf"k16\.f32\.bf16\.bf16 .*, p, 1, 1, {ta}, {tb};", text)
    text = ptx(product("rs_set", 64, "half_t", "half_t", "half_t", 0, tb), "sm_90a")
    assert re.search(rf"k16\.f16\.f16\.f16 .*, p, 1, 1, {tb};", text)
    assert re.search(r"setp\.ne\.b32 p, 0, 0;\s+wgmma", text)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (product("ss", 64, "float", "float", "float", 0, 1), "8-bit and tf32 operands lie along K"),
        (product("ss", 64, "int", "tile::i8", "tile::i8", 1, 0), "8-bit operands lie along K"),
        (product("ss", 40, "int", "tile::i8", "tile::u8"), "N of 8-bit integers is 8, 24 or"),
        (product("ss", 264, "float", "half_t", "half_t"), "N is a multiple of 8 up to 256"),
        (product("ss", 64, "half_t", "bfloat16_t", "bfloat16_t"), "no product of these element"),
    ],
)
@pytest.mark.parametrize("flags", [(), (LITERALS,)], ids=["usual", "literal"])
def test_products_that_do_not_exist_are_refused_in_words(call, words, flags):
    with pytest.raises(ToolchainError, match=re.escape(words)):
        ptx(call, "sm_90a", *(shape_flags(call) if flags else ()), *flags)


def test_only_what_a_kernel_calls_is_compiled():
    assert shape_flags("C[i] = 0.0f;") == ("-DTILE_WGMMA_SHAPES=",)
    (flag,) = shape_flags("tile::wgmma_rs_set<24, 0, 4>(…); tile::wgmma_ss<256, 0, 1>(…)")
    floats, words = (re.findall(rf"{name}\((.*?)\)", flag) for name in ("FLOATS", "WORDS"))
    assert floats == ["rs_set,4,12", "ss,1,128"]
    assert words == ["rs_set,4,12", "rs_set,4,6", "ss,1,128", "ss,1,64"]
    (flag,) = shape_flags("tile::wgmma_ss_set<64, 0, 0, 3>(…)")  # no statement has three steps
    assert re.findall(r"FLOATS\((.*?)\)", flag) == ["ss_set,1,32", "ss,1,32"]
    assert shape_flags("template <int S> void f() { tile::wgmma_rs<64, 0, S>(…); }") == ()
    assert shape_flags("template <int N> void f() { tile::wgmma_ss<N, 0, 0>(…); }") == ()


def test_the_users_own_templates_may_call_any_product():
    before = (
        "template <int N> TILE_DEVICE void multiply(float* d, const half_t* s) {\n"
        "const auto x = tile::wgmma_operand<128, 16, 1024>(s, 0);\n"
        "tile::wgmma_fence(); tile::wgmma_ss_set<N, 0, 0>(d, x, x);\n"
        "tile::wgmma_commit(); tile::wgmma_wait<0>(); }\n"
    )
    body = (
        "tile::frag<float, 4> d; multiply<8>(d, tile::smem<half_t>(0, 1024));"
        "tile::wgmma_pin<4>(d); F[tid] = d[1];"
    )
    code = compile_source(printed(body, before), "sm_90a", warn=False)
    assert "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " in code.assembly
