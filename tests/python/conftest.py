"""Fixtures of all Python tests."""

from collections.abc import Iterator

import pytest

import dataset_rt as drt


@pytest.fixture
def runtime() -> Iterator[drt.DatasetRuntime]:
    with drt.DatasetRuntime(num_workers=2) as runtime:
        yield runtime
