"""What is done once a program imports a module."""

from __future__ import annotations

import sys

from tile_launch.import_hooks import when_imported


def test_things_are_done_behind_the_module_once(tmp_path, monkeypatch):
    (tmp_path / "late_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finders, done = [*sys.meta_path], []
    for n in range(3):
        when_imported("late_module", lambda n=n: done.append((n, sys.modules["late_module"].value)))
    assert len(sys.meta_path) == len(finders) + 1
    assert done == []
    import late_module

    assert done == [(0, 1), (1, 1), (2, 1)]
    assert late_module.__spec__.loader.get_source("late_module") == "value = 1\n"
    assert sys.meta_path == finders
    when_imported("late_module", lambda: done.append("now"))
    assert done[3:] == ["now"]
    del sys.modules["late_module"]
