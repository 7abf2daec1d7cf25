"""What is wrong with a package that is not this project's, or of another version.

Names on a package index are first come, first served: a distribution called as one of ours may be
somebody else's, and one of ours may be of another version. Either fails far from its cause: with
a missing attribute, or with a wrong result. `tile_core.verify_companion` finds it; metadata of
distributions are read only here.
"""

from __future__ import annotations

import os
from types import ModuleType

from tile_core.installed import distribution

PACKAGES = (
    "tile_api", "tile_core", "tile_launch", "tile_cpu", "tile_cuda", "tile_hip", "tile_sim",
    "tile_nn",
)  # fmt: skip
"""The import packages of this project."""

NOBODY = "somebody unknown"


def mismatch(
    package: str, version: str, module: ModuleType | None, us: str, own_version: str
) -> tuple[str, str]:
    """Return what was found instead of a package, where, and the way out.

    `module` is what importing it gave, None if there is none; `us` and `own_version` are ours.
    """
    place = ""
    if module is None:
        what = f"there is no package {package}"
    else:
        place = next(iter(getattr(module, "__path__", ())), str(module.__file__))
        what = f"the package {package} in {place} is not this project's"
        if getattr(module, "__author__", None) == us:
            found = getattr(module, "__version__", "none")
            what = f"the package {package} in {place} has version {found}, and not {version}"
    name = package.replace("_", "-")
    source = f"install {name} {version} from where tile-core {own_version} came from"
    installed = distribution(name)
    if installed is None:
        return f"{what}; no distribution {name} is installed", source
    author = _author(installed.read_text("METADATA") or installed.read_text("PKG-INFO") or "")
    if author != us:
        hint = f"python -m pip uninstall {name}; then {source}"
    elif installed.version != version:
        hint = f"python -m pip install '{name}=={version}'"
    elif place:
        hint = f"take {os.path.dirname(place)} off sys.path: it hides the installed package"
    else:
        hint = f"python -m pip install --force-reinstall '{name}=={version}'"
    return f"{what}; installed is {name} {installed.version} by {author}", hint


def _author(metadata: str) -> str:
    """Return who wrote a distribution, as its metadata states it; `NOBODY` if it does not."""
    for line in metadata.partition("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        if name.lower() in ("author", "author-email") and value.strip():
            return value.strip()
    return NOBODY
