"""An executor for tests of the runner: the name of a case says what goes wrong in it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from hardware.cases import Case, Pack
from hardware.executors import Arrays, Launch, NotHere, Solve
from hardware.memory import Image


class Misbehaving:
    """Copies what should come out, except where a case is named after a mistake."""

    computes = True

    def __init__(self) -> None:
        if "no GPU" in os.environ.get("TILE_MISBEHAVING", ""):
            raise RuntimeError("there is no GPU")
        self.is_broken, self.launches = False, 0

    def describe(self) -> str:
        """Return what this is."""
        return f"process {os.getpid()}"

    def is_usable(self) -> bool:
        """Tell whether nothing has failed for good."""
        return not self.is_broken

    def prepare(self, pack: Pack, case: Case, arrays: Arrays) -> Launch:
        """Refuse, or return what makes the mistake."""
        if case.name == "refused":
            raise RuntimeError("the driver refused it\nat length")

        def launch(number: int) -> list[np.ndarray | None]:
            self.launches += 1
            if self.is_broken:
                raise AssertionError("used after a failure")
            return [self._result(case, arrays, k) for k in range(len(case.arguments))]

        return launch

    def prepare_problem(self, pack: Pack, case: Case) -> Solve:
        """Refuse."""
        raise NotHere("there is no GPU")

    def _result(self, case: Case, arrays: Arrays, number: int) -> np.ndarray | None:
        argument = case.arguments[number]
        if not argument.data:
            return None
        result = arrays[argument.after or argument.data].copy()
        if not argument.after and case.name != "changes its input":
            return result
        match case.name.split()[0]:
            case "sleeps":
                time.sleep(600)
            case "dies":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "exits":
                sys.stdout.flush()
                os._exit(3)
            case "breaks":
                self.is_broken = True
                raise RuntimeError("an illegal memory access was encountered")
            case "wrong" | "changes":
                result.view(np.float32)[5] += 1
            case "sometimes" if self.launches % 2 == 0:
                result.view(np.float32)[5] += 1
            case "strays":
                image = Image(argument, arrays[argument.data])
                image.bytes[image.stop + 3] = 0
                image.result(image.bytes)
            case "loud":
                print("anything on standard output")
            case _:
                pass
        return result


HERE = f"{Path(__file__).parent.name}.{Path(__file__).stem}:Misbehaving"
"""What `hardware.executors.open_executor` opens it by."""
