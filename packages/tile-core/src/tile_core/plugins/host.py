"""The plugin host: finds plugins, survives sick ones, and answers who serves a target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import pluggy

from tile_core import __version__, verify_companion
from tile_core.environment import environment
from tile_core.errors import (
    BackendNotFound,
    CompanionError,
    Note,
    PluginConflict,
    PluginError,
    TileError,
)
from tile_core.installed import distribution, entry_points
from tile_core.logs import log
from tile_core.plugins import hookspecs
from tile_core.plugins.backend import API_VERSION, Backend
from tile_core.plugins.gpu_backend import GpuBackend
from tile_core.spelling import nearest
from tile_core.target import AUTO, Target, parse_target_spec

if TYPE_CHECKING:
    from tile_core.ir.stmt import Leaf
    from tile_core.ops.rule import Rule
    from tile_core.pass_manager.pipeline import Pipeline
    from tile_core.plugins.executor import Executor

DISABLE_VARIABLE = "TILE_DISABLE_PLUGINS"
EXTRAS = ("cuda", "hip", "sim")
"""Kinds and executors that come with ``pip install 'tile-api[...]'``."""
OURS = ("tile_cpu", "tile_cuda", "tile_hip", "tile_sim")
"""Packages whose plugins must be of this project, and of this version."""


class PluginHost:
    """A set of plugins and the questions that can be put to it.

    A bare ``PluginHost()`` knows no plugin: tests build their own. `discover` adds what is
    installed. Nothing here imports TVM or a toolchain.

    Those that are installed but could not be used are in `broken`, each with its own error: they
    matter only to who asks for the target they would have served.
    """

    def __init__(self, disabled: Collection[str] = ()) -> None:
        self.disabled = frozenset(disabled)
        self.broken: dict[str, Exception] = {}
        self.manager = pluggy.PluginManager(hookspecs.NAME)
        self.manager.add_hookspecs(hookspecs)
        self._backends: dict[str, Backend] | None = None
        self._executors: dict[str, Executor] | None = None
        self._rules: dict[Target, tuple[Rule[Any], ...]] = {}
        self._pipelines: dict[Target, Pipeline] = {}

    # Who is there --------------------------------------------------------------------------

    def discover(self) -> PluginHost:
        """Register every installed plugin; remember, rather than raise, what is wrong with one."""
        seen: dict[str, str] = {}
        for entry in entry_points(hookspecs.NAME):
            name = entry.name
            if name in self.disabled or seen.get(name) == entry.value:
                continue
            try:
                if name in seen:
                    raise PluginConflict(
                        f"{seen[name]} and {entry.value} are both called {name!r}",
                        hint="uninstall one of them",
                    )
                seen[name] = entry.value
                package = entry.value.partition(".")[0]
                if package in OURS:
                    verify_companion(package, __version__)
                self.add(name, entry.load())
            except Exception as error:  # one sick plugin must not take the others down
                self.broken[name] = error
        log("plugins", lambda: f"found {', '.join(self.plugins()) or 'none'}")
        for name, fault in self.broken.items():
            told = f"{name} is broken: {type(fault).__name__}: {fault}"
            log("plugins", told.__str__)
        return self

    def add(self, name: str, plugin: object) -> None:
        """Register `plugin` under `name`; every earlier answer is asked for again.

        Raises
        ------
        PluginConflict
            If a plugin of that name is registered already.
        PluginError
            If it implements a hook that does not exist, or with unknown arguments.
        """
        if self.manager.has_plugin(name):
            raise PluginConflict(f"two plugins are called {name!r}", hint=_disable(name))
        try:
            self.manager.register(plugin, name=name)
            self.manager.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            if self.manager.has_plugin(name):
                self.manager.unregister(name=name)
            raise PluginError(
                f"plugin {name!r} does not fit the hooks: {error}",
                hint="update the plugin, or disable it: TILE_DISABLE_PLUGINS=name",
            ) from error
        self._backends = None
        self._executors = None
        self._rules.clear()
        self._pipelines.clear()

    def plugins(self) -> tuple[str, ...]:
        """Return the names of all registered plugins, sorted."""
        return tuple(sorted(name for name, plugin in self._registered()))

    def backends(self) -> Mapping[str, Backend]:
        """Return every backend by name, in the order of their names.

        Raises
        ------
        PluginConflict
            If two plugins provide backends of one name.
        """
        if self._backends is None:
            self._backends = self._collect_backends()
        return self._backends

    def executors(self) -> Mapping[str, Executor]:
        """Return every executor by name, in the order of their names.

        Raises
        ------
        PluginConflict
            If two plugins provide executors of one name.
        """
        if self._executors is None:
            found: dict[str, Executor] = {}
            for executor in self._collect("tile_executors"):
                if executor.name in found:
                    raise PluginConflict(
                        f"two plugins provide an executor called {executor.name!r}",
                        hint=_disable(executor.name),
                    )
                found[executor.name] = executor
            self._executors = dict(sorted(found.items()))
        return self._executors

    # Who serves a target -------------------------------------------------------------------

    def resolve(self, spec: object = None) -> tuple[Backend, Target]:
        """Return the backend and the exact target meant by any spelling of a target.

        Raises
        ------
        TargetError
            If `spec` is not a target, or names a machine its backend does not know.
        BackendNotFound
            If no installed backend serves it.
        PluginError
            If the plugin that would serve it is installed but broken.
        PluginConflict
            If two backends claim it.
        """
        target = parse_target_spec(spec)
        if target.kind == AUTO:
            target = self.default_target()
        match self._claims(target) or self._executed(target):
            case [(backend, exact)]:
                return backend, exact
            case [(one, _), (other, _), *_]:
                raise PluginConflict(
                    f"backends {one.name!r} and {other.name!r} both claim target '{target}'",
                    hint=_disable(other.name),
                )
        raise self._nobody_serves(target)

    def default_target(self) -> Target:
        """Return the target meant by ``"auto"``: the first answer of the plugins.

        Raises
        ------
        BackendNotFound
            If no plugin answers.
        """
        # The order of pluggy's firstresult, but a failing probe passes to the next plugin.
        for implementation in reversed(self.manager.hook.tile_default_target.get_hookimpls()):
            try:
                answer = cast("Target | None", implementation.function())
            except Exception as error:
                self.broken[implementation.plugin_name] = error
                continue
            if answer is not None:
                return answer
        raise BackendNotFound(
            "no installed plugin offers a default target",
            notes=self._ailments(),
            hint="pip install tile-cpu",
        )

    def rules(self, target: Target) -> tuple[Rule[Any], ...]:
        """Return all rules for `target`: its backend's, then those that plugins add.

        Raises
        ------
        PluginConflict
            If two rules share a name.
        PluginError
            If a plugin fails while it is asked.
        """
        if target not in self._rules:
            backend, _ = self.resolve(target)
            rules = (*backend.rules(target), *self._collect("tile_rules", target=target))
            self._rules[target] = _unique(rules)
        return self._rules[target]

    def operators(self) -> dict[str, type[Leaf]]:
        """Return every class of operators by its mnemonic: the core's, then those of plugins.

        Raises
        ------
        PluginConflict
            If two operators share a mnemonic.
        PluginError
            If a plugin fails while it is asked.
        """
        from tile_core.ops.operator_table import OPERATORS

        found = dict(OPERATORS)
        for cls in self._collect("tile_operators"):
            if found.setdefault(cls.mnemonic, cls) is not cls:
                raise PluginConflict(
                    f"two operators are called {cls.mnemonic!r}",
                    hint="uninstall one of the plugins, or disable it: TILE_DISABLE_PLUGINS=name",
                )
        return found

    def pipeline(self, target: Target) -> Pipeline:
        """Return the passes for `target`: its backend's, with those of plugins among them.

        Raises
        ------
        PassError
            If a plugin puts its pass next to one that does not exist.
        PluginConflict
            If two passes share a name.
        PluginError
            If a plugin fails while it is asked.
        """
        if target not in self._pipelines:
            backend, _ = self.resolve(target)
            added = self._collect("tile_passes", target=target)
            self._pipelines[target] = backend.pipeline(target).registered(added)
        return self._pipelines[target]

    def packages(self, target: Target) -> tuple[str, ...]:
        """Return the import packages whose code decides what becomes of a kernel, sorted.

        Those of the compiler itself, of who serves `target`, and of every plugin that adds
        operators, rules or passes for any target. Nothing is asked, so nothing is imported.
        """
        backend, _ = self.resolve(target)
        found = {_package_of(backend.lower), _package_of(backend.compile), "tile_core"}
        for _, plugin in self._registered():
            hooks = {caller.name for caller in self.manager.get_hookcallers(plugin) or ()}
            if hooks & {"tile_operators", "tile_rules", "tile_passes"}:
                found.add(_package_of(plugin))
        return tuple(sorted(found))

    # Who listens ---------------------------------------------------------------------------

    def before_pass(self, name: str, text: Callable[[], str]) -> None:
        """Tell listeners that a pass begins; `text` prints the program, if anyone listens."""
        hook = self.manager.hook.tile_before_pass
        if hook.get_hookimpls():
            hook(name=name, text=text())

    def after_pass(self, name: str, before: Callable[[], str], after: Callable[[], str]) -> None:
        """Tell listeners what a pass did; both texts are printed only if anyone listens."""
        hook = self.manager.hook.tile_after_pass
        if hook.get_hookimpls():
            hook(name=name, before=before(), after=after())

    def kernel_built(self, report: Mapping[str, Any]) -> None:
        """Tell listeners that a kernel was compiled."""
        self.manager.hook.tile_kernel_built(report=report)

    # Inside --------------------------------------------------------------------------------

    def _registered(self) -> list[tuple[str, object]]:
        return [(n, p) for n, p in self.manager.list_name_plugin() if p is not None]

    def _ask(self, name: str, hook: str, **arguments: object) -> list[Any]:
        """Call `hook` of the plugin `name` alone, and return what it gives, flattened."""
        others = [plugin for other, plugin in self._registered() if other != name]
        caller = self.manager.subset_hook_caller(hook, others)
        return [item for items in caller(**arguments) for item in items]

    def _collect(self, hook: str, **arguments: object) -> Iterable[Any]:
        for name in self.plugins():
            try:
                yield from self._ask(name, hook, **arguments)
            except Exception as error:
                raise PluginError(
                    f"plugin {name!r} failed in {hook}: {_told(error)}", hint=_disable(name)
                ) from error

    def _collect_backends(self) -> dict[str, Backend]:
        found: dict[str, Backend] = {}
        for name in self.plugins():
            try:
                backends = self._ask(name, "tile_backends")
                for backend in backends:
                    _check_backend(backend)
            except Exception as error:  # remembered for who asks for this plugin's target
                self.broken[name] = error
                continue
            for backend in backends:
                if backend.name in found:
                    raise PluginConflict(
                        f"two plugins provide a backend called {backend.name!r}",
                        hint=_disable(name),
                    )
                found[backend.name] = backend
        return dict(sorted(found.items()))

    def _claims(self, target: Target) -> list[tuple[Backend, Target]]:
        claims = []
        for backend in tuple(self.backends().values()):
            try:
                exact = backend.parse_target(str(target))
            except TileError:
                raise
            except Exception as error:  # a defect of one backend; the others still serve
                self.broken[backend.name] = error
                self._backends = {n: b for n, b in self.backends().items() if b is not backend}
                continue
            if exact is not None:
                claims.append((backend, exact))
        return claims

    def _executed(self, target: Target) -> list[tuple[Backend, Target]]:
        """Return who lowers for `target`, served by the executor that the target names."""
        executor = self.executors().get(target.executor)
        if executor is None or target.kind not in executor.kinds:
            return []
        claims = self._claims(replace(target, executor=""))
        return [
            (executor.serving(backend), replace(exact, executor=executor.name))
            for backend, exact in claims
        ]

    def _ailments(self) -> tuple[Note, ...]:
        broken = [Note(f"plugin {n!r} is broken: {_told(e)}") for n, e in self.broken.items()]
        disabled = [Note(f"plugin {name!r} is disabled") for name in sorted(self.disabled)]
        return (*broken, *disabled)

    def _nobody_serves(self, target: Target) -> TileError:
        """Return the error for a target nobody claims, with the most likely way out."""
        wanted = [name for name in (target.executor, target.kind) if name]
        installed = list(self.backends())
        missing = [
            name for name in wanted if name not in installed and name not in self.executors()
        ]
        for name in missing:
            if stranger := self._stranger(name):
                return stranger
            if name in self.broken:
                error = PluginError(
                    f"the plugin for target '{target}' is installed but broken: "
                    f"{_told(self.broken[name])}",
                    hint=f"python -m pip install --force-reinstall tile-{name}",
                )
                error.__cause__ = self.broken[name]
                return error
        near = nearest(target.kind, [*installed, *EXTRAS])
        if any(name in self.disabled for name in wanted):
            hint = f"remove it from {DISABLE_VARIABLE}"
        elif extras := [name for name in missing if name in EXTRAS]:
            hint = f"pip install 'tile-api[{','.join(sorted(extras))}]'"
        elif "cpu" in missing:
            hint = "pip install tile-cpu"
        elif near and near != target.kind:
            hint = f"did you mean {near!r}?"
        elif target.kind in installed:
            hint = self._who_runs(target)
        else:
            hint = "name one of the installed backends"
        return BackendNotFound(
            f"no backend serves target '{target}'; installed: {', '.join(installed) or 'none'}",
            notes=self._ailments(),
            hint=hint,
        )

    def _stranger(self, name: str) -> CompanionError | None:
        """Return what is wrong with a plugin that is installed under the name of one of ours."""
        error, package = self.broken.get(name), f"tile_{name}"
        if error is None and package in OURS and distribution(f"tile-{name}") is not None:
            try:
                verify_companion(package, __version__)
            except Exception as found:  # others' packages raise what they like
                error = found
        return error if isinstance(error, CompanionError) else None

    def _who_runs(self, target: Target) -> str:
        """Return the hint for a target whose backend is here, and whose executor is not."""
        kind, known = target.kind, self.executors().items()
        names = [f"'{kind}@{name}'" for name, executor in known if kind in executor.kinds]
        if not names:
            return f"leave '@{target.executor}' out: no executor runs code for {kind}"
        return f"code for {kind} runs as {' or '.join(names)}"


def installed_plugins() -> PluginHost:
    """Return a host with every installed plugin but those ``TILE_DISABLE_PLUGINS`` names.

    The variable holds names of entry points, separated by commas, and is read here, once.
    """
    disabled = environment().get(DISABLE_VARIABLE, "").replace(",", " ").split()
    return PluginHost(disabled).discover()


@lru_cache(maxsize=1)
def default_host() -> PluginHost:
    """Return the host of installed plugins that serves whoever gives none, made on first use."""
    return installed_plugins()


def _check_backend(backend: object) -> None:
    if not isinstance(backend, Backend):
        raise PluginError(
            f"tile_backends gave {backend!r}, which is not a Backend",
            hint="return tile_core.plugins.backend.Backend objects from the hook",
        )
    if backend.api_version != API_VERSION:
        raise PluginError(
            f"backend {backend.name!r} was written for plugin API {backend.api_version}; "
            f"this is {API_VERSION}",
            hint="install versions of tile-core and of the plugin that belong together",
        )


def _unique(rules: tuple[Rule[Any], ...]) -> tuple[Rule[Any], ...]:
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            raise PluginConflict(
                f"two rules are called {rule.name!r}",
                hint="uninstall one of the plugins, or disable it: TILE_DISABLE_PLUGINS=name",
            )
        seen.add(rule.name)
    return rules


def _package_of(thing: object) -> str:
    """Return the import package of a module, a function or an object of a class.

    What a maker's GPUs do is decided by the package that describes them.
    """
    owner = getattr(thing, "__self__", None)
    if isinstance(owner, GpuBackend):
        return owner.package
    name = getattr(thing, "__module__", None) or getattr(thing, "__name__", "")
    return str(name).partition(".")[0]


def _disable(name: str) -> str:
    return f"set {DISABLE_VARIABLE}={name} to leave one out"


def _told(error: Exception) -> str:
    """Return an error on one line, with its class unless its text carries a code."""
    text = str(error).partition("\n")[0]
    return text if text.startswith("[TL") else f"{type(error).__name__}: {text}"
