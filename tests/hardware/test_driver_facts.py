"""What the launcher believes of NVIDIA's driver is what NVIDIA's header says of it."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hardware.strict import NoHeader, build_strict_driver, c_compiler, header_folders
from support.toolchain import nvrtc_for
from tile_launch import cuda_driver, tensor_maps
from tile_launch.cuda_driver import LaunchAttribute, LaunchConfig, open_driver
from tile_launch.errors import LaunchError
from tile_launch.manifest import Address, Launch, TensorMap
from tile_launch.tensor_maps import MapValues, encode_map

HEADERS = header_folders()

FIELDS = {
    "CUlaunchConfig": (
        LaunchConfig,
        {
            "grid": "gridDimX", "block": "blockDimX", "shared_bytes": "sharedMemBytes",
            "stream": "hStream", "attributes": "attrs", "attribute_count": "numAttrs",
        },
    ),
    "CUlaunchAttribute": (LaunchAttribute, {"id": "id", "value": "value"}),
}  # fmt: skip
"""By structure of the header: ours, and its fields by our names."""

NUMBERS = {
    "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION": cuda_driver.CLUSTER_DIMENSION,
    "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION": cuda_driver.PROGRAMMATIC_SERIALIZATION,
    "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": cuda_driver._MAX_DYNAMIC_SHARED,
    "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED": cuda_driver._LARGE_CLUSTERS,
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": cuda_driver._MAJOR,
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": cuda_driver._MINOR,
    "CU_TENSOR_MAP_DATA_TYPE_UINT8": tensor_maps.element_code("uint8"),
    "CU_TENSOR_MAP_DATA_TYPE_UINT16": tensor_maps.element_code("uint16"),
    "CU_TENSOR_MAP_DATA_TYPE_UINT32": tensor_maps.element_code("uint32"),
    "CU_TENSOR_MAP_DATA_TYPE_INT32": tensor_maps.element_code("int32"),
    "CU_TENSOR_MAP_DATA_TYPE_UINT64": tensor_maps.element_code("uint64"),
    "CU_TENSOR_MAP_DATA_TYPE_INT64": tensor_maps.element_code("int64"),
    "CU_TENSOR_MAP_DATA_TYPE_FLOAT16": tensor_maps.element_code("float16"),
    "CU_TENSOR_MAP_DATA_TYPE_FLOAT32": tensor_maps.element_code("float32"),
    "CU_TENSOR_MAP_DATA_TYPE_FLOAT64": tensor_maps.element_code("float64"),
    "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16": tensor_maps.element_code("bfloat16"),
    "CU_TENSOR_MAP_DATA_TYPE_TFLOAT32": tensor_maps.element_code("tfloat32"),
    **{
        f"CU_TENSOR_MAP_SWIZZLE_{f'{width}B' if width else 'NONE'}": code
        for width, code in tensor_maps._SWIZZLES.items()
    },
    **{
        f"CU_TENSOR_MAP_INTERLEAVE_{f'{width}B' if width else 'NONE'}": code
        for width, code in tensor_maps._INTERLEAVES.items()
    },
    **{
        f"CU_TENSOR_MAP_L2_PROMOTION_{f'L2_{width}B' if width else 'NONE'}": code
        for width, code in tensor_maps._PROMOTIONS.items()
    },
    "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE": tensor_maps._FILLS["zero"],
    "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA": tensor_maps._FILLS["nan"],
    "sizeof(CUtensorMap)": tensor_maps.MAP_BYTES,
    "sizeof(CUlaunchAttributeValue)": 64,
}
"""By expression of the header: the number that we use."""


@pytest.fixture(params=HEADERS, ids=lambda folder: folder.parent.name)
def headers(request: Any) -> Path:
    found: Path = request.param
    return found


def printed(headers: Path, folder: Path, expressions: list[str]) -> dict[str, int]:
    """Return the values of integer expressions of C, by expression."""
    lines = [f'printf("%lld\\n", (long long)({text}));' for text in expressions]
    source, program = folder / "print.c", folder / "print"
    text = "#include <cuda.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n"
    source.write_text(text + "\n".join(lines) + "\nreturn 0; }\n")
    command = [c_compiler(), "-isystem", str(headers), "-o", str(program), str(source)]
    subprocess.run(command, check=True)
    output = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    return dict(zip(expressions, map(int, output.split()), strict=True))


def test_structures_and_numbers(headers: Path, tmp_path: Path) -> None:
    wanted: dict[str, int] = dict(NUMBERS)
    for name, (ours, fields) in FIELDS.items():
        wanted[f"sizeof({name})"] = ctypes.sizeof(ours)
        for own, theirs in fields.items():
            wanted[f"offsetof({name}, {theirs})"] = getattr(ours, own).offset
            if theirs not in ("gridDimX", "blockDimX"):  # of which ours has three at a time
                wanted[f"sizeof((({name} *)0)->{theirs})"] = getattr(ours, own).size
    wanted["offsetof(CUlaunchConfig, gridDimZ)"] = LaunchConfig.grid.offset + 8
    wanted["offsetof(CUlaunchConfig, blockDimZ)"] = LaunchConfig.block.offset + 8
    value = LaunchAttribute.value.offset
    wanted["offsetof(CUlaunchAttribute, value.clusterDim.z)"] = value + 8
    programmatic = "value.programmaticStreamSerializationAllowed"
    wanted[f"offsetof(CUlaunchAttribute, {programmatic})"] = value
    try:
        assert printed(headers, tmp_path, list(wanted)) == wanted
    except NoHeader as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", cuda_driver._SIGNATURES)
def test_functions_take_what_they_are_passed(headers: Path, name: str) -> None:
    """The header renames functions whose interface has changed: none of ours is one of those."""
    text = (headers / "cuda.h").read_text()
    default = text.partition("#if defined(__CUDA_API_VERSION_INTERNAL)")[0]
    renamed = re.search(rf"^#define {name} +{name}_v\d", default, re.MULTILINE)
    assert renamed is None
    match = re.search(rf"^CUresult CUDAAPI {name}\((.*?)\);", text, re.MULTILINE | re.DOTALL)
    assert match is not None
    theirs = [size_of(parameter) for parameter in match[1].split(",")]
    assert [ctypes.sizeof(kind) for kind in cuda_driver._SIGNATURES[name]] == theirs


def size_of(parameter: str) -> int:
    """Return the bytes of a parameter of a function of the driver."""
    kind = parameter.strip().rpartition(" ")[0].replace("const ", "").strip()
    if "*" in parameter or kind in ("CUcontext", "CUmodule", "CUfunction", "CUstream"):
        return 8
    if kind in ("size_t", "CUdeviceptr"):
        return 8
    assert kind in ("int", "unsigned int", "cuuint32_t", "CUdevice", "CUresult") or (
        kind.startswith(("CUtensorMap", "CUfunction_attribute", "CUdevice_attribute"))
    ), kind
    return 4


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> cuda_driver.CudaDriver:
    try:
        return open_driver(str(build_strict_driver(tmp_path_factory.mktemp("driver"))))
    except NoHeader as missing:
        pytest.skip(str(missing))


def a_map(**changes: Any) -> TensorMap:
    told: dict[str, Any] = {
        "name": "A_map", "tensor": "A", "dtype": "float16", "offset": 0, "extents": (64, 100),
        "strides": (128,), "box": (64, 32), "element_strides": (1, 1), "swizzle": 128,
    }  # fmt: skip
    return TensorMap(**{**told, **changes})


def encoded(driver: cuda_driver.CudaDriver, described: TensorMap, address: int = 4096) -> int:
    memory = ctypes.create_string_buffer(256)
    place = ctypes.addressof(memory)
    place += -place % 64
    values = MapValues(described, address, described.extents, described.strides)  # type: ignore[arg-type]
    encode_map(driver, "kernel", values, place)
    return ctypes.c_uint64.from_address(place).value


@pytest.mark.parametrize(
    "described",
    [
        a_map(),
        a_map(extents=(0, 100)),
        a_map(dtype="float8_e4m3fn", swizzle=64),
        a_map(dtype="float32", box=(32, 256), fill="nan"),
        a_map(extents=(48,), strides=(), box=(16,), element_strides=(1,), swizzle=0),
    ],
    ids=str,
)
def test_maps_within_the_rules_are_taken(
    driver: cuda_driver.CudaDriver, described: TensorMap
) -> None:
    assert encoded(driver, described) != 0


@pytest.mark.parametrize(
    ("described", "address", "why"),
    [
        (a_map(), 4104, "a tensor at 0x1008"),
        (a_map(strides=(136,)), 4096, "stride 0: 136 bytes"),
        (a_map(strides=(1 << 40,)), 4096, "stride 0: 1099511627776 bytes"),
        (a_map(box=(64, 257)), 4096, "extent 1 of a box: 257"),
        (a_map(box=(65, 8), swizzle=0), 4096, "rows of boxes of 130 bytes"),
        (a_map(box=(128, 8)), 4096, "256 bytes in swizzle 3"),
        (a_map(swizzle=64), 4096, "128 bytes in swizzle 2"),
        (a_map(element_strides=(1, 9)), 4096, "every 9 elements along 1"),
        (a_map(interleave=16), 4096, "interleaving of rank 2"),
        (a_map(dtype="int32", box=(32, 8), fill="nan"), 4096, "NaN as integers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_maps_outside_of_the_rules_are_refused(
    driver: cuda_driver.CudaDriver, described: TensorMap, address: int, why: str
) -> None:
    with pytest.raises(LaunchError, match=re.escape(why)):
        encoded(driver, described, address)


def cubin() -> bytes:
    """Return machine code of a kernel with one parameter, a pointer."""
    return compiled('extern "C" __global__ void nothing(int *p) { *p = 1; }')


def compiled(text: str) -> bytes:
    """Return machine code of a text."""
    output = nvrtc_for("sm_90a").build(text, "sm_90a", ())
    assert output.is_accepted, output.log
    return output.code


def launched(driver: cuda_driver.CudaDriver, **changes: Any) -> int:
    """Return what the driver answers to a launch."""
    told: dict[str, Any] = {
        "name": "nothing", "symbol": "nothing", "grid": (4, 1, 1), "block": (128, 1, 1),
        "arguments": (Address(tensor="p"),),
    }  # fmt: skip
    launch = Launch(**{**told, **changes})
    with driver.inside(driver.context(0), 0):
        function = driver.function(driver.load(cubin()), launch)
        memory = driver.launch_memory(launch)
        code: int = driver.launch(memory.config_pointer, function, memory.parameters_pointer, None)
        driver.check(code, "the launch")
    return code


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shared_bytes": 227 * 1024},
        {"cluster": (2, 2), "grid": (4, 2, 1), "may_overlap": True},
        {"cluster": (16,), "grid": (16, 1, 1)},
        {"cooperative": True, "grid": (132 * 16, 1, 1)},
    ],
    ids=str,
)
def test_launches_within_the_rules_are_made(
    driver: cuda_driver.CudaDriver, changes: dict[str, Any]
) -> None:
    assert launched(driver, **changes) == 0


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"shared_bytes": 227 * 1024 + 16}, "232464 bytes of shared memory"),
        ({"block": (1025, 1, 1)}, "1025 x 1 x 1 threads"),
        ({"grid": (0, 1, 1)}, "0 blocks along x"),
        ({"grid": (1, 65536, 1)}, "65536 blocks along y"),
        ({"cluster": (3,)}, "a grid that is not made of clusters"),
        ({"cluster": (32,), "grid": (32, 1, 1)}, "32 blocks in a cluster"),
        ({"cooperative": True, "grid": (132 * 16 + 1, 1, 1)}, "2113 blocks do not run at a time"),
        ({"symbol": "anything"}, "no kernel anything"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_launches_outside_of_the_rules_are_refused(
    driver: cuda_driver.CudaDriver, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(LaunchError, match=re.escape(why)):
        launched(driver, **changes)


def test_a_map_is_expected_where_the_kernel_reads_one(driver: cuda_driver.CudaDriver) -> None:
    """A pointer in its place, or a map that no driver has written, is noticed."""
    text = (
        "struct alignas(64) map { unsigned long long words[16]; };\n"
        'extern "C" __global__ void nothing(const __grid_constant__ map m, int *p) '
        "{ *p = m.words[3]; }"
    )
    code = compiled(text)
    launch = Launch(
        name="nothing", symbol="nothing", grid=(1, 1, 1), block=(32, 1, 1),
        arguments=(a_map(), Address(tensor="p")),
    )  # fmt: skip
    with driver.inside(driver.context(0), 0):
        function = driver.function(driver.load(code), launch)
        memory = driver.launch_memory(launch)
        wrong = (ctypes.c_uint64 * 64)()
        memory.parameters[0] = ctypes.addressof(wrong) + -ctypes.addressof(wrong) % 64
        answer = driver.launch(memory.config_pointer, function, memory.parameters_pointer, None)
        with pytest.raises(LaunchError, match="parameter 0 is no map"):
            driver.check(answer, "the launch")
