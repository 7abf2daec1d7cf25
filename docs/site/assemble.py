"""The sources of the site: pages, the gallery of examples, the reference; ``nox -s docs``."""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
from pathlib import Path

from reference import write_reference

ROOT = Path(__file__).parents[2]
LONGEST = 80_000
"""Characters of a page: with colours its weight is six times as much."""

DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
_AT_THE_ROOT = (ROOT / "README.md", ROOT / "CHANGELOG.md")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_PARTS = {
    "Tutorials": "tutorials",
    "How to": "how-to",
    "Explanations": "explanation",
    "Reference": "reference",
    "Errors": "errors",
    "Decisions": "adr",
}


def main(out: Path) -> None:
    """Write the sources of the site below `out`, which is replaced."""
    shutil.rmtree(out, ignore_errors=True)
    for page in (*DOCS.glob("*.md"), *DOCS.glob("[!_]*/*.md"), *_AT_THE_ROOT):
        target = out / _name_of(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_in_parts(_with_links(page), target))
    for name in ("conf.py", "scorer.js"):
        shutil.copy(DOCS / "site" / name, out / name)
    for picture in DOCS.glob("[!_]*/*.svg"):
        shutil.copy(picture, out / picture.relative_to(DOCS))
    gallery = [_example(path, out) for path in sorted(EXAMPLES.rglob("*.py")) if _is_shown(path)]
    api = [f"api/{name}" for name in write_reference(out / "api")]
    _contents(out, gallery, api)


def _in_parts(text: str, target: Path) -> str:
    """Return the text of a page; what is too long for one is a page for each of its sections."""
    if len(text) < LONGEST:
        return text
    head, *sections = re.split(r"(?m)^## ", text)
    folder, names = target.with_suffix(""), []
    folder.mkdir()
    for section in sections:
        title, _, body = section.partition("\n")
        names.append(re.sub(r"\W+", "-", title.lower()).strip("-"))
        Path(folder, f"{names[-1]}.md").write_text(
            f"# {title}\n{body.replace('](../', '](../../')}"
        )
    return head + _tree([f"{folder.name}/{name}" for name in names])


def _name_of(page: Path) -> Path:
    return page.relative_to(DOCS) if page.is_relative_to(DOCS) else Path(page.name.lower())


def _is_shown(path: Path) -> bool:
    is_private = path.name.startswith("_")
    return not is_private and ast.get_docstring(ast.parse(path.read_text())) is not None


def _with_links(page: Path) -> str:
    """Return a page's text, whose links lead to pages of the site; others become code."""
    here = _name_of(page).parent

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if ":" in target:
            return found[0]
        place = (page.parent / target).resolve()
        if place.is_dir() and place.parent == DOCS:
            wanted = Path(place.name, "index.md")
        elif place.suffix == ".py" and place.is_relative_to(EXAMPLES) and place.exists():
            wanted = Path("gallery", place.relative_to(EXAMPLES)).with_suffix(".rst")
        elif place.is_relative_to(DOCS) or place in _AT_THE_ROOT:
            wanted = _name_of(place)
        else:
            path = os.path.relpath(place, ROOT)
            return text if text.strip("`") == path else f"{text} (`{path}`)"
        return f"[{text}]({os.path.relpath(wanted, here)}{anchor})"

    return _LINK.sub(link, page.read_text())


def _example(path: Path, out: Path) -> str:
    """Write the page of an example; return its name."""
    name = Path("gallery", path.relative_to(EXAMPLES)).with_suffix("")
    source = path.read_text()
    text = ast.get_docstring(ast.parse(source)) or ""
    title, _, rest = text.partition("\n")
    title = title.rstrip(".")  # a search for just these words finds the page first
    target = out / name.with_suffix(".rst")
    target.parent.mkdir(parents=True, exist_ok=True)
    code = "\n".join(f"   {line}" if line else "" for line in source.splitlines())
    shown = f"``python {path.relative_to(ROOT)}``"
    heading = f"{title}\n{'=' * len(title)}\n\n{rest}"
    target.write_text(f"{heading}\n\n{shown}\n\n.. code-block:: python\n\n{code}\n")
    return str(name)


def _contents(out: Path, gallery: list[str], api: list[str]) -> None:
    """Write the tables of contents."""
    trees = []
    for title, folder in _PARTS.items():
        pages = sorted(p.stem for p in (out / folder).glob("*.md") if p.stem != "index")
        (out / folder / "index.md").write_text(f"# {title}\n\n{_tree(pages)}")
        trees.append(f"{folder}/index")
    for name, title, pages in (("api", "Names", api), ("gallery", "Gallery", gallery)):
        inner = [page.partition("/")[2] for page in pages]
        (out / name / "index.md").write_text(f"# {title}\n\n{_tree(inner)}")
    order = ["readme", "tutorials/index", "gallery/index", *trees[1:4], "api/index", *trees[4:]]
    index = out / "index.md"
    index.write_text(index.read_text() + "\n" + _tree([*order, "glossary", "changelog"], "hidden"))


def _tree(pages: list[str], *options: str) -> str:
    told = "".join(f":{option}:\n" for option in (*options, "maxdepth: 1"))
    told = told.replace(":maxdepth: 1:", ":maxdepth: 1")
    return "```{toctree}\n" + told + "\n" + "\n".join(pages) + "\n```\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
