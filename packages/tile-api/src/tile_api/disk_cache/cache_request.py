"""What is looked for in caches: a kernel, for an exact target, and what its key is."""

from __future__ import annotations

from functools import cached_property

from tile_api.keys import CompileKey, key_of
from tile_core.compilation.options import BuildOptions
from tile_core.crash import shallow
from tile_core.ir.stmt import Kernel
from tile_core.logs import log
from tile_core.pass_manager.instrumentation import timed
from tile_core.plugins.backend import Backend
from tile_core.plugins.host import PluginHost
from tile_core.records import dataclass
from tile_core.target import Target


@dataclass(frozen=True)
class CacheRequest:
    """A kernel that is looked for: what the driver would compile, and with whom."""

    kernel: Kernel
    target: Target
    backend: Backend
    options: BuildOptions
    host: PluginHost

    @property
    def names(self) -> dict[str, str]:
        """What it is called where events are told."""
        return {"kernel": self.kernel.name, "target": str(self.target)}

    @cached_property
    def key(self) -> CompileKey:
        """The key of the compilation, made when it is first asked for."""
        with timed("compile key", "cache"), shallow(self.kernel):
            return key_of(self.kernel, self.target, self.options, self.host)


def cache_request(
    kernel: Kernel, spec: object, options: BuildOptions, host: PluginHost
) -> CacheRequest:
    """Return what is looked for where `kernel` is to run on the target `spec`.

    Raises
    ------
    TileError
        Whatever is wrong with the target.
    """
    backend, target = host.resolve(spec)
    log("target", lambda: f"{kernel.name}: {spec} is {target}, compiled by {backend.name}")
    return CacheRequest(kernel, target, backend, options, host)
