"""The guide for those who come from another tool: both sides of each example run, and give the same figures."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.agreement.recorded_tool import RANX

GUIDE = Path(__file__, "../../../docs/matching.md").resolve().read_text(encoding="utf-8")
PAGE = GUIDE.partition("\n## Move from another tool\n")[2].partition("\n## ")[0]
QRELS, RUN = re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
FILES = {"qrels.txt": QRELS, "run.txt": RUN}
WITHIN = {"BEIR": 0.5e-5 + 1e-9}  # it rounds to five decimals

pytestmark = pytest.mark.filterwarnings("ignore:``mlflow.metrics:FutureWarning")


def examples(tool: str) -> list[str]:
    section = PAGE.partition(f"\n### {tool}\n")[2].partition("\n### ")[0]
    return re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


@pytest.fixture
def scratch(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("tool", re.findall(r"^### (.+)$", PAGE, re.MULTILINE))
def test_both_sides_give_the_same_figures(tool, scratch):
    """The tool's block and ours, one after the other; of ranx what it gave for this block and these files is recorded.
    The table at the top has these figures, to four decimals.
    """
    theirs, ours = examples(tool)
    names = {"__name__": "__main__"}
    if tool == "ranx":
        names["theirs"] = RANX("example", theirs, FILES)
    else:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(theirs, tool, "exec"), names)
    exec(compile(ours, tool, "exec"), names)

    assert len(names["theirs"]) > 2
    assert names["ours"] == pytest.approx(names["theirs"], abs=WITHIN.get(tool, 1e-9))
    if row := re.search(rf"^\| {tool} \|.*$", PAGE, re.MULTILINE):
        shown = re.findall(r"\d\.\d{4}", row[0])
        figures = names["theirs"] if tool != "BEIR" else [*names["theirs"][:2], _mrr_of_beir(names)]
        assert shown == [f"{value:.4f}" for value in figures]


def _mrr_of_beir(names: dict[str, Any]) -> float:
    return names["EvaluateRetrieval"].evaluate_custom(names["qrels"], names["run"], [10], "mrr")["MRR@10"]
