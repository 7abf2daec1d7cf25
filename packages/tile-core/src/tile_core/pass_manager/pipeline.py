"""Pipelines as data: passes by name, in their order, and how others register theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

from tile_core.errors import PassError, PluginConflict
from tile_core.records import dataclass
from tile_core.spelling import nearest

PassKind: TypeAlias = Literal["transform", "check", "analysis"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One step of a pipeline, as data.

    Parameters
    ----------
    name
        What commands, traces, reports and errors call it; unique in its pipeline.
    phase
        The part of the pipeline it belongs to: passes of one phase have programs of one kind and
        one context. A pass that is registered before or behind another has that one's phase.
    run
        The function, or its place as ``"module:function"``: it is imported when it first runs,
        so that who knows a pipeline has not loaded it. It gets the program, then what `needs`
        names, then `options` by keyword. It changes nothing that it gets.
    needs
        Attributes of the phase's context that it gets behind the program, in order: machines,
        rules, analyses.
    options
        Pairs of a keyword and the attribute of the context whose value it gets.
    when
        Attributes of the context that must all be true; else the pass does not run.
    kind
        A *transform* returns the program that it leaves. A *check* leaves the program as it is.
        What an *analysis* returns is put into the context's `results` under the name of the pass.
        What a pass has to say of its choices are remarks: see `tile_core.remarks`.
    is_optional
        Programs are the same without it, if slower: users may leave it out.
    """

    name: str
    phase: str = ""
    run: Callable[..., Any] | str
    needs: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    when: tuple[str, ...] = ()
    kind: PassKind = "transform"
    is_optional: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        """What runs, imported if need be."""
        if not isinstance(self.run, str):
            return self.run
        module, _, name = self.run.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRegistration:
    """A pass that a plugin adds to pipelines, and where.

    Parameters
    ----------
    entry
        The pass, of a name that no other has. It has the phase of the pass that it is put next to.
    before, after
        The name of that pass: exactly one of them is given. Several passes that are registered
        at one place run in the order of their names, whichever plugin was loaded first.
    """

    entry: Pass
    before: str = ""
    after: str = ""

    @property
    def name(self) -> str:
        """Of the pass."""
        return self.entry.name


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes in the order in which they run.

    Examples
    --------
    >>> simple = Pipeline((Pass(name="verify", phase="tile", run="json:loads"),))
    >>> more = simple.inserted(Pass(name="print", run="json:dumps"), after="verify")
    >>> [(p.name, p.phase) for p in more.passes]
    [('verify', 'tile'), ('print', 'tile')]
    """

    passes: tuple[Pass, ...]
    last: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for entry in self.passes:
            if entry.name in seen:
                raise PluginConflict(
                    f"two passes are called {entry.name!r}",
                    hint="uninstall one of the plugins, or disable it: TILE_DISABLE_PLUGINS=name",
                )
            seen.add(entry.name)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all passes, in their order."""
        return tuple(entry.name for entry in self.passes)

    def phase(self, name: str) -> tuple[Pass, ...]:
        """Return the passes of one phase, in their order."""
        return tuple(entry for entry in self.passes if entry.phase == name)

    def inserted(self, entry: Pass, *, before: str = "", after: str = "") -> Pipeline:
        """Return the pipeline with one pass more, next to another and in its phase.

        Raises
        ------
        PassError
            If there is no such pass, or not exactly one is named.
        PluginConflict
            If there is a pass of the new one's name.
        """
        if (not before) == (not after):
            raise PassError(
                f"pass {entry.name!r} is registered neither before nor after one other pass",
                hint="name one: before='...' or after='...'",
            )
        at = self._index(before or after)
        placed = replace(entry, phase=self.passes[at].phase)
        at += bool(after)
        return replace(self, passes=(*self.passes[:at], placed, *self.passes[at:]))

    def registered(self, registrations: Iterable[PassRegistration]) -> Pipeline:
        """Return the pipeline with passes of plugins, also next to those of each other.

        Raises
        ------
        PassError
            If one is put next to a pass that does not exist.
        PluginConflict
            If two passes have one name.
        """
        made, waiting = self, sorted(registrations, key=lambda r: r.name)
        while waiting:
            known = set(made.names)
            ready = [r for r in waiting if (r.before or r.after) in known] or waiting[:1]
            # Each is put right behind its neighbour: the last one put there runs first.
            for r in sorted(ready, key=lambda r: r.name, reverse=bool(ready[0].after)):
                made = made.inserted(r.entry, before=r.before, after=r.after)
            waiting = [r for r in waiting if r not in ready]
        return made

    def without(self, name: str) -> Pipeline:
        """Return the pipeline without an optional pass.

        Raises
        ------
        PassError
            If there is no such pass, or programs are wrong or cannot be lowered without it.
        """
        entry = self.passes[self._index(name)]
        if not entry.is_optional:
            optional = ", ".join(p.name for p in self.passes if p.is_optional) or "none"
            raise PassError(
                f"pass {name!r} is necessary and cannot be skipped",
                hint=f"passes that can be skipped: {optional}",
            )
        return replace(self, passes=tuple(p for p in self.passes if p is not entry))

    def stopping_after(self, name: str) -> Pipeline:
        """Return the pipeline that ends with a pass: see `manager.PipelineStopped`.

        Raises
        ------
        PassError
            If there is no such pass.
        """
        self._index(name)
        return replace(self, last=name)

    def __str__(self) -> str:
        """Return a line for each pass, under the name of its phase."""
        lines: list[str] = []
        width = max((len(name) for name in self.names), default=0)
        phase = None
        for entry in self.passes:
            if entry.phase != phase:
                phase = entry.phase
                lines.append(f"{phase}:")
            told = [f"if {' and '.join(entry.when)}"] if entry.when else []
            told += ["optional"] if entry.is_optional else []
            lines.append(f"  {entry.name:<{width}}  {', '.join(told)}".rstrip())
        return "\n".join(lines)

    def _index(self, name: str) -> int:
        for at, entry in enumerate(self.passes):
            if entry.name == name:
                return at
        near = nearest(name, self.names)
        raise PassError(
            f"the pipeline has no pass {name!r}",
            hint=f"did you mean {near!r}?" if near else f"it has {', '.join(self.names)}",
        )
