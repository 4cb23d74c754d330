"""What the system tells of the memory of this process. Linux only."""

from pathlib import Path

STATUS = Path("/proc/self/status")


def status(field: str) -> int:
    """A size from this process's status, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"this system does not tell {field}")


def reset_peak() -> None:
    """Begins anew with the peak of resident memory."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_since_reset() -> int:
    """The peak of resident memory, in bytes."""
    return status("VmHWM")


def mapped(process: int | str, *fields: str) -> int:
    """Bytes of these kinds, such as `Private_Dirty`, in the mappings of a process."""
    lines = (line.split() for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:])
    sizes = {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines}
    return sum(sizes[field] for field in fields)
