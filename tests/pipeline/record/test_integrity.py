"""What is found where the files of a record are not what was written."""

import shutil
from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.record.folder import read_record
from rankledger.pipeline.record.tables import damaged_files, unexpected_files
from tests.support.generated_data import search_collection, write_config

FILES = ["config.yaml", "scores.parquet", "summary.csv"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked")
    config = write_config(folder, {"web": search_collection(70, n_queries=6)}, {"search": ["ap"]})
    return rankledger.evaluate_config(config, tracking=False, runs_dir=folder / "runs").record


@pytest.fixture
def path(original, tmp_path) -> Path:
    return Path(shutil.copytree(original, tmp_path / original.name))


def test_a_record_is_what_was_written(path):
    record = read_record(path)

    assert [*damaged_files(record), *unexpected_files(record)] == []


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found_in_every_file(path, name):
    record = read_record(path)
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (path / name).write_bytes(data)

    (line,) = damaged_files(record)
    assert line.startswith(f"{path / name}: has changed since it was written (sha256 ")


def test_all_damage_is_listed_at_once(path):
    record = read_record(path)
    (path / "summary.csv").unlink()
    data = (path / "scores.parquet").read_bytes()
    (path / "scores.parquet").write_bytes(data[:-1])
    (path / "notes.txt").touch()
    (path / "more").mkdir()

    lines = [*damaged_files(record), *unexpected_files(record)]
    assert len(lines) == 4
    assert f"{len(data) - 1:,} bytes and not {len(data):,}" in lines[0]
    assert lines[1] == f"{path / 'summary.csv'}: file not found; restore the record"
    assert [line.partition(":")[0] for line in lines[2:]] == [str(path / "more"), str(path / "notes.txt")]
