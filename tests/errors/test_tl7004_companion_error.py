"""TL7004: a package of the name of one of ours is somebody else's, or of another version."""

from __future__ import annotations

import ast
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tile_api import __version__
from tile_api.cli import doctor, main
from tile_core import verify_companion
from tile_core.companions import PACKAGES
from tile_core.errors import CompanionError
from tile_core.plugins.host import PluginHost

ROOT = Path(__file__).parents[2]


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Return a function that installs a distribution before all others, for this process, too."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name: str, version: str, author: str, code: str | None = "") -> Path:
        package = name.replace("-", "_")
        sys.modules.pop(package, None)
        folder = tmp_path / f"{package}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nAuthor: {author}\n\nText\n"
        )
        if code is not None:
            (tmp_path / package).mkdir()
            (tmp_path / package / "__init__.py").write_text(code)
        return tmp_path / package

    before = {name: sys.modules.get(name) for name in PACKAGES}
    yield install
    for name, module in before.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module


def imported(place: Path) -> str:
    """Return the last paragraph of what a fresh process says of ``import tile_api``."""
    code = f"import sys; sys.path.insert(0, {str(place)!r}); import tile_api"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 1
    return out.stderr[out.stderr.index("Error: [TL") + len("Error: ") :]


def test_a_launcher_of_somebody_else(index):
    place = index("tile-launch", "3.2", "A Stranger", "answer = 42\n")
    assert imported(place.parent) == (
        f"[TL7004] the package tile_launch in {place} is not this project's; "
        "installed is tile-launch 3.2 by A Stranger\n"
        "hint: python -m pip uninstall tile-launch; then install tile-launch "
        f"{__version__} from where tile-core {__version__} came from\n"
    )


def test_a_compiler_of_somebody_else(index):
    place = index("tile-core", "0.1.0", "A Stranger")
    assert imported(place.parent) == (
        f"[TL7004] the package tile_core in {place} is not this project's\n"
        "hint: python -m pip uninstall tile-core; then install tile-core "
        f"{__version__} from where tile-api {__version__} came from\n"
    )


OURS = '__author__ = "The tile authors"\n__version__ = "0.0.7"\n'


def test_another_version(index):
    place = index("tile-cpu", "0.0.7", "The tile authors", OURS)
    with pytest.raises(CompanionError) as caught:
        verify_companion("tile_cpu", __version__)
    assert str(caught.value) == (
        f"[TL7004] the package tile_cpu in {place} has version 0.0.7, and not {__version__}; "
        "installed is tile-cpu 0.0.7 by The tile authors\n"
        f"hint: python -m pip install 'tile-cpu=={__version__}'"
    )
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert isinstance(caught.value, ImportError)


def test_a_folder_that_hides_ours(index):
    place = index("tile-cpu", __version__, "The tile authors")
    with pytest.raises(CompanionError) as caught:
        verify_companion("tile_cpu", __version__)
    assert caught.value.hint == (
        f"take {place.parent} off sys.path: it hides the installed package"
    )


def test_a_distribution_without_the_package(monkeypatch, index):
    index("tile-cuda", "1.0", "A Stranger", None)
    monkeypatch.setattr("tile_core.import_module", missing)
    with pytest.raises(CompanionError) as caught:
        verify_companion("tile_cuda", __version__)
    assert caught.value.message == (
        "there is no package tile_cuda; installed is tile-cuda 1.0 by A Stranger"
    )


def missing(name: str) -> None:
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_a_backend_of_somebody_else_is_told_to_who_asks_for_its_target(index):
    index("tile-cuda", "1.0", "A Stranger")
    with pytest.raises(CompanionError, match=r"is not this project's.*by A Stranger"):
        PluginHost().resolve("cuda:sm_80")


def test_the_other_targets_work_on(index):
    place = index("tile-hip", "0.0.7", "The tile authors", OURS)
    entry = "[tile]\nhip = tile_hip.plugin\n"
    (place.parent / "tile_hip-0.0.7.dist-info" / "entry_points.txt").write_text(entry)
    host = PluginHost().discover()
    assert isinstance(host.broken["hip"], CompanionError)
    assert host.resolve("cpu")
    with pytest.raises(CompanionError, match=r"has version 0\.0\.7"):
        host.resolve("hip:gfx942")


def test_doctor_tells_it(index, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "TARGETS", ())
    assert main(["doctor"]) == 0
    assert "TL7004" not in capsys.readouterr().out
    place = index("tile-sim", "2.0", "A Stranger")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"^tile-sim +2\.0$", out, re.M)
    assert (
        f"\n[TL7004] the package tile_sim in {place} is not this project's; "
        "installed is tile-sim 2.0 by A Stranger\n"
        "hint: python -m pip uninstall tile-sim; then install tile-sim "
    ) in out


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_state_what_their_metadata_state(package):
    folder = ROOT / "packages" / package.replace("_", "-")
    tree = ast.parse((folder / "src" / package / "__init__.py").read_text())
    stated = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    metadata = (folder / "pyproject.toml").read_text()
    assert f'\nversion = "{stated["__version__"]}"\n' in metadata
    assert f'\nauthors = [{{ name = "{stated["__author__"]}" }}]\n' in metadata
    assert stated["__version__"] == __version__


def test_every_package_is_verified():
    assert sorted(PACKAGES) == sorted(
        path.name.replace("-", "_") for path in (ROOT / "packages").iterdir()
    )
