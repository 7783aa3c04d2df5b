"""How definitions differ: the parameter, the version or the convention that does, and the measures it concerns."""

import pytest

from rankledger.metrics.conventions import PROFILES, Profile
from rankledger.metrics.measure import Measure
from rankledger.pipeline.history.changes import definition_differences
from rankledger.pipeline.history.manifest import define_measures
from rankledger.pipeline.record.manifest import Manifest
from tests.support.manifests import whole

TREC_EVAL = PROFILES["trec_eval"]


def manifest(profile: Profile, *measures: str, **further: object) -> Manifest:
    found = define_measures([Measure.parse(name, profile) for name in measures], profile)
    conventions = {"profile": profile.name, **vars(profile.conventions)}
    definitions = {name: definition.model_dump() | further for name, definition in found.items()}
    return whole({"definitions": definitions, "conventions": conventions})


def test_the_same_definitions_are_not_unlike():
    one, other = (manifest(TREC_EVAL, "ndcg@10", "rr") for _ in range(2))

    assert [*definition_differences(one, other, ["ndcg@10", "rr"])] == []


def test_a_convention_that_differs_is_named_once_for_all_measures():
    """With a depth of 5 both measures mean something else, and the depth is why."""
    one, other = manifest(TREC_EVAL, "ndcg@10", "rr"), manifest(TREC_EVAL.with_conventions(depth=5), "ndcg@10", "rr")

    assert [*definition_differences(one, other, ["ndcg@10", "rr"])] == ["ndcg@10, rr: depth was none and is 5"]


def test_a_parameter_that_differs_is_named():
    """trec_eval 10 has rbp with p = 0.9 where ours is 0.8, and scores as doubles: p is what is named of rbp."""
    one, other = manifest(TREC_EVAL, "rbp", "ap"), manifest(PROFILES["trec_eval_10"], "rbp", "ap")
    p = one.definitions["rbp"].parameters["p"]

    assert [*definition_differences(one, other, ["rbp", "ap"])] == [
        f"rbp: p was {p} and is 0.9",
        "ap: score_precision was float32 and is float64",
    ]


def test_a_version_that_differs_is_named():
    one = manifest(TREC_EVAL, "ap")
    other = manifest(TREC_EVAL, "ap", version=99, fingerprint="0" * 16)

    assert [*definition_differences(one, other, ["ap"])] == [
        f"ap: the metric's version was {one.definitions['ap'].version} and is 99"
    ]


def test_a_better_end_that_differs_is_named():
    one = manifest(TREC_EVAL, "ap", fingerprint="1" * 16)
    other = manifest(TREC_EVAL, "ap", fingerprint="0" * 16, direction="lower")

    assert [*definition_differences(one, other, ["ap"])] == ["ap: the better direction was higher and is lower"]


@pytest.mark.parametrize("n_measures", [4, 6])
def test_many_measures_are_counted(n_measures):
    names = [f"p@{k}" for k in range(1, n_measures + 1)]
    one, other = manifest(TREC_EVAL, *names), manifest(TREC_EVAL.with_conventions(depth=5), *names)

    assert [*definition_differences(one, other, names)] == [
        f"p@1, p@2, p@3 and {n_measures - 3} more: depth was none and is 5"
    ]
