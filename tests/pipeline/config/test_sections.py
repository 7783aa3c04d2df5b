"""The config's sections, what they refuse and in which words, and the JSON Schema."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rankledger.metrics.conventions import PROFILES
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import Config, ConfigFile, load, schema
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import findings as refused

pytestmark = pytest.mark.usefixtures("folder")

QUICKSTART = Path(__file__).parents[3].joinpath("configs/quickstart.yaml").read_text(encoding="utf-8")
SMALL = """\
name: small
datasets: {d: {judgments: q}}
models: {m: {outputs: o}}
suites: {s: [ap]}
"""


def config(text: str, *overrides: str, environ: dict[str, str] | None = None) -> Config:
    Path("a.yaml").write_text(text, encoding="utf-8")
    return load("a.yaml", overrides, environ or {}).config


def findings(text: str, *overrides: str, environ: dict[str, str] | None = None) -> list[str]:
    Path("a.yaml").write_text(text, encoding="utf-8")
    return refused(lambda: plan(load("a.yaml", overrides, environ or {})))


# ---- what is read


def test_what_is_left_empty_has_its_default():
    empty = "seed:\nbootstrap:\nexecution: {jobs: }\ntracking: {uri: ~}\nconventions: ~\n"

    assert config(SMALL) == config(SMALL + empty)


def test_everything_that_can_be_written_is_read():
    read = config("""\
name: full.1-a_b
datasets:
  d:
    ratings: {path: "{lang}.csv", format: csv, columns: {rating: stars}}
    queries: q.parquet
    documents: {path: c.jsonl}
    suites: [s]
    columns: {query_id: user, doc_id: item, prediction: p}
    duplicates: keep_first
    keys: {lang: de}
    cluster: session
    slices: []
models:
  "<script>alert(1)</script>":
    outputs: {path: o, format: trec, columns: {prediction: score}}
    params: {a: text, b: 1, c: 0.5, d: true, e: 2026-01-01}
    tags: {stage: "1"}
    owner: me
    keys: {size: xl}
    was: old
    model_uri: models:/ranker@champion
    extra: "{model}.json"
suites: {s: [rmse]}
cluster: user
slices: [market, lang]
pooled: true
comparison: {baseline: all_pairs, measures: rmse, test: t, permutations: 100, correction: bh}
bootstrap: {resamples: 100, confidence: 0.9, method: basic}
execution:
  jobs: 4
  backend: dask
  scheduler: "tcp://host:8786"
  worker_timeout: 90s
  memory: 1.5 GB
  cache: s3://eval/cache
