"""From a config to datasets, models and tasks: templates, discovery, cross-checks, and configs that move."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import rankledger.pipeline.config.plan
from rankledger.pipeline.config.paths import absolute, fill, relocate, search
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.schema import load
from tests.support.data_files import findings as refused

pytestmark = pytest.mark.usefixtures("folder")

SUITES = "suites:\n  search: [ap, 'ndcg@5,10']\n  deep: [ap, r@100]\n  stars: [rmse, mae]\n"


# The ends of messages.
ADD_OUTPUTS = "; add `outputs:` to it or to `defaults: {model: …}`"
APART = "use a file for each, as with {model} in the path"
BY_NAME = "to find models by; write it in place of the name"
CATALOGUE = "the whole catalogue is needed; add `documents:`, the file of all documents, or remove the measure"
FEATURES = "features of documents are needed; add `documents:`, a file with them, or remove the measure"
INTERACTIONS = "earlier interactions are needed; add `interactions:`, those of training, or remove the measure"
NO_MATCH = "; fix the path or list the models"
OF_FILES = "; available: {dataset}, {date}"
SUBTOPICS = "subtopics are needed; add `subtopics: true` if the judgments have them, or remove the measure"
OF_OUTPUTS = "; available: {dataset}, {date}, {replicate}, {model}"


def planned(text: str, *overrides: str, date: str | None = None, environ: dict[str, str] | None = None) -> Plan:
    Path("configs").mkdir(exist_ok=True)
    Path("configs/a.yaml").write_text("name: n\n" + text, encoding="utf-8")
    return plan(load("configs/a.yaml", overrides, environ or {}), date)


def findings(text: str, *overrides: str, date: str | None = None) -> list[str]:
    return [line.removeprefix("configs/") for line in refused(planned, text, *overrides, date=date)]


def touch(*names: str) -> None:
    for name in names:
        path = Path("configs", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def pairs(found: Plan) -> list[str]:
    return [f"{task.dataset}/{task.model}" for task in found.tasks]


# ---- datasets and tasks


def test_tasks_go_dataset_by_dataset_in_the_configs_order(folder):
    found = planned(
        "datasets: {b: {judgments: q}, a: {judgments: q}}\n"
        "models:\n"
        "  y: {outputs: '{dataset}/{model}'}\n"
        "  x: {outputs: {a: out}}\n"
        "  w: {outputs: {path: '{model}', format: trec}}\n" + SUITES
    )

    assert pairs(found) == ["b/y", "b/w", "a/y", "a/x", "a/w"]
    assert [task.output.path for task in found.tasks] == [
        f"{folder}/configs/{name}" for name in ("b/y", "w", "a/y", "out", "w")
    ]
    assert list(found.models) == ["y", "x", "w"]
    assert found.tasks[1].output.format == "trec"


def test_the_config_stage_reads_no_data():
    heavy = {"pyarrow", "pandas", "mlflow", "joblib", "scipy"}
    code = f"import sys, rankledger.pipeline.config.plan; print(sorted({heavy} & set(sys.modules)))"
    root = Path(rankledger.pipeline.config.plan.__file__).parents[1]

    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_a_dataset_takes_all_suites_of_its_kind_or_those_it_names():
    found = planned(
        "datasets: {a: {judgments: q}, b: {ratings: q}, c: {judgments: q, suites: [deep]}}\nmodels: {m: {outputs: o}}\n"
        + SUITES
    )

    assert [list(dataset.suites) for dataset in found.datasets] == [["search", "deep"], ["stars"], ["deep"]]
    assert [[str(measure) for measure in dataset.measures] for dataset in found.datasets] == [
        ["ap", "ndcg@5", "ndcg@10", "r@100"],
        ["rmse", "mae"],
        ["ap", "r@100"],
    ]
    assert [dataset.kind for dataset in found.datasets] == ["rankings", "ratings", "rankings"]


def test_files_are_absolute_and_have_the_datasets_columns(folder):
    found = planned(
        "datasets:\n"
        "  d:\n"
        "    judgments: {path: ../q.csv, columns: {relevance: grade, doc_id: own}}\n"
        "    queries: s3://bucket/q.parquet\n"
        "    documents: /data/docs.tsv\n"
        "    columns: {doc_id: item, score: s}\n"
        "    duplicates: keep_first\n"
        "models: {m: {outputs: {path: o, columns: {score: t}}}}\n" + SUITES
    )
    [dataset], [task] = found.datasets, found.tasks

    assert dataset.judgments.path == f"{folder}/q.csv"
    assert dataset.judgments.columns == {"doc_id": "own", "score": "s", "relevance": "grade"}
    assert [file.path for file in dataset.files] == [f"{folder}/q.csv", "s3://bucket/q.parquet", "/data/docs.tsv"]
    assert dataset.keep_first
    assert task.output.columns == {"doc_id": "item", "score": "t"}


def test_paths_start_at_the_file_that_names_them(folder):
    touch("../shared/base.yaml")
    Path("shared/base.yaml").write_text(
        "defaults: {dataset: {judgments: '{dataset}.q'}}\nmodels: {m: {outputs: {path: o}}}\n", encoding="utf-8"
    )

    found = planned(
        "extends: ../shared/base.yaml\ndatasets: {a: , b: {queries: t}}\nmodels: {n: {outputs: o}}\n" + SUITES,
        "datasets.b.documents=docs",
    )

    assert [file.path for dataset in found.datasets for file in dataset.files] == [
        f"{folder}/{name}" for name in ("shared/a.q", "shared/b.q", "configs/t", "docs")
    ]
    assert {task.model: task.output.path for task in found.tasks} == {
        "m": f"{folder}/shared/o",
        "n": f"{folder}/configs/o",
    }


def test_templates_are_filled_with_names_date_and_own_keys(folder):
    found = planned(
        "defaults:\n"
        "  dataset: {judgments: '{lang}/{dataset}/{date}/{{q}}'}\n"
        "  model: {outputs: '{dataset}-{lang}-{size}/{model}.{date}'}\n"
        "datasets: {d: {keys: {lang: de, size: s}}}\n"
        "models: {m: , n: {keys: {size: xl}}}\n" + SUITES,
        date="2026-11-20",
    )

    assert found.date == "2026-11-20"
    assert found.datasets[0].judgments.path == f"{folder}/configs/de/d/2026-11-20/{{q}}"
    assert [task.output.path for task in found.tasks] == [
        f"{folder}/configs/d-de-s/m.2026-11-20",
        f"{folder}/configs/d-de-xl/n.2026-11-20",
    ]


# ---- discovery

DISCOVERY = "datasets: {d: {judgments: 'd/qrels.tsv'}, e: {judgments: 'e/qrels.tsv'}}\n"


def test_models_are_found_by_their_outputs(folder):
    touch(
        "d/zz.tsv", "d/bm25.tsv", "d/qrels.tsv", "e/extra.tsv", "e/qrels.tsv", "d/.hidden.tsv", "d/x.csv", "d/mine.tsv"
    )

    found = planned(
        DISCOVERY + "models:\n"
        "  first: {outputs: {d: d/mine.tsv}}\n"
        "  '*': {outputs: '{dataset}/{model}.tsv', params: {k: 1}, owner: me}\n"
        "  bm25: {outputs: '{dataset}/{model}.tsv'}\n" + SUITES
    )

    assert list(found.models) == ["first", "extra", "zz", "bm25"]
    assert found.models["zz"].owner == "me"
    assert pairs(found) == ["d/first", "d/extra", "d/zz", "d/bm25", "e/extra", "e/zz", "e/bm25"]
    assert found.tasks[5].output.path == f"{folder}/configs/e/zz.tsv"


def test_a_found_model_is_expected_on_all_datasets_of_the_kinds_where_it_was_found():
    touch("a/x", "c/y")

    found = planned(
        "datasets: {a: {judgments: q}, b: {judgments: q}, c: {ratings: q}}\n"
        "models: {'*': {outputs: '{dataset}/{model}'}}\n" + SUITES
    )

    assert pairs(found) == ["a/x", "b/x", "c/y"]


def test_models_are_found_where_outputs_are_spelled_by_dataset():
    touch("one/x", "e/y")

    assert pairs(planned(DISCOVERY + "models: {'*': {outputs: {d: 'one/{model}'}}}\n" + SUITES)) == ["d/x"]


def test_a_search_may_find_only_listed_models():
    touch("o/x")

    assert pairs(planned(DISCOVERY + "models: {x: {outputs: o/x}, '*': {outputs: 'o/{model}'}}\n" + SUITES)) == [
        "d/x",
        "e/x",
    ]


@pytest.mark.parametrize(
    ("outputs", "line"),
    [
        ("'{dataset}/{model}.gz'", "models.*: no file matches configs/{dataset}/{model}.gz" + NO_MATCH),
        ("'d/{model}.tsv'", "models.*: no file matches configs/d/{model}.tsv" + NO_MATCH),
        ("x.tsv", "models.*.outputs: 'x.tsv' has no {model} " + BY_NAME),
        ("'s3://b/{model}'", "models.*.outputs: models are searched for in local folders only; list them by name"),
        ("'{date}/{model}'", "models.*.outputs: '{date}/{model}' needs a date; pass --date YYYY-MM-DD"),
        ("{path: '{x}'}", "models.*.outputs.path: '{x}' has an unknown placeholder {x}" + OF_OUTPUTS),
    ],
)
def test_discovery_that_cannot_work(outputs, line):
    touch("d/qrels.tsv", "e/qrels.tsv")

    assert findings(DISCOVERY + f"models:\n  '*': {{outputs: {outputs}}}\n" + SUITES) == [f"a.yaml:4: {line}"]


def test_a_file_whose_name_is_no_text_is_no_model():
    try:
        touch("d/\udcff.gz")
    except OSError:
        pytest.skip("names of files are text here")

    (found,) = findings(DISCOVERY + "models: {'*': {outputs: '{dataset}/{model}.gz'}}\n" + SUITES)
    assert found.startswith("a.yaml:3: models.*.outputs: found '")
    assert found.endswith("/d/\\udcff.gz', a model whose name cannot be printed; rename the file")


def test_discovery_without_outputs_says_only_that():
    assert findings(DISCOVERY + "models: {'*': {}}\n" + SUITES) == [
        "a.yaml:3: models.*: the model has no outputs" + ADD_OUTPUTS
    ]
    assert len(findings(DISCOVERY + "models: {'*': {outputs: {f: x}}}\n" + SUITES)) == 1


def test_search_matches_names_literally_and_globs_within_them(tmp_path):
    for name in ("[d]/a/a.tsv", "[d]/a/b.tsv", "[d]/b/b-1.tsv", "[d]/b/b-2.tsv", "d/c/c.tsv", "[d]/e/f/e.tsv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def models(template: str) -> list[str]:
        return [model for model, _ in search(template, {"dataset": "[d]"}, tmp_path)]

    assert models("{dataset}/{model}/{model}.tsv") == ["a"]
    assert models("{dataset}/{model}/{model}-*.tsv") == ["b", "b"]
    assert models("{dataset}/{model}/{model}-[!2].tsv") == ["b"]
    assert models("{dataset}/{model}/?.tsv") == ["a", "a"]
    assert models("./{dataset}/../{dataset}/{model}") == ["a", "b", "e"]
    assert models(f"{tmp_path}/d/{{model}}/c.tsv") == ["c"]
    assert list(search("d/{model}/c.tsv", {}, tmp_path)) == [("c", f"{tmp_path}/d/c/c.tsv")]


# ---- what is refused


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (
            "datasets: {d: {judgments: q, suites: [search, serch]}}",
            "2: datasets.d.suites[1]: unknown suite 'serch'; did you mean 'search'?",
        ),
        (
            "datasets: {d: {judgments: {path: q, format: parqet}}}",
            "2: datasets.d.judgments.format: unknown format 'parqet'; did you mean 'parquet'?",
        ),
        (
            "datasets: {d: {judgments: q, suites: [stars]}}",
            "2: datasets.d.suites[0]: the suite 'stars' is for ratings, and the dataset has rankings; name another",
        ),
        (
            "datasets: {d: {ratings: q, suites: [deep]}}",
            "2: datasets.d.suites[0]: the suite 'deep' is for rankings, and the dataset has ratings; name another",
        ),
        (
            "datasets: {d: {judgments: '{model}'}}",
            "2: datasets.d.judgments: '{model}' has an unknown placeholder {model}" + OF_FILES,
        ),
        (
            "datasets: {d: {judgments: '{dataset.x}'}}",
            "2: datasets.d.judgments: '{dataset.x}' has an unknown placeholder {dataset.x}" + OF_FILES,
        ),
        (
            "datasets: {d: {judgments: '{dataset!r}'}}",
            "2: datasets.d.judgments: '{dataset!r}' has an unknown placeholder {dataset}" + OF_FILES,
        ),
        (
            "datasets: {d: {judgments: '{date}'}}",
            "2: datasets.d.judgments: '{date}' needs a date; pass --date YYYY-MM-DD",
        ),
        (
            "datasets: {d: {judgments: 'a}'}}",
            "2: datasets.d.judgments: 'a}' has a single brace; write {{ or }} to mean it literally",
        ),
    ],
)
def test_wrong_datasets(lines, found):
    assert findings(f"{lines}\nmodels: {{m: {{outputs: o}}}}\n{SUITES}") == [f"a.yaml:{found}"]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("models: {m: {owner: x}}", "3: models.m: the model has no outputs" + ADD_OUTPUTS),
        ("models: {m: {outputs: {}}}", "3: models.m: the model has no outputs" + ADD_OUTPUTS),
        (
            "models:\n  m:\n    outputs:\n      stdlib: x",
            "6: models.m.outputs.stdlib: unknown dataset 'stdlib'; did you mean 'stdlib-search'?",
        ),
        (
            "models: {m: {outputs: {other: x}}}",
            "3: models.m.outputs.other: unknown dataset 'other'; known: stdlib-search",
        ),
        (
            "models: {m: {outputs: '{modle}'}}",
            "3: models.m.outputs: '{modle}' has an unknown placeholder {modle}" + OF_OUTPUTS,
        ),
        (
            "models: {m: {outputs: x}, n: {outputs: ./x}}",
            "3: models.n.outputs: the model reads the same output as 'm'; " + APART,
        ),
    ],
)
def test_wrong_models(lines, found):
    assert findings(f"datasets: {{stdlib-search: {{judgments: q}}}}\n{lines}\n{SUITES}") == [f"a.yaml:{found}"]


def test_one_file_with_a_column_for_each_model_is_two_outputs():
    models = "models: {m: {outputs: {path: x, columns: {score: m}}}, n: {outputs: {path: x, columns: {score: n}}}}\n"

    assert pairs(planned("datasets: {d: {judgments: q}}\n" + models + SUITES)) == ["d/m", "d/n"]


@pytest.mark.parametrize(
    ("suites", "found"),
    [
        (
            "[ap, rmse, mae]",
            [
                "5: suites.s[1]: rmse is for ratings and ap for rankings; put them in two suites",
                "5: suites.s[2]: mae is for ratings and ap for rankings; put them in two suites",
            ],
        ),
        ("[ap, 'p@5,10', p@10]", ["5: suites.s[2]: p@10 is in the suite twice; keep one"]),
        ("[mrr, recip_rank]", ["5: suites.s[1]: 'mrr' and 'recip_rank' are one measure, rr; keep one"]),
        ("[rr, MRR]", ["5: suites.s[1]: 'rr' and 'MRR' are one measure, rr; keep one"]),
        ("[MRR, MRR]", ["5: suites.s[1]: rr is in the suite twice; keep one"]),
        ("[rmse]", ["3: datasets.d: no suite is for rankings, which the dataset has; add one under `suites`"]),
        ("[item_coverage@10, tn@5, user_coverage]", ["3: datasets.d: item_coverage@10, tn@5: " + CATALOGUE]),
        ('["alpha_ndcg@5,10", ap, strec@5]', ["3: datasets.d: alpha_ndcg@5, alpha_ndcg@10, strec@5: " + SUBTOPICS]),
    ],
)
def test_wrong_suites(suites, found):
    text = f"datasets:\n  d: {{judgments: q}}\nmodels: {{m: {{outputs: o}}}}\nsuites: {{s: {suites}}}\n"

    assert findings(text) == [f"a.yaml:{line}" for line in found]


RECOMMENDED = "[novelty@5, gini, 'diversity(feature=genre)@5', 'calibration(feature=genre)@5', serendipity, entropy]"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (
            "",
            [
                f"novelty@5, calibration(feature=genre)@5, serendipity: {INTERACTIONS}",
                f"gini, serendipity: {CATALOGUE}",
                f"diversity(feature=genre)@5, calibration(feature=genre)@5: {FEATURES}",
            ],
        ),
        (", documents: c", [f"novelty@5, calibration(feature=genre)@5, serendipity: {INTERACTIONS}"]),
    ],
)
def test_measures_of_recommended_lists_need_what_they_look_at(files, found):
    text = f"datasets:\n  d: {{judgments: q{files}}}\nmodels: {{m: {{outputs: o}}}}\nsuites: {{s: {RECOMMENDED}}}\n"

    assert findings(text) == [f"a.yaml:3: datasets.d: {line}" for line in found]


def test_files_of_recommenders_are_found():
    found = planned(
        "datasets: {d: {judgments: q, documents: c, interactions: '{dataset}.i'}}\nmodels: {m: {outputs: o}}\n"
        "suites: {s: [serendipity@5, 'diversity(feature=genre)@5']}\n"
    )

    (dataset,) = found.datasets
    assert [Path(file.path).name for file in dataset.files] == ["q", "c", "d.i"]
    assert [str(measure) for measure in dataset.measures] == ["serendipity@5", "diversity(feature=genre)@5"]


def test_judgments_by_subtopic_are_enough_for_measures_of_subtopics():
    found = planned(
        "defaults: {dataset: {subtopics: true}}\ndatasets: {d: {judgments: {path: q, columns: {subtopic: intent}}}}\n"
        "models: {m: {outputs: o}}\nsuites: {s: [err_ia@10, nrbp, ndcg]}\n"
    )

    assert found.datasets[0].subtopics
    assert [str(measure) for measure in found.datasets[0].measures] == ["err_ia@10", "nrbp", "ndcg"]


# ---- clusters, slices, scores and what stands beside outputs


def test_a_datasets_clusters_and_slices_win_over_those_of_all():
    found = planned(
        "cluster: user\nslices: [market, lang]\nmodels: {m: {outputs: o}}\ndatasets:\n"
        "  a: {judgments: q, queries: t}\n"
        "  b: {judgments: q, queries: t, cluster: session, slices: [length]}\n"
        "  c: {judgments: q, cluster: query_id, slices: []}\n" + SUITES
    )

    assert [(dataset.cluster, dataset.slices) for dataset in found.datasets] == [
        ("user", ("market", "lang")),
        ("session", ("length",)),
        (None, ()),
    ]


def test_clusters_and_slices_need_a_table_of_queries():
    rest = "models: {m: {outputs: o}}\ndatasets:\n  a: {judgments: q}\n  b:\n    scores: {x: }\n    cluster: s\n"

    assert findings("cluster: user\nslices: [market]\n" + rest + "    slices: [l]\n" + SUITES) == [
        f"a.yaml:{line}"
        for line in (
            "6: datasets.a: clusters by 'user' need a queries table; add `queries:`, or write `cluster: query_id`",
            "6: datasets.a: slices by 'market' need a queries table; add `queries:`, or write `slices: []`",
            "9: datasets.b.cluster: clusters by 's' need a queries table; add `queries:`, or write `cluster: query_id`",
            "10: datasets.b.slices: slices by 'l' need a queries table; add `queries:`, or write `slices: []`",
        )
    ]


def test_scores_are_the_one_suite_of_their_dataset(folder):
    found = planned(
        "defaults: {dataset: {judgments: q, documents: c, subtopics: true, suites: [search], queries: '{dataset}.t'}}\n"
        "datasets: {web: , answers: {scores: {faithfulness: , latency: {direction: lower, range: [0, null]}}}}\n"
        "models: {m: {outputs: '{dataset}'}}\n" + SUITES
    )

    web, answers = found.datasets
    assert (web.kind, answers.kind) == ("rankings", "scores")
    assert [file.path for file in answers.files] == [f"{folder}/configs/answers.t"]
    assert {name: [*map(str, suite)] for name, suite in answers.suites.items()} == {
        "scores": ["faithfulness", "latency"]
    }
    assert [(measure.metric.direction, measure.metric.range) for measure in answers.measures] == [
        ("higher", (-math.inf, math.inf)),
        ("lower", (0, math.inf)),
    ]
    assert pairs(found) == ["web/m", "answers/m"]


def test_a_dataset_of_scores_that_stands_in_the_defaults_gives_way_to_judgments():
    found = planned(
        "defaults: {dataset: {scores: {x: }}}\ndatasets: {a: {judgments: q}, b: }\n"
        "models: {m: {outputs: '{dataset}'}}\n" + SUITES
    )

    assert [dataset.kind for dataset in found.datasets] == ["rankings", "scores"]


def test_a_config_of_scores_alone_needs_no_suites():
    found = planned(
        "datasets: {a: {scores: {x: , y: lower}}, b: {scores: {x: }}}\nmodels: {m: {outputs: '{dataset}.csv'}}\n"
    )

    assert found.datasets[0].measures[0] == found.datasets[1].measures[0]


def test_a_score_is_not_taken_for_a_sum_of_a_pooled_measure():
    text = "datasets:\n  r: {{ratings: q}}\n  s: {{scores: {{rmse.denominator: lower}}}}\n"
    models = "models: {{m: {{outputs: '{{dataset}}'}}}}\nsuites: {{x: [{measure}]}}\n"

    assert findings((text + models).format(measure="rmse")) == [
        'a.yaml:4: datasets.s.scores."rmse.denominator": is the name of a sum for rmse; choose another name'
    ]
    assert len(planned((text + models).format(measure="mae")).datasets) == 2


@pytest.mark.parametrize(
    ("scores", "name", "first", "where"),
    [
        ("{ndcg@5: }", "ndcg@5", "ndcg@5", "a"),
        ("{ap: lower}", "ap", "ap", "a"),
        ("{ndcg_at_10: }", "ndcg_at_10", "ndcg@10", "a"),
        ("{x: lower}", "x", "x", "c"),
    ],
)
def test_a_score_is_not_taken_for_another_measure(scores, name, first, where):
    text = f"datasets:\n  a: {{judgments: q}}\n  c: {{scores: {{x: }}}}\n  b: {{scores: {scores}}}\n"

    assert findings(text + "models: {m: {outputs: '{dataset}'}}\n" + SUITES) == [
        f"a.yaml:5: datasets.b.scores.{name}: has the name of another measure, {first} of the dataset {where!r}; "
        "choose another name"
    ]


def test_numbers_from_outside_are_found_as_outputs_are(folder):
    touch("o/x.tsv")
    text = "datasets: {d: {judgments: q}}\nmodels:\n  a: {outputs: a, extra: '{model}/{size}.json', keys: {size: xl}}\n"
    text += "  b: {outputs: b}\n  '*': {outputs: 'o/{model}.tsv', extra: 'o/{model}.{date}'}\n"

    found = planned(text + SUITES, date="2026-11-20")

    assert {model: file.path for model, file in found.external_metrics.items()} == {
        "a": f"{folder}/configs/a/xl.json",
        "x": f"{folder}/configs/o/x.2026-11-20",
    }
    assert findings(text.replace("{size}", "{dataset}") + SUITES, date="2026-11-20") == [
        "a.yaml:4: models.a.extra: '{model}/{dataset}.json' has an unknown placeholder {dataset}; "
        "available: {date}, {size}, {model}"
    ]


def test_was_is_the_old_name_of_one_model():
    message = "`was` is the old name of one model; write it under that model's new name"
    text = "datasets: {d: {judgments: q}}\nmodels:\n  a: {outputs: a, was: WAS}\n"

    assert planned(text.replace("WAS", "old") + SUITES).models["a"].was == "old"
    assert findings(text.replace("WAS", "a") + SUITES) == [f"a.yaml:4: models.a.was: {message}"]
    touch("o/x")
    assert findings(text.replace("WAS", "b") + "  '*': {outputs: 'o/{model}', was: c}\n" + SUITES) == [
        f"a.yaml:5: models.*.was: {message}"
    ]


def test_a_suite_of_which_nothing_can_be_measured_is_said_once():
    found = findings(
        "datasets: {d: {judgments: q}}\nmodels: {m: {outputs: o}}\nconventions: {ties: expected}\n"
        "suites: {s: [ndcg], t: [infap]}\n"
    )

    assert len(found) == 1
    assert found[0].startswith("a.yaml:5: suites.t[0]: infap has no exact mean")


def test_a_model_to_compare_with_must_be_there():
    assert findings(
        "datasets:\n  d: {judgments: q}\n  e: {judgments: q}\n"
        "models: {bm25: {outputs: {d: o}}, dense: {outputs: '{dataset}.tsv'}}\n"
        "suites: {s: ['rbo(model=bm25)@10', 'rbo(model=dense)', 'rbo(model=denser)']}\n"
    ) == [
        "a.yaml:3: datasets.d: rbo(model=denser) compares with 'denser', but no model here has that name; "
        "did you mean 'dense'?",
        "a.yaml:4: datasets.e: rbo(model=bm25)@10 compares with 'bm25', but no model here has that name; known: dense",
        "a.yaml:4: datasets.e: rbo(model=denser) compares with 'denser', but no model here has that name; "
        "did you mean 'dense'?",
    ]


def test_a_model_of_which_there_must_be_another_output():
    assert findings(
        "datasets: {d: {judgments: q}}\nmodels: {m: {outputs: o}, m-og: {outputs: p}}\n"
        "suites: {s: ['p_mrr(model={model}-og)', 'rbo(model={model}-og)', 'p_mrr(model={model}-old)']}\n"
    ) == [
        "a.yaml:2: datasets.d: p_mrr(model={model}-old) compares with '{model}-old', but no model here has that name; "
        "known: m, m-og"
    ]


def test_clusters_that_a_measure_needs():
    assert findings("datasets: {d: {judgments: q}}\nmodels: {m: {outputs: o}}\nsuites: {s: [robustness@10]}\n") == [
        "a.yaml:2: datasets.d: robustness@10: clusters are needed; add `cluster:`, their column of the queries table, "
        "or remove the measure"
    ]


def test_all_mistakes_come_at_once_and_a_defaults_once():
    assert findings(
        "defaults:\n  dataset: {judgments: '{x}'}\n  model: {outputs: '{y}'}\n"
        "datasets: {a: , b: {suites: [none]}}\nmodels: {m: , n: {outputs: {c: o}}}\n" + SUITES
    ) == [
        "a.yaml:3: defaults.dataset.judgments: '{x}' has an unknown placeholder {x}" + OF_FILES,
        "a.yaml:4: defaults.model.outputs: '{y}' has an unknown placeholder {y}" + OF_OUTPUTS,
        "a.yaml:5: datasets.b.suites[0]: unknown suite 'none'; known: search, deep",
        "a.yaml:6: models.n.outputs.c: unknown dataset 'c'; known: a, b",
    ]


# ---- paths


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=10))
def test_doubled_braces_are_any_text(text):
    assert fill(text.replace("{", "{{").replace("}", "}}"), {}) == text
    assert fill("{word}", {"word": text}) == text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("x/../y", "/base/y"),
        ("/x", "/x"),
        ("s3://b/../x", "s3://b/../x"),
        ("file:///x", "file:///x"),
        ("parts/", "/base/parts"),
    ],
)
def test_absolute_paths(path, expected):
    assert absolute(path, Path("/base")) == expected


MOVING = (
    "defaults:\n"
    "  dataset: {judgments: '{dataset}/$${{q}}.tsv'}\n"
    "  model: {outputs: {path: './{dataset}/{model}.tsv', format: tsv}}\n"
    "datasets:\n"
    "  a:\n"
    "  b: {judgments: {path: /abs/q}, queries: s3://b/q, documents: '${DOCS}/x', interactions: i}\n"
    "  c: {ratings: '${ABS}/r', columns: {rating: path}}\n"
    "models:\n"
    "  m:\n"
    "  n: {outputs: {a: ../x, b: {path: y}}}\n"
    "  o: {outputs: '${OUT:-out}/{model}', params: {outputs: z}, extra: 'x/{model}.json'}\n"
    "execution: {cache: 'the {shared}'}\n"
    "gates:\n"
    "- {name: a, measure: ap, margin: 0, against: 'self@./old'}\n"
    "- {name: b, measure: ap, margin: 0, against: '../{x}/$$/r#org/m', models: [m, n]}\n"
    "- {name: c, measure: ap, margin: 0, against: '${BASE}#m'}\n"
    "- {name: d, measure: ap, margin: 0, against: '${ABS}/r'}\n"
    "- {name: e, measure: ap, margin: 0, against: accepted}\n"
    "- {name: f, measure: ap, margin: 0, against: n}\n"
    "- {name: g, max_missing: 0}\n"
)
ENVIRON = {"DOCS": "docs", "ABS": "/abs", "BASE": "base/r"}


def test_a_config_can_move_into_its_record(folder):
    touch("a.yaml")
    Path("configs/a.yaml").write_text("name: n\n" + MOVING + SUITES, encoding="utf-8")

    raw = relocate(
        load("configs/a.yaml", ["models.p={outputs: 'set/{model}'}"], ENVIRON).document, Path("runs/records/e")
    )

    assert raw["defaults"]["dataset"] == {"judgments": "../../../configs/{dataset}/$${{q}}.tsv"}
    assert raw["datasets"]["b"]["documents"] == "../../../configs/${DOCS}/x"
    assert raw["datasets"]["c"] == {"ratings": "${ABS}/r", "columns": {"rating": "path"}}
    assert raw["models"]["o"]["outputs"] == "../../../configs/${OUT:-out}/{model}"
    assert raw["models"]["o"]["params"] == {"outputs": "z"}
    assert raw["models"]["p"] == {"outputs": "../../../set/{model}"}
    assert raw["execution"] == {"cache": "../../../configs/the {shared}"}  # which is no template
    assert [gate.get("against") for gate in raw["gates"]] == [
        "self@../../../configs/old",
        "../../../configs/../{x}/$$/r#org/m",
        "../../../configs/${BASE}#m",
        "${ABS}/r",
        "accepted",
        "n",
        None,
    ]
    assert str(folder) not in str(raw)


@pytest.mark.parametrize("place", ["runs/records/e", "configs", "configs/{odd} $X"])
def test_a_moved_config_plans_the_same(place, monkeypatch):
    found = planned(MOVING + SUITES, environ=ENVIRON)
    first = Path("configs/a.yaml")
    for target in (Path(place, "config.yaml"), Path("back.yaml")):
        target.parent.mkdir(parents=True, exist_ok=True)
        raw = relocate(load(first, (), ENVIRON).document, target.parent)
        target.write_text(yaml.safe_dump(raw, sort_keys=False), encoding="utf-8")
        first = target

        again = plan(load(target, (), ENVIRON))

        assert again.cache == found.cache == str(Path("configs/the {shared}").absolute())
        assert again.tasks == found.tasks
        assert again.datasets == found.datasets
        assert again.external_metrics == found.external_metrics
        assert [(gate.tasks, gate.against and gate.against.record) for gate in again.gates] == [
            (gate.tasks, gate.against and gate.against.record) for gate in found.gates
        ]
