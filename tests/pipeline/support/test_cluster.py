"""A Dask cluster as far as it needs no scheduler; tests/system/test_dask.py has a real one."""

from __future__ import annotations

import sys

import pytest

from rankledger.pipeline.support.cluster import Cluster
from rankledger.pipeline.support.errors import InputError


def test_without_distributed_the_error_names_the_extra(monkeypatch):
    """One line that says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(InputError, match=r"^the backend dask needs distributed; pip install 'rankledger\[dask\]'$"):
        Cluster("tcp://127.0.0.1:1", 1).run("Reading", len, [("",)], unit="outputs")
