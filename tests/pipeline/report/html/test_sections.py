"""The other sections: what of a record they show, and what they leave out."""

import re
from collections.abc import Iterable
from dataclasses import replace
from html import unescape

from markupsafe import Markup

from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.history.history import History, Night, Series
from rankledger.pipeline.inference.tables import ChangeSince
from rankledger.pipeline.record.evaluation import ListedDocument, QueryDetail
from rankledger.pipeline.record.manifest_parts import InputChange
from rankledger.pipeline.report.html.about import definitions, history, provenance, quality
from rankledger.pipeline.report.html.blocks import Block, Folded, Section, SideBySide, Words, isolated
from rankledger.pipeline.report.html.differences import differences, queries, slices
from rankledger.pipeline.report.html.summary import standing, verdict
from rankledger.pipeline.report.page import Page
from rankledger.pipeline.report.text_table import Cell, Row, Table, short_text
from tests.support import sample_page
from tests.support.manifests import change_evaluation
from tests.support.sample_page import compared, estimate, page


def every(blocks: Iterable[Block]) -> list[Block]:
    found: list[Block] = []
    for block in blocks:
        if isinstance(block, SideBySide):
            found += every((*block.first, *block.second))
        found += [block, *(every(block.blocks) if isinstance(block, Section | Folded) else ())]
    return found


def table(blocks: Iterable[Block], name: str) -> list[list[str]]:
    (found,) = [block for block in every(blocks) if isinstance(block, Table) and block.name == name]
    return [texts(row) for group in found.groups for row in group.rows]


def texts(row: Row) -> list[str]:
    return [cell.text if isinstance(cell, Cell) else cell for cell in row]


def said(blocks: Iterable[Block]) -> list[str]:
    return [block.text for block in every(blocks) if isinstance(block, Words)]


def written(blocks: Iterable[Block], pattern: str) -> list[tuple[str, ...] | str]:
    return [
        tuple(map(unescape, found)) if isinstance(found, tuple) else unescape(found)
        for block in every(blocks)
        if isinstance(block, Markup)
        for found in re.findall(pattern, block)
    ]


COMMAND = "<code>(.*?)</code>"
FACT = "<dt><bdi>(.*?)</bdi></dt><dd><bdi>(.*?)</bdi></dd>"


def test_the_verdict_leads():
    blocks = verdict(page()).blocks

    assert [(block.text, block.tone) for block in blocks[:2]] == [
        ("FAIL no-drop: ndcg@10 of dense fell 0.030 [0.020, 0.040], allowed 0.005.", "bad"),
        ("PASS 1 of 2 gates (floor)", ""),
    ]
    assert table(blocks, "gates") == [["no-drop", "1", ""], ["floor", "", "1"]]
    assert table(blocks, "verdicts") == [["dense", "F 1"], ["bm25", "P"]]
    assert table(blocks, "reasons") == [
        ["dense", "FAIL", "ndcg@10 of dense dropped by 0.0300", "web", "all", "no-drop"]
    ]


def test_reasons_begin_with_failures_and_the_largest():
    found = [
        sample_page.verdict(model="warned", effect="warn", estimate=-9.0, limit=0.0),
        sample_page.verdict(model="undecided", effect="stop", outcome="inconclusive", estimate=-9.0, limit=0.0),
        sample_page.verdict(model="slow", gate="fast", dataset="", estimate=48.0, limit=20.0),
        sample_page.verdict(model="small", estimate=-0.1, limit=0.0),
        sample_page.verdict(model="large", estimate=-2.0, limit=0.0),
        sample_page.verdict(model="lost", outcome="not evaluated", estimate=None, limit=None),
    ]
    blocks = verdict(page(verdicts=tuple(found))).blocks

    assert [row[:2] for row in table(blocks, "reasons")] == [
        ["lost", "FAIL: not evaluated"],
        ["large", "FAIL"],
        ["slow", "FAIL"],
        ["small", "FAIL"],
        ["undecided", "INCONCLUSIVE"],
        ["warned", "WARN"],
    ]


def test_ten_reasons_are_shown_at_once():
    for n_failed, n_rows, said_last in ((648, 648, None), (801, 800, "1 more in gates.json.")):
        lines = tuple(sample_page.verdict(model=f"m{number}") for number in range(n_failed))
        blocks = every(verdict(page(verdicts=lines)).blocks)
        (reasons,) = [block for block in blocks if isinstance(block, Table) and block.name == "reasons"]
        assert (reasons.most, len(reasons.groups[0].rows)) == (10, n_rows)
        assert ("1 more in gates.json." in said(blocks)) is (said_last is not None)


