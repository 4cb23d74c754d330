"""Paths as arguments."""

import os
from pathlib import Path


def path_text(path: str | Path, argument: str) -> str:
    """Return a path as text, or say which argument is none."""
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        if isinstance(text, str):
            return text
    raise TypeError(f"{argument} must be str or Path, found {type(path).__name__}")
