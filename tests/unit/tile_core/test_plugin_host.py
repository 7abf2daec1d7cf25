"""The plugin host finds plugins, survives sick ones and explains what is missing."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest

from tile_core.errors import BackendNotFound, PassError, PluginConflict, PluginError, TargetError
from tile_core.pass_manager.pipeline import Pass, PassRegistration, Pipeline
from tile_core.plugins.backend import API_VERSION, Backend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.plugins.host import PluginHost, installed_plugins
from tile_core.target import Target, parse_target_spec


def backend(name="abacus", arches=("wood", "bone"), executor="", **fields):
    def parse_target(spec):
        target = parse_target_spec(spec)
        if target.kind != name or target.executor != executor:
            return None
        if target.arch and target.arch not in arches:
            raise TargetError(f"{name} knows no {target.arch!r}", hint=f"one of {arches}")
        return Target(name, target.arch or arches[0], executor)

    functions = {"parse_target": parse_target, "rules": lambda target: ()}
    functions |= dict.fromkeys(("lower", "source", "compile", "load"), str)
    return Backend(name=name, **(functions | fields))


def plugin(**hooks):
    module = ModuleType("plugin")
    for name, function in hooks.items():
        setattr(module, f"tile_{name}", hookimpl(function))
    return module


def provides(*backends):
    return plugin(backends=lambda: backends)


def host_of(**plugins):
    host = PluginHost()
    for name, one in plugins.items():
        host.add(name, one)
    return host


def rule(name):
    return SimpleNamespace(name=name)


def a_pass(name):
    return Pass(name=name, phase="tile", run=lambda program: program)


def registration(name, **place):
    return PassRegistration(entry=a_pass(name), **place)


def install(path, name, source, *, value=None):
    """Lay a distribution into `path` as pip would: a module and its entry point."""
    module = f"{name}_plugin"
    (path / f"{module}.py").write_text(source)
    info = path / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tile]\n{value or name} = {module}\n")


# Resolving targets -------------------------------------------------------------------------


def test_a_bare_host_knows_nothing():
    with pytest.raises(BackendNotFound, match="no backend serves target 'cpu'; installed: none"):
        PluginHost().resolve("cpu")
    with pytest.raises(BackendNotFound, match="no installed plugin offers a default target"):
        PluginHost().resolve()


def test_the_backend_completes_the_target():
    abacus = backend()
    host = host_of(abacus=provides(abacus), toy=provides(backend("toy")))
    assert host.resolve("abacus") == (abacus, Target("abacus", "wood"))
    assert host.resolve({"kind": "abacus", "arch": "bone"}) == (abacus, Target("abacus", "bone"))
    assert list(host.backends()) == ["abacus", "toy"]


def test_the_executor_may_be_another_plugins():
    machine = backend("abacus")
    simulator = backend("sim", parse_target=backend("abacus", executor="sim").parse_target)
    host = host_of(abacus=provides(machine), sim=provides(simulator))
    assert host.resolve("abacus:bone")[0] is machine
    assert host.resolve("abacus:bone@sim") == (simulator, Target("abacus", "bone", "sim"))


def test_an_unknown_architecture_is_the_backends_own_error():
    with pytest.raises(TargetError, match="abacus knows no 'steel'"):
        host_of(abacus=provides(backend())).resolve("abacus:steel")


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("cuda", "pip install 'tile-api[cuda]'"),
        ("hip:gfx942", "pip install 'tile-api[hip]'"),
        ("cuda:sm_90a@sim", "pip install 'tile-api[cuda,sim]'"),
        ("abacus@sim", "pip install 'tile-api[sim]'"),
        ("abakus", "did you mean 'abacus'?"),
        ("metal", "name one of the installed backends"),
    ],
)
def test_a_missing_backend_comes_with_a_way_out(spec, hint):
    with pytest.raises(BackendNotFound) as caught:
        host_of(abacus=provides(backend())).resolve(spec)
    assert caught.value.hint == hint
    assert "installed: abacus" in caught.value.message


def test_a_target_claimed_twice_is_a_conflict():
    twin = backend("abacus")
    greedy = backend("greedy", parse_target=twin.parse_target)
    host = host_of(abacus=provides(backend()), greedy=provides(greedy))
    with pytest.raises(PluginConflict, match="'abacus' and 'greedy' both claim target 'abacus'"):
        host.resolve("abacus")


def test_auto_is_the_first_answer_and_trylast_is_last():
    last = provides(backend("cpu", arches=("any",)))
    last.tile_default_target = hookimpl(trylast=True)(lambda: Target("cpu"))
    absent = plugin(backends=lambda: [backend("gpu")], default_target=lambda: None)
    host = host_of(gpu=absent, cpu=last)
    assert host.resolve("auto")[1] == Target("cpu", "any")
    host.add("present", plugin(default_target=lambda: Target("gpu")))
    assert host.resolve(None)[1] == Target("gpu", "wood")


def test_a_failing_probe_passes_to_the_next_plugin():
    def probe():
        raise OSError("libgpu.so.1: cannot open shared object file")

    host = host_of(
        cpu=plugin(backends=lambda: [backend("cpu")], default_target=lambda: Target("cpu")),
        gpu=plugin(default_target=probe),
    )
    assert host.resolve("auto")[1].kind == "cpu"
    assert "libgpu" in str(host.broken["gpu"])


# Sick plugins ------------------------------------------------------------------------------


def test_discovery_survives_a_plugin_that_does_not_import(tmp_path, monkeypatch):
    install(tmp_path, "sick", "raise ImportError('libsick.so.4: not found')")
    install(tmp_path, "well", "", value="well")
    monkeypatch.syspath_prepend(tmp_path)
    host = installed_plugins()
    assert "well" in host.plugins()
    assert "sick" in host.broken
    with pytest.raises(PluginError) as caught:
        host.resolve("sick")
    assert caught.value.message == (
        "the plugin for target 'sick' is installed but broken: ImportError: libsick.so.4: not found"
    )
    assert caught.value.__cause__ is host.broken["sick"]
    with pytest.raises(BackendNotFound) as elsewhere:
        host.resolve("metal")
    assert any("libsick.so.4" in note.text for note in elsewhere.value.notes)


def test_two_distributions_with_one_entry_point_name(tmp_path, monkeypatch):
    install(tmp_path, "first", "", value="same")
    install(tmp_path, "second", "", value="same")
    monkeypatch.syspath_prepend(tmp_path)
    host = installed_plugins()
    assert host.plugins().count("same") == 1
    assert isinstance(host.broken["same"], PluginConflict)


def test_disabled_plugins_are_not_even_imported(tmp_path, monkeypatch):
    install(tmp_path, "sick", "raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TILE_DISABLE_PLUGINS", "sick, other")
    host = installed_plugins()
    assert host.disabled == {"sick", "other"}
    assert "sick" not in host.broken
    with pytest.raises(BackendNotFound) as caught:
        host.resolve("sick")
    assert caught.value.hint == "remove it from TILE_DISABLE_PLUGINS"
    assert [note.text for note in caught.value.notes][-1] == "plugin 'sick' is disabled"


def test_a_misspelt_hook_is_refused_and_leaves_nothing_behind():
    host = PluginHost()
    with pytest.raises(PluginError, match="unknown hook 'tile_backend'"):
        host.add("typo", plugin(backend=lambda: ()))
    assert host.plugins() == ()
    with pytest.raises(PluginError, match="does not fit the hooks"):
        host.add("wrong", plugin(rules=lambda machine: ()))
    assert host.plugins() == ()
    host.add("typo", provides(backend()))
    assert host.resolve("abacus")[1].kind == "abacus"


def test_a_name_can_be_taken_only_once():
    host = host_of(abacus=provides(backend()))
    with pytest.raises(PluginConflict, match="two plugins are called 'abacus'"):
        host.add("abacus", provides(backend("other")))


def crash():
    raise RuntimeError("no luck")


@pytest.mark.parametrize(
    ("sick", "complaint"),
    [
        (plugin(backends=crash), "RuntimeError: no luck"),
        (plugin(backends=lambda: ["gpu"]), "'gpu', which is not a Backend"),
        (provides(backend("gpu", api_version=API_VERSION + 1)), f"plugin API {API_VERSION + 1}"),
    ],
)
def test_a_backend_that_cannot_be_described_harms_only_itself(sick, complaint):
    host = host_of(abacus=provides(backend()), gpu=sick)
    assert host.resolve("abacus")[1].kind == "abacus"
    with pytest.raises(PluginError, match="installed but broken") as caught:
        host.resolve("gpu")
    assert complaint in caught.value.message


def test_a_backend_that_cannot_parse_harms_only_itself():
    sick = backend("gpu", parse_target=lambda spec: 1 // 0)
    host = host_of(abacus=provides(backend()), gpu=provides(sick))
    assert host.resolve("abacus")[1].kind == "abacus"
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        host.resolve("gpu")


def test_two_backends_of_one_name_are_a_conflict():
    host = host_of(a=provides(backend()), b=provides(backend()))
    with pytest.raises(PluginConflict) as caught:
        host.resolve("abacus")
    assert caught.value.message == "two plugins provide a backend called 'abacus'"
    assert caught.value.hint == "set TILE_DISABLE_PLUGINS=b to leave one out"


# Rules, passes, observers ------------------------------------------------------------------


def test_rules_of_the_backend_come_before_those_of_plugins():
    asked = []

    def extra(target):
        asked.append(target)
        return [rule("extra.copy")]

    abacus = backend(rules=lambda target: [rule(f"{target.arch}.copy")])
    host = host_of(abacus=provides(abacus), extra=plugin(rules=extra))
    _, target = host.resolve("abacus:bone")
    assert [r.name for r in host.rules(target)] == ["bone.copy", "extra.copy"]
    assert host.rules(target) is host.rules(target)
    assert asked == [target]
    host.add("late", plugin(rules=lambda: [rule("late.copy")]))
    assert [r.name for r in host.rules(target)][1:] == ["extra.copy", "late.copy"]


def test_rules_of_one_name_are_a_conflict():
    host = host_of(
        abacus=provides(backend(rules=lambda target: [rule("copy")])),
        extra=plugin(rules=lambda target: [rule("copy")]),
    )
    with pytest.raises(PluginConflict, match="two rules are called 'copy'"):
        host.rules(Target("abacus"))


def test_a_plugin_that_fails_to_give_rules_is_named():
    host = host_of(abacus=provides(backend()), extra=plugin(rules=lambda target: crash()))
    with pytest.raises(PluginError) as caught:
        host.rules(Target("abacus"))
    assert caught.value.message == "plugin 'extra' failed in tile_rules: RuntimeError: no luck"
    assert caught.value.hint == "set TILE_DISABLE_PLUGINS=extra to leave one out"


def test_passes_are_ordered_by_name_whoever_loads_first():
    own = Pipeline((a_pass("fold"), a_pass("carry")))
    abacus = provides(backend(pipeline=lambda target: own))
    first, second = (
        plugin(passes=lambda target, n=n: [registration(n, after="fold")]) for n in "ca"
    )
    for extras in ({"x": first, "y": second}, {"x": second, "y": first}):
        host = host_of(abacus=abacus, **extras)
        assert host.pipeline(Target("abacus")).names == ("fold", "a", "c", "carry")
    host.add("z", plugin(passes=lambda target: [registration("a", before="carry")]))
    with pytest.raises(PluginConflict, match="two passes are called 'a'"):
        host.pipeline(Target("abacus"))


def test_passes_stand_next_to_those_of_other_plugins():
    abacus = provides(backend(pipeline=lambda target: Pipeline((a_pass("fold"),))))
    first = plugin(passes=lambda target: [registration("a", before="z")])
    second = plugin(passes=lambda target: [registration("z", before="fold")])
    host = host_of(abacus=abacus, x=first, y=second)
    assert host.pipeline(Target("abacus")).names == ("a", "z", "fold")
    host.add("w", plugin(passes=lambda target: [registration("b", before="fond")]))
    with pytest.raises(PassError, match="has no pass 'fond'") as caught:
        host.pipeline(Target("abacus"))
    assert caught.value.hint == "did you mean 'fold'?"


def test_programs_are_printed_only_for_listeners():
    heard, silent = [], PluginHost()
    silent.before_pass("fold", crash)
    silent.after_pass("fold", crash, crash)
    silent.kernel_built({})
    listening = host_of(
        spy=plugin(
            before_pass=lambda name, text: heard.append((name, text)),
            after_pass=lambda before, after: heard.append((before, after)),
            kernel_built=lambda report: heard.append(report["name"]),
        )
    )
    listening.before_pass("fold", lambda: "1 + 1")
    listening.after_pass("fold", lambda: "1 + 1", lambda: "2")
    listening.kernel_built({"name": "gemm"})
    assert heard == [("fold", "1 + 1"), ("1 + 1", "2"), "gemm"]
