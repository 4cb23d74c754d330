"""What a loader tells its user: log events of one line, and warnings that point at the caller."""

import logging
import sys
import warnings
from pathlib import Path

LOGGER_NAME = "dataset_rt.loader"
_PACKAGE = str(Path(__file__).parent.parent) + "/"


def log_event(event: str, **fields: object) -> None:
    """Log one line of `key=value` at level INFO.

    A process that has configured no logging, as spawned workers have not, still shows it, where Python would show a
    warning: on stderr, unless `logging.lastResort` says otherwise.
    """
    line = " ".join([f"event={event}", *(f"{name}={_text(value)}" for name, value in fields.items())])
    logger = logging.getLogger(LOGGER_NAME)
    if logger.hasHandlers():
        logger.info(line)
    elif _chosen_level(logger) <= logging.INFO and not logger.disabled and logger.manager.disable < logging.INFO:
        record = logger.makeRecord(LOGGER_NAME, logging.INFO, __file__, 0, line, (), None)
        last = logging.lastResort
        if logger.filter(record) and last is not None and last.level <= logging.WARNING:
            last.handle(record)


def warn(message: str, category: type[Warning]) -> None:
    """Warn about the first caller outside of this package."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _text(value: object) -> str:
    """A value without spaces; `None` in a list does not occur."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def _chosen_level(logger: logging.Logger) -> int:
    """The level that was set for this logger or the next one above. WARNING at the root is its default: nobody chose it."""
    current: logging.Logger | None = logger
    while current is not None:
        if current.level and not (current is logging.root and current.level == logging.WARNING):
            return current.level
        current = current.parent
    return logging.NOTSET
