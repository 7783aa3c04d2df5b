"""Lists that end before a cutoff: they are warned of, and no gate judges a measure by them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import rankledger
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.record.evaluation import Evaluation

pytestmark = pytest.mark.usefixtures("folder")

N_QUERIES = 100


def write_ranking(name: str, lengths: Sequence[int]) -> str:
    rows = [f"q{query}\td{rank}\t{-rank}\n" for query, length in enumerate(lengths) for rank in range(length)]
    Path(f"{name}.tsv").write_text("query_id\tdoc_id\tscore\n" + "".join(rows))
    return f"{name}.tsv"


def evaluate(
    models: Mapping[str, Sequence[int]],
    measures: Sequence[str] = ("r@10",),
    relevant: Sequence[str] = ("d0", "d30"),
    dataset: Mapping[str, Any] | None = None,
    **config: Any,
) -> Evaluation:
    rows = "".join(f"q{query}\t{doc}\t1\n" for query in range(N_QUERIES) for doc in relevant)
    Path("qrels.tsv").write_text("query_id\tdoc_id\trelevance\n" + rows)
    outputs = {model: {"outputs": write_ranking(model, lengths)} for model, lengths in models.items()}
    sections = {
        "name": "t",
        "datasets": {"d": {"judgments": "qrels.tsv"} | (dict(dataset or {}))},
        "models": outputs,
        "suites": {"all": [*measures]},
        "bootstrap": {"resamples": 200},
    }
    Path("t.yaml").write_text(yaml.safe_dump(sections | config, sort_keys=False))
    return rankledger.evaluate_config("t.yaml", record=False, tracking=False)


def warnings(evaluation: Evaluation) -> list[str]:
    return [str(warning).partition(". ")[0] for warning in evaluation.data_warnings]


def verdicts(evaluation: Evaluation) -> dict[str, Verdict]:
    return {verdict.gate: verdict for verdict in evaluation.verdicts}


@pytest.mark.parametrize(("n_short", "is_short"), [(1, False), (2, True)])
def test_more_than_1_percent_of_short_lists_is_too_much(n_short, is_short):
    """Of 100 lists of `full` all have 10 documents; of `cut` one or two have 9. The relevant one is first in both.

    So the recall is the same on every query, and it tells nothing if 2% of the lists were cut.
    """
    gates = [
        {"name": "drop", "models": "cut", "measure": "r@10", "against": "full", "margin": 0.01},
        {"name": "gain", "models": "full", "measure": "r@10", "against": "cut", "margin": 0.01},
        {"name": "crash", "models": "cut", "measure": "r@10", "against": "full", "max_query_drop": 0.4},
        {"name": "floor", "models": "cut", "measure": "r@10", "at_least": 0.3},
        {"name": "may", "models": "cut", "measure": "r@10", "against": "full", "margin": 0.01, "max_unscored": 0.02},
        {"name": "first", "models": "cut", "measure": "r@5", "against": "full", "margin": 0.01},
    ]
    lengths = [9] * n_short + [10] * (N_QUERIES - n_short)

    evaluation = evaluate(
        {"full": [10] * N_QUERIES, "cut": lengths}, ["r@10", "r@5"], comparison={"baseline": "full"}, gates=gates
    )

    found = verdicts(evaluation)
    expected = "inconclusive" if is_short else "pass"
    assert {gate: verdict.outcome for gate, verdict in found.items()} == {
        **dict.fromkeys(("drop", "gain", "crash", "floor"), expected),
        **dict.fromkeys(("may", "first"), "pass"),
    }
    said = f"{n_short} of 100 queries where full has enough have fewer than 10 documents, which r@10 asks for"
    assert warnings(evaluation) == ([f"cut on d: {said}"] if is_short else [])
    if is_short:
        assert "fewer than 10 documents on 2 of 100 queries on which full has enough" in found["drop"].reason
        assert "fewer than 10 documents on 2 of 100 queries on which full has enough" in found["gain"].reason


def test_removing_what_was_seen_cuts_a_list():
    """`pop` has 10 documents a user; the first of them was seen by 40 of 100 users. `fresh` has 10 others of each.

    40 lists of `pop` have 9 documents, so it cannot be compared by 10.
    """
    seen = "".join(f"q{query}\td0\n" for query in range(40))
    Path("seen.tsv").write_text("query_id\tdoc_id\n" + seen)
    gates = [{"name": "drop", "models": "pop", "measure": "r@10", "against": "fresh", "margin": 0.5}]
    dataset = {"interactions": "seen.tsv", "seen": "remove"}

    alone = evaluate({"pop": [10] * N_QUERIES}, relevant=("d1", "d30"), dataset=dataset)
    both = evaluate(
        {"fresh": [11] * N_QUERIES, "pop": [10] * N_QUERIES}, relevant=("d1",), dataset=dataset, gates=gates
    )

    assert warnings(alone) == ["pop on d: 40 of 100 queries have fewer than 10 documents, which r@10 asks for"]
    assert warnings(both) == [
        "pop on d: 40 of 100 queries where fresh has enough have fewer than 10 documents, which r@10 asks for"
    ]
    assert verdicts(both)["drop"].outcome == "inconclusive"


@pytest.mark.parametrize("models", [("one",), ("one", "two")])
def test_runs_of_fewer_documents_than_the_cutoff_were_cut(models):
    """All lists have 20 documents, R@50 asks for 50, and a relevant document is at rank 31 of what was retrieved."""
    evaluation = evaluate(dict.fromkeys(models, [20] * N_QUERIES), ["r@50", "r@20"])

    assert warnings(evaluation) == [
        f"{model} on d: 100 of 100 queries have fewer than 50 documents, which r@50 asks for" for model in models
    ]


def test_lists_that_lose_nothing_are_not_cut():
    """Lists of different lengths are those of a model that finds no more; a list with all relevant documents, and one
    with the whole catalogue, has nothing to lose.
    """
    Path("documents.tsv").write_text("doc_id\n" + "".join(f"d{number}\n" for number in range(20)))
    varied = [5 + query % 10 for query in range(N_QUERIES)]
    whole = [20] * N_QUERIES

    assert not warnings(evaluate({"m": varied}, ["r@50"]))
    assert not warnings(evaluate({"m": whole}, ["r@50"], relevant=("d0", "d19")))
    assert not warnings(evaluate({"m": whole}, ["r@50"], dataset={"documents": "documents.tsv"}))


def test_small_pools_are_not_cut():
    """Half of the queries have 5 candidates, which each model returns; the others have 10."""
    lengths = [5, 10] * (N_QUERIES // 2)

    assert not warnings(evaluate({"one": lengths, "two": lengths}, comparison={"baseline": "one"}))
