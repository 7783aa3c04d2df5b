"""The notebook of the guides: it runs from its first cell to its last, and shows the figures of the record."""

import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from rankledger.pipeline.record.folder import read_record

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "configs").symlink_to(ROOT / "configs")
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/notebook.ipynb", folder / "docs")
    found = nbformat.read(folder / "docs/notebook.ipynb", as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))  # no settings of whoever runs the tests
        NotebookClient(found, timeout=300, resources={"metadata": {"path": str(folder / "docs")}}).execute()
    return found, folder


def html_of(notebook: Any, word: str) -> str:
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and word in cell.source]
    (shown,) = [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
    return str(shown)


def test_it_is_kept_without_outputs():
    kept = nbformat.read(ROOT / "docs/notebook.ipynb", as_version=4)

    nbformat.validate(kept)
    assert all(not cell.outputs and cell.execution_count is None for cell in kept.cells if cell.cell_type == "code")


def test_warnings_alone_are_written_on_stderr(notebook):
    found, _ = notebook

    (output,) = [output for cell in found.cells for output in cell.get("outputs", ()) if output.output_type == "stream"]
    assert "InputWarning: names on stdlib-search: 125 of 300 queries" in output.text
    assert "InputWarning: random on stdlib-search: small overlap with the dataset" in output.text
    assert "InputWarning: stdlib-search: random: 0% of its top 10 is judged" in output.text
    assert len(output.text.splitlines()) == 3 * 2


def test_the_leaderboard_has_the_figures_of_the_record(notebook):
    found, folder = notebook
    (path,) = (folder / "runs/records").iterdir()
    rows = re.findall(r"<tr>(.*?)</tr>", html_of(found, "rankledger.evaluate_config("), re.DOTALL)
    texts = [
        [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)] for row in rows
    ]
    assert texts[0][:2] == ["model", "rank"]
    measures = texts[0][2:]
    lines = {(line.model, line.measure): line for line in read_record(path).estimates}

    assert len(texts) == 1 + 5
    for model, rank, *figures in texts[1:]:
        line = lines[model, measures[0]]
        assert rank.split("–") == [str(end) for end in dict.fromkeys((line.rank_low, line.rank_high))]
        for measure, figure in zip(measures, figures, strict=True):
            line = lines.get((model, measure))  # none beneath a column that is drawn
            assert figure.rstrip("~") == (
                f"{line.estimate:.3f} [{line.ci_low:.3f}, {line.ci_high:.3f}]" if line else ""
            )
    assert len(lines) > sum(map(bool, measures)) >= 4


def test_the_page_is_that_of_the_record(notebook):
    found, folder = notebook
    (page,) = (folder / "runs/records").glob("*/report.html")
    (inside,) = re.findall(r'srcdoc="([^"]*)"', html_of(found, "srcdoc"))

    assert unescape(inside) == page.read_text(encoding="utf-8")
