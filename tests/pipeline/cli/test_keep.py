"""`verify`, `reproduce` and `prune` as their users meet them: exit codes, and what is on stdout and on stderr."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.types.results import Evaluation
from tests.support.generated_data import search_collection, write_config

ROOT = Path(__file__).parents[3]
ID = re.compile(r"\d{8}T\d{6}Z-[\w.-]+-[0-9a-f]{8}")


@pytest.fixture
def evaluation(run_cli: Callable[..., tuple[object, str, str]], tmp_path: Path) -> Evaluation:
    config = write_config(tmp_path / "configs", {"web": search_collection(72, n_queries=8)}, {"search": ["ap"]})
    return rankledger.evaluate(config.relative_to(tmp_path), tracking=False)


def test_verify_exits_with_0_or_with_2(run_cli, evaluation):
    """A line on stdout where all is well, a line per file on stderr if it is not; an absent store is a remark."""
    found = evaluation.evaluation_id

    assert run_cli("verify", found, "--no-tracking") == (
        0,
        f"runs/records/{found}: all 6 files are as the manifest says; there is no receipt and no run of MLflow to "
        "compare the manifest with\n",
        "",
    )
    code, out, err = run_cli("verify", found)
    assert (code, out.startswith(f"runs/records/{found}: all ")) == (0, True)
    assert re.fullmatch(r"not compared with MLflow: .*mlflow.db: no MLflow store found\n", err)
    (evaluation.record / "summary.csv").unlink()
    (evaluation.record / "scores.parquet").unlink()
    code, out, err = run_cli("verify", found, "--no-tracking")
    assert (code, out, len(err.splitlines())) == (2, "", 2)


def test_reproduce_exits_with_0_with_1_or_with_2(run_cli, evaluation, tmp_path):
    """The same, different, and an input that is nowhere."""
    found = evaluation.evaluation_id
    judged = tmp_path / "configs/web/judged.txt"

    assert run_cli("reproduce", found) == (0, f"identical\nrecord: runs/records/{found}\n", "")
    judged.write_text(judged.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    code, out, err = run_cli("reproduce", found, "--json")
    assert (code, json.loads(out)["verdict"], err) == (1, "different", "")
    judged.unlink()
    code, out, err = run_cli("reproduce", found)
    assert (code, out) == (2, "")
    assert err.startswith("judgments of web: configs/web/judged.txt (")


def test_prune_says_and_does(run_cli, evaluation):
    """Nothing is deleted without --yes; of two records the last stays."""
    again = rankledger.evaluate(evaluation.record / "config.yaml", tracking=False)
    old = evaluation.record.rename(evaluation.record.with_name(f"20200101T000000Z-generated-{'0' * 8}"))
    manifest = (old / "manifest.json").read_text(encoding="utf-8").replace(evaluation.evaluation_id, old.name)
    (old / "manifest.json").write_text(manifest, encoding="utf-8")

    code, out, err = run_cli("prune", "--keep-days", "90")
    assert (code, err, out.splitlines()[-1]) == (0, "", "nothing is deleted yet; add --yes")
    code, out, err = run_cli("prune", "--keep-days", "90", "--yes")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("20200101T000000Z-generated-00000000  ")
    assert [path.name for path in evaluation.record.parent.iterdir()] == [again.evaluation_id]


def test_what_the_guide_shows_is_what_is_printed(run_cli, tmp_path):
    """The lines of docs/records.md, on the quickstart; but for ids and hashes."""
    page = (ROOT / "docs/records.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```text\n\$ rankledger (\w+) \S+\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "configs/quickstart").mkdir(parents=True)
    for path in (ROOT / "configs").rglob("quickstart*/*.tsv"):
        (tmp_path / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    (tmp_path / "configs/quickstart.yaml").write_bytes((ROOT / "configs/quickstart.yaml").read_bytes())
    record = rankledger.evaluate("configs/quickstart.yaml", tracking=False).evaluation_id
    qrels = tmp_path / "configs/quickstart/qrels.tsv"
    assert [command for command, _ in shown] == ["verify", "reproduce", "reproduce"]

    verified = run_cli("verify", record, "--no-tracking")[1]
    assert plain(shown[0][1]).partition(";")[0] == plain(verified).partition(";")[0]
    assert plain(run_cli("reproduce", record)[1]) == plain(shown[1][1])
    qrels.write_bytes(qrels.read_bytes().replace(b"\t2\n", b"\t1\n", 1))
    printed = plain(run_cli("reproduce", record)[1])
    assert printed.startswith(plain(shown[2][1]))


def plain(text: str) -> str:
    return ID.sub("ID", text)
