"""The front door: writes sources in worker processes and returns what a serial write would have returned."""

import functools
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dataset_rt._native import Runtime, sweep_staging
from dataset_rt.processes.children import leave_if_importing_main, refuse_in_daemon
from dataset_rt.processes.progress import progress_line
from dataset_rt.processes.sources import NamedSource, Probe
from dataset_rt.processes.supervisor import Hooks, Supervisor, Task

if TYPE_CHECKING:
    from dataset_rt.config import WriterConfig
    from dataset_rt.processes.messages import Outcome, Write


def write_in_processes(
    runtime: Runtime, sources: Sequence[Any], base: str, config: "WriterConfig", *, reuse: bool
) -> list[tuple[str, Path | str]]:
    """Write as `runtime.write` does, each source in one of `config.num_processes` spawned processes.

    Raises:
        RuntimeError: This process may not start others.
        BaseException: Equal to what a source raised in a worker process, if that was no `Exception`.
    """
    leave_if_importing_main()
    refuse_in_daemon()
    silent = config.model_copy(update={"show_progress": False})
    probes = [Probe.of(source) for source in sources]
    outcomes = runtime.write(probes, base, silent, reuse=reuse)
    tasks = [
        Task(position, outcomes[position][0], probe.known_fingerprint, probe.source)
        for position, probe in enumerate(probes)
        if isinstance(probe, Probe) and probe.wanted
    ]
    if not tasks:
        return outcomes
    with progress_line(len(sources), len(sources) - len(tasks), show=config.show_progress) as progress:
        written = Supervisor(
            functools.partial(make_native_writer, runtime.num_workers, base, silent, reuse=reuse),
            num_processes=config.num_processes,
            timeout_seconds=config.process_timeout_seconds,
            hooks=Hooks(
                progress=progress,
                published=functools.partial(_published, base),
                clean_up=functools.partial(_clean_up, base),
            ),
        ).run(tasks)
    return [(name, written.get(position, outcome)) for position, (name, outcome) in enumerate(outcomes)]


def make_native_writer(num_workers: int, base: str, config: "WriterConfig", *, reuse: bool) -> "Write":
    """Make the writer of a worker process, which has threads of its own."""
    runtime = Runtime(num_workers)

    def write(name: str, fingerprint: str | None, source: Any) -> "Outcome":
        ((_, outcome),) = runtime.write([NamedSource(name, fingerprint, source)], base, config, reuse=reuse)
        return outcome

    return write


def _published(base: str, name: str) -> Path | None:
    """The cache of a source, if there is one. Caches appear whole, and there was none before the worker processes began."""
    cache = Path(base, name)
    return cache if (cache / "manifest.json").is_file() else None


def _clean_up(base: str, _pid: int) -> None:
    """Remove what worker processes left unfinished. What cannot be removed must not hide why that process ended."""
    with suppress(OSError):
        sweep_staging(base)
