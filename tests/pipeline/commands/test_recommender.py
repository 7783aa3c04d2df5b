"""The recommender config from its files to its summary, against the oracle's loops over the same files."""

import csv
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rankledger
from tests.oracle import CATALOGUE_ORACLE
from tests.support.blocks import PlainCatalogue
from tests.support.records import figures_of

CONFIGS = Path(__file__).parents[3] / "configs"


def table(name: str, folder: Path = CONFIGS / "recommender") -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def plain(model: str, query_ids: list[str]) -> PlainCatalogue:
    documents = table("documents.tsv")
    number = {row["doc_id"]: place for place, row in enumerate(documents)}
    families = sorted({row["family"] for row in documents})
    consumed: dict[str, list[int]] = {query_id: [] for query_id in query_ids}
    for row in table("interactions.tsv"):
        consumed.setdefault(row["query_id"], []).append(number[row["doc_id"]])
    grades: dict[str, dict[int, float]] = {query_id: {} for query_id in query_ids}
    for row in table("qrels.tsv"):
        grades[row["query_id"]][number[row["doc_id"]]] = float(row["relevance"])
    ranked: dict[str, list[tuple[np.float32, str]]] = {query_id: [] for query_id in query_ids}
    for row in table(f"{model}.tsv"):
        ranked[row["query_id"]].append((np.float32(row["score"]), row["doc_id"]))
    return PlainCatalogue(
        lists=tuple(
            tuple(number[doc_id] for _, doc_id in sorted(ranked[query_id], reverse=True)) for query_id in query_ids
        ),
        n_documents=len(documents),
        consumed=tuple(map(tuple, consumed.values())),
        grades=tuple(grades[query_id] for query_id in query_ids),
        categories=tuple((families.index(row["family"]),) for row in documents),
        vectors=((),) * len(documents),
    )


FAIR = (
    *("awrf(feature=family)@10", "awrf(feature=family,target=catalogue)@10", "ee_l(feature=family)@10"),
    *("ee_d(feature=family,documents=all)@10", "ee_r(feature=family)", "ee_l(feature=doc_id,documents=all)@10"),
    *("exposure_ratio(feature=family)@10", "exposure_ratio(feature=family,per=relevant)@10"),
    *("reo(feature=family)@10", "rsp(feature=family)@10", "pop_reo@10", "pop_rsp@10"),
)


def evaluated(folder: Path, runs: Path, **options: object) -> rankledger.Evaluation:
    return rankledger.evaluate_config(
        folder / "recommender.yaml", overrides=[f"suites.fair={list(FAIR)}"], tracking=False, runs_dir=runs, **options
    )


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> rankledger.Evaluation:
    return evaluated(CONFIGS, tmp_path_factory.mktemp("runs"))


def test_every_figure_is_the_oracles(evaluation):
    assert len(evaluation.results) == 5
    n_compared = {"query": 0, "dataset": 0}
    for result in evaluation.results:
        found = plain(result.model, result.query_ids.tolist())
        lines = {line.measure: line for line in evaluation.estimates if line.model == result.model}
        for measure, values in [*zip(result.measures, result.values, strict=True), *result.figures.items()]:
            if measure.metric.input != "catalogue":
                continue
            arguments, of_each, own = measure.arguments(1), measure.metric.per == "query", found
            if arguments.get("feature") == "doc_id":
                own = replace(found, categories=tuple((document,) for document in range(found.n_documents)))
            arguments |= {"feature": "category"} if "feature" in arguments else {}
            oracle, places = CATALOGUE_ORACLE[measure.metric.name], [(query,) for query in range(len(found.lists))]
            expected = [oracle(own, *place, **arguments) for place in (places if of_each else [()])]
            np.testing.assert_allclose(np.atleast_1d(values), expected, rtol=1e-12, atol=1e-12, err_msg=str(measure))
            line = lines[str(measure)]
            assert (line.ci_low is not None) == of_each
            assert line.std_error is not None
            n_compared[measure.metric.per] += 1
    assert n_compared == {"query": 5 * 12, "dataset": 5 * 10}


def test_standard_errors_of_figures_of_all_lists_are_the_jackknifes(evaluation):
    result = evaluation.results[1]
    lines = {line.measure: line for line in evaluation.estimates if line.model == result.model}
    found = plain(result.model, result.query_ids.tolist())
    for name in ("item_coverage", "personalization"):
        oracle = CATALOGUE_ORACLE[name]
        left = [
            oracle(replace(found, lists=found.lists[:user] + found.lists[user + 1 :]), k=10)
            for user in range(len(found.lists))
        ]
        mean = sum(left) / len(left)
        variance = (len(left) - 1) / len(left) * sum((figure - mean) ** 2 for figure in left)
        assert lines[f"{name}@10"].std_error == pytest.approx(variance**0.5, rel=1e-9)


def shuffled(folder: Path) -> Path:
    shutil.copy(CONFIGS / "recommender.yaml", folder)
    (folder / "recommender").mkdir()
    for path in sorted((CONFIGS / "recommender").glob("*.tsv")):
        head, *rows = path.read_text(encoding="utf-8").splitlines()
        random.Random(path.name).shuffle(rows)
        (folder / "recommender" / path.name).write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    return folder


def test_the_order_of_rows_and_the_workers_change_no_byte(evaluation, tmp_path):
    again = evaluated(shuffled(tmp_path), tmp_path / "runs", jobs=2, backend="processes")
    assert figures_of(again.record) == figures_of(evaluation.record)


def test_a_feature_that_is_no_column_is_refused():
    with pytest.raises(rankledger.InputError) as error:
        rankledger.validate(
            CONFIGS / "recommender.yaml",
            overrides=["suites.beyond=['diversity(feature=colour)@10']", "models.svd=null"],
        )
    assert str(error.value).endswith("documents.tsv:1: no column 'colour' among doc_id, family; fix its name")
