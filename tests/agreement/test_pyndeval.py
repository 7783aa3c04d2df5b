"""ndeval 4.5, the program of the TREC Web tracks, as pyndeval 0.0.8 holds it: the tool runs here, on the same files."""

from importlib.metadata import version
from pathlib import Path

import ir_measures
import numpy as np
import pyndeval
import pytest
import yaml

import rankledger
from tests.agreement.cases import Figures, assert_agree

TOOL = "ndeval 4.5"

Judgment = tuple[str, str, str, int]  # query, subtopic, document, grade
Ranking = dict[str, dict[str, float]]

N_QUERIES = 400
CUTOFFS = (1, 2, 3, 5, 10, 20)  # beyond 20 ndeval has none
DOCUMENTS = [f"{prefix}{number}" for number in range(10) for prefix in ("d", "D-", "é", "文")]
MEASURES = {
    **{f"alpha-nDCG@{k}": "alpha_ndcg{}@" + str(k) for k in CUTOFFS},
    **{f"strec@{k}": "strec{rel}@" + str(k) for k in CUTOFFS},
    **{f"ERR-IA@{k}": "err_ia{rel}@" + str(k) for k in CUTOFFS if k > 1},
    **{f"nERR-IA@{k}": "nerr_ia{rel}@" + str(k) for k in CUTOFFS},
    **{f"P-IA@{k}": "p_ia{rel}@" + str(k) for k in CUTOFFS},
    "MAP-IA": "ap_ia{rel}",
    "NRBP": "nrbp{}",
    "nNRBP": "nnrbp{}",
}


def random_case(seed: int) -> tuple[list[Judgment], Ranking]:
    rng = np.random.default_rng(seed)
    judgments: list[Judgment] = []
    ranking: Ranking = {}
    for number in range(N_QUERIES):
        query_id = f"q{number}"
        levels = [-2, 0, 0] if number % 20 == 3 else [-2, 0, 0, 1, 1, 2]
        for subtopic in range(1, 1 + rng.integers(1, 13 if number % 4 == 0 else 5)):
            judged = rng.permutation(DOCUMENTS)[: rng.integers(1, 15)]
            judgments += [(query_id, str(subtopic), str(doc_id), int(rng.choice(levels))) for doc_id in judged]
        retrieved = rng.permutation(DOCUMENTS)[: rng.integers(1, len(DOCUMENTS) + 1)]
        ranking[query_id] = {str(doc_id): float(place) for place, doc_id in enumerate(retrieved)}
    return sorted(judgments, key=lambda judgment: int(judgment[1])), ranking


def ours(folder: Path, judgments: list[Judgment], ranking: Ranking, measures: list[str]) -> Figures:
    folder.mkdir(exist_ok=True)
    lines = [" ".join(map(str, judgment)) for judgment in judgments]
    (folder / "qrels").write_text("\n".join(lines), encoding="utf-8")
    lines = [f"{q} Q0 {doc_id} 0 {score} t" for q, scores in ranking.items() for doc_id, score in scores.items()]
    (folder / "run").write_text("\n".join(lines), encoding="utf-8")
    config = {
        "name": "subtopics",
        "datasets": {"web": {"judgments": "qrels", "subtopics": True}},
        "models": {"tool": {"outputs": "run"}},
        "suites": {"compared": measures},
        "bootstrap": {"resamples": 100},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    evaluation = rankledger.evaluate_config(folder / "config.yaml", jobs=1, tracking=False, runs_dir=folder / "runs")
    (result,) = evaluation.results
    return {
        query_id: dict(zip(measures, map(float, column), strict=True))
        for query_id, column in zip(result.query_ids, result.values.T, strict=True)
    }


def theirs(judgments: list[Judgment], ranking: Ranking, measures: dict[str, str], **parameters: float) -> Figures:
    evaluator = pyndeval.RelevanceEvaluator(judgments, [*measures], **parameters)
    run = [(q, doc_id, score) for q, scores in ranking.items() for doc_id, score in scores.items()]
    return {
        query_id: {ours: figures[name] for name, ours in measures.items()}
        for query_id, figures in evaluator.evaluate(run).items()
    }


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("parameters", "written", "rel"), [({}, "", ""), ({"relevance_level": 2}, "(rel=2)", "(rel=2)")]
)
def test_all_measures(tmp_path, seed, parameters, written, rel):
    judgments, ranking = random_case(seed)
    measures = {name: text.format(written, rel=rel) for name, text in MEASURES.items()}

    found = ours(tmp_path, judgments, ranking, [*measures.values()])

    assert_agree(found, theirs(judgments, ranking, measures, **parameters))
    assert sum(np.isnan(figures[measures["NRBP"]]) for figures in found.values()) >= 20


