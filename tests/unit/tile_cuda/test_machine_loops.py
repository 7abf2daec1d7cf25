"""Which loop of machine code is the one with the products."""

from __future__ import annotations

from support.gpu_benchmarks import load

loop_of_products = load("machine_loops").loop_of_products


def sass(*lines):
    return "\n".join(f"        /*{16 * k:04x}*/   {text} ;" for k, text in enumerate(lines))


def test_the_inner_loop_of_two():
    code = sass(
        "MOV R1, R2",
        "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ",  # before the loops
        "IADD3 R1, R1, 0x1, RZ",  # 0x20: the outer loop
        "HGMMA.64x8x16.F32 R24, gdesc[UR4], R24",  # 0x30: the inner loop
        "@P0 BRA 0x30",
        "@P1 BRA 0x20",
        "EXIT",
    )
    assert [t.split()[0] for t in loop_of_products(code)] == ["HGMMA.64x8x16.F32", "BRA"]


def test_waiting_loops_behind_the_end_are_part_of_nothing_else():
    code = sass(
        "HGMMA.64x8x16.F32 R24, gdesc[UR4], R24",
        "@P0 BRA 0x0",
        "FADD R1, R1, R2",  # 0x20: a loop without products
        "@P1 BRA 0x20",
        "EXIT",
    )
    assert len(loop_of_products(code)) == 2


def test_without_products_the_longest():
    code = sass("MOV R1, R2", "BRA 0x0", "FADD R1, R1, R1", "FMUL R1, R1, R1", "@P1 BRA 0x20")
    assert [t.split()[0] for t in loop_of_products(code)] == ["FADD", "FMUL", "BRA"]


def test_no_loop_at_all():
    assert loop_of_products(sass("MOV R1, R2", "EXIT")) == []
