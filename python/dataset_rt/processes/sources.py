"""Two stand-ins for a source: one that the parent shows to the native writer, one that a worker process writes."""

from collections.abc import Iterator
from typing import Any


class Probe:
    """A source whose samples nobody has asked for yet.

    A serial write of probes settles everything that can be said without samples, in the same words as any serial write:
    names, duplicates, caches that exist, fingerprints. A probe that is iterated is what is left to be written.
    """

    def __init__(self, source: Any) -> None:
        self.wanted: bool = False
        self.source = source
        self.known_fingerprint: Any = None
        self._name: Any = None
        self._fault: Exception | None = None
        try:
            self._name = source.name
        except Exception as error:
            self._fault = error

    @staticmethod
    def of(source: Any) -> Any:
        """A probe, or the source itself where it has no name: what is said then names its class."""
        probe = Probe(source)
        return source if isinstance(probe._fault, AttributeError) else probe

    @property
    def name(self) -> Any:
        """The name of the source, which is read once."""
        if self._fault is not None:
            raise self._fault
        return self._name

    @property
    def fingerprint(self) -> Any:
        """The fingerprint of the source, or None."""
        try:
            self.known_fingerprint = self.source.fingerprint
        except AttributeError:
            # One that the class defines is there: it is its code that lacks something.
            if hasattr(type(self.source), "fingerprint"):
                raise
        return self.known_fingerprint

    def __iter__(self) -> Iterator[Any]:
        self.wanted = True
        return iter(())


class NamedSource:
    """A source under the name and fingerprint that were checked before it was sent, whatever it calls itself here."""

    def __init__(self, name: str, fingerprint: str | None, source: Any) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._source = source

    def __iter__(self) -> Iterator[Any]:
        return iter(self._source)
