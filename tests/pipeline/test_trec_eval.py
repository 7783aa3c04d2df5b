"""`rankledger trec_eval`: what it prints is, byte for byte, what the program prints, and what it refuses."""

import io
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rankledger.pipeline.cli.app import main
from rankledger.pipeline.data import files
from tests.golden.make_trec_eval_cli import COMMANDS, FILES, FOLDER, arguments, expected_file

QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 2\nq3 0 a 1\n"
RANKING = "q1 Q0 b 1 3.0 first\nq1 Q0 a 2 2.0 first\nq2 Q0 c 1 1.0 first\nq9 Q0 a 1 1.0 last\n"

Run = Callable[..., list[str]]


@pytest.fixture
def run(tmp_path, monkeypatch, capsysbinary) -> Run:
    """Runs the command on small files in an empty folder; gives the lines that it prints."""
    monkeypatch.chdir(tmp_path)
    Path("qrels").write_text(QRELS, encoding="utf-8")
    Path("ranking").write_text(RANKING, encoding="utf-8")

    def call(*words: str, qrels: str = "qrels", ranking: str = "ranking") -> list[str]:
        main(["trec_eval", *words, qrels, ranking])
        return capsysbinary.readouterr().out.decode().splitlines()

    return call


@pytest.fixture
def refused(run, capsysbinary) -> Callable[..., str]:
    """Runs the command where it must end with 2, print nothing and say one line, which is given."""

    def call(*words: str, **paths: str) -> str:
        with pytest.raises(SystemExit) as ended:
            run(*words, **paths)
        printed = capsysbinary.readouterr()
        assert ended.value.code == 2
        assert printed.out == b""
        (line,) = printed.err.decode().splitlines()
        return line

    return call


# What the program prints.


@pytest.mark.parametrize(("version", "name"), COMMANDS)
def test_every_byte_is_that_of_the_program(version, name, capsysbinary):
    main(["trec_eval", "--profile", version, *arguments(COMMANDS[version, name])])
    printed = capsysbinary.readouterr()

    assert printed.out == expected_file(version, name).read_bytes()
    assert printed.err == b""


def test_golden_files_are_those_of_the_commands():
    outputs = {expected_file(*command).name for command in COMMANDS}

    assert {path.name for path in FOLDER.iterdir()} == outputs | set(FILES.values())


def test_the_golden_files_hold_what_versions_treat_differently():
    qrels = [line.split() for line in (FOLDER / FILES["qrels"]).read_text(encoding="utf-8").splitlines()]
    ranking = [line.split() for line in (FOLDER / FILES["ranking"]).read_text(encoding="utf-8").splitlines()]
    judged, answered = {row[0] for row in qrels}, {row[0] for row in ranking}

    assert {"-2", "-1", "0", "1", "2", "3", "4"} <= {row[3] for row in qrels}
    assert judged - answered
    assert answered - judged
    assert len({(row[0], row[4]) for row in ranking}) < len(ranking)
    versions = [
        expected_file(version, "complete").read_text(encoding="utf-8") for version in ("trec_eval", "trec_eval_10")
    ]
    assert all("iprec_at_recall_0.10" in text for text in versions)


def test_another_process_prints_the_same(tmp_path):
    command = [sys.executable, "-c", "from rankledger.pipeline.cli.app import main; main()", "trec_eval"]
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([*command, *arguments(COMMANDS["trec_eval", "all"])], check=True, stdout=out)

    assert (tmp_path / "out").read_bytes() == expected_file("trec_eval", "all").read_bytes()


# Preferences, groups of judgments and z-scores.


