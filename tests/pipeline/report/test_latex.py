"""Tables for papers: worked ones, and names of any letters."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.report import TableStyle
from rankledger.pipeline.report.latex import escaped, latex
from rankledger.pipeline.report.text_table import printable
from tests.support.handwritten_results import COMPARED, comparison, estimates, page

FIGURES = {"bm25": {"ap": 0.4, "rr": 0.5}, "dense": {"ap": 0.45, "rr": 0.52}, "random": {"ap": 0.01, "rr": None}}
MEANT = {  # what TeX prints of a command, by its manual
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\char34{}": '"',
    **{f"\\{sign}": sign for sign in "&%$#_{}"},
    **{f"{{{sign}}}": sign for sign in "[]*"},
    "{}": "",
}
EXPECTED = Path(__file__).parent / "expected"
COMMAND = re.compile("|".join(re.escape(command) for command in sorted(MEANT, key=len, reverse=True)))


def rows(text: str) -> list[list[str]]:
    return [line.strip().removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r"\\")]


def printed(text: str) -> str:
    return COMMAND.sub(lambda found: MEANT[found[0]], text)


def test_a_table_written_by_hand():
    compared = [comparison("dense", 0.05, 0.03), comparison("random", -0.39, 0.004)]
    text = latex([page(estimates("web", FIGURES), compared)])

    assert text.endswith("\n" + (EXPECTED / "table.tex").read_text(encoding="utf-8"))


def test_the_best_is_the_lowest_where_lower_is_better():
    figures = {"a": {"rmse": 2.0, "n": 1.0}, "b": {"rmse": 1.5, "n": 2.0}, "c": {"rmse": 1.50001, "n": 3.0}}
    text = latex([page(estimates("stars", figures), directions={"rmse": "lower", "n": "neither"})])

    assert rows(text)[1:] == [
        ["a", r"\underline{2.0000}", "1.0000"],
        ["b", r"\textbf{1.5000}", "2.0000"],
        ["c", r"\textbf{1.5000}", "3.0000"],
    ]


def test_ranks_have_a_column():
    ranks = {"bm25": (1, 2), "dense": (1, 2), "random": (None, None)}
    lines = [
        replace(line, rank_low=ranks[line.model][0], rank_high=ranks[line.model][1])
        for line in estimates("web", FIGURES)
    ]
    text = latex([page(lines)])

    assert [row[:2] for row in rows(text)] == [["Model", "Rank"], ["bm25", "1--2"], ["dense", "1--2"], ["random", "--"]]
    assert r"Ranks by ap are simultaneous 95\% intervals." in text
    assert r"\begin{tabular}{lcrr}" in text


def test_all_pairs_have_letters():
    compared = [
        comparison("dense", 0.05, 0.03),
        comparison("random", -0.01, 0.5),
        comparison("random", -0.06, 0.01, baseline="dense"),
    ]
    found = page(estimates("web", FIGURES), compared, comparison=COMPARED | {"baseline": "all_pairs"})
    text = latex([found])

    assert [row[1] for row in rows(text)[1:]] == [
        r"\underline{0.4000}\textsuperscript{\phantom{a}b}",
        r"\textbf{0.4500}\textsuperscript{a\phantom{b}}",
        r"0.0100\textsuperscript{\phantom{a}b}",
    ]
    assert "Models that share a letter do not differ at $p < 0.05$." in text
    assert "dagger" not in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"test": "t", "correction": "holm"}, "Paired $t$-test, corrected by Holm's method among 2 pairs on web."),
        (
            {"test": "bootstrap", "correction": "bh"},
            "corrected by Benjamini and Hochberg's method among 2 pairs on web.",
        ),
        ({"test": "bootstrap", "correction": "none"}, "Paired bootstrap test, not corrected. Conventions"),
    ],
)
def test_the_note_names_test_and_correction(asked, said):
    found = page(estimates("web", FIGURES), [comparison("dense", 0.05, 0.03)], comparison=COMPARED | asked)

    assert said in latex([found])


def test_the_note_names_the_primary_family():
    lines = [
        replace(
            comparison("dense", 0.05, 0.03),
            family="2 pairs x 1 measure on web (2 primary tests)",
            test="bootstrap-t",
            role="primary",
        ),
        replace(
            comparison("dense", 0.05, 0.03),
            measure="rr",
            family="2 pairs on web (9 exploratory tests)",
            role="exploratory",
        ),
    ]
    text = latex([page(estimates("web", FIGURES), lines, comparison=COMPARED)])

    assert "bootstrap-$t$, corrected by max-$T$ among 2 pairs $\\times$ 1 measure on web (2 primary tests). " in text
    assert "Others: paired randomization test" in text
    assert "among 2 pairs on web (9 exploratory tests)." in text
    assert "few queries" not in text
    decided = replace(lines[0], mark="sparse", test="randomization")
    text = latex([page(estimates("web", FIGURES), [decided], comparison=COMPARED)])
    assert "bootstrap-$t$, where few queries decide randomization test, corrected by max-$T$" in text


def test_daggers_follow_the_corrected_p_value_of_marked_differences():
    lines = [replace(comparison("dense", 0.05, 0.03), mark="sparse"), comparison("random", 0.05, 0.003)]
    text = latex([page(estimates("web", FIGURES), [*lines, replace(lines[1], mark="sparse")], comparison=COMPARED)])

    assert text.count(r"\rlap{$^{\dagger}$}") == 1
    assert text.count(r"\rlap{$^{\ddagger}$}") == 1


def test_the_note_names_the_test_of_families():
    own = replace(
        comparison("dense", 0.05, 0.03),
        family="2 pairs on web (2 primary tests)",
        test="variance components",
        role="primary",
    )
    other = replace(own, measure="rr", family="2 pairs on web (9 exploratory tests)", role="exploratory")
    others = [other, replace(other, measure="ap", test="randomization")]
    text = latex([page(estimates("web", FIGURES), [own, others[0]], comparison=COMPARED)])
    by_bonferroni = "test by variance components, corrected by Bonferroni's method among 2 pairs on web"
    assert f": {by_bonferroni} (2 primary tests). Others: paired {by_bonferroni} (9 exploratory tests)." in text
    assert "bootstrap" not in text
    text = latex([page(estimates("web", FIGURES), [own, *others], comparison=COMPARED)])

    assert "paired randomization test, for models with replicates test by variance components, corrected by" in text


@pytest.mark.parametrize(("p_corrected", "marks"), [(0.0099, 2), (0.01, 1), (0.0499, 1), (0.05, 0), (None, 1)])
def test_a_mark_says_that_the_corrected_p_is_below_its_level(p_corrected, marks):
    line = replace(comparison("dense", 0.05, 0.04), p_corrected=p_corrected)
    (cell,) = [row[1] for row in rows(latex([page(estimates("web", FIGURES), [line])])) if row[0] == "dense"]

    assert cell == r"\textbf{0.4500}" + ["", r"\rlap{$^{\dagger}$}", r"\rlap{$^{\ddagger}$}"][marks]


def test_tables_are_numbered_and_a_lost_model_has_dashes():
    lost = page(
        [*estimates("web", FIGURES), *estimates("news", {"bm25": {"ap": 0.3}})],
        failures=[Failure("news", "dense", "gone.tsv: file not found")],
    )
    text = latex([lost, page(estimates("web", FIGURES))])

    assert re.findall(r"\\label\{(.*)\}", text) == ["tab:nightly-1", "tab:nightly-2", "tab:nightly-3"]
    assert [row for row in rows(text) if row[0] == "dense"][1] == ["dense", "--"]
    assert text.count(r"\begin{table}") == text.count(r"\end{tabular}") == 3


def test_more_measures_than_a_page_is_wide_are_left_out():
    measures = [f"p@{cutoff}" for cutoff in range(1, 10)]
    found = page(estimates("web", {"bm25": dict.fromkeys(measures, 0.5)}))

    assert rows(latex([found]))[0] == ["Model", *measures[:6]]
    assert "\n% 3 more measures in summary.csv; --measure picks others\n" in latex([found])
    assert rows(latex([found], n_measures=9))[0] == ["Model", *measures]
    assert "more measure" not in latex([found], n_measures=9)


def test_columns_with_intervals_are_fewer():
    measures = [f"p@{cutoff}" for cutoff in range(1, 10)]
    found = page(estimates("web", {"bm25": dict.fromkeys(measures, 0.5)}))

    assert rows(latex([found], style=TableStyle(intervals=True)))[0] == ["Model", *measures[:3]]
    assert rows(latex([found], n_measures=9, style=TableStyle(intervals=True)))[0] == ["Model", *measures]


def test_an_interval_that_is_not_reliable_is_marked():
    found = estimates("web", {"bm25": {"ap": 0.5}, "dense": {"ap": 0.4}})
    lines = [replace(line, ci_low=0.3, ci_high=0.6, mark="sparse" if line.model == "dense" else "") for line in found]
    text = latex([page(lines)], style=TableStyle(intervals=True))

    assert rows(text)[1:] == [
        ["bm25", r"\textbf{0.5000} {\scriptsize [0.3000, 0.6000]\phantom{$\sim$}}"],
        ["dense", r"\underline{0.4000} {\scriptsize [0.3000, 0.6000]$\sim$}"],
    ]
    assert r"$\sim$: not reliable, as few queries decide it, or nearly all score alike." in text
    assert r"\sim" not in latex([page(lines)])


def test_a_minus_sign_is_no_hyphen():
    found = estimates("web", {"bm25": {"kendall_tau": -0.5, "ap": 2e-5}})
    lines = [replace(line, ci_low=-0.75, ci_high=0.25) for line in found]
    (row,) = rows(latex([page(lines)], style=TableStyle(intervals=True)))[1:]

    minus_half = r"\textbf{$-$0.5000} {\scriptsize [$-$0.7500, 0.2500]}"
    assert row == ["bm25", minus_half, r"\textbf{2.0e$-$05} {\scriptsize [$-$0.7500, 0.2500]}"]


def test_the_note_names_conventions_that_are_not_the_profiles():
    chosen = {"profile": "trec_eval", "missing_queries": "skip", "undefined_queries": "zero", "depth": 100}
    text = latex([page(estimates("web", FIGURES), conventions=chosen)])

    assert r"Conventions: trec\_eval, missing\_queries: skip, depth: 100.}" in text


@given(st.text(max_size=40) | st.text(alphabet="\\{}[]*$&#%_~^<>|\"'`-,?! ax0\n\u202e", max_size=40))
def test_any_text_is_printed_as_it_is(text):
    found = escaped(text)
    rest = COMMAND.sub("\0", found)  # between commands nothing may join

    assert printed(found) == printable(text)
    assert not set(rest) & set("\\{}$&#%_~^")
    assert re.search(r"--|''|``|,,|\?`|!`|[<>|\"\[\]*]", rest) is None
    assert "\n" not in found


@given(
    st.text(min_size=1, max_size=40),
    st.text(min_size=1, max_size=40),
    st.builds(TableStyle, st.booleans(), st.booleans(), st.booleans(), fit=st.sampled_from(["column", "page", "none"])),
)
def test_names_of_any_letters_leave_the_table_whole(model, dataset, style):
    lines = estimates(dataset, {model: {"ap": 0.4}, "bm25!": {"ap": 0.5}})
    found = page(
        [replace(line, ci_low=-0.1, ci_high=0.6) for line in lines],
        [comparison(model, 0.1, 0.001, dataset=dataset, baseline="bm25!")],
    )
    text = latex([found], style=style)
    body = "\n".join(line for line in text.splitlines() if not line.startswith("% ")).replace("{!}{%\n", "{!}{\n")

    assert {len(re.findall(r"(?<!\\)&", line)) for line in text.splitlines() if line.endswith(r"\\")} == {1}
    assert len(re.findall(r"(?<!\\)\{", body)) == len(re.findall(r"(?<!\\)\}", body))
    assert re.findall(r"\\begin\{(.*?)\}", body) == re.findall(r"\\end\{(.*?)\}", body)[::-1]
    assert re.search(r"(?<!\\)%", body) is None


def test_long_names_are_cut():
    long = replace(estimates("web", {"bm25": {"ap": 0.4}})[0], model="W" * 10_000)

    assert rows(latex([page([long])]))[1][0] == "W" * 79 + "…"


def test_a_styled_table_written_by_hand():
    compared = [comparison("dense", 0.05, 0.03), comparison("random", -0.39, 0.004)]
    found = estimates("web", {model: {"ap": own["ap"]} for model, own in FIGURES.items()})
    lines = [replace(line, ci_low=0.1, ci_high=0.6) for line in found]
    style = TableStyle(True, True, True, caption=r"\emph{Ours}.", headers={"ap": "MAP"}, fit="none")
    text = latex([page(lines, compared)], style=style)

    assert text.startswith(r"% Needs \usepackage{booktabs,amssymb}")
    assert text.endswith("\n" + (EXPECTED / "styled_table.tex").read_text(encoding="utf-8"))


def test_a_note_explains_intervals_and_arrows():
    text = latex(
        [page(estimates("web", FIGURES), [comparison("dense", 0.05, 0.03)])],
        style=TableStyle(intervals=True, arrows=True, fit="page"),
    )

    assert r"In brackets: 95\% confidence intervals." in text
    assert r"$\vartriangle$ ($p < 0.05$) and $\blacktriangle$ ($p < 0.01$): better than bm25;" in text
    assert r"$\triangledown$ ($p < 0.05$) and $\blacktriangledown$ ($p < 0.01$): worse." in text
    assert r"\begin{table*}" in text
    assert r"\usepackage{booktabs,amssymb,graphicx}" in text
    assert r"\resizebox{\ifdim\width>\textwidth \textwidth\else\width\fi}{!}{%" in text
    assert text.endswith("\\end{table*}\n")