@pytest.mark.parametrize(("alpha", "beta"), [(0, 0.5), (1, 0.8), (0.3, 0.1), (0.9, 0.99)])
def test_alpha_and_beta(tmp_path, alpha, beta):
    judgments, ranking = random_case(2)
    measures = {f"alpha-nDCG@{k}": f"alpha_ndcg(alpha={alpha})@{k}" for k in CUTOFFS}
    measures |= {name: f"{name.lower()}(alpha={alpha},beta={beta})" for name in ("NRBP", "nNRBP")}

    found = ours(tmp_path, judgments, ranking, [*measures.values()])

    assert_agree(found, theirs(judgments, ranking, measures, alpha=alpha, beta=beta))


def test_ir_measures_has_them_from_ndeval(tmp_path):
    judgments, ranking = random_case(3)
    names = {f"alpha_nDCG@{k}": f"alpha_ndcg@{k}" for k in CUTOFFS} | {f"StRecall@{k}": f"strec@{k}" for k in CUTOFFS}
    names |= {"ERR_IA@5": "err_ia@5", "nERR_IA@5": "nerr_ia@5", "AP_IA": "ap_ia", "P_IA@5": "p_ia@5"}
    names |= {"NRBP": "nrbp", "nNRBP": "nnrbp"}
    qrels = [ir_measures.Qrel(query, doc_id, grade, subtopic) for query, subtopic, doc_id, grade in judgments]
    expected: Figures = {query_id: {} for query_id in ranking}
    for metric in ir_measures.iter_calc([*map(ir_measures.parse_measure, names)], qrels, ranking):
        expected[metric.query_id][names[str(metric.measure)]] = metric.value

    found = ours(tmp_path, judgments, ranking, [*names.values()])
    assert_agree(found, expected, tool=f"ir_measures {version('ir_measures')}")


def test_err_ia_at_1_is_not_normalised(tmp_path):
    """a is relevant to both subtopics: all that one document can be, which is 1 by us. ndeval divides from rank 2 on,
    and gives the 2 subtopics that a gains; at 2 it divides 2 / 1 by 2 (1 + 0.5 / 2): 0.8, as we do.
    """
    judgments = [("1", "1", "a", 1), ("1", "2", "a", 1)]
    measures = {"ERR-IA@1": "err_ia@1", "ERR-IA@2": "err_ia@2"}

    assert theirs(judgments, {"1": {"a": 1.0}}, measures) == {"1": {"err_ia@1": 2, "err_ia@2": 0.8}}
    assert ours(tmp_path, judgments, {"1": {"a": 1.0}}, [*measures.values()]) == {"1": {"err_ia@1": 1, "err_ia@2": 0.8}}


def test_equal_scores_are_the_other_way_round(tmp_path):
    """a and b have equal scores and a alone is relevant. pyndeval puts a first, ndeval itself goes by the rank column;
    we have b first, as in trec_eval: 1 / log2 3.
    """
    judgments, ranking = [("1", "1", "a", 1)], {"1": {"a": 1.0, "b": 1.0}}

    assert theirs(judgments, ranking, {"alpha-nDCG@5": "alpha_ndcg@5"}) == {"1": {"alpha_ndcg@5": 1}}
    assert ours(tmp_path, judgments, ranking, ["alpha_ndcg@5"])["1"]["alpha_ndcg@5"] == pytest.approx(1 / np.log2(3))