def test_preferences_are_in_the_order_of_ids_where_scores_are_equal(run):
    """Of a and b, whose scores are equal, a stands first, which q1 does not prefer; of q2 b alone is there."""
    Path("prefs").write_text("q1 j r a 1\nq1 j r b 2\nq2 j r a 0\nq2 j r b 1\n", encoding="utf-8")
    Path("tied").write_text("q1 Q0 b 1 1.0 tag\nq1 Q0 a 1 1.0 tag\nq2 Q0 b 1 1.0 tag\n", encoding="utf-8")

    lines = run("-q", "-m", "prefs_simp", "-R", "prefs", qrels="prefs", ranking="tied")

    assert [line.split()[1:] for line in lines] == [["q1", "0.0000"], ["q2", "1.0000"], ["all", "0.5000"]]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("q1 j r a 1\nq1 j r a 2", "query 'q1' judges document 'a' twice in a ranking (line 2); keep one"),
        ("q1 j r a 1\nq1 j r b -1", "query 'q1': a level is below 0; fix its levels"),
        ("q1 j r a 1\nq1 j r b 2\nq1 j s a 2\nq1 j s b 1", "query 'q1': two documents are preferred to each other"),
        ("q1 j r a 1\nq1 j s a 0", "query 'q1': a document has both level 0 and another one"),
        ("q1 j a 1", "4 fields found where query_id, subtopic, part, doc_id, relevance are expected"),
    ],
)
def test_preferences_that_contradict_themselves_are_refused(refused, rows, said):
    Path("prefs").write_text(rows + "\n", encoding="utf-8")

    assert said in refused("-R", "prefs", "-m", "prefs", qrels="prefs")


def test_groups_of_judgments_count_alike(run):
    """One judge finds b relevant, at rank 1, the other a, at rank 2: (1 + 1/2) / 2; q2 has one, who finds nothing."""
    Path("groups").write_text("q1 x b 1\nq1 y a 1\nq1 y b 0\nq2 x a 1\n", encoding="utf-8")

    lines = run("-q", "-m", "map_avgjg", "-R", "qrels_jg", qrels="groups")

    assert [line.split()[1:] for line in lines] == [["q1", "0.7500"], ["q2", "0.0000"], ["all", "0.3750"]]


def test_z_scores(run):
    Path("z").write_text("q1 map 0.25 0.5\nq2 map 0.5 0\n", encoding="utf-8")

    lines = run("-q", "-Z", "z", "-m", "map", "-m", "num_q")

    assert [line.split("\t") for line in lines] == [
        ["Zmap                   ", "q1", "0.5000"],
        ["Zmap                   ", "q2", "-1000000.0000"],
        ["Znum_q                 ", "all", "2.0000"],
        ["Zmap                   ", "all", "-499999.7500"],
    ]


def test_z_scores_need_numbers(refused):
    Path("z").write_text("q1 map high 0.5\n", encoding="utf-8")

    assert "z: could not convert string to float: 'high'; lines are" in refused("-Z", "z", "-m", "map")


# What is asked for.


def test_the_official_measures_are_printed_unless_others_are_asked_for(run):
    """q1 has its only relevant document at rank 2, q2 finds none: map (1/2 + 0) / 2; the name is the last line's."""
    lines = run()

    assert lines[:7] == [
        "runid                 \tall\tlast",
        "num_q                 \tall\t2",
        "num_ret               \tall\t3",
        "num_rel               \tall\t2",
        "num_rel_ret           \tall\t1",
        "map                   \tall\t0.2500",
        "gm_map                \tall\t0.0022",
    ]
    assert len(lines) == 10 + 11 + 9


def test_measures_stand_in_the_order_of_the_table(run):
    lines = run("-m", "P.2", "-m", "map", "-m", "P.1", "-m", "num_q", "-m", "map.7")

    assert [line.split()[0] for line in lines] == ["num_q", "map", "P_2"]


def test_queries_stand_in_the_order_of_their_bytes(run):
    Path("qrels").write_text("é 0 d 1\na 0 d 1\nB 0 d 1\n", encoding="utf-8")
    Path("ranking").write_text("a Q0 d 1 1 t\né Q0 d 1 1 t\nB Q0 d 1 1 t\n", encoding="utf-8")

    assert [line.split("\t")[1] for line in run("-q", "-n", "-m", "map")] == ["B", "a", "é"]


def test_ids_with_percent_signs_are_printed(run):
    Path("qrels").write_text("%s 0 d 1\n%d%% 0 d 1\n", encoding="utf-8")
    Path("ranking").write_text("%s Q0 d 1 1 %t\n%d%% Q0 d 1 1 %t\n", encoding="utf-8")

    assert [line.split("\t")[1] for line in run("-q", "-n", "-m", "map")] == ["%d%%", "%s"]
    assert run("-m", "runid") == ["runid                 \tall\t%t"]