tracking: {uri: http://host, enabled: off}
""")

    (dataset,), (model,) = read.datasets.values(), read.models.values()
    assert dataset.kind == "ratings"
    assert model.params == {"a": "text", "b": 1, "c": 0.5, "d": True, "e": "2026-01-01"}
    assert (model.extra.path, read.comparison.measures) == ("{model}.json", ("rmse",))
    assert (dataset.cluster, dataset.slices, read.slices) == ("session", (), ("market", "lang"))
    assert (read.execution.local_backend, read.execution.worker_timeout.total_seconds()) == ("threads", 90)
    assert (read.execution.cache, read.tracking.enabled) == ("s3://eval/cache", False)
    assert config(yaml.safe_dump(read.model_dump(mode="json"))) == read


def test_values_from_the_environment_become_what_is_wanted():
    text = SMALL + "bootstrap: {resamples: '${N:-1000}'}\ntracking: {enabled: '${ON}'}\nseed: ${SEED}\n"

    read = config(text, environ={"ON": "false", "SEED": "7"})

    assert (read.bootstrap.resamples, read.tracking.enabled, read.seed) == (1000, False, 7)


SCORED = """\
name: scored
datasets:
  d: {scores: {faithfulness: , latency: {direction: lower, range: [0, null]}, "ndcg@10": neither}, queries: q}
models: {m: {outputs: o}, n: {outputs: o2, was: k}}
comparison: {baseline: m}
gates:
  - {name: a, measure: [latency, faithfulness], against: self@accepted, margin: 2%, slices: [x]}
  - {name: b, max_missing: 0.01, waive: {until: 2026-12-31, owner: me, reason: why}}
"""


@pytest.mark.parametrize("text", [QUICKSTART, SMALL, SCORED])
def test_a_dump_reads_back_equal(text):
    read = config(text)
    dump = read.model_dump(mode="json")

    assert Config.model_validate(dump) == read
    assert Config.model_validate(json.loads(json.dumps(dump))) == read
    assert config(yaml.safe_dump(dump)) == read


names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=8).filter(
    lambda name: name.strip() and name not in ("path", "*")
)
params = st.dictionaries(
    st.text(max_size=4),
    st.text(max_size=4) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
)
models = st.dictionaries(
    names,
    st.fixed_dictionaries(
        {}, optional={"params": params, "owner": st.text(), "outputs": names | st.dictionaries(names, names)}
    ),
    min_size=1,
)


@given(models)
@settings(max_examples=25)
def test_any_dump_reads_back_equal(models):
    read = Config.model_validate(
        {"name": "n", "datasets": {"d": {"judgments": "q"}}, "models": models, "suites": {"s": ["ap"]}}
    )
    dump = json.loads(json.dumps(read.model_dump(mode="json")))

    again = Config.model_validate(dump)

    assert again == read
    assert [type(value) for model in again.models.values() for value in model.params.values()] == [
        type(value) for model in read.models.values() for value in model.params.values()
    ]


# ---- what is refused

COLUMN = (
    "d.columns.user: 'user' is not one of our columns ('query_id', 'doc_id', 'relevance', 'subtopic', 'score', 'rank', "
    "'rating', 'prediction', 'measure', 'value', 'nugget', 'importance', 'sentence', 'support', 'impression_id', "
    "'clicked', 'dwell', 'weight', 'propensity', 'probability', 'predicted', 'expected' or 'team'); write ours first, "
    "then yours"
)
AT_LEAST_100 = "found 99; write a number of at least 100"
COMMA = "a comma splits items in [...]: quote it ('ndcg@5,10') or put it on its own line"
CORRECTIONS = "found 'tukey'; write 'maxt', 'holm', 'bh' or 'none'"
ELSEWHERE = "has no effect on external scores; remove it"
ENDS = "write the lowest and the highest possible score, as in [0, 1]; null for no limit"
LOGGED_ID = "write the id of a logged model, as in m-1f0c9a2b…"
CREDENTIALS = "the name contains a user or password, as a URI does; choose another"
LOGGED_URI = "write models:/NAME/VERSION, models:/NAME@ALIAS or models:/m-…"
EXTRA = "`extra` is one JSON object of numbers; write only its path"
TIES = (
    "conventions.ties: found 'random'; write 'doc_id_desc', 'doc_id_asc', 'input_order', 'rank_column', 'optimistic', "
    "'pessimistic' or 'expected'"
)
IDENTICAL = "d.ignore_identical_ids: unknown key 'ignore_identical_ids'; did you mean 'exclude_self'?"
KEY = "cannot be a placeholder; write a word except dataset, model, date"
WORKERS = "write a number of workers from 1 to 1,000, or -1 for one per CPU, -2 for one fewer"
TIME = "write a number of seconds, minutes or hours, such as 90s, 30m or 2h"
MEMORY = "write a number of bytes, or one with a unit, such as 512MiB or 2GiB"
NO_MAXT = "maxt needs resamples, which the test t does not draw; choose holm, bh or none"
NEITHER = "no judgments, ratings, scores or logs; add one of them"
OUTPUT_KEYS = "known: path, format, columns, allow_large, allow_no_overlap, select"
PLAIN = "m.params.a: write text, a finite number, true or false; quote anything else"
SCORE = (
    "write up to 200 characters on one line, without blanks at the ends, and none of dataset, model, query_id, "
    "missing, measure, value"
)
TESTS = "found 'z'; write 'randomization', 't' or 'bootstrap'"
TAKEN = "is reserved; choose another name for the dataset"
LOWEST_FIRST = "write the lowest score first"
UNPRINTABLE = "is empty or contains a control character; choose another"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("xyz: x", f"xyz: unknown key 'xyz'; known: {', '.join(ConfigFile.model_fields)}"),
        ("runs: x", "runs: unknown key 'runs'; did you mean 'models'?"),
        ("measures: [ap]", "measures: unknown key 'measures'; did you mean 'suites'?"),
        (
            "metrics: [ap]",
            "metrics: found a list; `metrics` names code of your own; list measures under `suites`",
        ),
        ("metrics: {clicks: 3}", "metrics.clicks: found 3; write a text in quotes"),
        (
            "metrics: {my-value: a:b}",
            "metrics.my-value: a metric cannot be called 'my-value'; write letters, digits and _, and none of dataset, "
            "model, query_id, missing, measure, value",
        ),
        ("gates: {}", "gates: found nothing; write a list"),
        ("sed: 1", "sed: unknown key 'sed'; did you mean 'seed'?"),
        ("bootstrap: {n_resamples: 1}", "bootstrap.n_resamples: unknown key 'n_resamples'; did you mean 'resamples'?"),
        ("execution: {workers: 1}", "execution.workers: unknown key 'workers'; did you mean 'jobs'?"),
        ("tracking: {tracking_uri: x}", "tracking.tracking_uri: unknown key 'tracking_uri'; did you mean 'uri'?"),
        ("comparisons: {}", "comparisons: unknown key 'comparisons'; did you mean 'comparison'?"),
        ("segments: [x]", "segments: unknown key 'segments'; did you mean 'slices'?"),
        ("slices: [x, x]", "slices: the column 'x' is named twice; keep one"),
        ("cluster: [x]", "cluster: found a list; write a text"),
        ("pooled: 2", "pooled: found 2; write true or false"),
        ("comparison: {}", "comparison: the key 'baseline' is missing; add it"),
        ("comparison: {baseline: m, test: z}", f"comparison.test: {TESTS}"),
        ("comparison: {baseline: m, test: t, correction: maxt}", f"comparison: {NO_MAXT}"),
        ("comparison: {baseline: m, correction: tukey}", f"comparison.correction: {CORRECTIONS}"),
        ("comparison: {baseline: m, permutations: 99}", f"comparison.permutations: {AT_LEAST_100}"),
        ("comparison: {baseline: m, measures: []}", "comparison.measures: found nothing; write at least one"),
        ("comparison: {baseline: m, measures: [ndcg@5,10]}", f"comparison.measures[0]: {COMMA}"),
        ("defaults: {models: {}}", "defaults.models: unknown key 'models'; did you mean 'model'?"),
        ("defaults: {dataset: {qrels: x}}", "defaults.dataset.qrels: unknown key 'qrels'; did you mean 'judgments'?"),
        ("defaults: {model: {runs: x}}", "defaults.model.runs: unknown key 'runs'; did you mean 'outputs'?"),
        ("bootstrap: {resamples: 99}", "bootstrap.resamples: found 99; write a number of at least 100"),
        ("bootstrap: {resamples: 1e4}", "bootstrap.resamples: found '1e4'; write a whole number"),
        ("bootstrap: {confidence: 0}", "bootstrap.confidence: found 0; write a number above 0"),
        ("bootstrap: {confidence: 95}", "bootstrap.confidence: found 95; write a number below 1"),
        ("bootstrap: {confidence: yes}", "bootstrap.confidence: found true; write a number"),
        ("bootstrap: {method: t}", "bootstrap.method: found 't'; write 'bca+t', 'bca', 'percentile' or 'basic'"),
        ("bootstrap: 5", "bootstrap: found 5; write a mapping of `key: value`"),
        ("seed: -1", "seed: found -1; write a number of at least 0"),
        ("seed: no", "seed: found false; write a number"),
        ("execution: {jobs: 0}", "execution.jobs: found 0; " + WORKERS),
        ("execution: {jobs: 100000}", "execution.jobs: found 100000; " + WORKERS),
        ("execution: {jobs: -3}", "execution.jobs: found -3; " + WORKERS),
        ("execution: {cache: 7}", "execution.cache: found 7; write true, false, or a folder or URL"),
        ("bootstrap: {resamples: 1000001}", "bootstrap.resamples: found 1000001; write a number up to 1,000,000"),
        ("records: ''", "records: found ''; write a text of at least one character"),
        ("tracking: {uri: ''}", "tracking.uri: found a wrong value; write a text of at least one character"),
        ("execution: {backend: fork}", "execution.backend: found 'fork'; write 'threads', 'processes' or 'dask'"),
        ("execution: {memory: 2}", "execution.memory: found 2, which is 2 bytes; write at least 128MiB"),
        (
            "execution: {memory: 1000000000000000GiB}",
            "execution.memory: found '1000000000000000GiB', which is more than any machine has; write at most 1024TiB",
        ),
        ("execution: {worker_timeout: soon}", "execution.worker_timeout: found 'soon'; " + TIME),
        ("execution: {worker_timeout: 0}", "execution.worker_timeout: found 0; write a duration above 0, such as 30s"),
        ("tracking: {timeout: soon}", "tracking.timeout: found 'soon'; " + TIME + ", or 0"),
        ("execution: {memory: 2 gigs}", "execution.memory: found '2 gigs'; " + MEMORY),
        ("execution: {memory: yes}", "execution.memory: found true; " + MEMORY),
        ("conventions: trec_evil", "conventions: unknown profile 'trec_evil'; did you mean 'trec_eval'?"),
        ("conventions: xyz", f"conventions: unknown profile 'xyz'; known: {', '.join(PROFILES)}"),
        ("conventions: {depth: 0}", "conventions.depth: found 0; write a number of at least 1"),
        ("conventions: {ties: random}", TIES),
        (
            "conventions: {ties: expected, depth: 5, unjudged_documents: condensed}",
            "conventions: ties: expected cannot be condensed at a depth, as the cut would depend on the "
            "order; choose other ties, or remove the depth",
        ),
        ("tracking: {enabled: maybe}", "tracking.enabled: found a wrong value; write true or false"),
        ("tracking: {uri: 5}", "tracking.uri: found a wrong value; write a text in quotes"),
    ],
)  # fmt: skip
def test_wrong_settings(line, message):
    assert findings(SMALL + line) == [f"a.yaml:5: {message}"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("d: {}", f"d: {NEITHER}"),
        ("d:", f"d: {NEITHER}"),
        ("d: {judgments: a, ratings: b}", "d: it has both judgments and ratings; write two datasets"),
        ("d: {ratings: a, scores: {x: higher}}", "d: it has both ratings and scores; write two datasets"),
        ("d: {scores: {x: higher}, logs: [ctr]}", "d: it has both scores and logs; write two datasets"),
        ("d: {logs: []}", "d.logs: found nothing; write at least one"),
        ("d: {logs: [ctr], documents: c}", "d: `documents` has no effect on logs; remove it"),
        ("d: {scores: {}}", "d.scores: found nothing; write at least one"),
        ("d: {scores: {x: up}}", "d.scores.x: found 'up'; write 'higher', 'lower' or 'neither'"),
        ("d: {scores: {x: {sign: up}}}", "d.scores.x.sign: unknown key 'sign'; known: direction, column, range"),
        ("d: {scores: {x: {range: [0]}}}", f"d.scores.x.range: {ENDS}"),
        ("d: {scores: {x: {range: [0, .inf]}}}", "d.scores.x.range[1]: found inf; write a finite number"),
        ("d: {scores: {x: {range: [1, 0]}}}", f"d.scores.x: it: the range 1 to 0 is empty; {LOWEST_FIRST}"),
        ("d: {scores: {value: higher}}", f"d.scores.value: a score cannot be called 'value'; {SCORE}"),
        ('d: {scores: {"a\\tb": higher}}', f"d.scores.\"a\\tb\": a score cannot be called 'a\\tb'; {SCORE}"),
        ("d: {scores: {'a ': higher}}", f"d.scores.\"a \": a score cannot be called 'a '; {SCORE}"),
        *(
            (f"d: {{scores: {{x: higher}}, {key}: {value}}}", f"d: `{key}` {ELSEWHERE}")
            for key, value in (
                ("subtopics", "true"),
                ("documents", "c"),
                ("interactions", "i"),
                ("exclude", "e"),
                ("exclude_self", "true"),
                ("suites", "[s]"),
                ("duplicates", "keep_first"),
            )
        ),
        ("d: {judgments: a, slices: [x, y, x]}", "d.slices: the column 'x' is named twice; keep one"),
        ("d: {judgments: a, slices: x}", "d.slices: found 'x'; write a list"),
        ("d: {judgments: a, slices: ['']}", "d.slices[0]: found ''; write a text of at least one character"),
        ("d: {judgments: a, cluster: 5}", "d.cluster: found 5; write a text in quotes"),
        ("d: {ratings: a, subtopics: true}", "d: `subtopics` has no effect on ratings; remove it"),
        ("d: {ratings: a, exclude_self: true}", "d: `exclude_self` has no effect on ratings; remove it"),
        ("d: {judgments: a, exclude_self: e}", "d.exclude_self: found 'e'; write true or false"),
        ("d: {judgments: a, seen: remove}", "d: `seen` is about `interactions`, and there are none; add them"),
        ("d: {ratings: a, seen: remove}", "d: `seen` has no effect on ratings; remove it"),
        ("d: {judgments: a, interactions: i, seen: keep}", "d.seen: found 'keep'; write 'refuse', 'remove' or 'count'"),
        ("d: {judgments: a, filter_seen: true}", "d.filter_seen: unknown key 'filter_seen'; did you mean 'seen'?"),
        ("d: {judgments: a, ignore_identical_ids: true}", IDENTICAL),
        ("d: {judgments: a, subtopics: intent}", "d.subtopics: found 'intent'; write true or false"),
        ("d: {qrels: a}", "d.qrels: unknown key 'qrels'; did you mean 'judgments'?"),
        ("d: {judgments: a, topics: b}", "d.topics: unknown key 'topics'; did you mean 'queries'?"),
        ("d: {judgments: a, items: b}", "d.items: unknown key 'items'; did you mean 'documents'?"),
        ("d: {judgments: a, metrics: b}", "d.metrics: unknown key 'metrics'; did you mean 'suites'?"),
        ("d: {judgments: 5}", "d.judgments: found 5; write a path, or a mapping with `path:`"),
        ("d: {judgments: ''}", "d.judgments: found ''; write a text of at least one character"),
        ("d: {judgments: {format: csv}}", "d.judgments: the key 'path' is missing; add it"),
        ("d: {judgments: {path: a, column: {}}}", "d.judgments.column: unknown key 'column'; did you mean 'columns'?"),
        ("d: {judgments: a, columns: {user: query_id}}", COLUMN),
        ("d: {judgments: a, columns: {query_id: 1.5}}", "d.columns.query_id: found 1.5; write a text in quotes"),
        ("d: {judgments: a, columns: [query_id]}", "d.columns: found a list; write a mapping of `key: value`"),
        ("d: {judgments: a, duplicates: sum}", "d.duplicates: found 'sum'; write 'refuse' or 'keep_first'"),
        ("d: {judgments: a, suites: []}", "d.suites: found nothing; write at least one"),
        ("d: {judgments: a, keys: {date: x}}", f"d.keys.date: the key 'date' {KEY}"),
        ("d: {judgments: a, keys: {a-b: x}}", f"d.keys.a-b: the key 'a-b' {KEY}"),
        ("path: {judgments: a}", f"path: 'path' {TAKEN}"),
        ("'*': {judgments: a}", f"*: '*' {TAKEN}"),
        ("'': {judgments: a}", f"\"\": the name '' {UNPRINTABLE}"),
        ("'s3://key:pw@x': {judgments: a}", f"s3://key:pw@x: {CREDENTIALS}"),
    ],
)  # fmt: skip
def test_wrong_datasets(line, message):
    text = f"name: n\nmodels: {{m: {{outputs: o}}}}\nsuites: {{s: [ap]}}\ndatasets:\n  {line}\n"

    assert findings(text) == [f"a.yaml:5: datasets.{message}"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("m: {run: a}", "m.run: unknown key 'run'; did you mean 'outputs'?"),
        ("m: {predictions: a}", "m.predictions: unknown key 'predictions'; did you mean 'outputs'?"),
        ("m: a.tsv", "m: found 'a.tsv'; write a mapping of `key: value`"),
        ("m: {outputs: 5}", "m.outputs: found 5; write a path, or a mapping with `path:`"),
        ("m: {outputs: {d: 5}}", "m.outputs.d: found 5; write a path, or a mapping with `path:`"),
        ("m: {outputs: {d: }}", "m.outputs.d: the key 'path' is missing; add it"),
        ("m: {outputs: {path: a, d: b}}", f"m.outputs.d: unknown key 'd'; {OUTPUT_KEYS}"),
        ("m: {outputs: {d: {file: a, path: b}}}", "m.outputs.d.file: unknown key 'file'; did you mean 'path'?"),
        ("m: {params: {a: [1]}}", PLAIN),
        ("m: {params: {a: }}", PLAIN),
        ("m: {tags: {v: 1.10}}", "m.tags.v: found 1.1; write a text in quotes"),
        ("m: {was: 3}", "m.was: found 3; write a text in quotes"),
        ("m: {extra: [a]}", "m.extra: found a list; write a path, or a mapping with `path:`"),
        ("m: {extra: {path: a, format: csv}}", f"m: {EXTRA}"),
        ("m: {extra: {path: a, columns: {score: s}}}", f"m: {EXTRA}"),
        ("m: {model_id: m-1, model_uri: models:/m-1}", "m: it has both model_id and model_uri; keep one"),
        ("m: {model_id: ranker}", f"m: found the model_id 'ranker'; {LOGGED_ID}"),
        ("m: {model_id: models:/m-1}", f"m: found the model_id 'models:/m-1'; {LOGGED_ID}"),
        ("m: {model_uri: m-1}", f"m: found the model_uri 'm-1'; {LOGGED_URI}"),
        ("m: {model_uri: models:/ranker}", f"m: found the model_uri 'models:/ranker'; {LOGGED_URI}"),
        ("m: {model_uri: models:/ranker/latest}", f"m: found the model_uri 'models:/ranker/latest'; {LOGGED_URI}"),
        ("m: {model_uri: models:/a/b/3}", f"m: found the model_uri 'models:/a/b/3'; {LOGGED_URI}"),
        ("m: {model_uri: models:/a/1000000000}", f"m: found the model_uri 'models:/a/1000000000'; {LOGGED_URI}"),
        ("m: {model_uri: s3://ranker/3}", f"m: found the model_uri 's3://ranker/3'; {LOGGED_URI}"),
        ("m: {owner: yes}", "m.owner: found true; write a text in quotes"),
        ('"a\\nb": {}', f'"a\\nb": the name \'a\\nb\' {UNPRINTABLE}'),
    ],
)  # fmt: skip
def test_wrong_models(line, message):
    text = f"name: n\ndatasets: {{d: {{judgments: q}}}}\nsuites: {{s: [ap]}}\nmodels:\n  {line}\n"

    assert findings(text) == [f"a.yaml:5: models.{message}"]


@pytest.mark.parametrize(
    ("suites", "message"),
    [
        ("{s: [apx]}", "4: suites.s[0]: unknown metric 'apx'; did you mean 'ap'?"),
        ("\n  s:\n  - ap\n  - ndgc@10", "7: suites.s[1]: unknown metric 'ndgc@10'; did you mean 'ndcg@10'?"),
        ("\n  s:\n  - 10", "6: suites.s[0]: found 10; write a text in quotes"),
        ("\n  s: ap", "5: suites.s: found 'ap'; write a list"),
        ("\n  s: []", "5: suites.s: found nothing; write at least one"),
        ("\n  s:", "5: suites.s: found nothing; write a list"),
    ],
)
def test_wrong_suites(suites, message):
    assert findings(SMALL.replace("{s: [ap]}", suites)) == [f"a.yaml:{message}"]


@pytest.mark.parametrize(
    ("suite", "wholes"),
    [
        ("[ndcg@5,10]", {0: "ndcg@5,10"}),
        ("[ap, 'p@5,10', ndcg@5,10,20, r@5, 10]", {2: "ndcg@5,10,20", 5: "r@5,10"}),
        ("['f(beta=2,rel=2)@5', f(beta=2,rel=2)@5, ap]", {1: "f(beta=2,rel=2)@5"}),
        ("[rbp(p=0.5,gain=graded,max_grade=2)]", {0: "rbp(p=0.5,gain=graded,max_grade=2)"}),
        ("[dcg(base=2,discount=jarvelin)@5,10]", {0: "dcg(base=2,discount=jarvelin)@5,10"}),
    ],
)
def test_measures_that_a_flow_list_has_split(suite, wholes):
    assert findings(SMALL.replace("[ap]", suite)) == [
        f"a.yaml:4: suites.s[{first}]: a comma splits items in [...]: quote it ('{whole}') or put it on its own line"
        for first, whole in wholes.items()
    ]


def test_a_parenthesis_that_never_closes_is_the_measures_own_mistake():
    found = findings(SMALL.replace("{s: [ap]}", "\n  s:\n  - ndcg(gain=exponential@10\n  - ap\n"))

    assert len(found) == 1
    assert found[0].startswith("a.yaml:6: suites.s[0]: ")
    assert "comma" not in found[0]


def test_what_is_missing_or_empty():
    assert findings("seed: 1\n") == [
        f"a.yaml:1: the key '{key}' is missing; add it" for key in ("name", "datasets", "models", "suites")
    ]
    assert findings("name: a b\ndatasets: {}\nmodels: []\nsuites: {}\n") == [
        "a.yaml:1: name: found 'a b'; write up to 100 letters, digits and . _ - beginning with a letter or digit",
        "a.yaml:2: datasets: found nothing; write at least one",
        "a.yaml:3: models: found nothing; write a mapping of `key: value`",
    ]
    assert findings(SMALL.replace("{s: [ap]}", "{}")) == ["a.yaml:4: suites: found nothing; write at least one"]


OF_SCORES = (
    "name: n\nmodels: {m: {outputs: o}}\ndatasets: {d: {scores: {x: }}, e: {scores: {y: lower}}, f: {logs: [ctr]}}\n"
)


@pytest.mark.parametrize("suites", ["", "suites:\n", "suites: {}\n", "suites: {s: [ap]}\n"])
def test_suites_may_be_left_out_where_all_datasets_are_of_scores(suites):
    read = config(OF_SCORES + suites)

    assert [dataset.kind for dataset in read.datasets.values()] == ["scores", "scores", "scores"]
    assert config(yaml.safe_dump(read.model_dump(mode="json"))) == read
    assert findings(OF_SCORES + suites, "datasets.d.scores.x=up") == [
        "override datasets.d.scores.x: found 'up'; write 'higher', 'lower' or 'neither'"
    ]


@pytest.mark.parametrize(
    ("suites", "message"),
    [
        ("", "1: the key 'suites' is missing; add it"),
        ("suites:\n", "4: suites: the key 'suites' is missing; add it"),
        ("suites: {}\n", "4: suites: found nothing; write at least one"),
    ],
)
def test_suites_are_wanted_beside_a_dataset_of_judgments(suites, message):
    assert findings(OF_SCORES.replace("{scores: {y: lower}}", "{judgments: q}") + suites) == [f"a.yaml:{message}"]


@pytest.mark.parametrize("name", ["", "a/b", "..", "-a", "a b", "é", "a" * 101])
def test_names_that_cannot_be_folders(name):
    assert findings(SMALL, f"name='{name}'")[0].startswith(f"override name: found '{name}'; write up to 100 letters")


def test_all_mistakes_come_at_once_in_the_order_of_lines():
    text = """\
name: n
models: {m: , o: {owner: 1}}
defaults: {model: {outputs: o, owner: 2}}
suites: {s: [ap]}
datasets: {d: {judgments: q, dupes: 1}}
"""

    assert findings(text, "seed=x") == [
        "a.yaml:2: models.o.owner: found 1; write a text in quotes",
        "a.yaml:3: defaults.model.owner: found 2; write a text in quotes",
        "a.yaml:5: datasets.d.dupes: unknown key 'dupes'; did you mean 'duplicates'?",
        "override seed: found 'x'; write a whole number",
    ]


@pytest.mark.parametrize("key", ["\\0", "[key]"])
@pytest.mark.parametrize("text", ['"{}": 1\n', 'models: {{"{}": {{outputs: o, ownr: 1}}}}\n'])
def test_keys_that_look_like_marks_of_pydantic(text, key):
    lines = (
        SMALL + text.format(key) if text[0] == '"' else SMALL.replace("models: {m: {outputs: o}}\n", text.format(key))
    )

    found = findings(lines)

    assert any("unknown key" in line for line in found)


def test_no_message_shows_what_is_under_tracking():
    text = SMALL + "tracking: {uri: ok, max_metrics: '${SECRET}', enabled: '${SECRET}'}\n"

    assert not any("hush" in line for line in findings(text, environ={"SECRET": "hush"}))


def test_a_long_value_is_cut():
    assert all(len(line) < 300 for line in findings(SMALL + f"seed: {'x' * 1000}\n"))
    assert all(len(line) < 700 for line in findings(SMALL + f"? {'x' * 100_000}\n: 1\n"))
    assert all(len(line) < 400 for line in findings(SMALL + f"suites: {{s: ['{'x' * 9_000}']}}\n"))


# ---- schema and speed


def test_the_schema_describes_every_key():
    written = schema()
    sections = [written, *written["$defs"].values()]
    mappings = [section if "properties" in section else section["anyOf"][1] for section in sections]

    assert set(written["properties"]) == set(ConfigFile.model_fields)
    assert {"extends", "defaults"} <= set(written["properties"])
    assert all(
        {"description", "$ref"} & value.keys() for mapping in mappings for value in mapping["properties"].values()
    )
    assert all(mapping["additionalProperties"] is False for mapping in mappings)
    assert written["$defs"]["File"]["anyOf"][0] == {"type": "string"}
    assert written["$defs"]["Conventions"]["anyOf"][0] == {"type": "string", "enum": [*PROFILES]}
    partial, whole, *of_scores = written["anyOf"]
    assert (partial, whole) == ({"required": ["extends"]}, {"required": ["name", "datasets", "models", "suites"]})
    assert all({"name", "datasets", "models"} <= set(option["required"]) for option in of_scores)
    assert all(option["properties"] for option in of_scores)
    json.dumps(written)


def test_credentials_come_from_the_environment(tmp_path):
    text = (
        'name: n\ndatasets: {d: {judgments: q}}\nmodels: {m: {outputs: o}}\nsuites: {s: [ap]}\ntracking: {uri: "%s"}\n'
    )
    config = tmp_path / "c.yaml"
    config.write_text(text % "https://ann:secret@mlflow.example")

    with pytest.raises(InputError, match=r"c\.yaml:5: tracking\.uri: contains credentials; take them from the env"):
        load(config)

    config.write_text(text % "https://${USER_NAME}:${PASSWORD:-secret}@mlflow.example")  # the default is written, too
    with pytest.raises(InputError, match=r"c\.yaml:5: tracking\.uri: contains credentials"):
        load(config, environ={"USER_NAME": "ann"})

    config.write_text(text % "https://${USER_NAME}:${PASSWORD}@mlflow.example")
    loaded = load(config, environ={"USER_NAME": "ann", "PASSWORD": "secret"})
    assert loaded.config.tracking.uri == "https://ann:secret@mlflow.example"
    assert "secret" not in str(loaded.document.expansions)


@pytest.mark.parametrize("written", ["models: {m: {outputs: o, params: %s}}", "defaults: {model: {params: %s}}"])
def test_params_hold_no_credentials_wherever_they_are_from(tmp_path, written):
    config = tmp_path / "c.yaml"
    section = written % '{index: "https://ann:${PASSWORD}@search.example"}'
    rest = "name: n\ndatasets: {d: {judgments: q}}\nsuites: {s: [ap]}\n"
    config.write_text(f"{rest}{section}\n{'' if 'models' in section else 'models: {m: {outputs: o}}'}")

    with pytest.raises(InputError, match=r"c\.yaml:4: .*\.params\.index: contains credentials"):
        load(config, environ={"PASSWORD": "secret"})
