"""Tokens of printed tile IR, and a cursor over those of one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import TypeVar

from tile_core.errors import ParseError
from tile_core.records import dataclass

T = TypeVar("T")

HINT = "compare with what print_kernel writes for a kernel like it"
"""What to do about a text that is not well-formed."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+))
    | (?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<layout><(?=[A-Z]).*>(?=[,)]|$))
    | (?P<symbol>//|<<|>>|<=|>=|==|!=|->|[-+*/%&|^~<>=()\[\],:?@])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word: its kind ("number", "name", "string", "symbol", "end"), text and column."""

    kind: str
    text: str
    col: int


def tokenize(line: str, number: int) -> list[Token]:
    """Split `line`; columns count from 0.

    Raises `ParseError` at a character that starts no token.
    """
    tokens, at, text = [], 0, line.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise ParseError(f"line {number}, column {at + 1}: unexpected {text[at]!r}", hint=HINT)
        tokens.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    return [*tokens, Token("end", "", len(text))]


@dataclass(slots=True)
class Cursor:
    """A position among the tokens of one line."""

    tokens: list[Token]
    line: int
    at: int = field(default=0)

    @property
    def here(self) -> Token:
        """The token not yet consumed."""
        return self.tokens[self.at]

    def peek(self) -> Token:
        """Return the next token without consuming anything."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def next(self) -> Token:
        """Consume and return one token."""
        token = self.here
        self.at += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        """Consume the token `text` if it is next (never inside a string)."""
        if self.here.kind != "string" and self.here.text == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Consume the token `text`, or fail."""
        if not self.accept(text):
            raise self.error(f"expected {text!r}, got {self.here.text or 'the end of the line'!r}")

    def name(self) -> str:
        """Consume a name and return it."""
        if self.here.kind != "name":
            raise self.error(f"expected a name, got {self.here.text!r}")
        return self.next().text

    def integer(self) -> int:
        """Consume a whole number, possibly negative, and return it."""
        sign = -1 if self.accept("-") else 1
        if self.here.kind != "number":
            raise self.error(f"expected a whole number, got {self.here.text!r}")
        return sign * int(self.next().text)

    def items(self, closing: str, read: Callable[[], T]) -> tuple[T, ...]:
        """Consume what `read` reads, with commas between, up to and including `closing`."""
        found: list[T] = []
        while not self.accept(closing):
            if found:
                self.expect(",")
            found.append(read())
        return tuple(found)

    def error(self, message: str) -> ParseError:
        """Return an error that says where in the text this is."""
        return ParseError(f"line {self.line}, column {self.here.col + 1}: {message}", hint=HINT)
