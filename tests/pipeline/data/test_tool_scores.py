"""Results of other tools: files as each tool writes them give the scores that it gave, and what is unclear is refused.

`tests/golden/scores` has the files; its README names tool, version and command.
"""

import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from rankledger.metrics.conventions import PROFILES
from rankledger.metrics.measure import external_measure
from rankledger.pipeline.config.sources import PlannedDataset, Source
from rankledger.pipeline.data.external_scores import ExternalOutput, external_dataset, read_external_scores
from rankledger.pipeline.support.errors import InputError

GOLDEN = Path(__file__).parents[2] / "golden" / "scores"
CONVENTIONS = PROFILES["trec_eval"].conventions
NAN = float("nan")


def read(path: Path | str, *names: str, **options: Any) -> ExternalOutput:
    return read_external_scores(Source(str(path), **options), [external_measure(name) for name in names])


def scores(found: ExternalOutput) -> dict[str, list[float]]:
    return dict(zip(found.query_ids, found.values.T.tolist(), strict=True))


def refusal(path: Path | str, *names: str, **options: Any) -> str:
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
    found = read(LARGE, "includes")
    queries = external_dataset([found], PlannedDataset(None, kind="scores")).query_ids

    assert scores(found) == {"1": [1], "2": [1], "3": [1]}
    assert queries.tolist() == ["1", "2", "3", "last"]
    take, missing, quality = found.of(queries, CONVENTIONS)
    np.testing.assert_array_equal(take(found.values), [[1, 1, 1, NAN]])
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
        'twice.eval: results of 2 epochs (1, 2); add select: {epoch: "{replicate}"} next to the path and '
        "replicates: [1, 2] to the model"
    )


def test_several_logs_are_one_input_if_one_model_is_selected():
    logs = GOLDEN / "inspect" / "[sl]*"

    assert refusal(logs, "includes") == (
        "[sl]*: results of 2 models (mockllm/large, mockllm/small); "
        'add select: {model: "mockllm/large"} next to the path'
    )
    assert scores(read(logs, "includes", select={"model": "mockllm/small"})) == scores(read(SMALL, "includes"))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"select": {"epoch": "3"}}, "small.json: no samples of epoch 3 (epochs: 1); fix `select`, or the path"),
        (
            {"select": {"epochs": "1"}},
            "small.json: `select`: no label 'epochs' among task, model, epoch; did you mean 'epoch'?",
        ),
        ({"columns": {"query_id": "uuid"}}, "small.json: no 'uuid' among query_id; map it with columns: {query_id: …}"),
    ],
)
def test_what_is_not_in_the_file_is_named(options, found):
    assert refusal(SMALL, "includes", **options) == found


def test_a_score_that_the_log_does_not_have_is_named():
    assert refusal(SMALL, "include") == (
        "small.json: no score 'include' among close, includes, style.brief, style.polite; did you mean 'includes'?"
    )


def log(**changes: Any) -> dict[str, Any]:
    return json.loads(SMALL.read_text()) | changes


def test_a_score_that_is_a_word_is_refused(tmp_path):
    path = tmp_path / "log.json"
    samples = log()["samples"]
    samples[1]["scores"]["close"]["value"] = "B+"
    path.write_text(json.dumps(log(samples=samples)))

    remedy = "name another score, or let the scorer return a number, true, false, yes or no"
    assert refusal(path, "close") == f"log.json: close 'B+' of query '2' (sample 2) is not a number; {remedy}"
    assert scores(read(path, "includes")) == scores(read(SMALL, "includes"))


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
    path = tmp_path / "log.json"
    path.write_text(json.dumps(contents))

    assert refusal(path, "includes", format="inspect") == f"log.json: {found}"


