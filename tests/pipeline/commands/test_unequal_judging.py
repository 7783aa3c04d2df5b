"""Models of whose first documents unlike shares are judged: one sentence, on every surface."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.report.messages import notes
from rankledger.pipeline.report.terminal import as_data, leaderboard
from tests.support.generated_data import Collection, write_config

EFFECT = "Unjudged documents count as not relevant, so the difference may be an effect of judging."
SENTENCE = f"web: dense: 8% of its top 10 is judged, bm25: 12%. {EFFECT}"
JUDGED = {"q": {"r": 1} | {f"j{number}": 0 for number in range(20)}}


def lists(n_judged: int, n_queries: int = 10, length: int = 12) -> dict[str, dict[str, float]]:
    """Ten lists of 12 documents, of whose first 10 so many are judged in all, from rank 10 up; the best is relevant."""
    shares = [n_judged // n_queries + (query < n_judged % n_queries) for query in range(n_queries)]
    return {
        f"q{query}": {
            "r" if rank == 10 - own < 10 else f"{'j' if 10 - own < rank < 10 else 'u'}{rank}": float(-rank)
            for rank in range(length)
        }
        for query, own in enumerate(shares)
    }


def evaluated(
    folder: Path,
    n_judged: Mapping[str, int],
    measures: tuple[str, ...] = ("ndcg@10",),
    *,
    grades: Mapping[str, int] = JUDGED["q"],
    **config: object,
) -> Evaluation:
    judgments = {f"q{query}": dict(grades) for query in range(10)}
    outputs = {model: lists(number) for model, number in n_judged.items()}
    path = write_config(
        folder,
        {"web": Collection(judgments, outputs)},
        {"compared": measures},
        bootstrap={"resamples": 100},
        **{"report": False} | config,
    )
    return rankledger.evaluate_config(path, tracking=False, jobs=1, runs_dir=folder / "runs")


def said(evaluation: Evaluation) -> list[str]:
    return [str(warning) for warning in evaluation.data_warnings if "of judging" in str(warning)]


def test_every_surface_says_it(tmp_path):
    """8 and 12 of 100 documents are judged, whatever the figures are."""
    found = evaluated(tmp_path, {"bm25": 12, "dense": 8}, comparison={"baseline": "bm25"}, report=True)
    folder = found.record

    assert said(found) == [SENTENCE]
    assert [warning["warning"] for warning in json.loads((folder / "manifest.json").read_text())["warnings"]] == [
        SENTENCE.removeprefix("web: ")
    ]
    assert SENTENCE.removeprefix("web: ") in (folder / "report.html").read_text(encoding="utf-8")
    comparison = rankledger.compare(f"{folder}#bm25", f"{folder}#dense", runs_dir=tmp_path / "runs")
    assert SENTENCE in comparison.remarks
    assert SENTENCE in leaderboard(found, width=500, colour=False)
    assert SENTENCE in [*notes(rankledger.load(folder))]
    assert as_data(found)["warnings"][0]["warning"] == SENTENCE.removeprefix("web: ")


@pytest.mark.parametrize(
    ("n_judged", "measures", "config"),
    [
        ({"bm25": 10, "dense": 8}, ("ndcg@10",), {}),  # 0.02 apart
        ({"bm25": 12, "dense": 8}, ("bpref", "infap", "judged@10"), {}),  # these pass over unjudged documents
        ({"bm25": 12, "dense": 8}, ("ndcg@10",), {"conventions": {"unjudged_documents": "condensed"}}),
        ({"bm25": 12, "dense": 8}, ("ndcg@10",), {"grades": dict.fromkeys(JUDGED["q"], 1)}),  # precision
        ({"bm25": 12, "dense": 8, "c": 9}, ("p@10", "p@1"), {"comparison": {"baseline": "c", "measures": ["p@1"]}}),
    ],
    ids=["alike", "skipping", "condensed", "relevant alone", "not compared"],
)
def test_what_judging_cannot_explain_has_no_sentence(tmp_path, n_judged, measures, config):
    assert said(evaluated(tmp_path, n_judged, measures, **config)) == []


def test_a_difference_of_three_hundredths_counts(tmp_path):
    """11 and 8 of 100 are 0.03 apart; down to rank 12 the lists have 120 documents, and 0.025 is less."""
    found = said(evaluated(tmp_path, {"bm25": 11, "dense": 8}, ("ndcg@10", "p@10", "ap", "ndcg@12")))

    assert found == [f"web: dense: 8% of its top 10 is judged, bm25: 11%. {EFFECT}"]


def test_a_baseline_is_compared_with_each_model_and_others_are_not(tmp_path):
    """Of 100 documents a has 12. Neither b, 10, nor c, 14, is 0.03 away, though they are 0.04 apart. d, 8, is."""
    models = {"a": 12, "b": 10, "c": 14, "d": 8}

    assert said(evaluated(tmp_path / "one", models, comparison={"baseline": "a"})) == [
        f"web: d: 8% of its top 10 is judged, a: 12%. {EFFECT}"
    ]
    effects = "Unjudged documents count as not relevant, so differences may be effects of judging."
    assert said(evaluated(tmp_path / "all", models)) == [
        f"web: d: 8% of its top 10 is judged, b: 10%, a: 12%, c: 14%. {effects}"
    ]


def test_thirty_models_are_one_line(tmp_path):
    (line,) = said(evaluated(tmp_path, {f"m{number:02}": 10 + number for number in range(30)}, ("p@10", "ndcg@10")))

    assert line.startswith("web: m00: 10% of its top 10 is judged, m01: 11%, m02: 12%, 24 more in between, m27: 37%, ")
