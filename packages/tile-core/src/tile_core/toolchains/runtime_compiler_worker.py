"""The process in which a run-time compiler works: ``python -I -S FILE PREFIX SECONDS LIBRARY...``.

Run-time compilers of GPUs' makers are libraries with one interface under several prefixes, as in
``PREFIXCompileProgram``. They crash over some programs and do not come to an end for others: here
this process ends, by the alarm in the second case, and the one that asks goes on.

Messages are marshalled, after their length. The first one written tells what the library is; each
one read is one compilation. Nothing but the standard library is imported, and little of it.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import signal
import sys

TYPE_CHECKING = False  # that of `typing`, which takes long to import
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any, BinaryIO

LENGTH = 8
"""Bytes that tell the length of a message, the lowest first."""

ACCEPTED, REFUSED, FAILED = "accepted", "refused", "failed"
"""What becomes of a request: parts and a log; a log alone; the reason why there is no log."""

_INVALID_OPTION, _COMPILATION = 5, 6  # the log says what is wrong with options or text


def main(prefix: str, seconds: str, *paths: str) -> None:
    """Serve who started this process until its standard input ends."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints must not mix with replies
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.alarm(int(seconds))
    try:
        library = [ctypes.CDLL(path) for path in paths][-1]
        _send(replies, (ACCEPTED, *_facts(library, prefix)))
    except (OSError, AttributeError) as error:
        _send(replies, (FAILED, f"{paths[-1]} cannot be loaded: {error}"))
        return
    while len(head := sys.stdin.buffer.read(LENGTH)) == LENGTH:
        request = marshal.loads(sys.stdin.buffer.read(int.from_bytes(head, "little")))
        signal.alarm(int(seconds))
        reply = _compiled(library, prefix, *request)
        signal.alarm(0)
        _send(replies, reply)


def _send(pipe: BinaryIO, message: Any) -> None:
    packed = marshal.dumps(message)
    pipe.write(len(packed).to_bytes(LENGTH, "little") + packed)
    pipe.flush()


def _facts(library: Any, prefix: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return version and the numbers of architectures, if the library tells them."""
    getattr(library, f"{prefix}GetErrorString").restype = ctypes.c_char_p
    if not hasattr(library, f"{prefix}GetSupportedArchs"):
        return (), ()
    major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    getattr(library, f"{prefix}Version")(ctypes.byref(major), ctypes.byref(minor))
    getattr(library, f"{prefix}GetNumSupportedArchs")(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    getattr(library, f"{prefix}GetSupportedArchs")(numbers)
    return (major.value, minor.value), tuple(numbers)


def _compiled(
    library: Any,
    prefix: str,
    text: str,
    file: str,
    options: Collection[str],
    headers: Mapping[str, str],
    parts: Collection[str],
) -> tuple[Any, ...]:
    """Compile one translation unit; return its log and the `parts` of the result."""

    def check(code: int) -> None:
        if code:
            words = getattr(library, f"{prefix}GetErrorString")(code)
            raise RuntimeError(words.decode(errors="replace"))

    def read(what: str) -> bytes:
        size = ctypes.c_size_t()
        check(getattr(library, f"{prefix}Get{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        check(getattr(library, f"{prefix}Get{what}")(program, buffer))
        return buffer.raw[: size.value]

    def array(texts: Collection[str]) -> Any:
        return (ctypes.c_char_p * len(texts))(*(each.encode() for each in texts))

    program = ctypes.c_void_p()
    try:
        create = getattr(library, f"{prefix}CreateProgram")
        sources = (len(headers), array(headers.values()), array(headers))
        check(create(ctypes.byref(program), text.encode(), file.encode(), *sources))
        compile_program = getattr(library, f"{prefix}CompileProgram")
        code = compile_program(program, len(options), array(options))
        if code not in (0, _INVALID_OPTION, _COMPILATION):
            check(code)
        log = read("ProgramLog").rstrip(b"\0").decode(errors="replace")
        if code:
            return REFUSED, log
        return ACCEPTED, log, {part: read(part) for part in parts}
    except Exception as error:  # whatever it is, who asked is to know
        return FAILED, str(error)
    finally:
        if program.value:
            getattr(library, f"{prefix}DestroyProgram")(ctypes.byref(program))


if __name__ == "__main__":
    main(*sys.argv[1:])
