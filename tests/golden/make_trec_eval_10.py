"""Write `trec_eval_10/`: random judgments and a ranking as TREC text, and what trec_eval 10 prints for them."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.agreement.cases import Case, random_case

FOLDER = Path(__file__).parent / "trec_eval_10"
SEED = 20261121
MEASURES = ("all_trec", "yaap")  # a run each: asked for together, rbp would find other memory


def main(binary: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    case = _data()
    _write("judgments.txt", [f"{query} 0 {doc} {grade}" for query, doc, grade in _rows(case.judgments)])
    _write("ranking.txt", [f"{query} Q0 {doc} 1 {score!r} golden" for query, doc, score in _rows(case.ranking)])
    values: dict[str, dict[str, str]] = {}
    for measures in MEASURES:
        command = [binary, "-c", "-q", "-m", measures, str(FOLDER / "judgments.txt"), str(FOLDER / "ranking.txt")]
        printed = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
        for line in printed.splitlines():
            measure, query_id, value = line.split()
            values.setdefault(query_id, {})[measure] = value
    columns = list(values["all"])
    rows = [(query_id, *(found.get(column, "") for column in columns)) for query_id, found in values.items()]
    _write("expected.tsv", ["\t".join(row) for row in [("query_id", *columns), *rows]])


def _data() -> Case:
    hard = {"negative": True, "missing_queries": True, "unjudged_queries": True, "beyond_ascii": True}
    graded = random_case(SEED, 200, max_documents=24, **hard)
    binary = random_case(SEED + 1, 200, max_documents=24, grades=(0, 1), **hard)
    judgments = {f"b{query_id}": found for query_id, found in binary.judgments.items()}
    ranking = {f"b{query_id}": found for query_id, found in binary.ranking.items()}
    return Case(graded.judgments | judgments, graded.ranking | ranking)


def _rows(table: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str, float]]:
    return [(query_id, doc_id, value) for query_id, values in table.items() for doc_id, value in values.items()]


def _write(name: str, lines: list[str]) -> None:
    (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1])
