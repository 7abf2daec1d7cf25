"""`compile`, `lower` and `par_compile`: what they ask of the driver, and what is remembered."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.cache import KernelCache, default_cache
from tile_core.errors import (
    BackendNotFound,
    FrontendTypeError,
    FrontendValueError,
    OutputError,
)
from tile_core.plugins.backend import Backend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.plugins.host import PluginHost, default_host
from tile_core.target import Target


@T.prim_func
def add(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32"), C: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            C[i] = A[i] + B[i]


@pytest.fixture(autouse=True)
def an_empty_cache():
    tile.enable_cache()
    default_cache().clear()
    yield
    tile.enable_cache()
    default_cache().clear()


class Recorder:
    """A plugin whose backend notes what it is asked."""

    def __init__(self):
        self.options, self.built = [], []

    def _lower(self, kernel, target, options):
        self.options.append(options)
        return f"lowered {kernel.name}"

    @hookimpl
    def tile_backends(self):
        return [
            Backend(
                name="spy",
                parse_target=lambda spec: Target("spy") if spec == "spy" else None,
                rules=lambda target: (),
                lower=self._lower,
                source=lambda module, target: f"source of {module}",
                compile=lambda module, target, options: self.built.append(module),
                load=lambda artifact, kernel: lambda *args: None,
            )
        ]


@pytest.fixture
def spy():
    plugin = Recorder()
    plugin.host = PluginHost()
    plugin.host.add("spy", plugin)
    return plugin


def test_outputs_by_any_index():
    a, b = np.arange(4, dtype=np.int32), np.full(4, 10, np.int32)
    for out_idx in (2, -1, [2], [-1], (2,)):
        kernel = tile.compile(add, out_idx=out_idx, target="interpret")
        assert kernel.out_idx == [2]
        assert kernel(a, b).tolist() == [10, 11, 12, 13]
    c = np.full(4, -1, np.int32)
    assert tile.compile(add, target="interpret")(a, b, c) is None
    assert c.tolist() == [10, 11, 12, 13]


@pytest.mark.parametrize(
    ("out_idx", "message"),
    [
        (3, "out_idx 3 is not a tensor parameter of add, which has 3"),
        (-4, "out_idx -4 is not a tensor parameter of add, which has 3"),
        ([2, -1], "out_idx names parameter 2 of add twice"),
    ],
)
def test_impossible_outputs(out_idx, message):
    with pytest.raises(OutputError) as caught:
        tile.compile(add, out_idx=out_idx, target="interpret")
    assert caught.value.message == message
    assert isinstance(caught.value, ValueError)


def test_scalars_are_no_outputs_and_outputs_are_stated_once():
    @T.prim_func
    def scaled(A: T.Tensor((4,), "int32"), n: T.int32):
        B = T.empty((4,), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = A[i] * n
        return B

    kernel = tile.compile(scaled, target="interpret")
    assert kernel.out_idx == [2]
    assert kernel(np.arange(4, dtype=np.int32), 3).tolist() == [0, 3, 6, 9]
    with pytest.raises(OutputError, match=r"returns tensors made by T\.empty"):
        tile.compile(scaled, out_idx=[0], target="interpret")

    @T.prim_func
    def touch(n: T.int32, A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            A[0] = n

    with pytest.raises(OutputError, match="is not a tensor parameter"):
        tile.compile(touch, out_idx=[0], target="interpret")


@pytest.mark.parametrize("what", [lambda: None, 3, "add", None])
def test_only_traced_functions_are_compiled(what):
    with pytest.raises(FrontendTypeError, match="cannot compile"):
        tile.compile(what, target="interpret")


def test_equal_requests_are_built_once(spy, monkeypatch):
    monkeypatch.setattr("tile_api.compiling.default_host", lambda: spy.host)
    kernel = tile.compile(add, target="spy")
    again = tile.compile(add, target="spy")
    assert len(spy.built) == 1
    assert again.artifact is kernel.artifact
    again.update_tuner_result(1.0, {"x": 2}, None)
    assert kernel.config is None  # what tuning says of one is not said of the other
    tile.compile(add, target="spy", out_idx=[2])
    tile.compile(add, target="spy", compile_flags="-O3")
    tile.compile(add, target="spy", pass_configs={"tl.allow_tf32": True})
    assert len(spy.built) == 4
    tile.compile(add, target="spy", out_idx=-1)
    assert len(spy.built) == 4
    monkeypatch.setenv("TILE_NUM_THREADS", "2")
    tile.compile(add, target="spy")
    assert len(spy.built) == 5


def test_the_cache_can_be_switched_off(spy, monkeypatch, tmp_path):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))  # clear_cache is thorough
    monkeypatch.setattr("tile_api.compiling.default_host", lambda: spy.host)
    assert tile.is_cache_enabled()
    tile.disable_cache()
    assert not tile.is_cache_enabled()
    tile.compile(add, target="spy")
    tile.compile(add, target="spy")
    assert len(spy.built) == 2
    tile.enable_cache()
    tile.compile(add, target="spy")
    tile.compile(add, target="spy")
    assert len(spy.built) == 3
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    assert not tile.is_cache_enabled()
    tile.compile(add, target="spy")
    assert len(spy.built) == 4
    monkeypatch.delenv("TILELANG_DISABLE_CACHE")
    tile.cache.clear_cache()
    tile.compile(add, target="spy")
    assert len(spy.built) == 5


def test_the_least_recently_used_goes_first():
    cache: KernelCache[int] = KernelCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(k) for k in "abc"] == [1, None, 3]
    assert len(cache) == 2


def test_options_recorded_in_the_body_are_merged(spy):
    @T.prim_func
    def noted(A: T.Tensor((4,), "int32")):
        T.annotate_pass_configs({tile.PassConfigKey.TL_ALLOW_TF32: True, "tl.disable_wgmma": True})
        T.annotate_compile_flags(["-a"])
        with T.Kernel(1, threads=32):
            A[0] = 1

    given = {"tl.allow_tf32": False, tile.PassConfigKey.TL_ENABLE_FAST_MATH: True}
    tile.compile(noted, target="spy", host=spy.host, pass_configs=given, compile_flags="-b -c")
    (options,) = spy.options
    assert options.compile_flags == ("-a", "-b", "-c")
    assert dict(options.pass_configs) == {
        "tl.allow_tf32": False,
        "tl.disable_wgmma": True,
        "tl.enable_fast_math": True,
    }


def test_unknown_pass_configs_warn(spy):
    with pytest.warns(UserWarning, match=r"'tl\.nonsense' is not known"):
        tile.compile(add, target="spy", host=spy.host, pass_configs={"tl.nonsense": 1})


def test_execution_backends_of_tilelang_are_accepted(spy):
    for name in (None, "auto", "tvm_ffi", "cython", "nvrtc", "torch", "cutedsl", "ctypes"):
        tile.compile(add, target="spy", host=spy.host, execution_backend=name)
    with pytest.raises(FrontendValueError, match="'cyton' is not known"):
        tile.compile(add, target="spy", host=spy.host, execution_backend="cyton")


def test_the_environment_chooses_the_target(spy, monkeypatch):
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", '{"kind": "spy"}')
    assert tile.compile(add, host=spy.host).target == "spy"
    monkeypatch.setenv("TILE_TARGET", "nowhere")
    with pytest.raises(BackendNotFound, match="nowhere"):
        tile.compile(add, host=spy.host)
    assert tile.compile(add, target="spy", host=spy.host).target == "spy"


def test_verbose_compilation_reports_its_phases(spy, capfd, monkeypatch):
    tile.compile(add, target="spy", host=spy.host)
    assert capfd.readouterr().err == ""
    tile.compile(add, target="spy", host=spy.host, verbose=True)
    monkeypatch.setenv("TILELANG_VERBOSE", "1")
    tile.compile(add, target="spy", host=spy.host)
    tile.compile(add, target="spy", host=spy.host, verbose=False)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("compiled add for spy: verify ") for line in lines)


def test_lowering_builds_nothing(spy):
    lowered = tile.lower(add, target="spy", host=spy.host, out_idx=[2])
    assert spy.built == []
    assert lowered.kernel_source == "source of lowered add"
    assert lowered.host_source == lowered.ir("lowered") == "lowered add"
    assert lowered.ir() == lowered.ir("tile") == lowered.ir("pipelined")
    assert lowered.ir().startswith("kernel add")
    with pytest.raises(FrontendValueError, match="there is no stage 'machine'"):
        lowered.ir("machine")
    assert lowered.device_mod == "lowered add"
    assert lowered.host_mod.outputs == (2,)
    assert [p.name for p in lowered.params] == ["A", "B", "C"]
    assert repr(lowered) == "<lowered kernel add for spy>"


def test_compiling_many_keeps_the_order():
    def filling(n):
        @T.prim_func
        def fill(A: T.Tensor((2,), "int32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(2):
                    A[i] = n

        return fill

    kernels = tile.par_compile([filling(n) for n in range(5)], target="interpret", out_idx=[0])
    assert [k().tolist() for k in kernels] == [[n, n] for n in range(5)]


def filling_elsewhere(n):
    @T.prim_func
    def fill(A: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(2):
                A[i] = n

    return fill


def test_compiling_many_on_an_executor(monkeypatch):
    pool = partial(ProcessPoolExecutor, 1, mp_context=get_context("spawn"))
    functions = [filling_elsewhere(n) for n in range(3)]
    for target in ("interpret", "cpu"):
        kernels = tile.par_compile(functions, target=target, out_idx=[0], executor=pool)
        assert [k().tolist() for k in kernels] == [[n, n] for n in range(3)]
        assert {k.target.partition(":")[0] for k in kernels} == {target}
    monkeypatch.setenv("TILE_TARGET", "interpret")
    with ThreadPoolExecutor(1) as threads:
        (kernel,) = tile.par_compile(functions[:1], out_idx=[0], executor=threads)
        assert kernel.target == "interpret"
        with pytest.raises(FrontendTypeError, match="plugins that were chosen here do not travel"):
            tile.par_compile(functions, executor=threads, host=default_host())


def test_compiling_many_loses_no_kernel_with_a_worker(tmp_path):
    functions = [filling_elsewhere(n) for n in range(4)]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGKILL)
        kernels = tile.par_compile(functions, target="interpret", out_idx=[0], executor=pool)
    assert [k().tolist() for k in kernels] == [[n, n] for n in range(4)]


def test_compiling_many_can_go_on_after_an_error():
    with pytest.raises(FrontendTypeError):
        tile.par_compile([add, None], target="interpret")
    with pytest.warns(UserWarning, match="a kernel was left out"):
        kernels = tile.par_compile([add, None], target="interpret", ignore_error=True)
    assert [k is None for k in kernels] == [False, True]


def test_public_names():
    assert dir(tile) == sorted(tile.__all__)
    for name in dir(tile):
        assert getattr(tile, name) is not None
    for name, hint in (
        ("compil", "did you mean tile.compile?"),
        ("softmax", "it is tile.nn.softmax"),
        ("gemm", "it is T.gemm: import tile_api.language as T"),
    ):
        with pytest.raises(AttributeError, match=f"tile_api has no 'tile.{name}'") as error:
            getattr(tile, name)
        assert error.value.hint == hint
    assert tile.cdiv(7, 2) == 4
    assert tile.next_power_of_2(5) == 8
