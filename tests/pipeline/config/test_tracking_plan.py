"""Where results go: tracking, alerts and nightly evaluations of a config."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from rankledger.pipeline.config.plan import markers, plan, unmatched_searches
from rankledger.pipeline.config.planned import Plan
from rankledger.pipeline.config.schema import Config, Loaded, Nightly, Notify, load
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import findings, refusal

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


SMALL = "name: n\ndatasets: {web: {judgments: q}}\nsuites: {s: [ap]}\nmodels: {bm25: {outputs: o}}\n"
ENVIRON = {"URL": "https://hooks.example.com/T0/xyzzy", "KEY": "hush"}


def loaded(*targets: str, environ: Mapping[str, str] = ENVIRON) -> Loaded:
    Path("a.yaml").write_text(f"{SMALL}notify: [{', '.join(targets)}]\n", encoding="utf-8")
    return load("a.yaml", (), environ)


ONE = "write one of webhook, command, metrics for each target"
ADDRESS = "found no address of a server. Set one that begins with https:// or http://."
NO_TEXT = "found a wrong value; write a text of at least one character"
PAGE = "has another placeholder than {evaluation_id}; write a literal brace as {{ or }}"


def test_targets_are_read_with_their_variables():
    config = loaded("{webhook: '${URL}'}", "{command: [pager, --now]}", "{metrics: b}").config
    assert [target.webhook or target.command or target.metrics for target in config.notify] == [
        *(ENVIRON["URL"], ("pager", "--now"), "b")
    ]
    Path("b.yaml").write_text(SMALL, encoding="utf-8")
    assert load("b.yaml").config.notify == ()


def test_variables_of_targets_are_not_kept():
    document = loaded("{webhook: '${URL}'}", "{command: ['${KEY}']}").document

    assert document.expansions == {}
    assert document.raw["notify"] == [{"webhook": "${URL}"}, {"command": ["${KEY}"]}]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{}", f": has no target; {ONE}"),
        ("{command: [a], metrics: b}", f": has command and metrics; {ONE}"),
        ("{url: x}", ".url: unknown key 'url'; known: webhook, command, metrics, remind_after, page, timeout"),
        ("{command: ls}", ".command: found a wrong value; write a list"),
        ("{command: []}", ".command: found a wrong value; write at least one"),
        ("{webhook: ftp://x}", f".webhook: {ADDRESS}"),
        ("{webhook: 'http://'}", f".webhook: {ADDRESS}"),
        ("{metrics: a, timeout: 0}", ".timeout: found 0; write a duration above 0, such as 30s"),
        ("{metrics: a, page: 'https://x/{date}'}", f".page: {PAGE}"),
        ("{url: '${URL}'}", ".url: unknown key 'url'; known: webhook, command, metrics, remind_after, page, timeout"),
    ],
)  # fmt: skip
def test_wrong_targets(target, message):
    assert refusal(loaded, target) == f"a.yaml:5: notify[0]{message}"


@pytest.mark.parametrize(
    ("target", "value", "message"),
    [
        *(("{webhook: '${URL}'}", value, f".webhook: {ADDRESS}") for value in ("http://[::1/x", "http://a]b/x", "x")),
        ("{webhook: '${URL}'}", "https://bot:pa/ss@h/x", f".webhook: {ADDRESS}"),
        ("{webhook: 'https://h:${URL}/x'}", "a", f".webhook: {ADDRESS}"),
        ("{command: ['${URL}']}", "", f".command[0]: {NO_TEXT}"),
    ],
)
def test_a_variable_with_a_wrong_value_costs_its_target_alone(target, value, message):
    """A target before it has no variable at all, and the one after it stays."""
    loading = loaded("{webhook: '${NONE}'}", target, "{command: [a]}", environ={"URL": value})
    unset, wrong = loading.document.unusable_targets.values()

    assert str(wrong) == f"a.yaml:5: notify[1]{message}"
    assert "notify[0].webhook: ${NONE} is not set" in str(unset)
    assert loading.config.notify == (Notify(command=("a",)),)


def test_a_line_break_at_the_end_of_a_variable_is_no_part_of_an_address():
    assert loaded("{webhook: '${URL}'}", environ={"URL": "https://h/x\n"}).config.notify[0].webhook == "https://h/x"


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("{webhook: 'https://hooks.slack.com/services/T0/B0/xyzzy'}", ".webhook: is a secret"),
        ("{webhook: 'https://x.webhook.office.com/${URL:-xyzzy}'}", ".webhook: is a secret"),
        ("{webhook: 'https://ann:xyzzy@x'}", ".webhook: contains credentials"),
        ("{webhook: 'https://x?token=xyzzy'}", ".webhook: contains credentials"),
        ("{webhook: 'https://chat.example.com/hooks/6z3kq1xyzzyw7b9p8d'}", ".webhook: is a secret"),
        ("{webhook: 'https://hc.example.com/xyzzy/0d5f7a11-9f2e-4a51-8a54-6b1f7c9e2d10'}", ".webhook: is a secret"),
    ],
)
def test_a_secret_that_would_be_recorded_is_refused(target, key):
    message = refusal(loaded, target)

    assert message.startswith(f"a.yaml:5: notify[0]{key}")
    assert "${NAME}" in message
    assert "xyzzy" not in message


def test_a_plain_address_may_be_written():
    (target, off) = loaded("{webhook: 'https://eval.example.com/alerts'}", "{webhook: '${NONE:-}'}").config.notify

    assert target == Notify(webhook="https://eval.example.com/alerts")
    assert off.webhook == ""


NIGHTLY = "name: n\ndatasets: {web: {judgments: q, keys: {lang: de}}}\nsuites: {s: [ap]}\n"
MODELS = 'models: {bm25: {outputs: "{date}/bm25.tsv"}, dense: {outputs: "{date}/dense.tsv", keys: {lang: fr}}}\n'
DATE = "2026-11-20"


def load_nightly(nightly: str, models: str = MODELS) -> Loaded:
    Path("a.yaml").write_text(f"{NIGHTLY}{models}nightly: {nightly}\n", encoding="utf-8")
    return load("a.yaml", (), {})


def section(nightly: str) -> Nightly:
    return load_nightly(nightly).config.nightly


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90s", 90), ("30m", 1_800), ("2h", 7_200), ("'0'", 0), ("0", 0), ("0s", 0), ("100m", 6_000)],
)
def test_durations_are_a_number_and_a_unit(written, seconds):
    assert section(f"{{wait: {written}}}").wait == timedelta(seconds=seconds)


@pytest.mark.parametrize("written", ["30", "'1:30'", "2 h", "-1s", "1.5h", "2H", "h", "true", "[2h]", "P1D"])
def test_what_is_no_duration_is_refused(written):
    assert "write a number of seconds, minutes or hours, such as 90s, 30m or 2h, or 0" in refusal(
        section, f"{{wait: {written}}}"
    )


@pytest.mark.parametrize("written", ["0", "59s", "90s", "90m", "2h", "36h"])
def test_a_config_is_equal_to_its_dump_read_again(written):
    config = load_nightly(f"{{wait: {written}, every: 45s}}").config

    assert Config.model_validate(config.model_dump()) == config
    assert Config.model_validate_json(config.model_dump_json()) == config


@pytest.mark.parametrize(
    ("nightly", "said"),
    [
        ("{every: 0}", "a.yaml:5: nightly.every: found 0; write a duration above 0, such as 30s"),
        ("{ready: stable}", "nightly: `ready: stable` checks twice, `every` apart; set `wait` to at least as long"),
        ("{ready: stable, wait: 20s}", "set `wait` to at least as long"),
        ("{ready: '{model'}", "a.yaml:5: nightly.ready: '{model' has a single brace"),
        ("{ready: '{model!r}'}", "has a placeholder with a format"),
        ("{ready: done/}", "'done/' is a folder; name the file in it"),
        ("{ready: _SUCCES, wiat: 2h}", "unknown key 'wiat'; did you mean 'wait'?"),
    ],
)
def test_wrong_nightly_sections(nightly, said):
    assert said in refusal(section, nightly)


@pytest.mark.parametrize("ready", ["exists", "stable"])
def test_no_marker_is_asked_for_where_files_tell(ready):
    found = load_nightly(f"{{ready: {ready}, wait: 1h}}")

    assert markers(found, plan(found, DATE)) == {}


def test_a_marker_is_a_template():
    found = load_nightly("{ready: '../{date}/{dataset}-{model}.{lang}'}")

    assert markers(found, plan(found, DATE)) == {
        ("web", "bm25"): "../2026-11-20/web-bm25.de",
        ("web", "dense"): "../2026-11-20/web-dense.fr",
    }


def test_an_unknown_word_in_a_marker_is_refused_with_its_line():
    found = load_nightly("{ready: '{modell}.done'}")

    with pytest.raises(
        InputError, match=r"^a.yaml:5: nightly.ready: .* an unknown placeholder \{modell\}; available: .*\{model\}"
    ):
        markers(found, plan(found, DATE))


def test_models_that_are_searched_for_may_not_be_there_yet():
    found = load_nightly("", 'models: {"*": {outputs: "{date}/{model}"}}\n')
    Path(DATE).mkdir()

    assert unmatched_searches(found, DATE) == (str(Path.cwd() / DATE / "*"),)
    (Path(DATE) / "bm25").touch()
    assert not unmatched_searches(found, DATE)
    assert not unmatched_searches(load_nightly(""), DATE)


def test_a_table_of_the_dataset_is_no_output_that_was_found():
    Path("web").mkdir()
    Path("web/qrels").touch()
    Path("a.yaml").write_text(
        "name: n\ndatasets: {web: {judgments: web/qrels}}\nsuites: {s: [ap]}\nmodels: {'*': {outputs: 'web/{model}'}}\n"
    )

    assert unmatched_searches(load("a.yaml", (), {}), DATE)
    Path("web/bm25").touch()
    assert not unmatched_searches(load("a.yaml", (), {}), DATE)


def test_a_search_that_is_wrong_is_not_waited_for():
    assert not unmatched_searches(load_nightly("", 'models: {"*": {outputs: "s3://bucket/{model}"}}\n'), DATE)
