"""Every check of launch arguments, with its full message."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

from tile_api.launching import Launcher
from tile_core.errors import (
    ArgumentCountError,
    ArgumentDtypeError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    LaunchError,
)
from tile_launch.views import View


def f32(*shape):
    return np.zeros(shape, np.float32)


class Exporter:
    """A tensor that speaks DLPack and nothing else."""

    def __init__(self, tensor, error=None):
        self.tensor, self.error = tensor, error

    def __dlpack__(self, **options):
        if self.error is not None:
            raise self.error
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class OldExporter(Exporter):
    """The same, from before DLPack had versions."""

    def __dlpack__(self):
        return self.tensor.__dlpack__()


class JunkArray:
    """Has the attributes of an array, and none of its memory."""

    def __init__(self):
        self.shape = (4,)
        self.__array_interface__ = {"version": 3, "shape": (4,), "typestr": "<f4"}


@pytest.fixture
def launcher(kernel_from):
    """Return a launcher for parameters and a body, and the list of what it launched."""

    def make(signature, body="T.fill(A, 0)", outputs=()):
        text = f"""
            m, n, s = T.dynamic("m, n, s")
            @T.prim_func
            def f({signature}):
                with T.Kernel(1, threads=32) as bx:
                    {body}
        """
        calls = []
        kernel = replace(kernel_from(text).kernel, outputs=outputs)
        return Launcher(kernel, lambda *args: calls.append(args), "cpu"), calls

    return make


CONTIGUOUS = (
    "pass x.contiguous() or numpy.ascontiguousarray(x), or declare the parameter as T.StridedTensor"
)
TENSOR = "pass a NumPy array, a torch tensor or another DLPack producer"
FLOAT32 = "convert it first: x.to(torch.float32), or x.astype('float32')"
BYTES = "pass bytes (int8 or uint8) that hold two elements each, the first in the low half"
VECTOR = "A: T.Tensor((4,), 'float32')"
MATRIX = "A: T.Tensor((4, 3), 'float32')"
EXTENT = "pass a tensor of that extent; T.dynamic declares dimensions of any extent"
PLAIN = "pass a plain dense tensor, or an array of plain numbers"
CONVERT = "convert it: int(x), float(x) or bool(x)"
RANGE = "pass a number in that range, or declare the parameter with a wider type"
CASES = {
    "none": (VECTOR, [None], LaunchError, "f.A: expected a tensor, got None",
             "None stands for tensors that the kernel never reads or writes"),
    "a number": (VECTOR, [3], ArgumentTypeError, "f.A: expected a tensor, got int", TENSOR),
    "a list": (VECTOR, [[1.0] * 4], ArgumentTypeError, "f.A: expected a tensor, got list", TENSOR),
    "a string": (VECTOR, ["abcd"], ArgumentTypeError, "f.A: expected a tensor, got str", TENSOR),
    "a NumPy number": (VECTOR, [np.float32(1)], ArgumentTypeError,
                       "f.A: expected a tensor, got float32", TENSOR),
    "junk": (VECTOR, [JunkArray()], ArgumentTypeError,
             "f.A: expected a tensor, got JunkArray", TENSOR),
    "a type": (VECTOR, [torch.Tensor], ArgumentTypeError,
               "f.A: expected a tensor, got _TensorMeta", TENSOR),
    "rank": (MATRIX, [f32(4)], ArgumentShapeError,
             "f.A.ndim: expected 2 [4, 3], got 1 [4]", "reshape it to 2 dimensions"),
    "rank 0": (VECTOR, [f32()], ArgumentShapeError, "f.A.ndim: expected 1 [4], got 0 []", "reshape it to 1 dimension"),  # noqa: E501
    "extent": (MATRIX, [f32(4, 4)], ArgumentShapeError, "f.A.shape[1]: expected 3, got 4", EXTENT),
    "empty": (MATRIX, [f32(0, 3)], ArgumentShapeError, "f.A.shape[0]: expected 4, got 0", EXTENT),
    "dtype": (VECTOR, [np.zeros(4)], ArgumentDtypeError,
              "f.A.dtype: expected float32, got float64", FLOAT32),
    "torch dtype": (VECTOR, [torch.zeros(4, dtype=torch.bfloat16)], ArgumentDtypeError,
                    "f.A.dtype: expected float32, got bfloat16", FLOAT32),
    "complex": (VECTOR, [torch.zeros(4, dtype=torch.complex64)], ArgumentDtypeError,
                "f.A.dtype: expected float32, got complex64", FLOAT32),
    "byte order": (VECTOR, [np.zeros(4, np.float32).astype(">f4")], ArgumentDtypeError,
                   "f.A.dtype: expected float32, got byte-swapped float32", FLOAT32),
    "objects": (VECTOR, [np.array([None] * 4)], ArgumentDtypeError,
                "f.A.dtype: expected float32, got object", FLOAT32),
    "records": (VECTOR, [np.zeros(4, [("x", "f4")])], ArgumentDtypeError,
                "f.A.dtype: expected float32, got void32", FLOAT32),
    "packed dtype": ("A: T.Tensor((4,), 'int4')", [np.zeros(2, np.int16)], ArgumentDtypeError,
                     "f.A.dtype: expected int4, got int16", BYTES),
    "packed extent": ("A: T.Tensor((2, 4), 'int4')", [np.zeros((2, 4), np.int8)],
                      ArgumentShapeError, "f.A.shape[1]: expected 4, got 8", EXTENT),
    "unpacked odd": ("A: T.Tensor((n,), 'int4')", [np.zeros(3, ml_dtypes.int4)],
                     ArgumentShapeError, "f.A.shape[0]: 3 is odd; two elements share a byte", "pad the last dimension by one element"),  # noqa: E501
    "packed odd rows": ("A: T.Tensor((2, 3), 'int4')", [np.zeros((2, 2), np.int8)],
                        ArgumentLayoutError, "f.A.strides[0]: expected 3, got 4", CONTIGUOUS),
    "strides": (MATRIX, [f32(3, 4).T], ArgumentLayoutError,
                "f.A.strides[0]: expected 3, got 1", CONTIGUOUS),
    "step": (VECTOR, [f32(8)[::2]], ArgumentLayoutError,
             "f.A.strides[0]: expected 1, got 2", CONTIGUOUS),
    "torch step": (VECTOR, [torch.zeros(8)[::2]], ArgumentLayoutError,
                   "f.A.strides[0]: expected 1, got 2", CONTIGUOUS),
    "backwards": (VECTOR, [f32(4)[::-1]], ArgumentLayoutError,
                  "f.A.strides[0]: expected 1, got -1", CONTIGUOUS),
    "free stride backwards": ("A: T.StridedTensor((4,), (s,), 'float32')", [f32(4)[::-1]],
                              ArgumentLayoutError, "f.A.strides[0]: -1 is negative",
                              "pass numpy.ascontiguousarray(x)"),
    "broadcast": (VECTOR, [torch.zeros(1).expand(4)], ArgumentLayoutError,
                  "f.A.strides[0]: expected 1, got 0", CONTIGUOUS),
    "broadcast output": ("A: T.StridedTensor((4,), (s,), 'float32')", [torch.zeros(1).expand(4)],
                         ArgumentLayoutError,
                         "f.A.strides[0]: the kernel writes this tensor, whose 4 elements along "
                         "the axis share one place in memory",
                         "pass x.clone() or x.copy() of a broadcast tensor"),
    "fixed stride": ("A: T.StridedTensor((2, 3), (4, 1), 'float32')", [f32(2, 3)],
                     ArgumentLayoutError, "f.A.strides[0]: expected 4, got 3", None),
    "split elements": (VECTOR, [np.zeros(4, "f4,u1")["f0"]], ArgumentLayoutError,
                       "f.A: the tensor is not plain memory: its strides (5,) are no multiples of "
                       "the 4 bytes of an element", PLAIN),
    "misaligned": (VECTOR, [np.zeros(17, np.uint8)[1:].view(np.float32)], ArgumentLayoutError,
                   "f.A.data: the address is not a multiple of the 4 bytes of an element",
                   "pass a copy, which begins at an element boundary"),
    "masked": (VECTOR, [np.ma.masked_array(f32(4))], ArgumentLayoutError,
               "f.A: the tensor is not plain memory: its mask would be ignored; pass x.filled(0)",
               PLAIN),
    "sparse": (MATRIX, [torch.zeros(4, 3).to_sparse()], ArgumentLayoutError,
               "f.A: the tensor is not plain memory: it is stored as torch.sparse_coo", PLAIN),
    "nested": (VECTOR,
               lambda: [torch.nested.nested_tensor([torch.zeros(4)], layout=torch.jagged)],
               ArgumentLayoutError,
               "f.A: the tensor is not plain memory: it is nested", PLAIN),
    "conjugated": (VECTOR, [torch.zeros(4, dtype=torch.complex64).conj()], ArgumentLayoutError,
                   "f.A: the tensor is not plain memory: its conjugation is pending; pass "
                   "x.resolve_conj()", PLAIN),
    "negated": (VECTOR, [torch.zeros(4, dtype=torch.complex64).conj().imag], ArgumentLayoutError,
                "f.A: the tensor is not plain memory: its negation is pending; pass "
                "x.resolve_neg()", PLAIN),
    "no memory": (VECTOR, lambda: [FakeTensorMode().from_tensor(torch.zeros(4))],
                  ArgumentLayoutError,
                  "f.A: the tensor is not plain memory: a FakeTensor has no memory; make an "
                  "operator of the kernel, with as_torch_op", PLAIN),
    "device": (VECTOR, [torch.empty(4, device="meta")], ArgumentLayoutError,
               "f.A.device: the kernel runs on cpu, the tensor is on meta",
               "move the tensor to cpu, or compile for the machine it is on"),
    "no export": (VECTOR, [Exporter(None, BufferError("lost"))], ArgumentLayoutError,
                  "f.A: the tensor is not plain memory: its __dlpack__ raised BufferError: lost",
                  PLAIN),
    "exported dtype": (VECTOR, [Exporter(torch.zeros(4, dtype=torch.int64))], ArgumentDtypeError,
                       "f.A.dtype: expected float32, got int64", FLOAT32),
    "an int for a bool": ("A: T.bool", [1], ArgumentTypeError,
                          "f.A: expected a bool (bool), got int", CONVERT),
    "a float for an int": ("A: T.int32", [1.0], ArgumentTypeError,
                           "f.A: expected an int (int32), got float", CONVERT),
    "a bool for an int": ("A: T.int32", [True], ArgumentTypeError,
                          "f.A: expected an int (int32), got bool", CONVERT),
    "a bool for a float": ("A: T.float32", [np.True_], ArgumentTypeError,
                           "f.A: expected a float (float32), got bool", CONVERT),
    "a string for a float": ("A: T.float32", ["1"], ArgumentTypeError,
                             "f.A: expected a float (float32), got str", CONVERT),
    "a tensor for an int": ("A: T.int32", [np.zeros(1, np.int32)], ArgumentTypeError,
                            "f.A: expected an int (int32), got ndarray", CONVERT),
    "too large": ("A: T.int8", [128], ArgumentTypeError,
                  "f.A: 128 does not fit int8 (-128..127)", RANGE),
    "negative": ("A: T.uint32", [-1], ArgumentTypeError,
                 "f.A: -1 does not fit uint32 (0..4294967295)", RANGE),
    "huge": ("A: T.float32", [10**400], ArgumentTypeError,
             "f.A: the integer does not fit float32", "pass a smaller number"),
    "no address": ("A: T.handle", ["x"], ArgumentTypeError,
                   "f.A: expected an address (int) or a tensor, got str",
                   "pass x.data_ptr(), or the tensor itself"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_refused(case, launcher):
    signature, args, error, message, hint = case
    args = args() if callable(args) else args  # what takes seconds of imports to make
    launch, calls = launcher(signature, "T.fill(A, 0)" if "Tensor" in signature else "pass")
    for _ in range(2):  # a refusal is not remembered as a success
        with pytest.raises(LaunchError) as caught:
            launch(*args)
        assert type(caught.value) is error
        assert (caught.value.message, caught.value.hint) == (message, hint)
        notes = [note.text for note in caught.value.notes]
        assert notes == ["the parameter is declared here"]
    assert calls == []


def refusal(launch, *args):
    with pytest.raises(LaunchError) as caught:
        launch(*args)
    return caught.value


def test_nothing_but_the_refusal_is_told(launcher):
    launch, _ = launcher(VECTOR)
    assert refusal(launch, f32(5)).__context__ is None
    assert refusal(launch, object()).__context__ is None


def test_counts(launcher):
    launch, _ = launcher("A: T.Tensor((4,)), B: T.Tensor((4,)), C: T.int32", outputs=(1,))
    error = refusal(launch, f32(4))
    assert type(error) is ArgumentCountError
    assert error.message == "f(A, C) takes 2 arguments, got 1"
    assert [note.text for note in error.notes] == ["B is returned, not passed"]
    assert refusal(launch, f32(4), f32(4), 1).message == "f(A, C) takes 2 arguments, got 3"
    one, _ = launcher(VECTOR)
    assert refusal(one).message == "f(A) takes 1 argument, got 0"


def test_symbols_have_one_value(launcher):
    launch, calls = launcher("A: T.Tensor((m, n)), B: T.Tensor((n, 2))")
    launch(f32(3, 5), f32(5, 2))
    launch(f32(3, 1), f32(1, 2))
    error = refusal(launch, f32(3, 5), f32(4, 2))
    assert type(error) is ArgumentShapeError
    assert error.message == "f.B.shape[0]: expected n = 5, got 4"
    assert [note.text for note in error.notes] == [
        "the parameter is declared here",
        "n is 5 because of A.shape[1]",
    ]
    assert len(calls) == 2


def test_linear_extents_are_solved(launcher):
    launch, _ = launcher(
        "A: T.Tensor((2 * m + n,)), B: T.Tensor((n + 1,)), C: T.Tensor((m,))", "pass"
    )
    values = launch.check((f32(11), f32(6), f32(3))).values
    assert values == {"m": 3, "n": 5}
    error = refusal(launch, f32(12), f32(6), f32(3))
    assert error.message == "f.B.shape[0]: expected n + 1 = 7, got 6"
    lone, _ = launcher("A: T.Tensor((2 * m + 1,))")
    assert list(lone.check((f32(7),)).values.values()) == [3]
    launch.check((f32(11), f32(6), f32(3)))


def test_symbols_hold_their_values(launcher):
    huge = np.broadcast_to(np.zeros(1, np.float32), 2**31)
    launch, _ = launcher("A: T.StridedTensor((n,), (s,), 'float32')", "T.evaluate(A[0])")
    error = refusal(launch, huge)
    assert type(error) is ArgumentShapeError
    assert error.message == "f: n is 2147483648, which does not fit int32"
    assert error.hint == 'declare it as n = T.dynamic("n", "int64")'
    launch(huge[1:])


def test_strides_bind_symbols_and_extents_of_one_lie_anywhere(launcher):
    launch, _ = launcher("A: T.StridedTensor((m, n), (s, 1), 'float32')")
    checked = launch.check((f32(4, 6)[:, :3],))
    assert dict(checked.values) == {"m": 4, "n": 3, "s": 6}
    assert refusal(launch, f32(6, 4).T).message == "f.A.strides[1]: expected 1, got 4"
    plain, calls = launcher(MATRIX.replace("4, 3", "1, 3"))
    plain(np.lib.stride_tricks.as_strided(f32(3), (1, 3), (400, 4)))
    plain(torch.zeros(3).as_strided((1, 3), (0, 1)))
    assert len(calls) == 2


def test_empty_tensors_have_no_strides_and_no_address(launcher):
    launch, calls = launcher("A: T.Tensor((m, n))", "pass")
    launch(f32(8, 0)[::2])
    launch(torch.zeros(0, 3))
    launch(Exporter(torch.zeros(0, 3)))
    assert [a.shape for (a,) in calls] == [(4, 0), (0, 3), (0, 3)]


def test_none_stands_for_what_is_never_touched(launcher):
    launch, calls = launcher("A: T.Tensor((4,)), B: T.Tensor((n,))", "A[0] = 1")
    a = f32(4)
    for _ in range(2):
        launch(a, None)
    assert calls == [(a, None), (a, None)]
    assert refusal(launch, None, None).message == "f.A: expected a tensor, got None"


def test_read_only_arrays_are_read_and_not_written(launcher):
    frozen = f32(4)
    frozen.flags.writeable = False
    launch, calls = launcher("A: T.Tensor((4,)), B: T.Tensor((4,))", "A[0] = B[0]")
    launch(f32(4), frozen)
    launch(f32(4), Exporter(frozen))
    assert len(calls) == 2
    for read_only in (frozen, Exporter(frozen)):
        error = refusal(launch, read_only, f32(4))
        assert type(error) is ArgumentLayoutError
        assert error.message == "f.A: the kernel writes this tensor, which is read-only"
        assert error.hint == "pass a copy"


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ("bool", np.int8),
        ("bool", np.uint8),
        ("int8", np.bool_),
        ("float8_e4m3fn", ml_dtypes.float8_e4m3fnuz),
        ("float8_e4m3", ml_dtypes.float8_e4m3fn),
        ("float8_e5m2", ml_dtypes.float8_e5m2fnuz),
        ("tfloat32", np.float32),
        ("handle", np.int64),
        ("float6_e2m3fn", np.uint8),
        ("float8_e3m4", np.uint8),
    ],
)
def test_types_of_the_same_bits_are_taken(declared, given, launcher):
    launch, calls = launcher(f"A: T.Tensor((4,), '{declared}')", "pass")
    a = np.zeros(4, given)
    launch(a)
    ((taken,),) = calls
    assert taken is a
    assert type(refusal(launch, np.zeros(4, np.int16))) is ArgumentDtypeError


def test_packed_bytes_count_twice(launcher):
    launch, calls = launcher("A: T.Tensor((m, n), 'int4')")
    packed = launch.check((np.zeros((2, 3), np.uint8),))
    assert dict(packed.values) == {"m": 2, "n": 6}
    unpacked = launch.check((np.zeros((2, 6), ml_dtypes.int4),))
    assert dict(unpacked.values) == {"m": 2, "n": 6}
    odd, calls = launcher("A: T.Tensor((5,), 'float4_e2m1fn')")
    odd(np.zeros(3, np.int8))
    odd(torch.zeros(3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2))
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("declared", "given", "passed"),
    [
        ("int32", np.int64(7), 7),
        ("int32", np.array(7), 7),
        ("int64", torch.tensor(7), 7),
        ("uint8", 255, 255),
        ("float32", 2, 2.0),
        ("float32", np.float64(0.5), 0.5),
        ("float16", torch.tensor(0.5), 0.5),
        ("bool", np.True_, True),
        ("bool", torch.tensor(False), False),
        ("handle", 4096, 4096),
    ],
)
def test_scalars_arrive_as_python_numbers(declared, given, passed, launcher):
    launch, calls = launcher(f"A: T.{declared}", "pass")
    launch(given)
    launch(given)
    assert calls == [(passed,), (passed,)]
    assert type(calls[0][0]) is type(passed)


def test_addresses_of_tensors(launcher):
    launch, calls = launcher("A: T.handle", "pass")
    a = torch.zeros(4)
    launch(a)
    assert calls == [(a.data_ptr(),)]


@pytest.mark.parametrize("kind", [Exporter, OldExporter])
def test_exporters_arrive_as_arrays_on_the_same_memory(kind, launcher):
    launch, calls = launcher("A: T.StridedTensor((3, 2), (s, 1), 'bfloat16')")
    tensor = torch.arange(12).to(torch.bfloat16).reshape(3, 4)
    launch(kind(tensor[:, 1:3]))
    ((array,),) = calls
    assert array.dtype == ml_dtypes.bfloat16
    array[2, 1] = 99
    assert tensor[2].tolist() == [8.0, 9.0, 99.0, 11.0]


def test_gradients_are_warned_of_writes(launcher):
    launch, _ = launcher("A: T.Tensor((4,)), B: T.Tensor((4,))", "A[0] = B[0]")
    x = torch.ones(4, requires_grad=True)
    a, b = torch.ones(4), torch.ones(4)
    loss = (x * a).sum() + (x * b).sum()
    launch(f32(4), b)
    launch(a, x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    loss = (x * b).sum()
    launch(a, b)
    loss.backward()  # b was only read
    with torch.inference_mode():
        launch(torch.ones(4), b)


def test_outputs_are_of_the_inputs_kind(launcher):
    signature = "A: T.Tensor((n,), 'float16'), B: T.Tensor((n, 4), 'int4')"
    launch, calls = launcher(signature, "T.fill(B, 0)", outputs=(1,))
    found = launch(torch.zeros(3, dtype=torch.float16))
    assert (found.dtype, tuple(found.shape)) == (torch.int8, (3, 2))
    assert calls[0][1] is found
    found = launch(np.zeros(5, np.float16))
    assert (found.dtype, found.shape) == (np.int8, (5, 2))


def test_outputs_come_in_their_own_order(launcher):
    signature = "A: T.Tensor((4,)), B: T.Tensor((4,)), C: T.Tensor((2,))"
    launch, calls = launcher(signature, outputs=(2, 0))
    c, a = launch(f32(4))
    assert (c.shape, a.shape) == ((2,), (4,))
    assert calls[0][0] is a
    assert calls[0][2] is c


def test_outputs_need_known_sizes(launcher):
    launch, _ = launcher("A: T.Tensor((4,)), B: T.Tensor((n,))", outputs=(1,))
    error = refusal(launch, f32(4))
    assert type(error) is ArgumentShapeError
    assert error.message == "f.B.shape[0]: no argument tells the value of n"
    assert error.hint == "pass the tensor yourself, or use the symbol in the shape of an input"
    less, _ = launcher("A: T.Tensor((n,)), B: T.Tensor((n - 4,))", outputs=(1,))
    assert refusal(less, f32(3)).message == "f.B.shape[0]: -1 is negative"


def test_what_was_checked_is_checked_anew_when_it_changes(launcher):
    launch, calls = launcher("A: T.Tensor((4,), 'float32'), B: T.Tensor((n,), 'float32')")
    launch(f32(4), f32(3))
    for bad in (f32(5), f32(8)[::2], np.zeros(4), torch.zeros(4, dtype=torch.float16), None, 1):
        assert isinstance(refusal(launch, bad, f32(3)), LaunchError)
        launch(f32(4), f32(3))
    frozen = f32(4)
    frozen.flags.writeable = False
    refusal(launch, frozen, f32(3))
    misaligned = torch.frombuffer(bytearray(20), dtype=torch.float32, offset=1, count=4)
    launch(torch.zeros(4), torch.zeros(3))
    assert "multiple of the 4 bytes" in refusal(launch, misaligned, torch.zeros(3)).message
    for n in range(600):  # more kinds than are remembered
        launch(f32(4), f32(n))
    assert len(calls) == 608


@pytest.mark.parametrize("place", ["hip:0", "cuda:0"])  # torch says cuda for AMD's GPUs, too
def test_tensors_of_amd_gpus_are_where_kernels_for_them_run(launcher, monkeypatch, place):
    view = View((4,), (1,), "float32", place, 0x1000)
    monkeypatch.setattr("tile_launch.symbol_solver.view_of", lambda value: view)
    signature = launcher(VECTOR)[0].signature
    signature.check((object(),), "hip")
    with pytest.raises(ArgumentLayoutError, match=f"runs on cpu, the tensor is on {place}"):
        signature.check((object(),), "cpu")
