"""The metadata table as a Polars frame. The only module that imports polars, and only when a table is asked for."""

import sys
import threading
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import polars as pl

    from dataset_rt._native import Dataset


class ArrowStream(Protocol):
    """A table of any library that speaks the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export as a stream of record batches."""
        ...


class FrameCache:
    """The frame of the newest table seen.

    Polars converts text and booleans when it imports them; that happens once for each table, and every caller gets a
    frame that shares the converted buffers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: tuple[int, pl.DataFrame] | None = None

    def frame(self, native: "Dataset") -> "pl.DataFrame":
        """Return the active table as a frame of the caller's own."""
        # First of all: a forked child may have inherited the lock locked.
        native.check_open()
        import polars as pl

        with self._lock:
            # The table may be replaced between the two questions: keep only what belongs together.
            while (held := self._held) is None or held[0] != native.table_version():
                version = native.table_version()
                self._held = (version, pl.DataFrame(native))
            return held[1].clone()

    def clear(self) -> None:
        """Let go of the buffers. Takes no lock, see `frame`; who is in there keeps what belongs to its own version."""
        self._held = None


def arrow_stream(metadata: "pl.DataFrame | ArrowStream") -> ArrowStream:
    """Check that a table can be handed to the native code, and say what to do where it cannot."""
    # A value can only be a polars object if polars is loaded.
    polars: Any = sys.modules.get("polars")
    if polars is not None and isinstance(metadata, polars.LazyFrame):
        raise TypeError("metadata must be a table, found a polars LazyFrame; call .collect() on it first")
    if polars is not None and isinstance(metadata, polars.DataFrame):
        frame: Any = metadata
        for name, dtype in frame.schema.items():
            # Polars refuses to nest objects in other types, and hands those at the top over as bare pointers.
            if dtype == polars.Object:
                raise ValueError(
                    f'column "{name}" has a type that Arrow does not know ({dtype}); drop or cast it before the update'
                )
    elif not hasattr(type(metadata), "__arrow_c_stream__"):
        raise TypeError(
            "metadata must be a polars DataFrame or an object with __arrow_c_stream__ (pyarrow, pandas >= 2.2), "
            f"found {type(metadata).__name__}"
        )
    return metadata
