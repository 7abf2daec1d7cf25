"""TL6103: a rank waited in vain."""

from __future__ import annotations

import pytest

from support.rank_processes import run_in_processes
from support.rank_programs import late
from tile_api.ranks import in_threads
from tile_core.errors import RankTimeout


def test_a_rank_that_does_not_come(tmp_path):
    first, second = run_in_processes(tmp_path, 2, late, timeout=0.2)
    assert first.startswith("[TL6103] rank 0 has waited 0.2 s for rank 1 to come\n")
    assert second.startswith("[TL6103] rank 0 has waited 0.2 s for rank 1 to come\n")
    assert "hint: see what that rank does instead" in first


def test_a_wait_for_a_signal_that_never_comes(monkeypatch):
    from tile_launch.ranks.signal_header import LINE, SignalHeader

    def main(ranks):
        flags = ranks.signals(3)
        header = SignalHeader.from_address(flags.local.ctypes.data - LINE)
        with pytest.raises(RankTimeout) as caught, ranks.launch("a kernel", [flags]):
            assert ranks.rank or header.wait(flags.local.ctypes.data + 2 * LINE, 4) == 0
        assert not flags.everyone[:, :].any()
        return caught.value.message

    told = "rank 0 has waited 0.1 s for signal 2 to come to 4"
    assert in_threads(2, main, timeout=0.1) == [told, told]
