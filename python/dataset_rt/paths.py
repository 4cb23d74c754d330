"""Paths as arguments."""

import os
from pathlib import Path


def path_text(path: str | Path, argument: str) -> str:
    """Return a path as text, or say which argument is none."""
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        if isinstance(text, str):
            found = no_path(text)
            if found:
                advice = "" if text else "; '.' is the working directory"
                raise ValueError(f"{argument} must name a file or a directory, found {found}{advice}")
            return text
    raise TypeError(f"{argument} must be str or Path, found {type(path).__name__}")


def no_path(text: str) -> str:
    """Say why no file can have this path; empty if one can."""
    # Joined to another path it would silently be that one.
    if not text:
        return "an empty text"
    if "\0" in text:
        return f"a NUL in {text!r}"
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return f"{text!r}, which has letters that no name can have"
    return ""
