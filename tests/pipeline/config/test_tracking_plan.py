"""What MLflow could not hold is refused with the config, at its line, before anything is computed."""

from pathlib import Path

import pytest

from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.schema import load
from tests.support.data_files import findings

pytestmark = pytest.mark.usefixtures("folder")

CONFIG = """\
name: n
datasets: {d: {judgments: q}}
models:
  a: {outputs: a}
  b:
    outputs: b
suites:
  s: [ap, "ndcg@10"]
"""
TOO_LONG = "has 251 characters, and MLflow allows 250; shorten it"


def planned(*changes: tuple[str, str]) -> Plan:
    text = CONFIG
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    Path("a.yaml").write_text(text, encoding="utf-8")
    return plan(load("a.yaml", (), {}))


def of_b(lines: str) -> tuple[str, str]:
    return "    outputs: b\n", f"    outputs: b\n{lines}\n"


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_a_param_that_is_too_long_is_refused_at_its_line(enabled):
    disabled = ("name: n\n", f"name: n\ntracking: {{enabled: {enabled}}}\n")

    planned(of_b(f"    params: {{p: {'x' * 6_000}}}"), disabled)
    assert findings(planned, of_b(f"    params:\n      q: 1\n      p: {'x' * 6_001}"), disabled) == [
        "a.yaml:10: models.b.params.p: the param has 6,001 characters, and MLflow allows 6,000; shorten it"
    ]


def test_a_tag_or_an_owner_that_is_too_long_is_refused():
    planned(of_b(f"    tags: {{t: {'x' * 8_000}}}\n    owner: {'x' * 8_000}"))

    assert findings(planned, of_b(f"    tags: {{t: {'x' * 8_001}}}\n    owner: {'x' * 8_001}")) == [
        "a.yaml:7: models.b.tags.t: the tag has 8,001 characters, and MLflow allows 8,000; shorten it",
        "a.yaml:8: models.b.owner: it has 8,001 characters, and MLflow allows 8,000; shorten it",
    ]


@pytest.mark.parametrize("key", ["params", "tags"])
def test_names_that_are_one_to_mlflow_are_refused(key):
    planned(of_b(f'    {key}: {{a_: "1", b.c: "2", d/e: "3"}}'))

    assert findings(planned, of_b(f'    {key}: {{"a!": "1", "a?": "2"}}')) == [
        f"a.yaml:7: models.b.{key}: 'a!' and 'a?' would both be 'a_' in MLflow; rename one"
    ]
    assert findings(planned, of_b(f'    {key}: {{{"k" * 251}: "1"}}')) == [
        f"a.yaml:7: models.b.{key}: the name '{'k' * 60}…' {TOO_LONG}"
    ]


@pytest.mark.parametrize("tag", ["mlflow.user", "rankledger.evaluation", "rankledger.mine"])
def test_tags_that_are_not_the_users_own_are_refused(tag):
    kept = "tags that begin with `mlflow.` and `rankledger.` are set by MLflow and rankledger; rename it"

    assert findings(planned, of_b(f"    tags: {{{tag}: x}}")) == [f'a.yaml:7: models.b.tags."{tag}": {kept}']
    planned(of_b("    tags: {mlflow: x, rankledger: y, team.mlflow.user: z}"))


def test_a_dataset_has_250_letters():
    planned(("{d: {", f"{{{'d' * 250}: {{"))

    assert findings(planned, ("{d: {", f"{{? {'d' * 251} : {{")) == [
        f"a.yaml:2: datasets.{'d' * 190}…: the name of the dataset {TOO_LONG}"
    ]


def test_a_model_has_250_letters():
    planned(("  a:", f"  {'a' * 250}:"))

    (found,) = findings(planned, ("  a:", f"  ? {'a' * 251}\n  :"))
    assert found == f"a.yaml:4: models.{'a' * 192}…: the name of the model '{'a' * 60}…' {TOO_LONG}"


def test_a_suite_that_makes_names_too_long_is_refused():
    planned(("  s:", f"  {'s' * (250 - 23 - len('/ndcg_at_10'))}:"))

    (found,) = findings(planned, ("  s:", f"  {'s' * (251 - 23 - len('/ndcg_at_10'))}:"))
    assert found.startswith("a.yaml:2: datasets.d: the name 'rankledger.worst_slice.sss")
    assert found.endswith(TOO_LONG)


