"""The root of all errors: what each of them carries, how it is printed and how it travels."""

from __future__ import annotations

from typing import Any, ClassVar

from tile_core.spans import Note, Span


class TileError(Exception):
    """Root of every error raised on purpose. Subclasses fix `code`; instances fill the rest.

    Parameters
    ----------
    message
        What is wrong, in one sentence, naming the offending things.
    span
        The user's line that is wrong.
    notes
        Further places and reasons: declarations, first decisions, rejected rules.
    hint
        Something the user can type.
    """

    code: ClassVar[str] = "TL0000"

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        notes: tuple[Note, ...] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.span, self.notes, self.hint = message, span, notes, hint

    def __str__(self) -> str:
        parts = [f"[{self.code}] {self.message}"]
        if self.span is not None:
            parts.append(self.span.render())
        for note in self.notes:
            parts.append(f"note: {note.text}")
            if note.span is not None:
                parts.append(note.span.render())
        if self.hint is not None:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def at(self, span: Span | None) -> TileError:
        """Return this error with `span` filled in, if it had none yet."""
        if self.span is None:
            self.span = span
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by parts: errors cross process borders while kernels are tuned."""
        return _rebuild, (type(self), self.message, self.span, self.notes, self.hint)


def _rebuild(
    cls: type[TileError],
    message: str,
    span: Span | None,
    notes: tuple[Note, ...],
    hint: str | None,
) -> TileError:
    return cls(message, span=span, notes=notes, hint=hint)


class TileWarning(UserWarning):
    """A kernel that works, but not as well as its author may think."""
