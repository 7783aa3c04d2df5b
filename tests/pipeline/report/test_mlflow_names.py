"""Names in MLflow: letters, limits and sections, compared with MLflow's own validation."""

import os
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.config.mlflow_names import (
    NAME_LIMIT,
    PARAM_LIMIT,
    TAG_LIMIT,
    Naming,
    allowed,
    clashes,
    section,
    text_of,
)

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

NAMES = st.text(st.sampled_from("./. aß_-:?\0\udcff\n"), max_size=12) | st.text(max_size=20)


def test_limits_are_those_of_mlflow():
    from mlflow.utils import validation

    assert validation.MAX_ENTITY_KEY_LENGTH == NAME_LIMIT
    assert validation.MAX_PARAM_VAL_LENGTH == PARAM_LIMIT
    assert validation.MAX_TAG_VAL_LENGTH == TAG_LIMIT


@given(name=NAMES)
def test_whatever_a_name_is_mlflow_takes_it(name):
    from mlflow.utils.validation import _validate_metric_name

    found = allowed(name)

    _validate_metric_name(found)
    assert allowed(found) == found


@given(name=st.text(string.ascii_letters + string.digits + "_-. :ü", min_size=1).filter(lambda name: name.strip(".")))
def test_a_name_that_mlflow_takes_stays_as_it_is(name):
    assert allowed(name) == name or name.startswith("..")


@pytest.mark.parametrize(("model", "part"), [("bm25", "bm25"), ("a/b", "a_b"), ("x" * 60, "x" * 60)])
def test_a_short_model_is_a_section_as_it_is(model, part):
    assert section(model) == part


@given(first=st.text(min_size=61), second=st.text(min_size=61))
def test_a_hash_distinguishes_long_model_names(first, second):
    assert len(section(first)) == len(section(second)) == 60
    assert (section(first) == section(second)) == (first == second)


def test_what_goes_with_a_figure_is_named_after_it():
    naming = Naming("{suite}/{measure}", 0.95)
    name = naming.figure("search", "ndcg_at_10")

    assert name == "search/ndcg_at_10"
    assert naming.own(name) == {
        "estimate": "search/ndcg_at_10",
        "ci_low": "search.ci95/ndcg_at_10.low",
        "ci_high": "search.ci95/ndcg_at_10.high",
        "std_error": "search.detail/ndcg_at_10.std_error",
        "n_undefined": "search.detail/ndcg_at_10.n_undefined",
        "ties_least": "search.detail/ndcg_at_10.ties_least",
        "ties_greatest": "search.detail/ndcg_at_10.ties_greatest",
    }
    assert naming.difference(name, "bm25")["p_corrected"] == "search.vs_bm25/ndcg_at_10.p_corrected"
    assert naming.worst_slice(name) == "search.worst_slice/ndcg_at_10"
    assert Naming("{measure}", 0.999).own("ap")["ci_low"] == "ci99.9/ap.low"


def test_a_clash_names_both_and_what_they_would_be():
    items = [("a!", "one"), ("a!", "one"), ("a?", "two"), ("b" * 250, "three"), ("c" * 251, "four")]

    assert [*clashes(items)] == [
        "'one' and 'two' would both be 'a_' in MLflow; rename one",
        f"the name '{'c' * 60}…' has 251 characters, and MLflow allows 250; shorten it",
    ]


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (0.9, "0.9"), (3, "3"), ("a b", "a b"), ("true", "true")])
def test_a_value_is_written_as_in_yaml(value, text):
    assert text_of(value) == text
