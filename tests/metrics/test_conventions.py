"""The profiles of conventions: complete, of words that are allowed, and fixed."""

import typing
from dataclasses import FrozenInstanceError, asdict, replace

import pytest

from rankledger.metrics.conventions import PROFILES, Conventions
from rankledger.metrics.registry import METRICS


def test_the_default_profile_is_trec_eval():
    expected = {
        "ties": "doc_id_desc",
        "score_precision": "float32",
        "missing_queries": "empty",
        "undefined_queries": "zero",
        "negative_grades": "unjudged",
        "unjudged_documents": "non_relevant",
    }

    assert expected | {"depth": None} == asdict(PROFILES["trec_eval"].conventions)


@pytest.mark.parametrize("name", PROFILES)
def test_what_a_measure_differs_by_can_be_set(name):
    types = typing.get_type_hints(Conventions)
    profile = PROFILES[name]

    for key, conventions in profile.differs.items():
        metric, _, part = key.partition(" ")
        assert METRICS[metric].name == metric
        said = profile.describe_difference(metric, f"{metric} {part}")
        assert all(word in typing.get_args(types[convention]) for convention, word in conventions.items())
        chosen = replace(profile, conventions=replace(profile.conventions, **conventions))
        if conventions:
            assert "Set " in said
            assert chosen.describe_difference(metric, f"{metric} {part}") == ""
        else:
            assert profile.because[metric] in said


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_complete(name):
    types = typing.get_type_hints(Conventions)

    for convention, word in asdict(PROFILES[name].conventions).items():
        if convention == "depth":
            assert word is None or word > 0
        else:
            assert word in typing.get_args(types[convention])


def test_no_convention_has_a_default():
    with pytest.raises(TypeError, match="missing"):
        Conventions()


def test_profiles_cannot_be_changed():
    with pytest.raises(TypeError):
        PROFILES["mine"] = PROFILES["trec_eval"]
    with pytest.raises(FrozenInstanceError):
        PROFILES["trec_eval"].conventions.ties = "input_order"


def test_an_order_of_ties_that_a_metric_has_of_its_own_must_hold_together_too():
    with pytest.raises(ValueError, match="choose other ties, or remove the depth"):
        PROFILES["sklearn"].with_conventions(unjudged_documents="condensed", depth=3)

    chosen = PROFILES["sklearn"].with_conventions(unjudged_documents="condensed", depth=3, ties="doc_id_asc")
    assert chosen.conventions_of("ndcg").ties == "doc_id_asc"
