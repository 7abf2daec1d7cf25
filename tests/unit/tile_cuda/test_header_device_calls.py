"""Every function that lowered programs may call is in the device header, as its instruction."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from support.cuda_header import compiled, printed
from tile_core.codegen.source import INCLUDE_DIRECTORY
from tile_core.ir.device_calls import ASYNC_CALLS, COUNTED_CALLS, DEVICE_CALLS
from tile_cuda.compiler import HEADERS
from tile_cuda.machine import DEVICE_NAMES, machine

ARCHITECTURES = ["sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"]

REGISTERS = "\n".join(
    f"tile::frag<{kind}, 32> {name};\nTILE_UNROLL\nfor (int r = 0; r < 32; ++r)"
    f" {name}[r] = {source}[r * 32 + tid];"
    for name, kind, source in (
        ("f", "float", "F"), ("d", "double", "D"), ("h", "half_t", "H"), ("b", "bfloat16_t", "B"),
        ("i", "int", "I"), ("s", "tile::i8", "S8"), ("u", "tile::u8", "U8"),
        ("e4", "tile::e4m3", "E4"), ("e5", "tile::e5m2", "E5"),
    )
) + "\ntile::sptr<half_t> shared = tile::smem<half_t>(1024, 8192);\n"  # fmt: skip

USES = "\n".join(
    f"TILE_UNROLL\nfor (int k = 0; k < 32; ++k) {source}[k * 32 + tid] = {name}[k];"
    for name, source in (
        ("f", "F"), ("d", "D"), ("h", "H"), ("b", "B"), ("i", "I"), ("s", "S8"), ("u", "U8"),
    )
)  # fmt: skip

# What a call is written like, the feature that it needs, and the PTX that it becomes.
CALLS: dict[str, list[tuple[str, str, str]]] = {
    "load": [
        ("tile::load<8>(h, H + (tid * 8))", "", r"ld\.global\.v4\.\w32"),
        ("tile::load<4>(f + 4, F + (tid * 4))", "", r"ld\.global\.v4\.\w32"),
        ("tile::load<2>(h + 8, shared + (tid * 2))", "", r"ld\.shared\.\w32"),
        ("tile::load<4>(u, U8 + (tid * 4))", "", r"ld\.global\.\w32"),
        ("tile::load<2>(d, D + (tid * 2))", "", r"ld\.global\.v(2\.\w64|4\.\w32)"),
    ],
    "store": [
        ("tile::store<4>(F + (tid * 4), f + 4)", "", r"st\.global\.v4\.\w32"),
        ("tile::store<8>(shared + (tid * 8), h + 8)", "", r"st\.shared\.v4\.\w32"),
        ("tile::store<16>(U8 + (tid * 16), u)", "", r"st\.global\.v4\.\w32"),
    ],
    "cp_async": [
        (f"tile::cp_async<{n}>(shared + (tid * 8), H + (tid * 8), tid < n)", "async_copy",
         rf"cp\.async\.c[ag]\.shared\.global\.L2::128B \[%r\d+\], \[%rd\d+\], {n}, %r\d+;")
        for n in (4, 8, 16)
    ],
    "cp_async_commit": [("tile::cp_async_commit()", "async_copy", r"cp\.async\.commit_group;")],
    "cp_async_wait": [("tile::cp_async_wait<2>()", "async_copy", r"cp\.async\.wait_group 2;")],
    "sync": [("tile::sync()", "", r"bar\.sync\s+0;")],
    "sync_warp": [("tile::sync_warp()", "", r"bar\.warp\.sync")],
    "bar_sync": [("tile::bar_sync(3, 64)", "", r"bar\.sync %r\d+, %r\d+;")],
    "bar_arrive": [("tile::bar_arrive(4, 64)", "", r"bar\.arrive %r\d+, %r\d+;")],
    "atomic_add": [
        ("tile::atomic_add<2>(H + (tid * 2), h)", "", r"atom.*\.add\.noftz\.f16x2"),
        ("tile::atomic_add<4>(F + (tid * 4), f)", "atomic_f32x4", r"red\.global\.add\.v4\.f32"),
        ("tile::atomic_add<2>(F + (tid * 2), f)", "atomic_f32x2", r"red\.global\.add\.v2\.f32"),
        ("tile::atomic_add<2>(B + (tid * 2), b)", "atomic_bf16x2", r"atom.*add.*\.bf16x2"),
        ("tile::atomic_add<3>(I + (tid * 3), i)", "", r"(atom|red).*\.add\.\w32"),
    ],
    "store_nibble": [
        ("tile::store_nibble(U8 + tid, (n & 1) * 4, u[0])", "", r"atom.*\.cas\.b32"),
    ],
    "quotient": [("f[0] = tile::quotient(f[1], f[2])", "", r"fma\.rn\.f64")],
    "dp4a": [
        ("tile::dp4a(i, s, s + 4)", "", r"dp4a\.s32\.s32"),
        ("tile::dp4a(i + 1, u, u + 4)", "", r"dp4a\.u32\.u32"),
    ],
}  # fmt: skip
for count in (1, 2, 4):
    for suffix, modifier in (("", ""), ("_trans", ".trans")):
        CALLS[f"ldmatrix_x{count}{suffix}"] = [
            (f"tile::ldmatrix_x{count}{suffix}(h, shared + (tid * 8))", "load_matrix",
             rf"ldmatrix\.sync\.aligned\.m8n8\.x{count}{modifier}\.shared\.b16")
        ]  # fmt: skip
        CALLS[f"stmatrix_x{count}{suffix}"] = [
            (f"tile::stmatrix_x{count}{suffix}(shared + (tid * 8), h)", "store_matrix",
             rf"stmatrix\.sync\.aligned\.m8n8\.x{count}{modifier}\.shared\.b16")
        ]  # fmt: skip

PTX_TYPES = {"f": "f32", "h": "f16", "b": "bf16", "d": "f64", "i": "s32", "s": "s8", "u": "u8",
             "e4": "e4m3", "e5": "e5m2", "t": "tf32"}  # fmt: skip
SIGNS = [(a, b) for a in "su" for b in "su"]
FLOAT8 = [(a, b) for a in ("e4", "e5") for b in ("e4", "e5")]
VOLTA = ("", "_row_row", "_col_col", "_col_row")
PRODUCTS = [
    *((f"m8n8k4{form}", sums, "h", "h", "mma_m8n8k4") for form in VOLTA for sums in "fh"),
    ("m8n8k4", "d", "d", "d", "mma_f64"),
    *(("m16n8k8", sums, "h", "h", "mma_m16n8k8_f16") for sums in "fh"),
    *(("m16n8k16", sums, "h", "h", "mma_m16n8k16") for sums in "fh"),
    *((shape, "f", "b", "b", "mma_bf16") for shape in ("m16n8k8", "m16n8k16")),
    *((shape, "f", "t", "t", "mma_tf32") for shape in ("m16n8k4", "m16n8k8")),
    *(("m8n8k16", "i", a, b, "mma_int8_m8n8k16") for a, b in SIGNS),
    *((f"m16n8k{k}", "i", a, b, "mma_int8_m16n8k32") for k in (16, 32) for a, b in SIGNS),
    *(("m16n8k64", "i", a, b, "mma_int4") for a, b in SIGNS),
    *(("m8n8k32", "i", a, b, "mma_int4_m8n8k32") for a, b in SIGNS),
    *((f"m16n8k{k}", c, a, b, "mma_fp8") for k in (16, 32) for c in "fh" for a, b in FLOAT8),
]
for shape, c, a, b, feature in PRODUCTS:
    left, right = ("f" if x == "t" else x for x in (a, b))
    types = [PTX_TYPES[x] for x in (c, a, b, c)]
    if feature.startswith("mma_int4"):
        types = [t.replace("8", "4") for t in types]
    name, _, orders = shape.partition("_")
    orders = orders or "row_col"
    CALLS.setdefault(f"mma_{shape}", []).append(
        (f"tile::mma_{shape}({c}, {left} + 8, {right} + 24)", feature,
         re.escape(f"mma.sync.aligned.{name}.{orders.replace('_', '.')}.{'.'.join(types)} "))
    )  # fmt: skip

# They assemble where they are not real; see tile_cuda.machine.
EXPANDED = {
    "mma_m8n8k4": "sm_70", "mma_int4_m8n8k32": "sm_75", "mma_int4": "sm_80", "mma_fp8": "sm_89",
}  # fmt: skip
EMULATED = {"async_copy", "store_matrix", "atomic_f32x2", "atomic_f32x4", "atomic_bf16x2"}


def exists(feature: str, arch: str) -> bool:
    """Whether the header has a call on `arch`, be it as an instruction or as several."""
    if not feature or feature in EMULATED or machine(arch).has(feature):
        return True
    first = EXPANDED.get(feature)
    return first is not None and arch >= first


def test_the_table_and_the_header_agree():
    of_others = {call.name for call in (*ASYNC_CALLS, *COUNTED_CALLS)}
    assert {DEVICE_NAMES.get(n, n) for n in set(DEVICE_CALLS) - of_others} <= set(CALLS)
    products = {f"mma_{p.shape}" for arch in ARCHITECTURES for p in machine(arch).mma_instructions}
    products |= {f"mma_m8n8k4_{order}" for order in ("row_row", "col_col", "col_row")}
    assert products <= set(CALLS)


def test_the_table_and_the_header_agree_on_constants():
    """Leading arguments are printed between angle brackets: as many as the header asks for."""
    text = "".join(path.read_text() for path in sorted(HEADERS.glob("**/*.h")))
    declared: dict[str, set[int]] = {}
    for parameters, name in re.findall(r"template <(.*)>\s*TILE_DEVICE[^;{(]*?(\w+)\(", text):
        constants = re.findall(r"\b(?:int|bool|unsigned) \w+(?=,|$)", parameters)
        declared.setdefault(name, set()).add(len(constants))
    for call in DEVICE_CALLS.values():
        counts = declared.get(DEVICE_NAMES.get(call.name, call.name))
        if counts is not None and call.operands is None:
            assert call.templates in counts, call.name
    assert len(declared) > 40


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_call_becomes_its_instruction(arch):
    rows = [row for group in CALLS.values() for row in group if exists(row[1], arch)]
    lines = "\n".join(f"  {text};" for text, _, _ in rows)
    ptx = compiled(REGISTERS + lines + USES, arch).assembly
    assert ".local" not in ptx  # registers stay registers
    for text, feature, pattern in rows:
        emulated = feature in EMULATED and not machine(arch).has(feature)
        assert bool(re.search(pattern, ptx)) is not emulated, text


@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_86"])
def test_an_instruction_that_the_architecture_lacks_is_refused_in_words(arch):
    from tile_core.errors import ToolchainError

    rows = [row for group in CALLS.values() for row in group if not exists(row[1], arch)]
    assert rows
    lines = "\n".join(f"  {text};" for text, _, _ in rows)
    with pytest.raises(ToolchainError) as caught:
        compiled(REGISTERS + lines, arch)
    assert re.search(r"tile::\w+ (on \w+ )?needs sm_\d\d or newer", str(caught.value))
    assert "and " in str(caught.value).splitlines()[-2] or len(rows) <= 5


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_header_compiles_under_nvcc_too(tmp_path):
    rows = [row for group in CALLS.values() for row in group if exists(row[1], "sm_80")]
    lines = "\n".join(f"  {text};" for text, _, _ in rows)
    text = tmp_path / "kernel.cu"
    text.write_text(printed(REGISTERS + lines + USES).text)
    include = [f"-I{folder}" for folder in (HEADERS, INCLUDE_DIRECTORY)]
    command = ["nvcc", "-std=c++17", "-arch=sm_80", "-ptx", *include, str(text), "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for call, feature, pattern in rows:
        assert re.search(pattern, done.stdout) or not machine("sm_80").has(feature or "dp4a"), call
