"""The command that makes the same figures."""

from __future__ import annotations

import pytest

from rankledger.pipeline.report.messages import rerun_command
from tests.support.manifests import whole

EARLIER = "20261119T020000Z-nightly-1f0c9a2b"
MANIFEST = {"config": "a b.yaml", "date": None, "repeats": None}


@pytest.mark.parametrize(
    ("command", "changes", "asked"),
    [
        (
            "rankledger evaluate --jobs 2 'a b.yaml' --set 'x=[1, 2]' --runs-dir r --set=y=3 --json",
            {},
            "rankledger evaluate 'a b.yaml' --set 'x=[1, 2]' --set y=3",
        ),
        ("rankledger nightly 'a b.yaml'", {"date": "2026-11-20"}, "rankledger nightly 'a b.yaml' --date 2026-11-20"),
        (
            "rankledger evaluate r/20-x --set=seed=1",
            {"repeats": EARLIER},
            f"rankledger evaluate {EARLIER} --set seed=1",
        ),
        ('rankledger.evaluate("it\'s.yaml")', {}, 'rankledger.evaluate("it\'s.yaml")'),
        ("rankledger evaluate a.yaml --jobs 2", {"config": ""}, "rankledger evaluate a.yaml --jobs 2"),
    ],
)
def test_what_changes_no_figure_is_left_out(command, changes, asked):
    """Jobs, folders and forms go; config, overrides and the night stay, quoted for a shell; Python stands as it is."""
    assert rerun_command(whole(MANIFEST | {"command": command} | changes)) == asked
