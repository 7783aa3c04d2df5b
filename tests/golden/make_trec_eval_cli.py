"""Write `trec_eval_cli/`: random qrels and rankings, and what trec_eval 9.0.4 and 10.0 print of them."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

FOLDER = Path(__file__).parent / "trec_eval_cli"
SEED = 20261122
N_QUERIES = 12
PARAMETERS = (
    "-q -m ndcg_cut.3,1,23.4 -m P.7 -m recall.2000 -m iprec_at_recall..25,.5,.333 -m 11pt_avg..25,.5,.75 -m set_F.2 "
    "-m Rprec_mult.5.0,0.2,0.35 -mutility.2,-1,.5,0 -m relstring.4 -m success.2 -m map.3 -mP.9"
)

COMMANDS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("trec_eval", "official"): "{qrels} {ranking}",
        ("trec_eval", "all"): "-q -m all_trec {qrels} {ranking}",
        ("trec_eval", "complete"): "-c -m all_trec {qrels} {ranking}",
        ("trec_eval", "complete-queries"): "-qc -m num_rel -m utility.1,-1,-1,0 -m gm_map {qrels} {ranking}",
        ("trec_eval", "level"): "{qrels} {ranking} -cl 2 -m all_trec",
        ("trec_eval", "level-queries"): "-l3 -q -m Rndcg -m ndcg -m G -m num_rel -m bpref {qrels} {ranking}",
        ("trec_eval", "depth"): "-M 5 -q -m official {qrels} {ranking}",
        ("trec_eval", "judged"): "-J -M10 -q -m map -m P.5 -m ndcg -m relstring -m set {qrels} {ranking}",
        ("trec_eval", "parameters"): f"{PARAMETERS} {{qrels}} {{ranking}}",
        ("trec_eval", "documents"): "-N 1000 -m utility.2,-1,.5,.25 -m set {qrels} {ranking}",
        ("trec_eval", "queries-only"): "-n -q -m map {qrels} {ranking}",
        ("trec_eval", "long-options"): (
            "--query_eval_wanted --measure recip_rank --complete_rel_info_wanted --level_for_rel 2 "
            "--Max_retrieved_per_topic=3 {qrels} {ranking}"
        ),
        ("trec_eval", "nothing"): "-n {qrels} {ranking}",
        ("trec_eval_10", "official"): "{binary_qrels} {full_ranking}",
        ("trec_eval_10", "all"): "-q -m all_trec {binary_qrels} {full_ranking}",
        ("trec_eval_10", "complete"): "-q -c -m all_trec {binary_qrels} {ranking}",
        ("trec_eval_10", "graded"): "-q -c -m official -m ndcg -m Rndcg -m dcg -m unj.7 {qrels} {ranking}",
        ("trec_eval_10", "level"): "-c -l 2 -m official -m rbp.p=0.5 {binary_qrels} {ranking}",
        ("trec_eval_10", "preferences"): "-q -m all_prefs -R prefs {preferences} {full_ranking}",
        (
            "trec_eval_10",
            "preferences-complete",
        ): "-qc -M 9 -m prefs -m prefs_avgjg_imp -R prefs {preferences} {ranking}",
        (
            "trec_eval_10",
            "preferences-of-grades",
        ): "-q -m all_prefs --Rel_info_format qrels_prefs {groups} {full_ranking}",
        ("trec_eval_10", "groups"): "-q -m qrels_jg -R qrels_jg {groups} {full_ranking}",
        ("trec_eval_10", "groups-level"): "-qc -l2 -M 12 -m P_avgjg.3,7 -m map_avgjg -R qrels_jg {groups} {ranking}",
        **{
            ("trec_eval_10", f"gains-{name}"): f"-q -m {name}.1=3,2=9,4=4 -m yaap {{qrels}} {{full_ranking}}"
            for name in ("ndcg", "dcg", "ideal_dcg", "ndcg_rel", "Rndcg", "G")
        },
        ("trec_eval_10", "z-scores"): (
            "-q -Z {z_scores} -m num_ret -m num_rel -m map -m gm_map -m recip_rank -m P.5 -m ndcg -m num_q -m runid "
            "{qrels} {full_ranking}"
        ),
        ("trec_eval_10", "parameters"): f"-m rbp_resid.p=0.5 {PARAMETERS} {{qrels}} {{full_ranking}}",
    }
)
"""What stands after the program's name, by version and name; files are given by their keys in `FILES`."""

