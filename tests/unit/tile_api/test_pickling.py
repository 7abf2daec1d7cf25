"""What users hold is pickled and copied: it travels to other processes and runs there."""

from __future__ import annotations

import concurrent.futures
import copy
import multiprocessing
import pickle
import site
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
import tile_launch
import tile_launch.errors
from support.toolchain import nvrtc_for
from tile_core.errors import AssumptionError, FrontendTypeError, MissingFeature, UnsupportedOnTarget

ROOT = Path(__file__).parents[3]
SIZE = 70
TARGETS = ("cpu", "interpret", "cuda:sm_80@sim")


def scale(factor):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        T.assume(n < 1000)
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * factor

    return main


@tile.jit(target="interpret")
def factory(factor):
    return scale(factor)


@tile.autotune(configs=[{"factor": 2}])
@tile.jit(target="interpret")
def tuned(factor):
    return scale(factor)


@T.macro
def macro(x):
    return x + 1


@tile.function
def doubled(x):
    return x * 2


def compiled(target="cpu"):
    return tile.compile(scale(3), out_idx=[-1], target=target)


def result(kernel):
    return kernel(np.arange(SIZE, dtype="int32")).tolist()


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k))]
)
def test_a_kernel_runs_as_before(target, again):
    kernel = compiled(target)
    kernel.update_tuner_result(1.5, {"factor": [3]}, 2.0)
    made = again(kernel)
    assert made is not kernel
    assert result(made) == result(kernel) == [3 * k for k in range(SIZE)]
    assert made.target == kernel.target
    assert made.tile_ir.name == "main"
    assert made.prim_func.script() == kernel.prim_func.script()
    assert made.compile_key() == kernel.compile_key()
    assert made.get_tuner_result() == kernel.get_tuner_result()
    assert made.ir("lowered") == kernel.ir("lowered")
    assert result(again(made)) == result(kernel)
    with pytest.raises(AssumptionError):
        made(np.zeros(1000, "int32"))


def test_tuning_results_of_a_copy_are_its_own():
    kernel = compiled("interpret")
    for made in (copy.copy(kernel), copy.deepcopy(kernel)):
        made.update_tuner_result(1.0, {"factor": 3}, None)
    assert kernel.latency is None
    kernel.update_tuner_result(1.0, {"factor": [3]}, None)
    copy.deepcopy(kernel).config["factor"].append(4)
    assert kernel.config == {"factor": [3]}


def test_kernels_travel_to_processes_that_start_anew():
    kernels = [compiled(target) for target in TARGETS]
    context = multiprocessing.get_context("spawn")
    finds = {"initializer": site.addsitedir, "initargs": (str(ROOT),)}  # this module by its name
    with concurrent.futures.ProcessPoolExecutor(1, context, **finds) as pool:
        made = [pool.submit(kernel, np.arange(SIZE, dtype="int32")) for kernel in kernels]
        of_arrays = pool.submit(doubled.on("interpret"), np.ones(3, np.float32))
        results = [each.result().tolist() for each in made]
    assert results == [[3 * k for k in range(SIZE)]] * len(TARGETS)
    assert of_arrays.result().tolist() == [2, 2, 2]


def test_machine_code_travels_as_it_is():
    """The process that unpickles a kernel of the CPU loads neither TVM nor a compiler."""
    text = (
        "import pickle, sys, numpy as np\n"
        "kernel = pickle.loads(sys.stdin.buffer.read())\n"
        "assert kernel(np.ones(4, 'int32')).tolist() == [3, 3, 3, 3]\n"
        "assert 'tvm' not in sys.modules\n"
    )
    data = pickle.dumps(compiled("cpu"))
    subprocess.run([sys.executable, "-c", text], input=data, check=True, timeout=60)


def test_kernels_of_a_gpu_travel_where_there_is_none(monkeypatch):
    nvrtc_for("sm_80")

    def absent():
        raise tile_launch.errors.MissingFeature("there is no driver")

    monkeypatch.setattr("tile_launch.loading._GPUS", {"cuda": absent})
    kernel = pickle.loads(pickle.dumps(compiled("cuda:sm_80")))
    assert kernel.target == "cuda:sm_80"
    assert kernel.signature.inputs == (0,)
    with pytest.raises(MissingFeature) as caught:
        kernel._built.executable(np.zeros(4, "int32"), np.zeros(4, "int32"))
    assert caught.value.code == "TL4004"


