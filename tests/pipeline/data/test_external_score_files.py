"""External metrics: a JSON object, and nothing else."""

import gzip
import hashlib

import pytest

from rankledger.pipeline.data.readers import read_external_metrics
from tests.support.data_files import refusal


def test_numbers_are_read_with_the_hash_of_their_file(tmp_path):
    path = tmp_path / "costs.json"
    path.write_text('{"latency_p95_ms": 120, "dollars": 2.5e-3, "ü": -1}', encoding="utf-8")

    extra = read_external_metrics(str(path))

    assert list(extra.numbers.items()) == [("latency_p95_ms", 120.0), ("dollars", 0.0025), ("ü", -1.0)]
    assert extra.file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert extra.file.size == path.stat().st_size


def test_a_compressed_file_holds_the_same_numbers(tmp_path):
    (tmp_path / "costs.json.gz").write_bytes(gzip.compress(b'{"dollars": 1}'))

    assert read_external_metrics(str(tmp_path / "costs.json.gz")).numbers == {"dollars": 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ('{"a": 1', "is not JSON"),
        ('{"a": 1, "a": 9}', "is not JSON ('a' occurs twice); write an object of numbers"),
        pytest.param("[" * 100_000, "is not JSON (", id="nested too deeply"),
        ("[1]", "found list; write an object of numbers"),
    ],
)
def test_what_is_no_object_of_numbers_is_refused(tmp_path, text, message):
    path = tmp_path / "costs.json"
    path.write_text(text, encoding="utf-8")

    assert refusal(read_external_metrics, str(path)).startswith(f"{path}: {message}")


def test_only_finite_numbers_are_read_and_those_in_objects_have_dotted_names(tmp_path):
    """Results of lm_eval and dvc have strings, null and NaN beside the numbers: of eight entries, three are numbers."""
    path = tmp_path / "results.json"
    text = '{"p95": 110.5, "model": "bm25", "ok": true, "cost": null, "loss": NaN, "far": 1e999, "eval": %s, "l": [1]}'
    path.write_text(text % '{"arc": {"acc,none": 0.25, "alias": "arc"}, "n": 3}', encoding="utf-8")

    numbers = read_external_metrics(str(path)).numbers

    assert numbers == {"p95": 110.5, "eval.arc.acc,none": 0.25, "eval.n": 3.0}


def test_a_file_that_is_not_there_or_several_are_refused(tmp_path):
    assert "file not found" in refusal(read_external_metrics, str(tmp_path / "none.json"))
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
    assert "matches 2 files; name one" in refusal(read_external_metrics, str(tmp_path / "*.json"))
