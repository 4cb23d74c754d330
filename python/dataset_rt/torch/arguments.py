"""Arguments of a loader: what may be given, checked before anything else happens."""

import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from dataset_rt.paths import no_path
from dataset_rt.torch.plan import Partition

Auto: TypeAlias = Literal["auto"]
StartMethod: TypeAlias = Literal["inherit", "fork", "spawn", "forkserver"]

MAX_NATIVE_THREADS = 1024
MAX_WORKERS = 1024
# Torch asks workers for all of these at the beginning of a pass, one by one.
MAX_PREFETCH = 2**16
# Torch computes the number of batches in floating point: up to here without rounding.
MAX_SAMPLES = min(sys.maxsize, 2**53)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of `to_torch_dataloader` as they were given, `shuffle` having decided the partition."""

    batch_size: int
    sample_transform_fn: Callable[[Any], Any] | None
    collate_fn: Callable[[list[Any]], Any] | None
    shuffle: bool
    seed: int | Literal["random"]
    samples: int
    partition: Partition
    work_dir: Path | None
    num_workers: int | Auto
    drop_last: bool
    pin_memory: bool
    timeout: float
    native_num_workers: int | Auto
    multiprocessing_context: StartMethod | BaseContext
    worker_init_fn: Callable[[int], None] | None
    prefetch_factor: int | Auto
    persistent_workers: bool | Auto
    verbose: bool


def check(
    *,
    batch_size: object,
    sample_transform_fn: object,
    collate_fn: object,
    shuffle: object,
    seed: object,
    samples_per_epoch: object,
    inherited_samples: int,
    worker_partition: object,
    work_dir: object,
    num_workers: object,
    drop_last: object,
    pin_memory: object,
    timeout: object,
    native_num_workers: object,
    multiprocessing_context: object,
    worker_init_fn: object,
    prefetch_factor: object,
    persistent_workers: object,
    verbose: object,
) -> Arguments:
    """Check each argument alone. What depends on the number of workers is left to `check_for_workers`.

    Raises:
        TypeError: An argument is of another type than documented.
        ValueError: It is of that type, but not possible.
        OSError: `work_dir` is no directory.
    """
    shuffles = _bool("shuffle", shuffle)
    if isinstance(seed, str):
        _literal("seed", seed, ("random",), "an integer or 'random'")
        checked_seed: int | Literal["random"] = "random"
    else:
        checked_seed = _int("seed", seed, 0, 2**64 - 1, "or 'random'")
        if not shuffles:
            raise ValueError(
                f"seed must be 'random' with shuffle=False, where nothing is drawn, found {seed}; leave it out or shuffle"
            )
    if samples_per_epoch is None:
        samples = _int("samples_per_epoch, inherited from len(dataset),", inherited_samples, 1, MAX_SAMPLES)
    else:
        samples = _int("samples_per_epoch", samples_per_epoch, 1, MAX_SAMPLES, "or None")
    partition: Partition = "replicate" if shuffles else "split"
    if worker_partition is not None:
        partition = _literal("worker_partition", worker_partition, get_args(Partition), "'split', 'replicate' or None")
    context = multiprocessing_context
    if not isinstance(context, BaseContext):
        expected = "'inherit', 'fork', 'spawn', 'forkserver' or a multiprocessing context"
        context = _literal("multiprocessing_context", context, get_args(StartMethod), expected)
    return Arguments(
        batch_size=_int("batch_size", batch_size, 1, sys.maxsize),
        sample_transform_fn=_callable("sample_transform_fn", sample_transform_fn),
        collate_fn=_callable("collate_fn", collate_fn),
        shuffle=shuffles,
        seed=checked_seed,
        samples=samples,
        partition=partition,
        work_dir=_directory("work_dir", work_dir),
        num_workers=_auto_int("num_workers", num_workers, 0, MAX_WORKERS),
        drop_last=_bool("drop_last", drop_last),
        pin_memory=_bool("pin_memory", pin_memory),
        timeout=_seconds("timeout", timeout),
        native_num_workers=_auto_int("native_num_workers", native_num_workers, 1, MAX_NATIVE_THREADS),
        multiprocessing_context=context,
        worker_init_fn=_callable("worker_init_fn", worker_init_fn),
        prefetch_factor=_auto_int("prefetch_factor", prefetch_factor, 1, MAX_PREFETCH),
        persistent_workers=_auto_bool("persistent_workers", persistent_workers),
        verbose=_bool("verbose", verbose),
    )


def check_for_workers(arguments: Arguments, num_workers: int) -> None:
    """Check what depends on the number of loading workers.

    Raises:
        ValueError: An argument makes no sense with so many workers, or cannot be sent to them.
    """
    if num_workers == 0:
        for name, given in [
            ("timeout", arguments.timeout if arguments.timeout else "auto"),
            ("prefetch_factor", arguments.prefetch_factor),
            ("persistent_workers", arguments.persistent_workers or "auto"),
        ]:
            if given != "auto":
                raise ValueError(
                    f"{name} needs loading workers, found {name}={given} with num_workers=0; leave it out or set num_workers"
                )
        return
    callbacks = {"sample_transform_fn": arguments.sample_transform_fn}
    if start_method(arguments.multiprocessing_context) in ("spawn", "forkserver"):
        callbacks |= {"collate_fn": arguments.collate_fn, "worker_init_fn": arguments.worker_init_fn}
    for name, callback in callbacks.items():
        if callback is None:
            continue
        try:
            pickle.Pickler(_Nowhere(), pickle.HIGHEST_PROTOCOL).dump(callback)
        except Exception as error:
            raise ValueError(
                f"{name} must be picklable for num_workers={num_workers}, but {type(error).__name__}: {error}; "
                "define it at the top level of a module, or load in the main process with num_workers=0"
            ) from error


def start_method(context: StartMethod | BaseContext) -> str:
    """Name of the method by which workers will start."""
    if isinstance(context, str) and context != "inherit":
        return context
    decided = multiprocessing if isinstance(context, str) else context
    # Asked without `allow_none`, Python would decide for the whole program now. Its default comes first in the list.
    return decided.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


class _Nowhere:
    """A file that keeps nothing: what is pickled may be large."""

    def write(self, data: bytes | memoryview) -> int:
        return len(data)


def _told(value: object) -> str:
    """Return a value as messages show it: numbers that Python refuses to print by their size."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an int of {value.bit_length()} bits"
    return repr(value)