def test_code_for_another_processor_says_so_when_it_is_called(monkeypatch):
    data = pickle.dumps(compiled("cpu"))
    monkeypatch.setattr("tile_launch.cpu_driver.processor_features", lambda: frozenset())
    kernel = pickle.loads(data)
    for _ in range(2):
        with pytest.raises(MissingFeature, match="it lacks"):
            result(kernel)


@pytest.mark.parametrize(
    "thing", [factory, tuned, macro, doubled], ids=["jit", "autotune", "macro", "arrays"]
)
def test_decorated_functions_travel_by_name(thing):
    assert pickle.loads(pickle.dumps(thing)) is thing
    assert copy.copy(thing) is thing
    assert copy.deepcopy([thing]) == [thing]


def test_functions_of_arrays_travel_with_their_targets():
    elsewhere = pickled(doubled.on("interpret"))
    kernels = elsewhere.kernels(np.ones(3, np.float32))
    assert [kernel.target for kernel in kernels] == ["interpret"]
    assert elsewhere(np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_functions_that_have_no_name_travel_by_value():
    again, parts = tile.function(doubled.func, target="cpu", numerics="fast").__reduce__()
    made = again(*parts)
    assert made.func is doubled.func
    assert (made._target, made._numerics) == ("cpu", "fast")


def test_a_prim_func_travels_as_its_tile_ir():
    func = scale(5)
    assert copy.deepcopy(func) is copy.copy(func) is func
    made = pickle.loads(pickle.dumps(func))
    assert made.script() == func.script()
    assert result(tile.compile(made, out_idx=[-1], target="cpu"))[1] == 5
    with pytest.raises(FrontendTypeError, match="stayed where it was traced"):
        _ = made.orig_func


def test_symbols_stay_the_same_in_copies():
    n = T.dynamic("n")
    assert copy.deepcopy({"n": (n, n)})["n"] == (n, n)
    a, b = pickle.loads(pickle.dumps((n, n)))
    assert a is b


def test_lowered_kernels_are_lowered_again():
    lowered = tile.lower(scale(3), target="cuda:sm_80")
    assert copy.deepcopy(lowered) is lowered
    assert pickle.loads(pickle.dumps(lowered)).kernel_source == lowered.kernel_source


def test_kernels_out_of_bundles_travel(tmp_path):
    compiled("cpu").save(tmp_path / "scale.tile")
    kernel = tile_launch.load(tmp_path / "scale.tile")
    assert copy.copy(kernel) is copy.deepcopy(kernel) is kernel
    assert result(pickle.loads(pickle.dumps(kernel))) == result(kernel)


def test_objects_of_tvm_are_refused_before_they_end_the_process():
    kernel = compiled("cpu")
    lowered = tile.lower(scale(3), target="cpu").lowered.module
    for part in (kernel.artifact, kernel.artifact.module, lowered):
        assert copy.deepcopy(part) is part
        with pytest.raises(UnsupportedOnTarget, match="cannot be pickled"):
            pickle.dumps(part)


def piped(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, piped])
def test_functions_of_jax_travel(copied):
    pytest.importorskip("jax")
    function = copied(compiled().as_jax())
    assert result(function) == [3 * k for k in range(SIZE)]
    assert function.updated == ()


def test_functions_of_jax_travel_with_their_gradients():
    jax = pytest.importorskip("jax")

    @T.prim_func
    def forward(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                B[i] = A[i] * 2

    @T.prim_func
    def backward(dB: T.Tensor((8,), "float32"), dA: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                dA[i] = dB[i] * 2

    gradients = tile.compile(backward, out_idx=[-1], target="cpu")
    function = piped(tile.compile(forward, out_idx=[-1], target="cpu").as_jax(backward=gradients))
    gradient = jax.grad(lambda x: function(x).sum())(jax.numpy.ones(8, "float32"))
    assert gradient.tolist() == [2.0] * 8