def test_the_worst_of_a_cell_counts():
    lines = (
        sample_page.verdict(effect="warn"),
        sample_page.verdict(slice="market=de"),
        sample_page.verdict(dataset="news", effect="stop", outcome="inconclusive"),
        sample_page.verdict(dataset="shop", effect="pass", outcome="not judged"),
        sample_page.verdict(dataset="", gate="fast", effect="pass", outcome="pass"),
    )
    blocks = verdict(page(verdicts=lines)).blocks
    (matrix,) = [block for block in every(blocks) if isinstance(block, Table) and block.name == "verdicts"]

    assert [column.title for column in matrix.columns] == ["model", "web", "news", "shop", "external metrics"]
    assert table(blocks, "verdicts") == [["dense", "F 2", "I 1", "", "P"]]


def test_gates_models_and_causes_stand_with_what_fails_first():
    unlike = {"gate": "beats", "effect": "stop", "outcome": "not comparable", "reason": "other judgments"}
    lines = (
        sample_page.verdict(gate="complete", model="fine", effect="pass", outcome="pass"),
        sample_page.verdict(gate="slow", model="warned", effect="warn"),
        *(sample_page.verdict(model=model, estimate=None, **unlike) for model in ("a", "b")),
        sample_page.verdict(details="interval of 95%"),
        sample_page.verdict(gate="floor", slice="market=de", reason="below 0.5", estimate=-0.02),
    )
    blocks = verdict(page(verdicts=lines)).blocks
    (reasons,) = [block for block in every(blocks) if isinstance(block, Table) and block.name == "reasons"]
    dropped = sample_page.verdict().reason

    assert table(blocks, "gates") == [
        ["no-drop", "1", "", "", ""],
        ["floor", "1", "", "", ""],
        ["beats", "", "2", "", ""],
        ["slow", "", "", "1", ""],
        ["complete", "", "", "", "1"],
    ]
    assert table(blocks, "verdicts") == [["dense", "F 2"], ["a", "I 1"], ["b", "I 1"], ["warned", "W 1"], ["fine", "P"]]
    assert table(blocks, "reasons") == [
        ["dense", "FAIL", f"{dropped} (and 1 more verdict)", "web", "all and 1 more", "no-drop, floor"],
        ["a, b", "INCONCLUSIVE: not comparable", "other judgments (and 1 more verdict)", "web", "all", "beats"],
        ["warned", "WARN", dropped, "web", "all", "slow"],
    ]
    assert [row[2].more for row in reasons.groups[0].rows] == ["interval of 95%; below 0.5", "", ""]


def test_what_is_missing_is_said_at_once():
    blocks = verdict(page(failures=(Failure("web", "late", "late.tsv: file not found"),))).blocks

    assert "Incomplete: 3 models on 1 dataset; 1 model output missing or refused." in said(blocks)
    assert table(blocks, "failures") == [["late", "web", "late.tsv: file not found"]]


def stand(found: Page) -> tuple[Block, ...]:
    section = standing(found)
    return section.blocks if section else ()


def test_owners_stand_beside_external_metrics():
    parts = [block for block in stand(page()) if isinstance(block, Section)]

    assert [part.title for part in parts] == ["Owners and external metrics"]
    assert table(parts, "external") == [["dense", "team-d", "12.5", "3"]]


def test_gates_that_only_warn_have_the_tone_of_a_warning():
    for effect, tone in (("warn", "warn"), ("pass", "good")):
        outcome = {"warn": "fail", "pass": "pass"}[effect]
        blocks = verdict(page(verdicts=(sample_page.verdict(effect=effect, outcome=outcome),))).blocks
        assert next(block.tone for block in blocks if isinstance(block, Words)) == tone


def test_what_a_model_is_promoted_to_is_named():
    promote = {"model": "models:/ranker", "alias": "champion", "when": "gates_pass"}
    shown = page({"models": {"dense": {"model_uri": "models:/ranker/3", "promote": promote}}})

    text = said(verdict(shown).blocks)
    assert "dense is promoted if its gates pass: models:/ranker/3 @champion." in text


def test_slices_that_no_gate_judges_are_named():
    small = sample_page.verdict(slice="market=de", outcome="not judged", effect="pass", reason="15 queries, below 30")
    figures = page(verdicts=(small,))
    section = slices(figures)

    assert section is not None
    assert "1 slice is too small to judge by no-drop: market=de." in said(section.blocks)
    assert table(verdict(figures).blocks, "gates") == [["no-drop", "1"]]


