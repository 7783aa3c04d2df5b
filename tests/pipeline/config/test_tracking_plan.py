"""Tags, logged models and promotions that MLflow could not hold are refused at their line."""

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


def planned(*changes: tuple[str, str]) -> Plan:
    text = CONFIG
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    Path("a.yaml").write_text(text, encoding="utf-8")
    return plan(load("a.yaml", (), {}))


def of_b(lines: str) -> tuple[str, str]:
    return "    outputs: b\n", f"    outputs: b\n{lines}\n"


@pytest.mark.parametrize("tag", ["mlflow.user", "rankledger.evaluation", "rankledger.mine"])
def test_tags_that_are_not_the_users_own_are_refused(tag):

    assert findings(planned, of_b(f"    tags: {{{tag}: x}}")) == [
        f"a.yaml:5: models.b: the tag {tag!r} is set by MLflow or rankledger. Use another name."
    ]
    planned(of_b("    tags: {mlflow: x, rankledger: y, team.mlflow.user: z}"))


@pytest.mark.parametrize("place", ["{d: {", "  a:"])
def test_a_name_has_at_most_250_characters(place):
    """MLflow takes no longer name of a run."""
    name = place.strip(" {:").removesuffix(":")
    planned((place, place.replace(name, "d" * 250)))

    (found,) = findings(planned, (place, place.replace(f"{name}:", f"? {'d' * 251}\n  :")))
    assert found.endswith("the name has 251 characters. Use at most 250, as MLflow does.")


def test_a_logged_model_is_not_every_model():
    Path("o").mkdir()
    Path("o/x").touch()
    found = "it names one logged model, not every model; list that model by name"

    assert planned(of_b("    model_id: m-1f0c9a2b")).models["b"].model_id == "m-1f0c9a2b"
    assert findings(planned, of_b("  '*': {outputs: 'o/{model}', model_uri: models:/ranker/3}")) == [
        f"a.yaml:7: models.*.model_uri: {found}"
    ]


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