def test_files_are_trec_text_whatever_they_are_called(run):
    for name in ("qrels.tsv", "ranking.csv"):
        shutil.copy(name.partition(".")[0], name)

    assert run(qrels="qrels.tsv", ranking="ranking.csv") == run()


def test_comments_are_passed_over(run):
    Path("commented").write_text(f"# made by hand\n{RANKING}# the end of it all # x\n\n", encoding="utf-8")

    assert run(ranking="commented") == run()


@pytest.mark.parametrize("profile", ["trec_eval", "trec_eval_10"])
def test_a_ranking_may_come_through_standard_input(run, monkeypatch, profile):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RANKING.encode())))
    files._stream.cache_clear()

    assert run("--profile", profile, ranking="-") == run("--profile", profile)


def test_files_may_come_through_pipes(run):
    expected = run()
    for name in ("qrels", "ranking"):
        os.mkfifo(f"{name}.pipe")
        text = Path(name).read_text(encoding="utf-8")
        threading.Thread(target=Path(f"{name}.pipe").write_text, args=[text], daemon=True).start()
    files._stream.cache_clear()

    assert run(qrels="qrels.pipe", ranking="ranking.pipe") == expected


def test_the_name_of_an_output_is_printed_byte_for_byte(run, capsysbinary):
    Path("latin").write_bytes("q1 Q0 b 1 3.0 Müller\n".encode("latin-1"))
    main(["trec_eval", "-m", "runid", "qrels", "latin"])

    assert capsysbinary.readouterr().out == b"runid                 \tall\tM\xfcller\n"


def test_cutoffs_are_cut_as_the_program_does(run):
    """C's atol stops at the first sign that is no digit: 2.9 is 2, and 1e2 is 1."""
    assert [row.split()[0] for row in run("-m", "P.2.9,1e2")] == ["P_1", "P_2"]


def test_the_version_is_printed_on_stderr(run, capsysbinary):
    for words, version in (([], "9.0.4"), (["--profile", "trec_eval_10"], "10.0")):
        main(["trec_eval", "-v", *words])
        assert capsysbinary.readouterr() == (b"", f"trec_eval version {version}\n".encode())


# Where the program fails, and this does not.


def test_version_10_passes_over_queries_without_output(run):
    """q3 has none: the program stops there with code 4; without -c it is left out here, as in version 9."""
    assert run("--profile", "trec_eval_10", "-q", "-m", "map") == run("-q", "-m", "map")


def test_a_ranking_of_unjudged_documents_has_precision_0(run):
    """With -J nothing is left of q2, where the program divides 0 by 0 and prints -nan for it and for all."""
    lines = run("-J", "-q", "-m", "iprec_at_recall.0", "-m", "11pt_avg")

    assert [line.split("\t")[1:] for line in lines] == [
        ["q1", "0.5000"],
        ["q1", "0.5000"],
        ["q2", "0.0000"],
        ["q2", "0.0000"],
        ["all", "0.2500"],
        ["all", "0.2500"],
    ]


def test_rbp_takes_grades_above_1_for_relevant(run):
    """Grades 1 and 2 both gain 1: 0.1 (1 + 0.9) = 0.19, whatever memory held; the level is none of its business."""
    Path("qrels").write_text("q 0 a 1\nq 0 b 2\n", encoding="utf-8")
    Path("ranking").write_text("q Q0 a 1 2.0 t\nq Q0 b 2 1.0 t\n", encoding="utf-8")

    for words in ([], ["-l2"]):
        assert run("--profile", "trec_eval_10", "-m", "rbp", *words) == ["rbp                   \tall\t0.1900"]


# Intervals.


def test_intervals_stand_beside_means_alone(run):
    with_intervals, without = run("--with-intervals", "-q", "-m", "all_trec"), run("-q", "-m", "all_trec")

    assert len(with_intervals) == len(without)
    for line, plain in zip(with_intervals, without, strict=True):
        name, query_id, value, *ends = line.split("\t")
        assert "\t".join((name, query_id, value)) == plain
        counted = name.strip() in {"runid", "num_q"} or name.startswith("num_")
        assert len(ends) == (0 if query_id != "all" or counted else 2)
        assert all(re.fullmatch(r" ?-?\d+\.\d{4}", end) for end in ends)
        if ends:
            assert float(ends[0]) <= float(value) <= float(ends[1])