def test_a_slice_of_few_queries_is_never_the_worst():
    figures = (("bm25", 0.1, "a", 29), ("bm25", 0.3, "b", 30), ("dense", 0.2, "a", 29))
    lines = tuple(estimate(model, value, slice=name, n_clusters=n) for model, value, name, n in figures)
    found = page(comparison_lines=(), estimates=lines)

    assert [row[:2] for row in table(stand(found), "worst-figures")] == [["bm25", "b"]]


def test_the_slice_that_explains_a_drop_has_its_change():
    change = ChangeSince(
        *("web", "bm25", "ndcg@10", "previous", "ID-1", "2026-11-19", 0.5, 0.4, -0.1, -0.12, -0.08, "", 100, 100),
        *("market=de", 40, 0.5, 0.25, 1.0),
        decision="worse",
    )
    accepted = replace(change, since="accepted", date="2026-11-18", slice_before=0.55)
    found = page(comparison_lines=())
    found = replace(found, evaluation=change_evaluation(found.evaluation, changes=(change, accepted)))
    (row,) = table(stand(found), "worst-changes")

    assert row == ["bm25", "market=de", "40", "0.5500", "0.2500", "-0.3000", "100%", "2026-11-18"]


def test_worst_slices_without_a_comparison_are_the_worst_figures():
    lines = (*(estimate("bm25", figure, slice=name) for name, figure in (("a", 0.2), ("b", 0.6))),)
    found = page(comparison_lines=(), estimates=lines, directions={"ndcg@10": "lower"})

    assert table(stand(found), "worst-figures") == [["bm25", "b", "0.6000", "[0.5800, 0.6200]", "100"]]


def test_external_metrics_that_cannot_be_read_are_named():
    external_metrics = sample_page.manifest()["external_metrics"] | {"hybrid": {"reason": "costs.json: is not JSON"}}
    assert "hybrid: costs.json: is not JSON" in said(stand(page({"external_metrics": external_metrics})))


def test_beyond_1000_differences_the_leading_measure_alone_is_shown():
    many = tuple(compared(f"m{number}", 0.1, measure="ap") for number in range(1_000))
    section = differences(page(comparison_lines=(*page().evaluation.comparison_lines, *many)))

    assert section is not None
    assert said(section.blocks)[0] == "Differences by other measures: comparisons.csv."
    assert len(table(section.blocks, "differences-web")) == 2


def test_a_query_that_moved_opens_to_its_documents():
    section = queries(page())

    assert section is not None
    (moved,) = [block for block in every(section.blocks) if isinstance(block, Folded)]
    assert (moved.name, moved.title) == ("q1", "1.0000 → 0.2500 (-0.7500)")
    assert table(section.blocks, "moved-1-1") == [["d1", "2", "3", "17"], ["d2", "1", "not retrieved", "1"]]
    assert said(section.blocks)[-1] == "1 of 2 pairs is shown."


def test_a_query_whose_ranks_were_not_recorded():
    pair = page().pairs[0]
    query = replace(pair.largest_changes[0], documents=None)
    section = queries(page(pairs=(replace(pair, largest_changes=(query,)),)))

    assert section is not None
    assert "The ranks of its graded documents were not recorded." in said(section.blocks)


def query_of(kind: str, details: tuple[QueryDetail, ...] = ()) -> list[Block]:
    pair = page().pairs[0]
    query = replace(pair.largest_changes[0], documents=None)
    datasets = {"web": sample_page.manifest()["datasets"]["web"] | {"kind": kind}}
    shown = page({"datasets": datasets}, pairs=(replace(pair, largest_changes=(query,)),), details=details)
    section = queries(shown)
    assert section is not None
    return [*section.blocks]


def test_a_query_of_external_scores_has_its_change_alone():
    assert said(query_of("scores"))[:2] == ["Queries with the largest changes:", "q1: 1.0000 → 0.2500 (-0.7500)"]


def test_a_query_of_ratings_is_explained_without_documents():
    blocks = query_of("ratings")

    assert not any("documents" in text for text in said(blocks))
    assert written(blocks, COMMAND) == [
        "rankledger explain . --model dense --model bm25 --dataset web --measure ndcg@10 --query q1"
    ]


def test_a_query_with_its_text_slices_and_both_lists():
    lists = {
        "bm25": (ListedDocument(1, "d1", 2.0, "First"), ListedDocument(2, "x", None)),
        "dense": (ListedDocument(1, "d2", 0.0),),
    }
    detail = QueryDetail("web", "q1", "what is\nit?", ("market=de",), lists)
    blocks = query_of("rankings", (detail,))
    (found,) = [block for block in every(blocks) if isinstance(block, Table) and block.name == "lists-1-1"]
    gaps = {"bm25": (ListedDocument(1, None, None), ListedDocument(2, "d1", 2.0))}

    assert said(blocks)[1:3] == ["what is\\nit?", "In market=de."]
    assert [column.title for column in found.columns] == ["rank", "bm25", "grade before", "dense", "grade after"]
    assert table(blocks, "lists-1-1") == [["1", "d1: First", "2", "d2", "0"], ["2", "x", "–", "", ""]]
    assert table(query_of("rankings", (replace(detail, lists=gaps),)), "lists-1-1") == [
        *(["1", "not judged", "", "", ""], ["2", "d1", "2", "", ""])
    ]
    assert [block.query for block in every(blocks) if isinstance(block, Folded)] == ["q1"]