FILES = {
    "qrels": "qrels.txt",
    "binary_qrels": "qrels.binary.txt",
    "ranking": "ranking.txt",
    "full_ranking": "ranking.full.txt",
    "preferences": "preferences.txt",
    "groups": "qrels.groups.txt",
    "z_scores": "z-scores.txt",
}
VALUES = ("num_q", "num_ret", "num_rel", "map", "gm_map", "recip_rank", "P_5", "ndcg")
"""What there are means and deviations of."""


def random_data(seed: int, n_queries: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    rng = np.random.default_rng(seed)
    judgments: dict[str, dict[str, int]] = {}
    ranking: dict[str, dict[str, float]] = {}
    for number in range(n_queries):
        query_id = f"q{number:03d}"
        documents = [f"{prefix}{i}" for i, prefix in enumerate(rng.choice(["d", "D", "é", "d-"], size=50))]
        grades = [[-2, -1, 0, 0, 1, 2, 3, 4], [0, 0, 1], [-1, 0]][rng.choice(3, p=[0.6, 0.3, 0.1])]
        pool = rng.permutation(documents)[: rng.integers(1, 41)]
        retrieved = rng.permutation(documents)[: rng.choice([1, 4, *rng.integers(5, 51, size=4)])]
        if number % 10 != 3:
            judged = {str(document): int(rng.choice(grades)) for document in pool}
            if max(judged.values()) < 0:
                judged[str(pool[0])] = 0  # pytrec_eval 0.5.11 crashes on a query whose grades are all negative
            judgments[query_id] = judged
        if number % 10 != 7:
            scores = rng.choice([1.0, 1.0 + 1e-9, 2.5, -3.25, *rng.normal(size=int(rng.integers(1, 20)))], size=50)
            ranking[query_id] = {str(document): float(scores[i]) for i, document in enumerate(retrieved)}
    return judgments, ranking


def arguments(command: str) -> list[str]:
    return command.format(**{key: FOLDER / name for key, name in FILES.items()}).split()


def expected_file(version: str, name: str) -> Path:
    return FOLDER / f"{version}.{name}.out"


def main(nine: str, ten: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    _write_data()
    for (version, name), command in COMMANDS.items():
        program = {"trec_eval": nine, "trec_eval_10": ten}[version]
        printed = subprocess.run([program, *arguments(command)], check=True, capture_output=True).stdout
        expected_file(version, name).write_bytes(printed)


def _write_data() -> None:
    judgments, ranking = random_data(SEED, N_QUERIES)
    full = {
        query_id: ranking.get(query_id, next(iter(ranking.values()))) for query_id in sorted({*judgments, *ranking})
    }
    graded = [f"{query} 0 {doc} {grade}" for query, grades in judgments.items() for doc, grade in grades.items()]
    binary = [
        f"{query}\t0\t{doc}\t{min(grade, 1)}" for query, found in judgments.items() for doc, grade in found.items()
    ]
    _write("qrels", graded[::-1])
    _write("binary_qrels", binary)
    for key, found in (("ranking", ranking), ("full_ranking", full)):
        rows = [
            f"{query} Q0 {doc} 1 {score!r} made" for query, scores in found.items() for doc, score in scores.items()
        ]
        _write(key, [*rows[1::2], *rows[::2]])
    _write_judges(full)


def _write_judges(ranking: Mapping[str, Mapping[str, float]]) -> None:
    rng = np.random.default_rng(SEED)
    preferences, groups, z_scores = [], [], []
    for query, scores in ranking.items():
        documents = [*scores, "missed-1", "missed-2", "missed-3"]
        for judge in range(rng.integers(1, 4)):
            levels = rng.integers(0, 4, len(documents))
            for part in range(rng.integers(1, 3)):
                some = rng.permutation(len(documents))[: rng.integers(2, 12)].tolist()
                preferences += [f"{query} j{judge} r{part} {documents[place]} {levels[place]}" for place in some]
            some = rng.permutation(len(documents))[: rng.integers(2, 12)].tolist()
            groups += [f"{query} j{judge} {documents[place]} {levels[place]}" for place in some]
        z_scores += [f"{query} {name} {rng.random():.4f} {rng.choice([0.0, 0.25, 1.5])}" for name in VALUES]
    _write("preferences", preferences)
    _write("groups", groups)
    _write("z_scores", z_scores)


def _write(key: str, lines: list[str]) -> None:
    (FOLDER / FILES[key]).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
