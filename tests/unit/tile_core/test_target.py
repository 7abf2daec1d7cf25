"""Targets are spelt one way and understood in several."""

from __future__ import annotations

import json
import pickle
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.errors import TargetError
from tile_core.target import Target, parse_target_spec

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"auto", "llvm", "c", "rocm"}
)
ARCHES = st.from_regex(r"[A-Za-z0-9_.+-]{1,12}", fullmatch=True)


@given(NAMES, ARCHES | st.just(""), NAMES | st.just(""))
def test_parsing_inverts_printing(kind, arch, executor):
    target = Target(kind, arch, executor)
    assert parse_target_spec(str(target)) == target
    assert parse_target_spec(target) is target
    assert pickle.loads(pickle.dumps(target)) == target


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, "auto"),
        ("auto", "auto"),
        (" cpu ", "cpu"),
        ("llvm", "cpu"),
        ("c", "cpu"),
        ("llvm -mcpu=skylake-avx512", "cpu:skylake-avx512"),
        ("llvm -mcpu skylake-avx512 -num-cores 4", "cpu:skylake-avx512"),
        ("cuda", "cuda"),
        ("cuda -arch=sm_90a", "cuda:sm_90a"),
        ("cuda -keys=cuda,gpu -arch=sm_80 -max_num_threads=1024", "cuda:sm_80"),
        ("cuda:sm_90a@sim", "cuda:sm_90a@sim"),
        ("hip@sim", "hip@sim"),
        ("rocm", "hip"),
        ({"kind": "cuda", "arch": "sm_90"}, "cuda:sm_90"),
        ({"kind": "hip", "mcpu": "gfx942"}, "hip:gfx942"),
        ({"kind": "c"}, "cpu"),
        (json.dumps({"kind": "cuda", "arch": "sm_90"}), "cuda:sm_90"),
    ],
)
def test_spellings(spec, expected):
    assert str(parse_target_spec(spec)) == expected


def test_objects_shaped_like_tvm_targets():
    attributes = {"arch": "sm_90", "thread_warp_size": 32}
    spec = SimpleNamespace(kind=SimpleNamespace(name="cuda"), attrs=attributes)
    assert str(parse_target_spec(spec)) == "cuda:sm_90"


def test_tvm_targets_themselves():
    from tvm.target import Target as tvm_target

    assert str(parse_target_spec(tvm_target({"kind": "llvm", "mcpu": "haswell"}))) == "cpu:haswell"
    assert str(parse_target_spec(tvm_target("llvm"))) == "cpu"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("", "'' is not a target"),
        ("CUDA", "'CUDA' is not a target"),
        ("cpu:", "'cpu:' is not a target"),
        ("cuda:sm_90@", "'cuda:sm_90@' is not a target"),
        ("cuda sm_90", "'cuda sm_90' is not a target"),
        ("nvidia/nvidia-h100", "'nvidia/nvidia-h100' is not a target"),
        ("auto:sm_90", "'auto:sm_90' asks for the machine at hand and describes it too"),
        ("{kind", "is not JSON"),
        ("[1]", "'[1]' is not a target"),
        (80, "80 is not a target"),
        (object, "<class 'object'> is not a target"),
        ({"arch": "sm_90"}, "names no kind of machine"),
        ({"kind": 3}, "names no kind of machine"),
        ({"kind": "cuda", "arch": "sm_90", "mcpu": "sm_80"}, "two machines: sm_90 and sm_80"),
        ("llvm -mattr=+avx2", "target attributes mattr are not understood"),
        ({"kind": "cuda", "colour": "red"}, "target attributes colour are not understood"),
    ],
)
def test_refusals_say_what_is_wrong_and_what_to_write(spec, complaint):
    with pytest.raises(TargetError) as caught:
        parse_target_spec(spec)
    assert complaint in caught.value.message
    assert caught.value.hint is not None