@pytest.mark.parametrize(
    ("suite", "owner"),
    [
        ("s.worst_slice", "the worst slice of ap"),
        ("s.vs_a", "difference of ap to a"),
        ("s.vs_previous", "difference of ap since previous"),
        ("s.ci95", None),
    ],
)
def test_a_suite_that_is_called_like_a_section_of_another_is_refused(suite, owner):
    changes = (("  s:", f"  {suite}: [ap]\n  s:"), ("name: n\n", "name: n\ncomparison: {baseline: a}\n"))
    if owner is None:
        planned(*changes)
    else:
        clash = f"'ap' and {owner!r} would both be '{suite}/ap' in MLflow; rename one"
        assert findings(planned, *changes) == [f"a.yaml:3: datasets.d: {clash}"]


@pytest.mark.parametrize("name", ["previous", "accepted"])
def test_a_baseline_that_is_called_like_an_earlier_evaluation_is_refused(name):
    compared = ("name: n\n", f"name: n\ncomparison: {{baseline: {name}}}\n")
    (first, *_) = findings(planned, ("  a:", f"  {name}:"), compared)

    clash = f"'difference of ap to {name}' and 'difference of ap since {name}' would both be 's.vs_{name}/ap' in MLflow"
    assert first == f"a.yaml:3: datasets.d: {clash}; rename one"
    planned(("  a:", f"  {name}:"))


def test_models_that_are_one_to_mlflow_are_refused():
    names = [("  a:", "  a/x:"), ("  b:", "  a_x:")]
    third = ("    outputs: b\n", "    outputs: b\n  c: {outputs: c}\n")
    compared = ("name: n\n", "name: n\ncomparison: {baseline: all_pairs}\n")
    (first, *_) = findings(planned, *names, third, compared)
    clash = "'difference of ap to a/x' and 'difference of ap to a_x' would both be 's.vs_a_x/ap' in MLflow; rename one"
    assert first == f"a.yaml:3: datasets.d: {clash}"
    alone = findings(planned, *names, third)
    assert alone == ["a.yaml:3: models: 'a/x on d' and 'a_x on d' would both be 'a_x/d.ap' in MLflow; rename one"]
    pooled = findings(planned, *names, third, ("name: n\n", "name: n\npooled: true\n"))
    assert "a.yaml:4: models: 'ap of a/x' and 'ap of a_x' would both be 'a_x/ap' in MLflow; rename one" in pooled


def test_a_model_that_is_called_like_a_section_of_another_is_refused_where_figures_are_pooled():
    """The interval of `x` of the model `a` is `a.ci95/x.low`, as is the score `x.low` of the model `a.ci95`."""
    scored = ("{d: {judgments: q}}", "{d: {scores: {x: higher}}, e: {scores: {x.low: higher}}}")
    names = (scored, ("  b:", "  a.ci95:"), ('suites:\n  s: [ap, "ndcg@10"]\n', ""))

    planned(*names)
    assert findings(planned, *names, ("name: n\n", "name: n\npooled: true\n")) == [
        "a.yaml:4: models: 'ci_low of x of a' and 'x.low of a.ci95' would both be 'a.ci95/x.low' in MLflow; rename one"
    ]


def test_a_suite_called_extra_is_refused_beside_numbers_from_outside():
    planned(("  s:", "  extra:"))

    assert findings(planned, ("  s:", "  extra:"), of_b("    extra: costs.json")) == [
        "a.yaml:2: datasets.d: 'ap' would be among the external metrics in MLflow; rename its suite"
    ]


def test_a_logged_model_is_not_every_model():
    Path("o").mkdir()
    Path("o/x").touch()
    found = "it names one logged model, not every model; list that model by name"

    assert planned(of_b("    model_id: m-1f0c9a2b")).models["b"].model_id == "m-1f0c9a2b"
    assert findings(planned, of_b("  '*': {outputs: 'o/{model}', model_uri: models:/ranker/3}")) == [
        f"a.yaml:7: models.*.model_uri: {found}"
    ]


def test_all_mistakes_come_at_once():
    lines = findings(planned, of_b(f"    params: {{p: {'x' * 6_001}}}\n    tags: {{mlflow.user: me}}"))

    assert [line.partition(": ")[0] for line in lines] == ["a.yaml:7", "a.yaml:8"]


