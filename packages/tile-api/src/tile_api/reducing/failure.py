"""What became of a kernel that was tried, and whether two kernels fail in the same way."""

from __future__ import annotations

import re
from dataclasses import dataclass

FINE, ERROR, WRONG, CRASH, HANG = "fine", "error", "wrong", "crash", "hang"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What became of one kernel.

    It is ``fine``, ``error``, ``wrong`` (another result than the interpreter's), ``crash`` or
    ``hang`` in the phase ``compile``, ``reference`` (in the interpreter) or ``run``. The code is
    that of an error, or the name of its class; of a crash the name of the signal. `message` is one
    sentence, `text` everything, such as an error with notes and hint.
    """

    kind: str
    phase: str = ""
    code: str = ""
    message: str = ""
    text: str = ""

    def told(self) -> str:
        """Return the outcome as part of a sentence.

        Examples
        --------
        >>> RunOutcome("error", "compile", "TL9001", "no rule").told()
        'TL9001 while it compiles: no rule'
        >>> RunOutcome("wrong", "run", message="B differs").told()
        "a result other than the interpreter's: B differs"
        """
        when = {
            "compile": "while it compiles",
            "run": "while it runs",
            "reference": "in the reference interpreter",
        }.get(self.phase, "")
        what = {
            FINE: "nothing wrong",
            ERROR: f"{self.code} {when}",
            WRONG: "a result other than the interpreter's",
            CRASH: f"a crash ({self.code}) {when}",
            HANG: f"no end {when}",
        }[self.kind]
        return f"{what}: {self.message}" if self.message else what


@dataclass(frozen=True, slots=True)
class Failure:
    """A way to fail, in which a smaller kernel has to fail too.

    An empty phase or code is any. The message has to hold `needle`, or else to have this `gist`
    (see `gist_of`) unless that is empty.
    """

    kind: str
    phase: str = ""
    code: str = ""
    needle: str = ""
    gist: str = ""

    def is_seen_in(self, outcome: RunOutcome) -> bool:
        """Tell whether a kernel failed in this way."""
        if outcome.kind != self.kind or outcome.phase == "reference":
            return False
        if (self.phase and outcome.phase != self.phase) or (
            self.code and outcome.code != self.code
        ):
            return False
        if self.needle:
            return self.needle in outcome.text or self.needle in outcome.message
        return not self.gist or gist_of(outcome.message) == self.gist


def same_as(outcome: RunOutcome) -> Failure:
    """Return the failure that an outcome shows: its kind, and an error's code and gist.

    Messages of wrong results and crashes tell of numbers, which are other ones for each kernel.
    """
    gist = gist_of(outcome.message) if outcome.kind == ERROR else ""
    return Failure(outcome.kind, outcome.phase, outcome.code, gist=gist)


_NAMES = re.compile(r"\"[^\"]*\"|'[^']*'")
_LISTS = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")
_NUMBERS = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


def gist_of(message: str) -> str:
    """Return a message without what is other in a smaller kernel: names, numbers and shapes.

    Examples
    --------
    >>> gist_of("T.copy cannot fit 'A'[0:128, 0:32] of float16 into 4 banks")
    'T.copy cannot fit @@ of float# into # banks'
    """
    text = _NAMES.sub("@", message)
    before = ""
    while before != text:
        before, text = text, _LISTS.sub("@", text)
    return _NUMBERS.sub("#", text)
