"""A filesystem that several tests of the readers share."""

import pyarrow.fs
import pytest

from rankledger.pipeline.data import locate


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    filesystem = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    opened = locate.open_filesystem

    def open_bucket(path):
        scheme, separator, name = path.partition("://")
        name = name.partition("?")[0]
        return ("bucket://", filesystem, name) if separator and scheme == "bucket" else opened(path)

    monkeypatch.setattr(locate, "open_filesystem", open_bucket)
    return "bucket://"