def _int(name: str, value: object, least: int, most: int, alternative: str = "") -> int:
    expected = f"an integer from {least} to {most}" + (f" {alternative}" if alternative else "")
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be {expected}, found {_told(value)} of type {type(value).__name__}")
    if not least <= value <= most:
        raise ValueError(f"{name} must be {expected}, found {_told(value)}")
    return value


def _auto_int(name: str, value: object, least: int, most: int) -> int | Auto:
    if isinstance(value, str):
        _literal(name, value, get_args(Auto), f"an integer from {least} to {most} or 'auto'")
        return "auto"
    return _int(name, value, least, most, "or 'auto'")


def _bool(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, found {_told(value)} of type {type(value).__name__}")
    return value


def _auto_bool(name: str, value: object) -> bool | Auto:
    if isinstance(value, bool):
        return value
    _literal(name, value, get_args(Auto), "True, False or 'auto'")
    return "auto"


def _literal(name: str, value: object, literals: tuple[str, ...], expected: str) -> Any:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {expected}, found {_told(value)} of type {type(value).__name__}")
    if value not in literals:
        raise ValueError(f"{name} must be {expected}, found {_told(value)}")
    return value


def _seconds(name: str, value: object) -> float:
    expected = "a finite number of seconds, at least 0"
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} must be {expected}, found {_told(value)} of type {type(value).__name__}")
    # Before anything makes a float of an int: the largest ones are none.
    if not 0 <= value <= sys.float_info.max:
        raise ValueError(f"{name} must be {expected}, found {_told(value)}")
    return value


def _callable(name: str, value: object) -> Callable[..., Any] | None:
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, found {_told(value)} of type {type(value).__name__}")
    return value


def _directory(name: str, value: object) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be str, Path or None, found {_told(value)} of type {type(value).__name__}")
    text = os.fsdecode(value)
    found = no_path(text)
    if found:
        raise ValueError(f"{name} must be an existing directory or None, found {found}")
    path = Path(text)
    # Raises what the system says if there is nothing, or something else.
    os.close(os.open(path, os.O_RDONLY | os.O_DIRECTORY))
    return path.resolve()
