"""Our kernels against trec_eval's C code: the golden files, and the program itself on fresh data.

Blocks are built here in plain Python by trec_eval's rules, with no help of the pipeline: scores are compared as
float32, descending, ties go by document id as UTF-8 bytes, descending. What trec_eval prints as 0 may be undefined to
us.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from rankledger.metrics.measure import Measure
from tests.golden.make_golden import MEASURES, RELEVANCE_LEVELS, Judgments, Ranking, evaluate, main, random_data
from tests.support.blocks import PlainQuery, plain_block

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = {
    "map": "ap",
    "ndcg": "ndcg",
    "recip_rank": "rr",
    "Rprec": "rprec",
    "bpref": "bpref",
    "11pt_avg": "ap11",
    "set_P": "p",
    "set_recall": "r",
    "set_F": "f1",
    "num_rel_ret": "tp",
    "num_ret": "num_ret",
    "num_rel": "num_rel",
    "num_nonrel_judged_ret": "num_nonrel_judged_ret",
    "utility": "utility",
    "set_map": "set_map",
    "set_relative_P": "relative_p",
    "gm_map": "gmap",
    "gm_bpref": "gm_bpref",
    "infAP": "infap",
    "G": "g",
    "binG": "bing",
    "Rndcg": "rndcg",
    "ndcg_rel": "ndcg_rel",
}
CUT_NAMES = {
    "P": "p",
    "recall": "r",
    "map_cut": "ap",
    "ndcg_cut": "ndcg",
    "success": "success",
    "relative_P": "relative_p",
}
OF_ANY_LEVEL = {"ndcg", "ndcg_rel", "g", "num_ret"}


def ours(name: str, relevance_level: int) -> Measure:
    """Our measure for one of trec_eval's, at its relevance level."""
    family, _, last = name.rpartition("_")
    if name in NAMES:
        metric, parameters, k = NAMES[name], [], None
    elif family == "iprec_at_recall":
        metric, parameters, k = "iprec", [f"recall={last}"], None
    elif family == "Rprec_mult":
        metric, parameters, k = "rprec_mult", [f"factor={last}"], None
    else:
        metric, parameters, k = CUT_NAMES[family], [], int(last)
    if metric not in OF_ANY_LEVEL:
        parameters.append(f"rel={relevance_level}")
    written = f"({','.join(parameters)})" if parameters else ""
    return Measure.parse(f"{metric}{written}{'' if k is None else f'@{k}'}")


def ranked_by_trec_eval(scores: dict[str, float]) -> list[str]:
    """The documents in trec_eval's order."""
    return sorted(scores, key=lambda doc_id: (np.float32(scores[doc_id]), doc_id.encode()), reverse=True)


def plain(judgments: Judgments, ranking: Ranking, query_id: str) -> PlainQuery:
    """One judged query, whether or not it has output."""
    grades = judgments[query_id]
    scores = ranking.get(query_id, {})
    listed = tuple(grades.get(doc_id) for doc_id in ranked_by_trec_eval(scores))
    return PlainQuery(listed, tuple(grade for doc_id, grade in grades.items() if doc_id not in scores))


def differences(
    judgments: Judgments, ranking: Ranking, expected: dict[str, dict[str, float]], relevance_level: int
) -> list[str]:
    """Every figure in which we differ from trec_eval by more than 1e-9, in words."""
    query_ids = list(expected)
    block = plain_block([plain(judgments, ranking, query_id) for query_id in query_ids])
    found = []
    for name in expected[query_ids[0]]:
        measure = ours(name, relevance_level)
        values = np.nan_to_num(measure.metric.function(block, **measure.arguments(max_grade=4)))
        values = measure.aggregation.forward(values)  # of a geometric mean the program gives logarithms
        for query_id, value in zip(query_ids, values, strict=True):
            if not abs(value - expected[query_id][name]) <= 1e-9:
                found.append(f"{query_id}: {measure} is {value}, trec_eval's {name} {expected[query_id][name]}")
    return found


def table(name: str) -> list[dict[str, str]]:
    """The rows of a golden file."""
    with (GOLDEN / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="module")
def golden() -> tuple[Judgments, Ranking]:
    """The golden judgments and ranking, as they stand in the files."""
    judgments: Judgments = {}
    ranking: Ranking = {}
    for row in table("judgments.tsv"):
        judgments.setdefault(row["query_id"], {})[row["doc_id"]] = int(row["relevance"])
    for row in table("ranking.tsv"):
        ranking.setdefault(row["query_id"], {})[row["doc_id"]] = float(row["score"])
    return judgments, ranking


@pytest.fixture(scope="module")
def expected() -> dict[int, dict[str, dict[str, float]]]:
    """What pytrec_eval gave: relevance level, query, measure, value."""
    found: dict[int, dict[str, dict[str, float]]] = {}
    for row in table("expected.tsv"):
        level, query_id = int(row.pop("relevance_level")), row.pop("query_id")
        found.setdefault(level, {})[query_id] = {name: float(value) for name, value in row.items()}
    return found


