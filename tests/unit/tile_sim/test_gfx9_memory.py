"""Memory of machine code: widths, ranges, atomics, shared memory, exchanges between lanes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from support.assembler import complaints
from support.lanes import half, on_lanes, run_group
from tile_core.errors import OutOfBounds
from tile_sim.gfx9.wave import Wave
from tile_sim.gfx9.wave_start import Geometry, begin

LANE = np.arange(64)
BUFFER = "s_mov_b32 s8, s4\n s_mov_b32 s9, s5\n s_mov_b32 s10, {size}\n s_mov_b32 s11, 0x27000\n"


def loads(what: str, *, outputs: int = 1) -> np.ndarray:
    """Run a load of s[4:5] at v0 (the lane's byte offset) into v10, the bytes counting up."""
    rows = np.arange(1024, dtype=np.uint32).astype(np.uint8).view(np.uint32).reshape(4, 64)
    body = f"v_mov_b32_e32 v10, 0x55555555\n s_nop 4\n {what}\n s_waitcnt vmcnt(0)"
    return on_lanes(body, *rows, outputs=outputs)


def test_narrow_loads() -> None:
    byte = (4 * LANE + 1) % 256
    assert loads("global_load_ubyte v10, v0, s[4:5] offset:1")[0].tolist() == byte.tolist()
    signed = byte.astype(np.uint8).view(np.int8).astype(np.int32).view(np.uint32)
    assert loads("global_load_sbyte v10, v0, s[4:5] offset:1")[0].tolist() == signed.tolist()
    short = ((4 * LANE + 2) % 256 | (4 * LANE + 3) % 256 << 8).astype(np.uint32)
    assert loads("global_load_ushort v10, v0, s[4:5] offset:2")[0].tolist() == short.tolist()
    low = short | 0x55550000
    assert loads("global_load_short_d16 v10, v0, s[4:5] offset:2")[0].tolist() == low.tolist()
    high = short << 16 | 0x5555
    found = loads("global_load_short_d16_hi v10, v0, s[4:5] offset:2")[0]
    assert found.tolist() == high.tolist()


def test_wide_loads() -> None:
    found = loads("global_load_dwordx4 v[10:13], v0, s[4:5] offset:4", outputs=4)
    raw = np.arange(1024, dtype=np.uint32).astype(np.uint8)
    for word in range(4):
        start = 4 * LANE + 4 + 4 * word
        expected = [int.from_bytes(raw[s : s + 4].tobytes(), "little") for s in start]
        assert found[word].tolist() == expected


def test_addresses_in_pairs_of_registers_and_lanes_that_are_off() -> None:
    body = """
      v_mov_b32_e32 v10, 1
      v_mov_b32_e32 v5, s5
      v_add_co_u32_e32 v4, vcc, s4, v0
      s_nop 1
      v_addc_co_u32_e32 v5, vcc, 0, v5, vcc
      s_mov_b64 exec, 3
      global_load_dword v10, v[4:5], off offset:-4
      s_mov_b64 exec, -1
      s_waitcnt vmcnt(0)
    """
    with pytest.raises(OutOfBounds, match="it is byte -4 of argument 0, of 1024 bytes"):
        on_lanes(body, LANE.astype(np.uint32))
    found = on_lanes(body.replace("exec, 3", "exec, 6"), LANE.astype(np.uint32))[0]
    assert found.tolist() == [1, 0, 1] + [1] * 61


def test_stores_beyond_the_end_are_refused_where_they_stand() -> None:
    body = "global_store_dword v0, v1, s[6:7] offset:4"
    with pytest.raises(OutOfBounds, match=r"access 63 of 4 bytes .* is in no buffer") as caught:
        on_lanes(body, 1)
    assert "it is byte 256 of argument 1, of 256 bytes" in str(caught.value)


def test_arguments_are_only_read() -> None:
    body = "v_mov_b32_e32 v1, 0\n global_store_dword v1, v1, s[0:1]"
    with pytest.raises(OutOfBounds, match=r"of the arguments, of .* bytes, which is only read"):
        on_lanes(body)


def test_narrow_stores() -> None:
    body = """
      v_mov_b32_e32 v10, 0
      global_store_dword v0, v10, s[6:7]
      global_store_byte v0, v1, s[6:7]
      global_store_byte_d16_hi v0, v1, s[6:7] offset:1
      global_store_short_d16_hi v0, v1, s[6:7] offset:2
      global_load_dword v10, v0, s[6:7]
      s_waitcnt vmcnt(0)
    """
    assert set(on_lanes(body, 0x12345678)[0].tolist()) == {0x12343478}


def test_buffers_check_their_range() -> None:
    body = BUFFER.format(size=40) + "buffer_load_dwordx2 v[10:11], v0, s[8:11], 0 offen offset:4\n"
    found = on_lanes(body + "s_waitcnt vmcnt(0)", LANE.astype(np.uint32), outputs=2)
    assert found[0].tolist() == [n if n < 10 else 0 for n in range(1, 65)]
    assert found[1].tolist() == [n if n < 10 else 0 for n in range(2, 66)]


def test_buffers_with_a_scalar_offset() -> None:
    body = "s_movk_i32 s12, 8\n" + BUFFER.format(size=40)
    body += "buffer_load_dword v10, v0, s[8:11], s12 offen\n s_waitcnt vmcnt(0)"
    found = on_lanes(body, LANE.astype(np.uint32))[0]
    assert found.tolist() == [n if n < 10 else 0 for n in range(2, 66)]
    body = BUFFER.format(size=40) + "buffer_load_dword v10, off, s[8:11], 0 offset:12\n"
    assert set(on_lanes(body + "s_waitcnt vmcnt(0)", LANE.astype(np.uint32))[0].tolist()) == {3}


def test_a_word_across_the_end_of_a_buffer_is_refused() -> None:
    body = BUFFER.format(size=42) + "buffer_load_dword v10, v0, s[8:11], 0 offen\n"
    with pytest.raises(OutOfBounds, match="a word at offset 40 reaches beyond the buffer's 42"):
        on_lanes(body)


def test_stores_to_buffers_leave_out_what_is_outside() -> None:
    body = BUFFER.replace("s4", "s6").replace("s5", "s7").format(size=16)
    body += "v_mov_b32_e32 v10, 9\n global_store_dword v0, v10, s[6:7]\n"
    body += "buffer_store_dword v1, v0, s[8:11], 0 offen\n"
    body += "global_load_dword v10, v0, s[6:7]\n s_waitcnt vmcnt(0)"
    assert on_lanes(body, 5)[0].tolist() == [5] * 4 + [9] * 60


ATOMICS = [
    ("add", 10, 3, 10 + 3 * 64),
    ("sub", 10, 3, 10 - 3 * 64),
    ("umax", 10, LANE, 63),
    ("smin", 10, -LANE, -63),
    ("and", 0xFF, 0xF0, 0xF0),
    ("or", 1, 1 << LANE % 32, -1),
    ("xor", 1, 3, 1),
    ("swap", 1, LANE, 63),
    ("inc", 0, 9, 64 % 10),
    ("add_f32", np.float32(0.5).view(np.uint32), np.float32(1).view(np.uint32),
     np.float32(64.5).view(np.uint32)),
    ("pk_add_f16", half(1.0, 2.0), half(1.0, 0.5), half(65.0, 34.0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "start", "operand", "expected"), ATOMICS)
def test_atomics(name: str, start: int, operand: object, expected: int) -> None:
    body = f"""
      v_mov_b32_e32 v11, 0
      global_store_dword v11, v2, s[6:7]
      global_atomic_{name} v11, v1, s[6:7]
      s_waitcnt vmcnt(0)
      global_load_dword v10, v11, s[6:7]
      s_waitcnt vmcnt(0)
    """
    operands = np.broadcast_to(np.asarray(operand), (64,)).astype(np.int64).astype(np.uint32)
    found = on_lanes(body, operands, int(start))[0]
    assert set(found.tolist()) == {int(expected) % (1 << 32)}


def test_atomics_return_what_was_there() -> None:
    body = """
      v_mov_b32_e32 v11, 0
      global_store_dword v11, v11, s[6:7]
      global_atomic_add v10, v11, v1, s[6:7] sc0
      s_waitcnt vmcnt(0)
    """
    assert on_lanes(body, 2)[0].tolist() == list(range(0, 128, 2))


def test_compare_and_swap() -> None:
    body = """
      v_mov_b32_e32 v11, 0
      v_mov_b32_e32 v13, 5
      global_store_dword v11, v13, s[6:7]
      global_atomic_cmpswap v10, v11, v[20:21], s[6:7] sc0
      s_waitcnt vmcnt(0)
    """
    # Lane 3 finds 5 and writes 7; lane 9 finds 7 and writes 5; others compare with neither.
    compared = np.where(LANE == 3, 5, np.where(LANE == 9, 7, 1000)).astype(np.uint32)
    fresh = np.where(LANE == 3, 7, 5).astype(np.uint32)
    found = on_lanes(body, fresh, compared)[0]
    assert found.tolist() == [5] * 4 + [7] * 6 + [5] * 54


WIDTHS = [
    ("ds_write_b8 v0, v1\n {w}\n ds_read_u8 v10, v0", 0xFF, 0xFF),
    ("ds_write_b8 v0, v1\n {w}\n ds_read_i8 v10, v0", 0xFF, 0xFFFFFFFF),
    ("ds_write_b16 v0, v1\n {w}\n ds_read_i16 v10, v0", 0x8001, 0xFFFF8001),
    ("ds_write_b16_d16_hi v0, v1\n {w}\n ds_read_u16 v10, v0", 0x12345678, 0x1234),
    ("ds_write_b32 v0, v1\n {w}\n ds_read_b32 v10, v0", 0x12345678, 0x12345678),
    ("v_mov_b32_e32 v10, 0\n ds_write_b32 v0, v1\n {w}\n ds_read_u16_d16_hi v10, v0 offset:2",
     0x12345678, 0x12340000),
    ("v_mov_b32_e32 v10, 0\n ds_write_b8_d16_hi v0, v1\n {w}\n ds_read_i8_d16 v10, v0",
     0xF00001, 0xFFF0),
    ("v_mov_b32_e32 v10, 0\n ds_write_b16 v0, v1\n {w}\n ds_read_u8_d16_hi v10, v0 offset:1",
     0xF00D, 0xF00000),
    ("ds_write_b32 v0, v1 offset:8\n {w}\n v_subrev_u32_e32 v5, 16, v0\n ds_read_b32 v10, v5 "
     "offset:24", 7, 7),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "expected"), WIDTHS)
def test_shared_widths(text: str, value: int, expected: int) -> None:
    body = text.format(w="s_waitcnt lgkmcnt(0)") + "\n s_waitcnt lgkmcnt(0)"
    assert set(on_lanes(body, value, shared=512)[0].tolist()) == {expected}


def test_two_places_at_once() -> None:
    body = """
      ds_write2_b32 v0, v1, v2 offset0:1 offset1:65
      ds_read2_b32 v[10:11], v0 offset0:65 offset1:1
      ds_read2st64_b32 v[12:13], v0 offset1:1
      s_waitcnt lgkmcnt(0)
    """
    found = on_lanes(body, LANE.astype(np.uint32), 9, outputs=4, shared=1024)
    assert set(found[0].tolist()) == {9}
    assert found[1].tolist() == LANE.tolist()
    assert found[2][1:].tolist() == LANE[:-1].tolist()
    assert found[3].tolist() == [63] + [9] * 63  # word 64 is the last of the first store


def test_sixteen_bytes_through_shared_memory() -> None:
    body = """
      v_lshlrev_b32_e32 v5, 2, v0
      ds_write_b128 v5, v[20:23]
      ds_read_b64 v[10:11], v5 offset:8
      ds_read_b96 v[12:14], v5
      s_waitcnt lgkmcnt(0)
    """
    found = on_lanes(body, 1, 2, 3, 4, outputs=5, shared=1024)
    assert found[:, 5].tolist() == [3, 4, 1, 2, 3]


def test_shared_memory_ends() -> None:
    with pytest.raises(OutOfBounds, match="4 bytes at byte 256 leave the 256 bytes of shared"):
        on_lanes("ds_write_b32 v0, v1 offset:4", 1, shared=256)


def test_atomics_in_shared_memory() -> None:
    body = """
      v_mov_b32_e32 v11, 0
      ds_write_b32 v11, v11
      ds_add_f32 v11, v1
      ds_add_rtn_u32 v12, v11, v11
      ds_read_b32 v10, v11
      s_waitcnt lgkmcnt(0)
    """
    found = on_lanes(body, 0.5, shared=16)[0].view(np.float32)
    assert set(found.tolist()) == {32.0}


EXCHANGES = [
    ("v_xor_b32_e32 v5, 4, v0\n ds_bpermute_b32 v10, v5, v1", LANE ^ 1),
    ("v_xor_b32_e32 v5, 8, v0\n ds_permute_b32 v10, v5, v1", LANE ^ 2),
    ('ds_swizzle_b32 v10, v1 offset:swizzle(SWAP,16)', LANE ^ 16),
    ('ds_swizzle_b32 v10, v1 offset:swizzle(REVERSE,8)', LANE ^ 7),
    ('ds_swizzle_b32 v10, v1 offset:swizzle(BROADCAST,4,2)', (LANE & ~3) + 2),
    ('ds_swizzle_b32 v10, v1 offset:swizzle(QUAD_PERM,3,2,1,0)', LANE ^ 3),
    ('ds_swizzle_b32 v10, v1 offset:swizzle(BITMASK_PERM,"01pi0")',
     LANE & 36 | 8 | (LANE & 2 ^ 2)),
    ("ds_swizzle_b32 v10, v1 offset:0x401f", LANE ^ 16),
]  # fmt: skip


@pytest.mark.parametrize(("text", "lanes"), EXCHANGES)
def test_exchanges(text: str, lanes: np.ndarray) -> None:
    found = on_lanes(text + "\n s_waitcnt lgkmcnt(0)", (LANE + 100).astype(np.uint32))[0]
    assert found.tolist() == (lanes + 100).tolist()


def test_geometry_of_a_launch() -> None:
    body = """
      s_load_dwordx2 s[4:5], s[0:1], 0x0
      s_lshl_b32 s3, s2, 9
      v_lshlrev_b32_e32 v1, 2, v0
      v_mov_b32_e32 v2, s2
      v_lshl_or_b32 v2, v2, 16, v0
      s_waitcnt lgkmcnt(0)
      s_add_u32 s4, s4, s3
      s_addc_u32 s5, s5, 0
      global_store_dword v1, v2, s[4:5]
    """
    found = np.zeros((3, 128), np.uint32)
    report = run_group(body, [found], block=100, grid=3)
    expected = np.zeros((3, 128), np.uint32)
    expected[:, :100] = np.arange(3)[:, None] << 16 | np.arange(100)
    assert (found == expected).all()
    assert (report.waves, report.waits, report.instructions) == (6, 6, 60)


def test_lanes_of_blocks_of_three_dimensions() -> None:
    wave = Wave(SimpleNamespace(), 1, 1)
    begin(wave, {"system_vgpr_workitem_id": 2}, Geometry((1, 1, 1), (3, 5, 7)), (0, 0, 0), {})
    x, y, z = (wave.rows[0] >> shift & 1023 for shift in (0, 10, 20))
    assert (x + 3 * y + 15 * z).tolist() == [*range(64, 128)]
    assert (x.max(), y.max()) == (2, 4)


def test_lanes_have_bytes_of_their_own() -> None:
    body = """
      s_movk_i32 s10, 4
      v_mov_b32_e32 v5, 8
      scratch_store_dwordx2 off, v[20:21], off
      scratch_store_short v5, v3, off offset:2
      scratch_load_dword v10, off, s10 offset:-4
      scratch_load_ushort v11, off, off offset:10
      s_waitcnt vmcnt(0)
    """
    own = (LANE * 3).astype(np.uint32)
    found = on_lanes(body, own, 2, 0x70005, outputs=2, private=16)
    assert found[0].tolist() == own.tolist()
    assert set(found[1].tolist()) == {5}
    with pytest.raises(OutOfBounds, match="8 bytes at byte 0 leave the 4 bytes of scratch memory"):
        on_lanes(body, own, 2, 3, outputs=2, private=4)


def test_assemblers_accept_the_texts() -> None:
    texts = [text.format(w="s_waitcnt lgkmcnt(0)") for text, _, _ in WIDTHS]
    texts += [text for text, _ in EXCHANGES]
    texts += [f"global_atomic_{name} v11, v1, s[6:7]" for name, *_ in ATOMICS]
    assert complaints("gfx942", texts) == []
