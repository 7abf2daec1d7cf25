"""What is asked of one compilation, beside the kernel and the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.records import dataclass, replace

if TYPE_CHECKING:
    from tile_core.ops.rule import Rule
    from tile_core.pass_manager.manager import PassManager


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What the user asks of one compilation, beside the kernel and the target.

    Parameters
    ----------
    pass_configs
        Pairs of key and value, sorted by key.
    compile_flags
        Extra flags for the toolchain.
    verify_each
        Verify the IR after every pass.
    threads
        Threads of a CPU kernel; 0 follows the process.
    rules
        Every rule that may be selected; `build` fills in those of the target.
    passes
        What runs the passes of the target; `build` fills it in.
    skip
        Names of optional passes that are left out.
    stop_after
        The name of the pass with which `lower` ends: see `lower_until`.
    """

    pass_configs: tuple[tuple[str, object], ...] = ()
    compile_flags: tuple[str, ...] = ()
    verify_each: bool = False
    threads: int = 0
    rules: tuple[Rule[Any], ...] = ()
    passes: PassManager | None = None
    skip: tuple[str, ...] = ()
    stop_after: str = ""

    def as_asked(self) -> BuildOptions:
        """Return the options without what `build` fills in."""
        return replace(self, rules=(), passes=None)

    def config(self, key: str, default: object = None) -> object:
        """Return the value of a pass configuration."""
        return dict(self.pass_configs).get(key, default)