def test_nothing_has_an_interval_where_nothing_has_a_mean(run):
    """A name and a number are all that is asked for."""
    assert run("--with-intervals", "-m", "runid", "-m", "num_q") == run("-m", "runid", "-m", "num_q")


def test_intervals_do_not_depend_on_the_names_of_the_files(run):
    for name in ("qrels", "ranking"):
        shutil.copy(name, f"{name}.txt")

    assert run("--with-intervals", qrels="qrels.txt", ranking="ranking.txt") == run("--with-intervals")


# What is refused.


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "ndgc"], "no measure 'ndgc'; did you mean 'ndcg'?"),
        (
            ["-m", "zzz"],
            "no measure 'zzz'; there are official, all_trec, all_prefs, prefs, qrels_jg, set and single ones",
        ),
        (["-m", "all_qrels"], "no measure 'all_qrels'; did you mean 'all_trec'?"),
        (["-m", "P."], "no measure 'P.'; did you mean 'P'?"),
        (["-m", "P_10"], "no measure 'P_10'"),
        (["-m", "rbp"], "trec_eval 9.0.4 as it is here has no measure 'rbp'"),
        (["-m", "ndcg.1=3,2"], "ndcg.1=3,2: '2' gives no grade a gain of at least 0, as in 1=3.5"),
        (["-m", "ndcg.-1=3"], "ndcg.-1=3: '-1=3' gives no grade a gain"),
        (["-m", "G.1=-3"], "G.1=-3: '1=-3' gives no grade a gain"),
        (["-m", "prefs_simp"], "prefs_simp needs judgments in the format prefs: write -R prefs"),
        (["-m", "map", "-m", "map_avgjg"], "map_avgjg needs judgments in the format qrels_jg: write -R qrels_jg"),
        (["-R", "qrels_jg", "-m", "map"], "map needs judgments in the format qrels: write -R qrels"),
        (["-Z", "qrels", "--with-intervals"], "leave out -Z or --with-intervals"),
        (["-m", "P.0"], "P.0: p: cutoffs are whole numbers from 1"),
        (["-m", "P.x"], "P.x: 'x' is not a number"),
        (["-m", "P.5,10,5"], "P.5,10,5: a parameter occurs twice"),
        (["-m", "utility.1,2"], "utility.1,2: 2 coefficients where 4 are needed"),
        (["-m", "iprec_at_recall.2"], "iprec_at_recall.2: recall must be in [0, 1], found 2"),
        (["-m", "set_F.-1"], "set_F.-1: the square of beta is at least 0"),
        (["--profile", "trec_eval_10", "-m", "rbp.1=2"], "rbp.1=2: the only parameter is p"),
    ],
)
def test_a_wrong_measure_is_refused(refused, words, said):
    assert said in refused(*words)


def test_files_without_a_common_query_are_refused(refused):
    Path("other").write_text("q7 Q0 a 1 1.0 t\n", encoding="utf-8")

    for words in ([], ["-c"], ["--profile", "trec_eval_10", "-c"]):
        said = refused(*words, ranking="other")
        assert said == "other: none of its queries is judged in qrels; check that both files spell ids alike"


def test_a_pair_that_is_judged_twice_is_refused_without_naming_a_key_of_configs(refused):
    Path("twice").write_text("q1 0 a 1\nq1 0 a 0\n", encoding="utf-8")

    assert refused(qrels="twice") == "twice: query 'q1' judges document 'a' twice (line 1 and line 2); keep one"


def test_what_the_program_would_misread_is_refused(refused):
    Path("fractions").write_text("q1 0 a 1\nq1 0 b 0.5\n", encoding="utf-8")
    Path("words").write_text("q1 Q0 a 1 high t\n", encoding="utf-8")

    assert refused(qrels="fractions").startswith("fractions: relevance 0.5 (line 2) is not a whole number")
    assert refused(ranking="words").startswith("words:1: score 'high' is not a number")


def test_a_missing_file_is_refused(refused):
    assert refused(qrels="nothing").startswith("nothing: file not found")
