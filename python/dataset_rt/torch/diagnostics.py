"""What a loader tells its user: log events of one line, and warnings that point at the caller."""

import logging
import sys
import warnings
from pathlib import Path

LOGGER_NAME = "dataset_rt.loader"
_PACKAGE = str(Path(__file__).parent.parent) + "/"


def log_event(event: str, **fields: object) -> None:
    """Log one line of `key=value` at level INFO.

    A process that has configured no logging, as spawned workers have not, still shows it, on stderr.
    """
    line = " ".join([f"event={event}", *(f"{name}={_text(value)}" for name, value in fields.items())])
    logger = logging.getLogger(LOGGER_NAME)
    if logger.hasHandlers():
        logger.info(line)
    elif _chosen_level(logger) <= logging.INFO and not logger.disabled and logger.manager.disable < logging.INFO:
        record = logger.makeRecord(LOGGER_NAME, logging.INFO, __file__, 0, line, (), None)
        if logger.filter(record):
            print(line, file=sys.stderr, flush=True)  # noqa: T201


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
    """The level that was set for this logger or one above. That of the root is its default: nobody configured it."""
    current: logging.Logger | None = logger
    while current is not None and current is not logging.root:
        if current.level:
            return current.level
        current = current.parent
    return logging.NOTSET
