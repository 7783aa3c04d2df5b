"""Results of other tools, from the config to the record and back: epochs are replicates, remarks, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.workflow.reproduce import reproduce

pytestmark = pytest.mark.usefixtures("folder")

SCORES = Path(__file__).parents[2] / "golden" / "scores"
INSPECT = SCORES / "inspect"
CONFIG = f"""name: sums
datasets:
  sums: {{scores: {{includes: higher}}}}
models:
  small: {{outputs: {INSPECT}/small.json}}
  large: {{outputs: {{path: {INSPECT}/large.eval, format: inspect, select: {{task: "{{dataset}}"}}}}}}
  twice: {{outputs: {{path: {INSPECT}/twice.eval, select: {{epoch: "{{replicate}}"}}}}, replicates: [1, 2]}}
bootstrap: {{resamples: 200}}
report: false
"""


def written(text: str) -> Path:
    path = Path("sums.yaml")
    path.write_text(text, encoding="utf-8")
    return path


def test_logs_of_inspect_are_evaluated_and_reproduced():
    """Right of four: small 2, large all 3 that it answered, twice 3 and then 2, which makes 5 of 8."""
    evaluation = rankledger.evaluate(written(CONFIG), tracking=False)

    assert {line.model: line.estimate for line in evaluation.estimates} == {"small": 0.5, "large": 1.0, "twice": 0.625}
    assert {line.model: line.n_missing for line in evaluation.estimates} == {"small": 0, "large": 1, "twice": 0}
    assert [(line.replicate, line.estimate) for line in evaluation.replicates] == [("1", 0.75), ("2", 0.5)]
    remarks = [line for line in evaluation.warnings if "read as results of" in line]
    assert [Path(line.partition(":")[0]).name for line in remarks] == ["small.json", "twice.eval"]
    assert reproduce(str(evaluation.record)).verdict == "identical"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (
            ", replicates: [1, 2]",
            "",
            "sums.yaml:7: models.twice.outputs.select: `select` has {replicate}, and files do not tell which there "
            "are; add replicates: [1, 2, 3]",
        ),
        ("{dataset}", "{data}", "sums.yaml:6: models.large.outputs.select.task: '{data}' has an unknown placeholder"),
        ("{scores: {includes: higher}}", "{judgments: qrels.tsv}", "`select` has no effect on rankings; remove it"),
    ],
)
def test_a_selection_that_cannot_be_made_is_refused_with_its_line(old, new, found):
    """Replicates that are not listed, an unknown placeholder, and rankings, which have no labels."""
    suites = "suites: {a: [rr]}\n" if "judgments" in new else ""

    with pytest.raises(InputError) as refused:
        rankledger.evaluate(written(CONFIG.replace(old, new) + suites), tracking=False)
    assert found in str(refused.value)


def test_a_tool_is_no_format_of_judgments():
    """Results of samples name no documents."""
    with pytest.raises(InputError, match="format inspect has results of samples alone"):
        rankledger.evaluate(
            written(
                f"name: a\ndatasets: {{a: {{judgments: {{path: {INSPECT}/small.json, format: inspect}}}}}}\n"
                "models: {b: {outputs: b.tsv}}\nsuites: {s: [rr]}\n"
            ),
            tracking=False,
        )