def test_a_baseline_of_another_record_is_explained_there():
    pair = replace(page().pairs[0], baseline="old one in ID", record="ID", baseline_model="old one")
    section = queries(page(pairs=(pair,)))

    assert section is not None
    assert written(section.blocks, COMMAND) == [
        "rankledger explain . --model dense --dataset web --measure ndcg@10 --query q1",
        "rankledger explain ID --model 'old one' --dataset web --measure ndcg@10 --query q1",
    ]


def test_queries_without_relevant_documents_are_counted():
    section = quality(page())

    assert said(section.blocks)[0] == "100 queries with judgments or ratings, 4 of them without relevant documents."


def test_conventions_are_named():
    assert ("depth", "none") in written(definitions(page()).blocks, FACT)


def test_provenance_names_what_decides_figures():
    section = provenance(page())
    facts = dict(written(section.blocks, FACT))

    assert facts["versions"] == "Python 3.11.7, numpy 2.4.6"
    assert facts["commit of the config"] == "c0ffee" * 6 + " with changes"


def test_names_are_cut_for_the_page_and_cannot_turn_its_sentences_round():
    assert short_text("W" * 81) == "W" * 79 + "…"
    assert short_text("W" * 80) == "W" * 80
    assert isolated("שלום") == "\u2068שלום\u2069"
    assert isolated("dense") == "dense"


def trend(model: str, *figures: float, breaks: tuple[InputChange, ...] = ()) -> Series:
    nights = [
        Night(f"2026-11-0{n}", "", own, own - 0.1, own + 0.1, 0.05, 100, "", None, "", None)
        for n, own in enumerate(figures, start=1)
    ]
    return Series((), None, None, dataset="web", model=model, nights=(*nights[:-1], replace(nights[-1], breaks=breaks)))


def since_accepted(model: str, difference: float) -> ChangeSince:
    line = ChangeSince("web", model, "ndcg@10", "accepted", "id", "2026-11-01", 0.5, 0.5 + difference, difference)
    ends = {"ci_low": difference - 0.01, "ci_high": difference + 0.01, "n_queries": 100, "n_clusters": 100}
    decision = "" if abs(difference) <= 0.01 else "better" if difference > 0 else "worse"
    return replace(line, **ends, first_seen="2026-11-02", decision=decision)


def test_nights_follow_the_headline_the_worst_first():
    models = ["bm25", "dense", "hybrid", "m4", "m5", "m6"]
    series = tuple(trend(model, 0.5, 0.4) for model in models)
    changes = tuple(since_accepted(model, -0.05 if model == "m6" else 0.005) for model in models)
    shown = page(changes=changes, history=(History("nightly", "ndcg@10", "higher", series),))

    blocks = verdict(shown).blocks
    rows = table(blocks, "nights")

    assert isinstance(blocks[1], Table)
    assert [row[0] for row in rows] == ["dense", "m6", "bm25", "hybrid", "m4", "m5"]
    assert rows[1] == ["m6", "0.4000", "-0.0500", "", "[-0.0600, -0.0400]", "2026-11-01", "2026-11-02"]
    assert blocks[1].most == 5


def test_a_first_night_has_no_nights():
    assert isinstance(verdict(page()).blocks[1], Words)


def test_a_series_opens_to_its_nights():
    nights = tuple(Night(f"2026-11-{day}", "id", 0.5, 0.4, 0.6, 0.1, 100, "", 0.0, "pass", None) for day in (19, 20))
    series = Series((), None, None, dataset="web", model="dense", nights=nights)
    found = History("nightly", "ndcg@10", "higher", (series,), ("a night is left out",))
    section = history(page(history=(found,)))

    assert section is not None
    (folded,) = [block for block in every(section.blocks) if isinstance(block, Folded)]
    assert (folded.name, folded.title) == ("dense on web", "2 nights")
    assert table(section.blocks, "history-1-1")[1] == [
        *("2026-11-20", "0.5000", "[0.4000, 0.6000]", "0.0000", "100", "pass", "")
    ]
    assert said(section.blocks)[-1] == "a night is left out"
