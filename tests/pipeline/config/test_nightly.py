"""The section of nights: durations, what makes an output ready, and the markers that a plan asks for."""

from datetime import timedelta
from pathlib import Path

import pytest

from rankledger.pipeline.config.plan import markers, plan, unmatched_searches
from rankledger.pipeline.config.schema import Config, Loaded, Nightly, load
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import refusal

pytestmark = pytest.mark.usefixtures("folder")

SMALL = "name: n\ndatasets: {web: {judgments: q, keys: {lang: de}}}\nsuites: {s: [ap]}\n"
MODELS = 'models: {bm25: {outputs: "{date}/bm25.tsv"}, dense: {outputs: "{date}/dense.tsv", keys: {lang: fr}}}\n'
DATE = "2026-11-20"


def loaded(nightly: str, models: str = MODELS) -> Loaded:
    Path("a.yaml").write_text(f"{SMALL}{models}nightly: {nightly}\n", encoding="utf-8")
    return load("a.yaml", (), {})


def section(nightly: str) -> Nightly:
    return loaded(nightly).config.nightly


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
    config = loaded(f"{{wait: {written}, every: 45s}}").config

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
    found = loaded(f"{{ready: {ready}, wait: 1h}}")

    assert markers(found, plan(found, DATE)) == {}


def test_a_marker_is_a_template():
    found = loaded("{ready: '../{date}/{dataset}-{model}.{lang}'}")

    assert markers(found, plan(found, DATE)) == {
        ("web", "bm25"): "../2026-11-20/web-bm25.de",
        ("web", "dense"): "../2026-11-20/web-dense.fr",
    }


def test_an_unknown_word_in_a_marker_is_refused_with_its_line():
    found = loaded("{ready: '{modell}.done'}")

    with pytest.raises(
        InputError, match=r"^a.yaml:5: nightly.ready: .* an unknown placeholder \{modell\}; available: .*\{model\}"
    ):
        markers(found, plan(found, DATE))


def test_models_that_are_searched_for_may_not_be_there_yet():
    found = loaded("", 'models: {"*": {outputs: "{date}/{model}"}}\n')
    Path(DATE).mkdir()

    assert unmatched_searches(found, DATE) == (str(Path.cwd() / DATE / "*"),)
    (Path(DATE) / "bm25").touch()
    assert not unmatched_searches(found, DATE)
    assert not unmatched_searches(loaded(""), DATE)


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
    assert not unmatched_searches(loaded("", 'models: {"*": {outputs: "s3://bucket/{model}"}}\n'), DATE)