def zipped(*members: tuple[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in members:
            archive.writestr(name, contents)
    return made.getvalue()


def double_last_key(text: bytes) -> bytes:
    return re.sub(rb'(?s)(.*)("\w+"):', rb"\1\2: null, \2:", text)


@pytest.mark.parametrize("log", sorted({*GOLDEN.glob("*/*.json"), *GOLDEN.glob("*/*.jsonl")}), ids=lambda log: log.stem)
def test_a_log_with_a_key_twice_is_refused(tmp_path, log):
    """Either value could be meant."""
    path = tmp_path / log.name
    path.write_bytes(double_last_key(log.read_bytes()))

    assert re.search(r"not JSON \('\w+' occurs twice\); write .* again$", refusal(path, "s", format=log.parent.name))


def test_a_zip_is_read_whether_deflated_or_not_and_refused_if_damaged(tmp_path):
    path = tmp_path / "log.eval"
    whole = log()
    summaries = json.dumps(whole.pop("samples")).encode()
    header = json.dumps(whole).encode()
    path.write_bytes(zipped(("header.json", header), ("summaries.json", summaries)))
    assert scores(read(path, "close")) == scores(read(SMALL, "close"))

    data = bytearray(path.read_bytes())
    for place in (6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1
    path.write_bytes(data)
    assert refusal(path, "close") == "log.eval: the archive is encrypted. Set a log that is not encrypted."
    with pytest.warns(UserWarning, match="Duplicate name"):
        path.write_bytes(zipped(("header.json", header), ("summaries.json", summaries), ("summaries.json", b"[]")))
    found = "summaries.json occurs twice in the archive. Remove one, or copy the log again."
    assert refusal(path, "close") == f"log.eval: {found}"
    path.write_bytes(zipped(("header.json", header), ("summaries.json", double_last_key(summaries))))
    found = "summaries.json: not JSON ('explanation' occurs twice); copy it again"
    assert re.sub(r"'\w+'", "'explanation'", refusal(path, "close")) == f"log.eval: {found}"
    path.write_bytes(zipped(("header.json", b"{}")))
    assert refusal(path, "close") == "log.eval: no summaries.json in it; complete it with `inspect eval-retry`"
    path.write_bytes(LARGE.read_bytes()[:-30])
    assert refusal(path, "close") == "log.eval: not a whole zip (File is not a zip file); copy it again"
    data = bytearray(LARGE.read_bytes())
    with zipfile.ZipFile(LARGE) as archive:
        at = archive.getinfo("summaries.json").header_offset + 80
    data[at] ^= 0xFF
    path.write_bytes(data)
    assert refusal(path, "close").startswith("log.eval: ")
    bomb = zipped(("header.json", b"{}"), ("summaries.json", b" " * 3_000_000))
    path.write_bytes(bomb)
    found = refusal(path, "close", large=10_000)
    assert found.startswith("log.eval: more than ")
    assert found.endswith("check the file, or set allow_large: true")


def test_select_is_refused_where_it_does_nothing(tmp_path):
    path = tmp_path / "scores.tsv"
    path.write_text("query_id\tclose\nq1\t1\n")

    assert refusal(path, "close", select={"epoch": "1"}) == (
        "scores.tsv: `select` has no effect on tsv; remove it, or set `format` to the tool that wrote the file"
    )


LM_EVAL = GOLDEN / "lm_eval"


def test_samples_of_lm_eval():
    written = next(LM_EVAL.glob("samples_written_*"))

    assert scores(read(written, "exact_match", select={"filter": "strict"})) == {"0": [1], "1": [0], "2": [0]}
    assert refusal(written, "exact_match") == (
        f'{written.name}: results of 2 filters (strict, letters); add select: {{filter: "strict"}} next to the path'
    )
    by_text = read(written, "exact_match", select={"filter": "letters"}, columns={"query_id": "doc.question"})
    assert scores(by_text) == {"1 + 1?": [1], "2 + 2?": [0], "3 + 3?": [0]}


def test_a_task_of_lm_eval_is_selected_by_the_name_of_its_file():
    found = read(LM_EVAL / "*.jsonl", "acc", "acc_norm", select={"task": "choice"})

    assert set(found.query_ids) == {"0", "1", "2"}
    assert scores(found) == scores(read(next(LM_EVAL.glob("samples_choice_*")), "acc", "acc_norm"))
    assert scores(found)["0"] == [1, 1]  # -0.24 for the right option, -0.97 for the other
    assert scores(found)["1"] == [0, 0]  # -0.80, and -0.45
    assert "results of 2 tasks (choice, written)" in refusal(LM_EVAL / "*.jsonl", "acc")


def test_the_table_of_mlflow_evaluate():
    """`length/v1/score` is `length`, the letters of `2`, `4 please` and `7`; a column of the data names the query."""
    table = GOLDEN / "mlflow" / "eval_results_table.json"

    assert scores(read(table, "length")) == {"q1": [1], "q2": [8], "q3": [1]}
    assert refusal(table, "length", columns={"query_id": "id"}) == (
        "eval_results_table.json: no 'id' among query_id, right, answer; map it with columns: {query_id: …}"
    )


def test_the_table_of_mlflow_genai_evaluate():
    table = GOLDEN / "mlflow" / "genai.json"
    found = scores(read(table, "right", "length", columns={"query_id": "request.query_id"}))

    np.testing.assert_array_equal([found[query_id] for query_id in ("q1", "q2", "q3")], [[1, 1], [1, 8], [NAN, 1]])
    assert refusal(table, "right") == (
        "genai.json: no 'query_id' among request.query_id, trace_id, state, request_time, execution_duration, "
        "response; map it with columns: {query_id: request.query_id}"
    )


PROMPTFOO = GOLDEN / "promptfoo"


def test_results_of_promptfoo():
    """Two asserted scores, of which `score` is the mean; `7 please` has eight letters, and 7 is wrong of 3 + 3."""
    path = PROMPTFOO / "models.json"

    small = scores(read(path, "right", "brief", "score", "pass", select={"provider": "small"}))
    assert small == {"0": [1, 1, 1, 1], "1": [1, 1, 1, 1], "2": [0, 1 / 8, 1 / 16, 0]}
    large = read(path, "right", "brief", "score", "pass", select={"provider": "large"})
    assert scores(large) == {"0": [1, 1 / 8, 9 / 16, 1], "1": [1, 1, 1, 1]}
    assert large.failed == ("2",)  # the provider raised an error: no answer, not a score of 0
    assert small.keys() == scores(read(path, "cost", "latency_ms", select={"provider": "small"})).keys()
    assert refusal(path, "right") == (
        'models.json: results of 2 providers (small, large); add select: {provider: "small"} next to the path'
    )


def test_a_query_of_promptfoo_is_named_by_a_variable():
    path, select = PROMPTFOO / "models.json", {"provider": "small"}

    found = read(path, "right", select=select, columns={"query_id": "vars.question"})
    assert found.query_ids == ("1 + 1?", "2 + 2?", "3 + 3?")
    assert refusal(path, "right", select=select, columns={"query_id": "vars.questions"}) == (
        "models.json: no 'vars.questions' among query_id, vars.question, metadata.topic, description; "
        "did you mean 'vars.question'?"
    )


def test_repeats_of_promptfoo_are_replicates():
    """`--repeat 2` of two tests and two prompts: test 0 was first answered 2, then 3; both repeats are of query 0."""
    path = PROMPTFOO / "repeats.json"

    by_repeat = [
        scores(read(path, "right", "brief", select={"prompt": "polite", "repeat": repeat})) for repeat in ("1", "2")
    ]
    assert by_repeat == [{"0": [1, 1 / 8], "1": [1, 1 / 8]}, {"0": [0, 1 / 8], "1": [1, 1 / 8]}]
    assert refusal(path, "right") == (
        "repeats.json: results of 2 prompts (plain, polite), and 2 repeats (1, 2); "
        'add select: {prompt: "plain", repeat: "{replicate}"} next to the path and replicates: [1, 2] to the model'
    )


def test_results_of_promptfoo_may_stand_in_any_order_and_name_scores_as_we_do(tmp_path):
    made = json.loads((PROMPTFOO / "repeats.json").read_text())
    made["results"]["results"].reverse()
    for number, result in enumerate(made["results"]["results"]):
        result["vars"]["stored"] = number  # as `storeOutputAs` does: what one repeat said is no part of the test
        result["namedScores"]["score"] = result["namedScores"].pop("right")
    path = tmp_path / "results.json"
    path.write_text(json.dumps(made))

    found = scores(read(path, "named.score", "score", select={"prompt": "plain", "repeat": "2"}))
    assert found == {"0": [0, 0.5], "1": [1, 1]}


def instance(sample: str, score: float, **others: Any) -> str:
    line = {
        "schema_version": "0.3.0",
        "evaluation_id": "sums/small/1",
        "model_id": "org/small",
        "evaluation_name": "sums",
        "sample_id": sample,
        "interaction_type": "single_turn",
        "input": {"raw": "1 + 1?", "reference": ["2"]},
        "output": {"raw": ["2"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score > 0.5},
    }
    return json.dumps(line | others) + "\n"


def test_a_long_prompt_of_promptfoo_without_a_label_has_a_number(tmp_path):
    """Its text stands there for its label, which no config could name: the second prompt is 2."""
    text = (PROMPTFOO / "repeats.json").read_text()
    path = tmp_path / "results.json"
    path.write_text(text.replace('"label": "polite"', '"label": "You are polite.\\nPlease: {{question}}"'))

    select = {"prompt": "2", "repeat": "1"}
    assert scores(read(path, "right", select=select)) == {"0": [1], "1": [1]}
    assert "results of 2 prompts (plain, 2), and 2 repeats" in refusal(path, "right")


EVERY_EVAL_EVER = GOLDEN / "every_eval_ever"


def test_instances_that_converters_of_every_eval_ever_wrote():
    written = next(LM_EVAL.glob("samples_written_*"))
    converted = EVERY_EVAL_EVER / "lm_eval_written_samples.jsonl"
    for name in ("strict", "letters"):
        select = {"evaluation": f"written/{name}"}
        assert scores(read(converted, "score", select=select)) == scores(
            read(written, "exact_match", select={"filter": name})
        )
    large = read(EVERY_EVAL_EVER / "inspect_large_samples.jsonl", "score")  # of the first scorer, `includes`
    assert scores(large) == scores(read(LARGE, "includes"))
    assert large.failed == ("last",)  # its score in the file is 0
    twice = EVERY_EVAL_EVER / "inspect_twice_samples.jsonl"
    both = [scores(read(TWICE, "includes", select={"epoch": epoch})) for epoch in "12"]
    means = {query_id: [(first + both[1][query_id][0]) / 2] for query_id, (first,) in both[0].items()}
    assert [scores(read(twice, "score", select={"epoch": epoch})) for epoch in "12"] == [means, means]
    assert 'add select: {epoch: "{replicate}"} next to the path and replicates: [1, 2]' in refusal(twice, "score")
    hashed = read(converted, "score", select=select, columns={"query_id": "metadata.doc_hash"})
    assert {len(query_id) for query_id in hashed.query_ids} == {64}


def test_instances_of_every_eval_ever(tmp_path):
    path = tmp_path / "small_samples.jsonl"
    path.write_text(instance("a", 0.75, performance={"latency_ms": 12}) + instance("b", 0.25))

    found = scores(read(path, "score", "is_correct", "latency_ms"))
    np.testing.assert_array_equal([found["a"], found["b"]], [[0.75, 1, 12], [0.25, 0, NAN]])
    path.write_text("".join(instance("a", 1, evaluation_result_id=name) for name in ("f1", "em")))
    assert "results of 2 results (f1, em)" in refusal(path, "score")
    assert scores(read(path, "score", select={"result": "em"})) == {"a": [1]}
    path.write_text(instance("a", 1, evaluation_result_id="em") + instance("b", 1))  # which is of no result
    assert scores(read(path, "score", select={"result": "em"})) == {"a": [1]}


def lm_eval_lines(values: list[Any], **others: Any) -> list[dict[str, Any]]:
    return [{"doc_id": n, "doc": {"q": n}, "metrics": ["acc"], "acc": value} | others for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["True", "False"], [1, 0]),  # numpy.bool_ and numpy.float32, which lm_eval writes by str()
        (["0.6666667", "1.0"], [0.6666667, 1]),
        (["yes", "NO", "true", "False"], [1, 0, 1, 0]),  # value_to_float of inspect_ai 0.3, the judges of MLflow 3
        ([True, None, "nan", "None", "<NA>", "N/A", ""], [1, *[NAN] * 6]),  # missing in pandas' read_csv
    ],
)
def test_every_format_counts_words_as_tools_do(tmp_path, values, numbers):
    ids = [str(number) for number in range(len(values))]
    samples = [{"id": n, "epoch": 1, "scores": {"acc": {"value": value}}} for n, value in enumerate(values)]
    files = {
        "a.jsonl": "".join(json.dumps({"query_id": n, "acc": v}) + "\n" for n, v in zip(ids, values, strict=True)),
        "a.json": json.dumps({n: {"acc": value} for n, value in zip(ids, values, strict=True)}),
        "a.csv": "query_id,acc\n"
        + "".join(f"{n},{'' if v is None else v}\n" for n, v in zip(ids, values, strict=True)),
        "samples_x.jsonl": "\n".join(map(json.dumps, lm_eval_lines(values))),
        "log.json": json.dumps(log(samples=samples)),
        "table.json": json.dumps(
            {"columns": ["query_id", "acc/value"], "data": [*map(list, zip(ids, values, strict=True))]}
        ),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        found = read(tmp_path / name, "acc")
        assert found.query_ids == tuple(ids), name
        np.testing.assert_array_equal(found.values[0], numbers, err_msg=name)


def test_a_judge_of_mlflow_that_cannot_tell_gives_no_score(tmp_path):
    """`unknown` is a CategoricalRating that MLflow's aggregation leaves out; `maybe` is none."""
    path = tmp_path / "table.json"
    rows = [{"query_id": "q1", "ok/value": "unknown"}, {"query_id": "q2", "ok/value": "yes"}]
    path.write_text(json.dumps(rows))

    np.testing.assert_array_equal(read(path, "ok").values, [[NAN, 1]])
    path.write_text(json.dumps([{"query_id": "q1", "ok/value": "maybe"}]))
    assert refusal(path, "ok").startswith(
        "table.json: ok 'maybe' of query 'q1' (sample 1) is not a number; name another"
    )


def test_older_samples_of_lm_eval(tmp_path):
    """Before 0.4.8 lines name neither metrics nor a filter, and before 0.4.2 a file was one list: `acc` is 1, 0."""
    path = tmp_path / "samples_x.jsonl"
    older = [{key: value for key, value in line.items() if key != "metrics"} for line in lm_eval_lines([1.0, 0.0])]
    path.write_text("\n".join(map(json.dumps, older)))
    assert scores(read(path, "acc")) == {"0": [1], "1": [0]}

    path.write_text(json.dumps(older, indent=1))
    found = read(path, "acc")
    assert scores(found) == {"0": [1], "1": [0]}
    assert "(format: lm_eval)" in found.remarks[0]
    assert refusal(path, "acc_norm") == "samples_x.jsonl: no score 'acc_norm' among acc; fix its name"


def test_a_group_of_tasks_of_lm_eval_is_one_dataset(tmp_path):
    """Two tasks of two documents each: four queries, named by their tasks, and a remark; `select` takes one of them."""
    for task, values in {"law": [1.0, 0.0], "art": [0.0, 1.0]}.items():
        (tmp_path / f"samples_{task}.jsonl").write_text("\n".join(map(json.dumps, lm_eval_lines(values))))

    found = read(tmp_path / "samples_*.jsonl", "acc", format="lm_eval")

    assert scores(found) == {"art/0": [0], "art/1": [1], "law/0": [1], "law/1": [0]}
    assert found.remarks[0].endswith("2 tasks are one dataset (art, law). Use `select: {task: art}` to read one")
    one = read(tmp_path / "samples_*.jsonl", "acc", format="lm_eval", select={"task": "law"})
    assert (scores(one), one.remarks) == ({"0": [1], "1": [0]}, ())


def promptfoo(rows: list[dict[str, Any]], **config: Any) -> str:
    return json.dumps({"evalId": "e", "results": {"version": 3, "results": rows}, "config": config})


def result(test: int, place: int = 0, passed: bool = True, variables: Mapping[str, Any] | None = None, **others: Any):
    own = {"q": f"t{test}"} if variables is None else variables
    return {
        "testIdx": test,
        "promptIdx": place,
        "provider": {"id": "openai:x"},
        "prompt": {"label": "p"},
        "success": passed,
        "score": float(passed),
        "latencyMs": 9,
        "cost": 0.5,
        "namedScores": {},
        "vars": own,
        "testCase": {"vars": own},
    } | others


def test_results_of_promptfoo_as_json_lines(tmp_path):
    path = tmp_path / "results.jsonl"
    for n_lines in (3, 1):
        path.write_text("".join(json.dumps(result(test, passed=test != 1)) + "\n" for test in range(n_lines)))
        found = read(path, "pass")
        assert scores(found) == {str(test): [float(test != 1)] for test in range(n_lines)}
        assert "(format: promptfoo)" in found.remarks[0]


def test_one_provider_of_promptfoo_with_two_settings(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(promptfoo([result(test, place, place == 0) for test in range(2) for place in (0, 1)]))

    first, second = read(path, "pass"), read(path, "pass", select={"place": "2"})

    assert (scores(first), scores(second)) == ({"0": [1], "1": [1]}, {"0": [0], "1": [0]})
    assert first.warnings == (
        "the file has 2 models of this name, and the first is read. Set `select: {place: 2}` for the second, or give "
        "each provider a `label`",
    )
    assert second.warnings == ()


@pytest.mark.parametrize(
    ("added", "config"),
    [
        (lambda test, place: {"sessionId": f"s{test}{place}"}, {}),
        (lambda test, place: {"trace": f"t{test}{place}"}, {}),  # differs between two results of one test
        (lambda test, place: {"stamp": f"t{test}"}, {"tests": [{"vars": {"q": f"t{test}"}} for test in range(3)]}),
    ],
)
def test_a_variable_that_promptfoo_adds_while_it_runs_makes_no_test(tmp_path, added, config):
    rows = [
        result(test, place, provider={"id": "ab"[place]}, variables={"q": f"t{test}", **added(test, place)})
        for test in range(3)
        for place in (0, 1)
    ]
    path = tmp_path / "results.json"
    path.write_text(promptfoo(rows, **config))

    found = [read(path, "pass", select={"provider": provider}) for provider in "ab"]

    assert [own.query_ids for own in found] == [("0", "1", "2")] * 2
    assert found[0].contents == found[1].contents


def test_cached_answers_of_promptfoo_have_neither_latency_nor_cost(tmp_path):
    """Two of three answers came from the cache: their latency is that of the disk."""
    path = tmp_path / "results.json"
    path.write_text(promptfoo([result(test, response={"cached": test > 0}) for test in range(3)]))

    found = read(path, "latency_ms", "cost", "pass")

    np.testing.assert_array_equal(found.values, [[9, NAN, NAN], [0.5, NAN, NAN], [1, 1, 1]])
    assert found.warnings == ("2 of 3 answers came from the cache, so their cost and latency_ms is undefined",)
    assert read(path, "pass").warnings == ()


def test_scores_and_ids_in_objects_have_dotted_names(tmp_path):
    lines, table = tmp_path / "a.jsonl", tmp_path / "a.parquet"
    lines.write_text('{"sample_id": "s1", "data": {"correct": true}}\n{"sample_id": "s2", "data": {}}\n')
    cells = {"doc": [{"id": "d1"}, {"id": "d2"}], "metric": [{"em": 1.0}, {"em": 0.5}]}
    parquet.write_table(pa.table(cells), table)
    request = tmp_path / "table.json"
    row = {"request": '{"query_id": "q1", "n": {"m": 3}}', "ok/value": True}
    request.write_text(json.dumps([row]))

    found = read(lines, "data.correct", columns={"query_id": "sample_id"})
    np.testing.assert_array_equal(found.values, [[1, NAN]])
    assert scores(read(table, "em", columns={"query_id": "doc.id", "em": "metric.em"})) == {"d1": [1], "d2": [0.5]}
    for name, query_id in (("request.query_id", "q1"), ("request.n.m", "3")):
        assert scores(read(request, "ok", format="mlflow", columns={"query_id": name})) == {query_id: [1]}
    assert refusal(lines, "data.corect", columns={"query_id": "sample_id"}).startswith(
        "a.jsonl: no score 'data.corect'"
    )


def test_a_score_may_have_another_name_in_the_file(tmp_path):
    files = {
        "a.csv": 'query_id,"Tone, style"\nq1,0.5\n',
        "long.csv": 'query_id,measure,value\nq1,"Tone, style",0.5\n',
        "a.jsonl": '{"query_id": "q1", "Tone, style": 0.5}\n',
        "results.json": promptfoo([result(0, namedScores={"Tone, style": 0.5})]),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        found = read(tmp_path / name, "tone", columns={"tone": "Tone, style"})
        assert found.values.tolist() == [[0.5]], name


@pytest.mark.parametrize(
    ("form", "text", "found"),
    [
        ("lm_eval", "{\n", "a.txt:1: not JSON (Expecting property name enclosed in double quotes: line 2 column 1"),
        ("lm_eval", "[3]\n", "a.txt: expected objects, in lines or in one list; write the file again"),
        ("lm_eval", "{}\n", "a.txt: no 'doc_id' where lm_eval writes one"),
        ("mlflow", '{"columns": ["a"], "data": [[]]}', "a.txt: a row without the 1 columns"),
        (
            "mlflow",
            '{"columns": ["a/v1/score", "a/v2/score"], "data": []}',
            "a.txt: several columns of the score 'a'; write the file again with mlflow, or fix `format`",
        ),
        ("promptfoo", '{"results": []}', "a.txt: no 'results' where promptfoo writes one; write the file again with"),
        ("promptfoo", '{"results": {"results": [3]}}', "a.txt: no 'testIdx' where promptfoo writes one"),
        ("every_eval_ever", "{}\n", "a.txt: no 'evaluation' where every_eval_ever writes one"),
        ("every_eval_ever", "", "a.txt: no samples; fix `select`, or the path"),
    ],
)
def test_a_file_that_no_tool_wrote_is_refused(tmp_path, form, text, found):
    path = tmp_path / "a.txt"
    path.write_text(text)

    assert refusal(path, "score", format=form).startswith(found)
