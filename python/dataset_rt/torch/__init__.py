"""PyTorch adapters. Importing this package does not import torch; only asking for an adapter does."""

import importlib
from typing import Any, Literal


def require_torch(adapter: Literal["iterable", "loader"]) -> Any:
    """Import one of the adapters.

    Raises:
        ImportError: PyTorch is not installed.
    """
    try:
        # Not `torch` alone: any directory of that name would do as a package.
        importlib.import_module("torch.utils.data")
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "torch.utils", "torch.utils.data"):
            raise
        raise ImportError(
            "PyTorch is needed for this and is not installed; install it with: pip install 'dataset-rt[torch]'",
            name="torch",
        ) from error
    return importlib.import_module(f"dataset_rt.torch.{adapter}")
