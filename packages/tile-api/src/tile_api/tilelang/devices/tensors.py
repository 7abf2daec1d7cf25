"""Where torch takes a device: functions that make tensors, and tensors that move."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from tile_api.tilelang.devices.patches import Patches, asked_by_a_program

MAKERS = (
    *("arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty"),
    *("empty_like", "empty_permuted", "empty_quantized", "empty_strided", "eye", "from_file"),
    *("full", "full_like", "hamming_window", "hann_window", "kaiser_window", "linspace"),
    *("logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint"),
    *("randint_like", "randn", "randn_like", "randperm", "range", "scalar_tensor"),
    *("sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor"),
    *("sparse_csc_tensor", "sparse_csr_tensor", "tensor", "tril_indices", "triu_indices"),
    *("zeros", "zeros_like"),
)
"""Functions of torch with a parameter ``device``."""

METHODS = (*("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros"),)
"""Methods of tensors with a parameter ``device``."""


def tensor_patches(torch: Any, patches: Patches) -> None:
    """Replace what makes and moves tensors."""
    importlib.import_module(
        "torch.utils._device"
    )._device_constructors()  # remembers the functions themselves, which modes recognise
    for name in MAKERS:
        patches.wrap(torch, name, _without_gpu)
    for name in METHODS:
        patches.wrap(torch.Tensor, name, _without_gpu)
    for name in ("fftfreq", "rfftfreq"):
        patches.wrap(torch.fft, name, _without_gpu)
    patches.wrap(torch.Tensor, "to", functools.partial(_moving, torch))
    for name in ("cuda", "cpu"):
        patches.wrap(torch.Tensor, name, functools.partial(_moving_at_once, torch))
    patches.set(torch.Tensor, "pin_memory", lambda tensor, device=None: tensor)
    patches.set(torch.Tensor, "record_stream", lambda tensor, stream: None)
    patches.wrap(torch.Tensor, "type", _typed)
    patches.wrap(torch, "set_default_tensor_type", _typing)
    patches.set(torch.Tensor, "is_cuda", property(_is_cuda))
    patches.set(torch.Tensor, "is_cpu", property(_is_cpu))
    patches.set(torch.Tensor, "device", property(_device_of(torch)))
    patches.wrap(torch.Tensor, "get_device", _index_of)
    patches.set(torch.nn.Module, "cuda", lambda module, device=None: module)
    patches.set(torch, "device", _device_class(torch.device))
    patches.wrap(torch, "Generator", _generator_class)
    asked: list[Any] = []
    patches.wrap(torch, "set_default_device", functools.partial(_first_on_host, asked))
    patches.wrap(torch, "get_default_device", functools.partial(_default_device, torch, asked))
    context = importlib.import_module("torch.utils._device").DeviceContext
    patches.wrap(context, "__init__", _entering)
    patches.wrap(torch, "load", _loading)
    patches.wrap(torch.autocast, "__init__", _autocasting)


def _without_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with a GPU among its keywords taken for the CPU."""

    @functools.wraps(function)
    def mapped(*args: Any, **keywords: Any) -> Any:
        if "device" in keywords:
            keywords["device"] = on_host(keywords["device"])
        if keywords.get("pin_memory"):
            keywords["pin_memory"] = False
        return function(*args, **keywords)

    return mapped


