"""What loggers are told: pytest's plugin for it visits all loggers of torch six times a test."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def listening(name: str, level: int) -> Iterator[list[logging.LogRecord]]:
    """Collect the records of the logger `name` from `level` on."""
    records: list[logging.LogRecord] = []
    logger, handler = logging.getLogger(name), logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    before = logger.level
    logger.setLevel(level)
    logger.addHandler(handler)
    try:
        yield records
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
