"""Tell what is in caches, without reading their samples."""

import argparse

from dataset_rt._native import CacheSummary
from dataset_rt.command_line.output import FAILURES, caches, complain, printable, reason, size, tell, tell_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="directory of a cache")


def run(arguments: argparse.Namespace) -> int:
    """Tell about each path; give 1 if one is no complete cache."""
    status = 0
    for path in caches(arguments.paths):
        try:
            found = CacheSummary(path)
        except FAILURES as error:
            status = 1
            complain(reason(error))
            if arguments.json:
                tell_json({"path": path, "error": reason(error)})
        else:
            if arguments.json:
                tell_json(_for_programs(path, found))
            else:
                tell(_for_people(path, found))
    return status


def _for_programs(path: str, found: CacheSummary) -> dict[str, object]:
    return {
        "path": path,
        "error": None,
        "format_version": found.format_version,
        "source_name": found.source_name,
        "cache_id": found.cache_id,
        "fingerprint": found.fingerprint,
        "rows": found.rows,
        "payload_bytes": found.payload_bytes,
        "file_bytes": found.file_bytes,
        "shards": found.shards,
        "compression": found.compression,
        "schema": [{"name": name, "kind": kind} for name, kind in found.schema],
        "record_checksums": found.has_record_checksums,
    }


def _for_people(path: str, found: CacheSummary) -> str:
    lines = {
        "source": found.source_name,
        "rows": f"{found.rows:,}",
        "payload": size(found.payload_bytes),
        "on disk": size(found.file_bytes),
        "shards": f"{found.shards:,}",
        "columns": ", ".join(f"{name}: {kind}" for name, kind in found.schema) or "none",
        "compression": ", ".join(found.compression) or "none",
        "checksums": "of files and single records" if found.has_record_checksums else "of files",
        "fingerprint": "none" if found.fingerprint is None else found.fingerprint,
        "format": f"version {found.format_version}",
        "cache id": "none; its position in a call stands for it" if found.cache_id is None else str(found.cache_id),
    }
    return "\n".join([printable(path), *(f"  {title:<13}{printable(text)}" for title, text in lines.items())])
