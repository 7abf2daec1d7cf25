"""Conversions of the device header give the interpreter's values, bit for bit.

The arithmetic half of the header is ordinary C++: it is compiled for this machine, without the
instructions that newer GPUs have for it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.conversions import NAMES, built, check_conversions_of
from tile_core.codegen.source import INCLUDE_DIRECTORY
from tile_cuda.compiler import HEADERS

HOST = Path(__file__).parents[2] / "support" / "cuda_host"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    include = (HOST, HEADERS, INCLUDE_DIRECTORY)
    return built("tile_cuda/arithmetic.h", include, tmp_path_factory.mktemp("header"))


@pytest.mark.in_turn(3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("source", NAMES)
def test_conversions(library, source):
    check_conversions_of(source, library)