@pytest.mark.parametrize("relevance_level", RELEVANCE_LEVELS)
def test_golden_files(golden, expected, relevance_level):
    """Each of 73 figures of each golden query is trec_eval's to 1e-9, at two relevance levels."""
    assert len(expected[relevance_level]) == 40
    assert all(len(values) == 73 for values in expected[relevance_level].values())
    assert differences(*golden, expected[relevance_level], relevance_level) == []


def test_golden_files_hold_the_hard_cases(golden, expected):
    """The data exercises what tools disagree on; a golden file without these would prove little."""
    judgments, ranking = golden
    both = judgments.keys() & ranking.keys()
    ties = [query_id for query_id in both if len(set(ranking[query_id].values())) < len(ranking[query_id])]
    float32_ties = [
        query_id
        for query_id in both
        if len(set(map(np.float32, ranking[query_id].values()))) < len(set(ranking[query_id].values()))
    ]

    assert judgments.keys() - ranking.keys()
    assert ranking.keys() - judgments.keys()
    assert set(expected[1]) == both
    assert {grade for grades in judgments.values() for grade in grades.values()} == {-2, -1, 0, 1, 2, 3, 4}
    assert any(max(judgments[query_id].values()) < 1 for query_id in both)
    assert any(len(ranking[query_id]) == 1 for query_id in both)
    assert any(len(ranking[query_id]) > 30 for query_id in both)
    assert any(ranking[query_id].keys() - judgments[query_id].keys() for query_id in both)
    assert any(judgments[query_id].keys() - ranking[query_id].keys() for query_id in both)
    assert len(ties) > 10
    assert len(float32_ties) > 5


def test_golden_ties_decide_figures(golden, expected):
    """Were ties left in the order of the file, golden figures would not hold: the files test the tie rule."""
    judgments, ranking = golden
    reordered = {
        query_id: {doc_id: -float(place) for place, doc_id in enumerate(sorted(scores, key=scores.__getitem__)[::-1])}
        for query_id, scores in ranking.items()
    }

    assert differences(judgments, reordered, expected[1], 1)


@pytest.mark.parametrize("missing", ["ap", "ndcg@10", "rr", "p@10", "bpref", "iprec(recall=0)", "success@10"])
def test_a_judged_query_without_output_scores_0(golden, missing):
    """With -c trec_eval counts a query without output as 0: so do we, of relevant documents that were not found."""
    judgments, ranking = golden
    lost = [query_id for query_id in judgments if query_id not in ranking and max(judgments[query_id].values()) > 0]
    block = plain_block([plain(judgments, ranking, query_id) for query_id in lost])
    measure = Measure.parse(missing)

    assert lost
    assert (measure.metric.function(block, **measure.arguments(max_grade=4)) == 0).all()


@pytest.mark.parametrize("relevance_level", RELEVANCE_LEVELS)
@pytest.mark.parametrize("seed", range(10))
def test_fresh_data(seed, relevance_level):
    """On 80 fresh queries a seed and level the program itself, run here, gives our figures to 1e-9."""
    judgments, ranking = random_data(seed, n_queries=100)
    fresh = evaluate(judgments, ranking, relevance_level)

    assert len(fresh) == 80
    assert differences(judgments, ranking, fresh, relevance_level) == []


def test_golden_files_are_what_the_program_gives(golden, expected):
    """The figures in the file are those of the installed program for the data in the files, to 1e-12."""
    for relevance_level, queries in expected.items():
        found = evaluate(*golden, relevance_level)
        assert found.keys() == queries.keys()
        for query_id, values in queries.items():
            assert found[query_id] == pytest.approx(values, rel=1e-12, abs=1e-12)


def test_make_golden_writes_the_three_tables(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.golden.make_golden.FOLDER", tmp_path)
    main()

    for name in ("judgments.tsv", "ranking.tsv", "expected.tsv"):
        assert (tmp_path / name).read_text(encoding="utf-8").splitlines()[0].split("\t") == list(table(name)[0])
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 300_000


def test_every_measure_of_the_program_is_compared(expected):
    """The measures asked of the program are those that stand in the golden file, each at every cutoff asked for."""
    asked = set()
    for measure in MEASURES - {"iprec_at_recall", "Rprec_mult"}:
        family, _, cutoffs = measure.partition(".")
        asked |= {f"{family}_{k}" for k in cutoffs.split(",")} if cutoffs else {family}
    asked |= {f"iprec_at_recall_{tenths / 10:.2f}" for tenths in range(11)}
    asked |= {f"Rprec_mult_{fifths / 5:.2f}" for fifths in range(1, 11)}

    for queries in expected.values():
        assert all(values.keys() == asked for values in queries.values())
