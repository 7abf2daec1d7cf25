"""TL8003: no variant of a bundle runs on the machine at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.bundles import bundle_of_numbers
from tile_launch import load
from tile_launch.driver import Driver
from tile_launch.errors import MissingFeature, NoVariant


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Driver:
        raise MissingFeature("there is no driver")

    monkeypatch.setattr("tile_launch.loading._GPUS", {"cuda": missing, "hip": missing})


@pytest.mark.usefixtures("no_gpu")
def test_message(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path, "cuda:sm_80", "hip:gfx942")
    with pytest.raises(NoVariant) as caught:
        load(path)
    assert str(caught.value).replace(str(path), "x.tile") == (
        "[TL8003] x.tile has no variant for this machine; it has cuda:sm_80, hip:gfx942 "
        "(cuda:sm_80: there is no driver; hip:gfx942: there is no driver)\n"
        "hint: save one: kernel.save(path, targets=['cpu'])"
    )


@pytest.mark.usefixtures("no_gpu")
def test_what_was_asked_for_is_not_inside(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path, "cuda:sm_80")
    with pytest.raises(NoVariant) as caught:
        load(path, target="hip:gfx942")
    assert str(caught.value).replace(str(path), "x.tile") == (
        "[TL8003] x.tile has no variant for hip:gfx942; it has cuda:sm_80\n"
        "hint: save one: kernel.save(path, targets=['hip:gfx942'])"
    )


@pytest.mark.usefixtures("no_gpu")
def test_what_was_asked_for_cannot_run(tmp_path: Path) -> None:
    path = tmp_path / "x.tile"
    bundle_of_numbers(path, "cuda:sm_80")
    for target in ("cuda:sm_80", "cuda"):
        with pytest.raises(NoVariant) as caught:
            load(path, target=target)
        assert str(caught.value).replace(str(path), "x.tile") == (
            "[TL8003] the variant of x.tile for cuda:sm_80 cannot run here: there is no driver\n"
            "hint: run it on a machine that has this, or save a variant for this one: "
            "kernel.save(path, targets=['cpu'])"
        )