def _first_on_host(asked: list[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a device that takes a GPU for the CPU, and notes what was asked for."""

    @functools.wraps(function)
    def mapped(device: Any) -> Any:
        asked[:] = [device] if device is not None and is_gpu(device) else []
        return function(on_host(device))

    return mapped


def _default_device(torch: Any, asked: list[Any], function: Callable[..., Any]) -> Any:
    """Return ``torch.get_default_device``, which tells programs what they asked for."""

    @functools.wraps(function)
    def mapped() -> Any:
        if asked and asked_by_a_program():
            return torch.device(asked[0])
        return function()

    return mapped


def _entering(init: Callable[..., Any]) -> Callable[..., Any]:
    """Return what ``with torch.device("cuda")`` begins with, for the CPU."""

    @functools.wraps(init)
    def mapped(self: Any, device: Any) -> None:
        init(self, on_host(device))

    return mapped


def _moving(torch: Any, to: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.to`` between two memories that are one: see the package's docstring."""

    @functools.wraps(to)
    def mapped(tensor: Any, *args: Any, **keywords: Any) -> Any:
        device = keywords.get("device", args[0] if args else None)
        if not (is_gpu(device) or is_host(device)):
            return to(tensor, *args, **keywords)
        if "device" in keywords:
            keywords["device"] = HOST
        else:
            args = (HOST, *args[1:])
        if not _stays(torch, tensor) and len(args) < 4:
            keywords["copy"] = True
        return to(tensor, *args, **keywords)

    return mapped


def _moving_at_once(torch: Any, move: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.cuda`` or ``Tensor.cpu`` between two memories that are one."""

    @functools.wraps(move)
    def mapped(tensor: Any, *args: Any, **keywords: Any) -> Any:
        return tensor if _stays(torch, tensor) else tensor.clone()

    return mapped


def _stays(torch: Any, tensor: Any) -> bool:
    """Tell whether moving a tensor returns itself.

    Leaves with gradients stay, and so does what torch's own code moves. Where torch compiles, it
    decides itself what to copy, and could not follow the question who asks.
    """
    if torch.compiler.is_compiling() or (tensor.requires_grad and tensor.is_leaf):
        return True
    return not asked_by_a_program(3)


def _typed(to_type: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.type``, which takes types of a GPU by name for those of the CPU."""

    @functools.wraps(to_type)
    def mapped(tensor: Any, dtype: Any = None, *args: Any, **keywords: Any) -> Any:
        if dtype is None and asked_by_a_program():
            return to_type(tensor).replace("torch.", "torch.cuda.", 1)
        return to_type(tensor, _host_type(dtype), *args, **keywords)

    return mapped


def _typing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of one type of tensors that takes those of a GPU for the CPU's."""
    return functools.wraps(function)(lambda kind: function(_host_type(kind)))


def _host_type(kind: Any) -> Any:
    return kind.replace("torch.cuda.", "torch.") if isinstance(kind, str) else kind


def _is_cuda(tensor: Any) -> bool:
    return asked_by_a_program()


def _is_cpu(tensor: Any) -> bool:
    return not asked_by_a_program()


def _device_of(torch: Any) -> Callable[[Any], Any]:
    """Return the getter of ``Tensor.device``: to programs, tensors on the CPU are on the GPU."""
    truth = torch._C.TensorBase.device.__get__
    host, gpu = torch.device(HOST), torch.device("cuda", 0)

    def device(tensor: Any) -> Any:
        found = truth(tensor)
        return gpu if found == host and asked_by_a_program() else found

    return device


def _index_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Tensor.get_device``, which tells programs of the first GPU."""

    @functools.wraps(function)
    def mapped(tensor: Any) -> Any:
        return 0 if asked_by_a_program() else function(tensor)

    return mapped


def _device_class(real: Any) -> Any:
    """Return a class that stands for `torch.device`, to which a number is that of a GPU."""

    class Meta(type):
        def __call__(cls, *args: Any, **keywords: Any) -> Any:
            if args and isinstance(args[0], int):
                return real("cuda", *args)
            return real(*args, **keywords)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, real)

        def __getattr__(cls, name: str) -> Any:
            return getattr(real, name)

    return Meta("device", (), {"__module__": "torch", "__doc__": real.__doc__})


def _generator_class(real: Any) -> Any:
    """Return `torch.Generator`, whose GPUs are the CPU."""

    class Meta(type):
        def __call__(cls, device: Any = HOST) -> Any:
            return real(device=on_host(device))

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

    return Meta("Generator", (), {"__module__": "torch", "__doc__": real.__doc__})


def _loading(load: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``torch.load``, which finds no GPU on the way back."""

    @functools.wraps(load)
    def mapped(file: Any, map_location: Any = None, *args: Any, **keywords: Any) -> Any:
        if map_location is None or is_gpu(map_location):
            map_location = HOST
        return load(file, map_location, *args, **keywords)

    return mapped


def _autocasting(init: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``torch.autocast.__init__`` for the CPU."""

    @functools.wraps(init)
    def mapped(self: Any, device_type: str, *args: Any, **keywords: Any) -> None:
        init(self, HOST if is_gpu(device_type) else device_type, *args, **keywords)

    return mapped


GPUS = ("cuda", "hip")
HOST = "cpu"


def is_gpu(device: Any) -> bool:
    """Tell whether an argument that is a device, in any of torch's spellings, is a GPU."""
    if isinstance(device, str):
        return device.partition(":")[0] in GPUS
    if isinstance(device, int) and not isinstance(device, bool):
        return True
    return getattr(device, "type", None) in GPUS


def on_host(device: Any) -> Any:
    """Return the device that is meant: the CPU where a GPU is named, else `device` itself."""
    return HOST if device is not None and is_gpu(device) else device


def is_host(device: Any) -> bool:
    """Tell whether a device is the CPU by name."""
    if isinstance(device, str):
        return device.partition(":")[0] == HOST
    return bool(getattr(device, "type", None) == HOST)
