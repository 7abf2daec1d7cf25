"""Learning to make the calls of an executable in C, one kind of arguments at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_launch.native.caller import Caller, CallResult, Parameter
from tile_launch.native.launch_plans import Starter

MOST_ATTEMPTS = 64
"""How often in a row arguments are handed over to C in vain before that is given up."""


def not_in_c(*args: Any) -> Any:
    """Make no call: return NotImplemented, as callers do for arguments that they do not know."""
    return NotImplemented


class Learner:
    """Hands over to C what Python found out about calls of one executable.

    `call` makes the calls that C knows; for all others it returns NotImplemented, having done
    nothing. The executable's `starter`, if it has one, tells how C starts it;
    ``parameters(starter)`` is None if C cannot read one; the library is asked for once.
    """

    def __init__(
        self,
        executable: Callable[..., None],
        parameters: Callable[[Starter], Sequence[Parameter] | None],
        library: Callable[[], Any],
    ) -> None:
        self.call: Callable[..., Any] = not_in_c
        self._starter: Starter | None = getattr(executable, "starter", None)
        self._parameters = parameters
        self._library = library
        self._caller: Caller | None = None
        self._attempts = 0

    def learn(
        self,
        given: tuple[Any, ...],
        everything: Sequence[Any],
        makers: tuple[tuple[int, Callable[[], Any]], ...],
        outputs: tuple[int, ...],
        changed: tuple[int, ...],
    ) -> bool:
        """Let calls with arguments like these be made in C from now on, if that is possible.

        Arguments are as they were `given`, and `everything` that the code ran on, with outputs,
        which are positions of parameters. Returned is whether to come again with the next arguments
        that C did not know.
        """
        if self._starter is None or (self._caller is None and not self._begin(self._starter)):
            return False
        assert self._caller is not None, "it begins with a caller"
        start = self._starter.start(everything)
        self._attempts += 1
        outcome = CallResult(makers, outputs, changed)
        if start is not None and self._caller.remember(given, start, outcome):
            self._attempts = 0
            self.call = self._caller.call
        return self._attempts < MOST_ATTEMPTS

    def forget(self) -> None:
        """Know no kind of arguments any more."""
        if self._caller is not None:
            self._caller.forget()

    def _begin(self, starter: Starter) -> bool:
        """Make the caller; return whether there is one."""
        parameters = self._parameters(starter)
        library = None if parameters is None else self._library()
        if parameters is None or library is None:
            self._starter = None
            return False
        self._caller = Caller(library, parameters)
        return True
