"""The assembly of a GPU program as text: instructions, labels, constant data, descriptors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LABEL = re.compile(r"^([A-Za-z_.$][\w.$@]*):\s*(.*)$")
_SECTION = re.compile(r"^\.(?:section\s+)?(\.?[\w.]+)")
_MODIFIER = re.compile(r"^[a-z_]\w*:")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_WIDTHS = {
    ".byte": 1, ".2byte": 2, ".short": 2, ".hword": 2, ".4byte": 4, ".long": 4, ".int": 4,
    ".8byte": 8, ".quad": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction as it stands in the text, whose lines count from 1.

    Of ``v_add_u32_e32`` operands are ``("v1", "s3", "v1")``; modifiers, which follow the operands,
    are such as ``{"offset": "16", "offen": ""}``.
    """

    number: int
    mnemonic: str
    operands: tuple[str, ...]
    modifiers: dict[str, str] = field(default_factory=dict)
    text: str = ""

    def __str__(self) -> str:
        return f"line {self.number}: {self.text}"


@dataclass(frozen=True, slots=True)
class Assembly:
    """A parsed file: the instructions of all functions, in the order of the text.

    Labels are positions of instructions that they stand before; `data` are the bytes of each symbol
    outside of the code. Descriptors are ``.amdhsa_*`` directives of each kernel, without that
    prefix; metadata the text between ``.amdgpu_metadata`` and its end. The architecture, such as
    ``gfx942``, may not be said.
    """

    lines: tuple[Line, ...]
    labels: dict[str, int]
    data: dict[str, bytes]
    descriptors: dict[str, dict[str, int]]
    metadata: str
    architecture: str


def parse(text: str) -> Assembly:
    r"""Parse the assembly that clang prints for an AMD GPU.

    Examples
    --------
    >>> program = parse("f:\n  s_mov_b32 s0, 1 ; one\n.L1:\n  s_branch .L1\n")
    >>> [line.mnemonic for line in program.lines], program.labels
    (['s_mov_b32', 's_branch'], {'f': 0, '.L1': 1})
    """
    parser = _Parser()
    for number, raw in enumerate(text.splitlines(), 1):
        parser.take(number, raw)
    return Assembly(
        tuple(parser.lines),
        parser.labels,
        {name: bytes(data) for name, data in parser.data.items()},
        parser.descriptors,
        "\n".join(parser.metadata),
        parser.architecture,
    )


class _Parser:
    """The state between two lines: the section, and what is open."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.labels: dict[str, int] = {}
        self.data: dict[str, bytearray] = {}
        self.descriptors: dict[str, dict[str, int]] = {}
        self.metadata: list[str] = []
        self.architecture = ""
        self._is_code, self._in_metadata = True, False
        self._symbol: bytearray | None = None
        self._kernel: dict[str, int] | None = None

    def take(self, number: int, raw: str) -> None:
        if self._in_metadata:
            self._in_metadata = raw.strip() != ".end_amdgpu_metadata"
            if self._in_metadata:
                self.metadata.append(raw)
            return
        # Comments go; texts, which may hold their signs, are on lines of their own.
        statement = (raw if '"' in raw else raw.partition(";")[0].partition("//")[0]).strip()
        label = _LABEL.match(statement)
        if label:
            self._label(label[1])
            statement = label[2].strip()
        if not statement:
            return
        if statement.startswith("."):
            self._directive(statement)
        elif self._is_code:
            self.lines.append(parse_line(statement, number))

    def _label(self, name: str) -> None:
        if self._is_code:
            self.labels[name] = len(self.lines)
        else:
            self._symbol = self.data.setdefault(name, bytearray())

    def _directive(self, statement: str) -> None:
        name, rest = (*statement.split(None, 1), "")[:2]
        if name == ".amdgcn_target":
            self.architecture = rest.strip('"').rpartition("-")[2].partition(":")[0]
        elif name == ".amdhsa_kernel":
            self._kernel = self.descriptors.setdefault(rest, {})
        elif name == ".end_amdhsa_kernel":
            self._kernel = None
        elif name.startswith(".amdhsa_") and self._kernel is not None:
            if re.fullmatch(r"-?\d+", rest):
                self._kernel[name[len(".amdhsa_") :]] = int(rest)
        elif name == ".amdgpu_metadata":
            self._in_metadata = True
        elif name in {".text", ".data", ".bss", ".rodata", ".section"}:
            section = _SECTION.match(statement)
            self._is_code = section is not None and section[1].startswith((".text", "text"))
            self._symbol = None
        elif not self._is_code and self._symbol is not None:
            self._symbol += _bytes_of(name, rest)


def _bytes_of(directive: str, rest: str) -> bytes:
    """Return what a directive puts into a section of data."""
    if directive in _WIDTHS:
        width = _WIDTHS[directive]
        values = [int(item, 0) % (1 << 8 * width) for item in rest.split(",")]
        return b"".join(value.to_bytes(width, "little") for value in values)
    if directive in {".ascii", ".asciz"}:
        quoted = _QUOTED.search(rest)
        told = quoted[1] if quoted else ""
        end = b"\0" if directive == ".asciz" else b""
        return told.encode().decode("unicode_escape").encode("latin-1") + end
    if directive in {".zero", ".skip", ".space"}:
        count, _, value = rest.partition(",")
        return bytes([int(value or "0", 0)]) * int(count, 0)
    if directive == ".fill":
        repeat, size, number = (*(int(item, 0) for item in rest.split(",")), 1, 0)[:3]
        return number.to_bytes(size, "little") * repeat
    return b""


def parse_line(text: str, number: int = 1) -> Line:
    """Split an instruction into its mnemonic, its operands and its modifiers.

    Examples
    --------
    >>> line = parse_line("v_pk_add_f16 v0, v1, -|v2| op_sel:[0,1] clamp")
    >>> line.operands, line.modifiers
    (('v0', 'v1', '-|v2|'), {'op_sel': '[0,1]', 'clamp': ''})
    """
    mnemonic, _, rest = text.replace("\t", " ").partition(" ")
    pieces = _split(rest.strip())
    words = _words(pieces[-1]) if pieces else []
    if mnemonic == "s_waitcnt" or not words:
        tail: list[str] = []
        operands: tuple[str, ...] = (rest.strip(),) if rest.strip() else ()
    else:
        first = 0 if _MODIFIER.match(words[0]) else 1
        operands = (*pieces[:-1], *words[:first])
        tail = words[first:]
    modifiers = {word.partition(":")[0]: word.partition(":")[2] for word in tail}
    return Line(number, mnemonic, operands, modifiers, " ".join(text.split()))


def _split(text: str) -> list[str]:
    """Split at commas that stand outside of brackets."""
    pieces, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        if letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == "," and depth == 0:
            pieces.append(text[start:position].strip())
            start = position + 1
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def _words(text: str) -> list[str]:
    """Split at blanks that stand outside of brackets."""
    words, depth, word = [], 0, ""
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == " " and depth == 0:
            words.append(word)
            word = ""
        elif letter != " ":
            word += letter
    words.append(word)
    return [word for word in words if word]