PROMOTE = "promote: {model: 'models:/ranker', alias: champion, when: gates_pass}"
GATES = ("suites:\n", "gates:\n- {name: g, measure: ap, at_least: 0.1}\nsuites:\n")


def promoted(uri: str = "models:/ranker/3", promote: str = PROMOTE) -> tuple[str, str]:
    return of_b(f"    model_uri: {uri}\n    {promote}")


def test_a_promotion_is_planned():
    (promote,) = [model.promote for model in planned(promoted(), GATES).models.values() if model.promote]

    assert (promote.registered, promote.alias, promote.when) == ("ranker", "champion", "gates_pass")
    assert planned(promoted(promote=PROMOTE.replace(", when: gates_pass", "")), GATES).models["b"].promote == promote


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("models:/ranker@champion", "model_uri is models:/ranker@champion, which is no version of models:/ranker"),
        ("models:/m-0a1b", "model_uri is models:/m-0a1b, which is no version of models:/ranker by number"),
        ("models:/other/3", "model_uri is models:/other/3, which is no version of models:/ranker by number"),
        ("models:/ranker/03", "model_uri is models:/ranker/03, which is no version of models:/ranker by number"),
        ("null", "`model_uri` must name the version that made the outputs; add it, as in models:/ranker/3"),
    ],
)
def test_what_is_promoted_is_a_version_by_its_number(uri, found):
    (line,) = findings(planned, promoted(uri), GATES)

    assert line.startswith(f"a.yaml:8: models.b.promote: {found}")


def test_what_no_gate_judges_is_not_promoted():
    nobody = "a.yaml:8: models.b.promote: no gate judges 'b', and what is not judged is not promoted; add a gate"

    assert findings(planned, promoted()) == [nobody]
    assert findings(planned, promoted(), (GATES[0], GATES[1].replace("name: g", "name: g, models: [a]"))) == [nobody]


def test_a_promotion_needs_mlflow():
    disabled = ("name: n\n", "name: n\ntracking: {enabled: false}\n")

    assert findings(planned, promoted(), GATES, disabled) == [
        "a.yaml:9: models.b.promote: the alias is MLflow's, and `tracking` is off; enable it, or remove `promote`"
    ]


def test_an_alias_is_of_one_model():
    both = ("  a: {outputs: a}\n", f"  a: {{outputs: a, model_uri: 'models:/ranker/2', {PROMOTE}}}\n")

    assert findings(planned, both, promoted(), GATES) == [
        "a.yaml:8: models.b.promote: 'a' is promoted to the alias 'champion', too; remove one"
    ]
    planned(both, promoted(promote=PROMOTE.replace("champion", "challenger")), GATES)


def test_families_and_searches_are_no_version():
    for number in (1, 2):
        Path(f"b{number}").touch()
    family = ("    outputs: b\n", f"    outputs: b{{replicate}}\n    model_uri: models:/ranker/3\n    {PROMOTE}\n")
    assert findings(planned, family, GATES) == [
        "a.yaml:8: models.b.promote: the replicates of 'b' are several models, and an alias stands for one version; "
        "remove `promote`"
    ]
    Path("x.tsv").touch()
    every = (
        "  b:\n    outputs: b\n",
        f"  '*': {{outputs: '{{model}}.tsv', model_uri: 'models:/ranker/3', {PROMOTE}}}\n",
    )
    assert any(
        "'*' stands for several models, and an alias for one version" in line
        for line in findings(planned, every, GATES)
    )


@pytest.mark.parametrize(
    ("promote", "found"),
    [
        (PROMOTE.replace("champion", "latest"), "models.b.promote: MLflow reserves the alias 'latest'; choose another"),
        (PROMOTE.replace("champion", "V3"), "models.b.promote: MLflow reserves the alias 'V3'; choose another"),
        (PROMOTE.replace("champion", "a b"), "models.b.promote.alias: "),
        (PROMOTE.replace("models:/ranker", "models:/ranker/3"), "models.b.promote.model: "),
        (PROMOTE.replace("gates_pass", "always"), "models.b.promote.when: "),
        (PROMOTE.replace("when", "wen"), "models.b.promote.wen: unknown key 'wen'; did you mean 'when'?"),
    ],
)
def test_a_promotion_that_cannot_be_is_refused_at_its_key(promote, found):
    assert any(
        line.startswith("a.yaml:8: ") and found in line for line in findings(planned, promoted(promote=promote), GATES)
    )
