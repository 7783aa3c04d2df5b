"""Results of other tools: files as each tool writes them give the scores that it gave, and what is unclear is refused.

`tests/golden/scores` has the files; its README names tool, version and command.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import external_measure
from rankledger.pipeline.data.external_scores import ExternalOutput, external_dataset, read_external_scores
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.types.inputs import DatasetSource, Source

GOLDEN = Path(__file__).parents[2] / "golden" / "scores"
CONVENTIONS = PROFILES["trec_eval"].conventions
NAN = float("nan")


def read(path: Path | str, *names: str, **options: Any) -> ExternalOutput:
    return read_external_scores(Source(str(path), **options), [external_measure(name) for name in names])


def scores(found: ExternalOutput) -> dict[str, list[float]]:
    return dict(zip(found.query_ids, found.values.T.tolist(), strict=True))


def refusal(path: Path | str, *names: str, **options: Any) -> str:
    """What is said of it, without the folder."""
    with pytest.raises(InputError) as refused:
        read(path, *names, **options)
    return str(refused.value).replace(f"{Path(path).parent}/", "")


SMALL = GOLDEN / "inspect" / "small.json"
LARGE = GOLDEN / "inspect" / "large.eval"
TWICE = GOLDEN / "inspect" / "twice.eval"


def test_a_log_of_inspect_as_json():
    """Four samples, one with a text as its id: C is 1, P 0.5, I 0; of a scorer with several values each has a name."""
    found = read(SMALL, "includes", "close", "style.brief", "style.polite")

    assert scores(found) == {
        "1": [1, 1, 1, 0],
        "2": [1, 1, 1, 0],
        "3": [0, 0.5, 1 / 8, 1],  # `7 please`: eight letters, and 7 is one off 6
        "last": [0, 0.5, 1, 0],
    }
    assert found.remarks == (f"{SMALL}: read as results of inspect, which its contents look like (format: inspect)",)
    assert read(SMALL, "close", format="inspect").remarks == ()


def test_a_sample_of_inspect_that_failed_is_a_missing_query():
    """The mock model raised on `last`: of the four queries it is without output, and refused where that is an error."""
    found = read(LARGE, "includes")
    queries = external_dataset([found], DatasetSource(None, kind="scores")).query_ids

    assert scores(found) == {"1": [1], "2": [1], "3": [1]}
    assert queries.tolist() == ["1", "2", "3", "last"]
    values, missing, quality = found.of(queries, CONVENTIONS)
    np.testing.assert_array_equal(values, [[1, 1, 1, NAN]])
    assert missing.tolist() == [False, False, False, True]
    assert (quality.n_rows, quality.n_missing_queries) == (4, 1)
    with pytest.raises(InputError, match="1 of 4 queries are without scores, such as 'last'"):
        found.of(queries, replace(CONVENTIONS, missing_queries="error"))


def test_epochs_of_inspect_are_selected():
    """Each epoch has its own answers; without one selected, the line to paste is told."""
    first, second = (read(TWICE, "includes", select={"epoch": epoch}) for epoch in "12")

    assert scores(first) == {"1": [1], "2": [1], "3": [0], "last": [1]}
    assert scores(second) == {"1": [1], "2": [0], "3": [1], "last": [0]}
    assert refusal(TWICE, "includes") == (
        'twice.eval: results of 2 epochs (1, 2); add select: {epoch: "{replicate}"} beside the path and '
        "replicates: [1, 2] to the model"
    )


def test_several_logs_are_one_input_if_one_model_is_selected():
    """A glob over logs of two models is refused, and read if one of them is named."""
    logs = GOLDEN / "inspect" / "[sl]*"

    assert refusal(logs, "includes") == (
        "[sl]*: results of 2 models (mockllm/large, mockllm/small); "
        'add select: {model: "mockllm/large"} beside the path'
    )
    assert scores(read(logs, "includes", select={"model": "mockllm/small"})) == scores(read(SMALL, "includes"))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"select": {"epoch": "3"}}, "small.json: no samples of epoch 3; fix `select`, or the path"),
        (
            {"select": {"epochs": "1"}},
            "small.json: no 'epochs' to select by among task, model, epoch; did you mean 'epoch'?",
        ),
        ({"columns": {"query_id": "uuid"}}, "small.json: no 'uuid' among query_id; map it with columns: {query_id: …}"),
    ],
)
def test_what_is_not_in_the_file_is_named(options, found):
    """Labels, their values and ids that the file does not have."""
    assert refusal(SMALL, "includes", **options) == found


def test_a_score_that_the_log_does_not_have_is_named():
    """The names of all scorers are listed."""
    assert refusal(SMALL, "include") == (
        "small.json: no score 'include' among close, includes, style.brief, style.polite; did you mean 'includes'?"
    )


def log(**changes: Any) -> dict[str, Any]:
    """The JSON log with other keys."""
    return json.loads(SMALL.read_text()) | changes


@pytest.mark.parametrize(
    ("contents", "found"),
    [
        (log(status="error"), "the evaluation is not complete (status error); complete it with `inspect eval-retry`"),
        (log(invalidated=True), "samples were invalidated; evaluate them again with `inspect eval-retry`"),
        (log(samples=None), "the log has no samples; evaluate with --log-samples"),
        (log(samples=[{}]), "no 'id' where inspect writes one; write the file again with inspect, or fix `format`"),
        (log(eval={}), "no 'task' where inspect writes one; write the file again with inspect, or fix `format`"),
        ([], "expected one object; write the file again with inspect, or fix `format`"),
    ],
)
def test_a_log_that_is_not_complete_is_refused(tmp_path, contents, found):
    """What Inspect did not finish or took back is no result."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps(contents))

    assert refusal(path, "includes", format="inspect") == f"log.json: {found}"


def zipped(members: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)
    return made.getvalue()


def test_a_zip_is_read_whether_deflated_or_not_and_refused_if_damaged(tmp_path):
    """Inspect deflated its logs before it used Zstandard: both are the same log; a byte that changed is found."""
    path = tmp_path / "log.eval"
    whole = log()
    summaries = json.dumps(whole.pop("samples")).encode()
    path.write_bytes(zipped({"header.json": json.dumps(whole).encode(), "summaries.json": summaries}))
    assert scores(read(path, "close")) == scores(read(SMALL, "close"))

    path.write_bytes(zipped({"header.json": b"{}"}))
    assert refusal(path, "close") == "log.eval: no summaries.json in it; complete it with `inspect eval-retry`"
    path.write_bytes(LARGE.read_bytes()[:-30])
    assert refusal(path, "close") == "log.eval: not a whole zip (File is not a zip file); copy it again"
    data = bytearray(LARGE.read_bytes())
    with zipfile.ZipFile(LARGE) as archive:
        at = archive.getinfo("summaries.json").header_offset + 80
    data[at] ^= 0xFF
    path.write_bytes(data)
    assert refusal(path, "close").startswith("log.eval: ")
    bomb = zipped({"header.json": b"{}", "summaries.json": b" " * 3_000_000})
    path.write_bytes(bomb)
    found = refusal(path, "close", large=10_000)
    assert found.startswith("log.eval: more than ")
    assert found.endswith("check the file, or set allow_large: true")


def test_select_is_refused_where_it_does_nothing(tmp_path):
    """A table of scores has no labels."""
    path = tmp_path / "scores.tsv"
    path.write_text("query_id\tclose\nq1\t1\n")

    assert refusal(path, "close", select={"epoch": "1"}) == (
        "scores.tsv: `select` has no effect on tsv; remove it, or set `format` to the tool that wrote the file"
    )
