"""What is said of two environments."""

import pytest

from rankledger.pipeline.history.changes import other_code, other_versions
from rankledger.pipeline.record.manifest_parts import Environment, Git

BEFORE = Environment(
    python="3.11.7",
    platform="Linux",
    cpu="",
    blas=["openblas 0.3.31"],
    packages={"numpy": "2.4.6", "pyarrow": "25.0.1", "pytest": "8.0"},
    git=Git(commit="a" * 40, dirty=False),
)


def test_the_same_environment_has_nothing_to_tell():
    assert [*other_versions(BEFORE, BEFORE), *other_code(BEFORE, BEFORE)] == []


def test_what_a_figure_can_depend_on_is_reported():
    packages = BEFORE.packages | {"numpy": "2.3.5", "pytest": "9.0", "rankledger": "0.2.0"}
    after = BEFORE.model_copy(update={"python": "3.12.1", "blas": [], "packages": packages})

    assert list(other_versions(BEFORE, after)) == [
        "rankledger none → 0.2.0",
        "numpy 2.4.6 → 2.3.5",
        "python 3.11.7 → 3.12.1",
        "BLAS openblas 0.3.31 → none",
    ]


@pytest.mark.parametrize(
    ("git", "reported"),
    [
        (Git(commit="b" * 40, dirty=False), ["commit aaaaaaaaaaaa → bbbbbbbbbbbb"]),
        (Git(commit="a" * 40, dirty=True), ["changes that were not committed now"]),
        (None, []),
    ],
)
def test_the_code_is_reported_if_both_are_in_a_repository(git, reported):
    assert list(other_code(BEFORE, BEFORE.model_copy(update={"git": git}))) == reported
