"""What programs read: figures of several evaluations, the site's feed, Prometheus, the state."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from rankledger.pipeline.data.joined import DataWarning, Failure
from rankledger.pipeline.gates.verdicts import Verdict
from rankledger.pipeline.inference.tables import lead_among
from rankledger.pipeline.record.evaluation import State, find_state
from rankledger.pipeline.report import verdicts
from rankledger.pipeline.report.exports import metrics_text
from rankledger.pipeline.report.html.site import Site, SiteEvaluation, SiteRecord, atom
from rankledger.pipeline.support.text import from_cell
from tests.support.handwritten_results import estimates, page


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@given(st.floats(allow_nan=False, allow_infinity=False), st.text(st.characters(codec="utf-8"), min_size=1))
def test_every_number_is_read_back_as_it_was(figure, model):
    (line,) = estimates("web", {"bm25": {"ap": 0.5}})
    line = replace(line, estimate=figure, ci_low=None, model=model.replace("\r", ""))
    (row,) = read(verdicts.estimates([page([line])]))

    assert float(row["estimate"]) == figure
    assert (row["ci_low"], from_cell(row["model"])) == ("", line.model)
    assert not row["model"].startswith(("=", "+", "-", "@", "\t"))
    assert list(row)[2:] == list(asdict(line))


def test_lines_are_of_their_evaluation_and_its_night():
    """The date that was given, or else the day on which it began, in UTC: 1 o'clock in Vienna is the day before."""
    lines = estimates("web", {"bm25": {"ap": 0.5}})
    given_date = page(lines, evaluation_id="one", date="2026-11-19")
    none = page(lines, evaluation_id="two", created="2026-11-21T00:30:00+01:00")

    found = [(row["evaluation_id"], row["date"]) for row in read(verdicts.estimates([given_date, none]))]
    assert found == [("one", "2026-11-19"), ("two", "2026-11-20")]


LOST = Failure("web", "bm25", "bm25.tsv: file not found")
BROKEN = DataWarning("web", "bm25", "failed", "clicks")


@pytest.mark.parametrize(
    ("lead", "measures", "leading"),
    [("ap", ["rr", "ap"], "ap"), ("ap", ["rr", "p@5"], "rr"), (None, ["rr"], "rr"), ("ap", [], None)],
)
def test_the_first_measure_leads_if_the_lead_measure_is_not_there(lead, measures, leading):
    assert lead_among(lead, measures) == leading


@pytest.mark.parametrize(
    ("effects", "failures", "warnings", "state"),
    [
        ([], [], [], "passed"),
        (["pass", "warn"], [], [], "passed"),
        (["stop", "pass"], [], [], "inconclusive"),
        (["stop"], [LOST], [], "incomplete"),
        (["pass"], [], [BROKEN], "incomplete"),
        (["pass"], [], [DataWarning("web", "bm25", "odd ranking")], "passed"),
        (["fail", "stop"], [LOST], [BROKEN], "failed"),
    ],
)
def test_the_state_follows_the_order_of_exit_codes(effects, failures, warnings, state):
    verdicts = [Verdict("floor", "web", "bm25", "rr", "all", "fail", effect, "") for effect in effects]

    assert find_state(verdicts, failures, warnings) == state


HOSTILE = 'a"b\\c{d}=e,\nf # HELP \\n é'


def families(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def text_of(model: str = "bm25", gate: str = "floor") -> str:
    lines = [
        *estimates("web", {model: {"ap": 0.5, "rr": None}}),
        *estimates("web", {model: {"ap": 0.1}}, slice="lang=de"),
    ]
    verdicts = [
        Verdict(gate, "web", model, "ap", "all", "fail", "fail", "it fell"),
        Verdict(gate, "web", model, "rr", "all", "pass", "pass", ""),
    ]
    found = page(lines, (), verdicts, [Failure("web", "lost", "gone")])
    return metrics_text(found.evaluation, found.manifest.model_copy(update={"date": "2026-11-20"}))


def test_its_samples_are_the_figures_and_verdicts():
    found = families(text_of())
    own = {"evaluation": "nightly"}
    figure = {**own, "dataset": "web", "model": "bm25", "measure": "ap"}

    def samples(name: str) -> list[tuple[dict[str, str], float]]:
        return [(sample.labels, sample.value) for sample in found[name].samples]

    assert samples("rankledger_estimate") == [(figure, 0.5)]
    assert samples("rankledger_estimate_ci_low") == [(figure, 0.4)]
    assert samples("rankledger_estimate_ci_high") == [(figure, 0.6)]
    assert samples("rankledger_failed_outputs") == [(own, 1)]
    assert {labels["state"]: value for labels, value in samples("rankledger_state")} == {
        "passed": 0, "failed": 1, "inconclusive": 0, "incomplete": 0,
    }  # fmt: skip
    assert {labels["effect"]: value for labels, value in samples("rankledger_gate_verdicts")} == {
        "pass": 1, "warn": 0, "stop": 0, "fail": 1,
    }  # fmt: skip
    assert samples("rankledger_night_timestamp_seconds") == [
        (own, datetime.fromisoformat("2026-11-20T00:00:00+00:00").timestamp())
    ]


def test_it_is_what_promtool_asks_for():
    text = text_of()
    lines = text.splitlines()
    names = [re.split(r"[{ ]", line.removeprefix("# HELP ").removeprefix("# TYPE "))[0] for line in lines]
    series = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]

    assert text.endswith("\n")
    assert [name for name, following in pairwise(names) if name != following] + names[-1:] == [*dict.fromkeys(names)]
    for name in dict.fromkeys(names):
        own = [line for line, of in zip(lines, names, strict=True) if of == name]
        assert own[0].startswith(f"# HELP {name} ")
        assert own[1] == f"# TYPE {name} gauge"
        assert sum(line.startswith("#") for line in own) == 2
        assert re.fullmatch("rankledger_[a-z_]+", name)
        assert not name.endswith(("_total", "_count", "_sum", "_bucket", "_info"))
    assert len(series) == len({*series})


def test_labels_are_escaped():
    text = text_of(HOSTILE, HOSTILE)
    found = families(text)
    model = found["rankledger_estimate"].samples[0].labels["model"]

    assert model == 'a"b\\c{d}=e,\\nf # HELP \\n é'
    assert {sample.labels["gate"] for sample in found["rankledger_gate_verdicts"].samples} == {model}


def test_an_evaluation_without_gates_has_no_metric_of_them():
    found = page(estimates("web", {"bm25": {"ap": 0.5}}))

    assert "gate" not in metrics_text(found.evaluation, found.manifest.model_copy(update={"date": "2026-11-20"}))


ATOM = "{http://www.w3.org/2005/Atom}"
SEQUENCE: tuple[State, ...] = ("passed", "failed", "failed", "passed")


def nights(states: Sequence[State] = SEQUENCE, name: str = "nightly") -> list[SiteRecord]:
    began = datetime(2026, 11, 18, 2, tzinfo=UTC)
    return [
        SiteRecord(
            evaluation_id=f"2026111{8 + number}T020000Z-{name}-00000000",
            name=name,
            date=f"{began + timedelta(days=number):%Y-%m-%d}",
            created=began + timedelta(days=number),
            repeats=False,
            state=state,
            has_gates=True,
            headline=f"It {state}.",
            failing=("bm25 (search-team)",) if state == "failed" else (),
            page_size=1,
        )
        for number, state in enumerate(states)
    ]


def site(*evaluations: Sequence[SiteRecord], **changes: str) -> Site:
    return Site(tuple(SiteEvaluation(tuple(reversed(own)), tuple(own)) for own in evaluations), **changes)


def parsed(made: Site) -> ElementTree.Element:
    return ElementTree.fromstring(atom(made))


def entries(made: Site) -> list[dict[str, str]]:
    return [
        {element.tag.removeprefix(ATOM): element.get("href") or element.text or "" for element in entry}
        for entry in parsed(made).iter(f"{ATOM}entry")
    ]


def test_a_change_is_an_entry():
    passed, failed = entries(site(nights()))

    assert {name: failed[name] for name in ("title", "updated", "link", "summary")} == {
        "title": "nightly: failed on 2026-11-19, after passed",
        "updated": "2026-11-19T02:00:00Z",
        "link": "records/20261119T020000Z-nightly-00000000.html",
        "summary": "It failed. Not passed: bm25 (search-team). The night before, 2026-11-18: passed.",
    }
    assert {name: passed[name] for name in ("title", "updated", "summary")} == {
        "title": "nightly: passed on 2026-11-21, after failed",
        "updated": "2026-11-21T02:00:00Z",
        "summary": "It passed. The night before, 2026-11-20: failed.",
    }


@pytest.mark.parametrize(
    ("states", "changed"),
    [
        ((), []),
        (("failed",), []),
        (("failed", "failed"), []),
        (("inconclusive", "incomplete", "failed", "passed"), [1, 2, 3]),
        (("passed", "failed", "passed", "failed"), [1, 2, 3]),
    ],
)
def test_the_first_night_is_no_change(states, changed):
    dates = [entry["title"].split(" on ")[1][:10] for entry in entries(site(nights(states or ("passed",))))]

    assert dates == [f"2026-11-{18 + number}" for number in reversed(changed)]


def test_ids_stay():
    before = {entry["id"] for entry in entries(site(nights()))}
    pruned = entries(site(nights()[1:]))
    again = nights()
    again[1] = replace(again[1], evaluation_id="20261120T090000Z-nightly-11111111", created=again[2].created)
    published = entries(site(nights(), url="https://eval.example.com/", identity="https://eval.example.com/"))

    assert len(before) == 2
    assert {entry["id"] for entry in pruned} < before
    assert {entry["id"] for entry in entries(site(again))} == before
    assert {entry["id"] for entry in published} == before


def test_ids_are_unique():
    found = entries(site(nights(), nights(name="weekly"), nights(("passed", "incomplete"), name="other")))

    assert len({entry["id"] for entry in found}) == len(found) == 5
    assert [entry["title"].partition(":")[0] for entry in found] == ["weekly", "nightly", "weekly", "other", "nightly"]


def test_feeds_have_ids_of_their_own():
    ids = [
        str(parsed(made).findtext(f"{ATOM}id"))
        for made in (
            site(nights()),
            site(nights()[:1]),
            site(nights(), identity="s3://one"),
            site(nights(), identity="x"),
        )
    ]

    assert ids[0] == ids[1]
    assert len({*ids}) == 3


@pytest.mark.parametrize("url", ["", "https://eval.example.com/site/"])
@pytest.mark.parametrize("states", [SEQUENCE, ("passed",)], ids=["changes", "none"])
def test_it_is_valid(url, states):
    feed = parsed(site(nights(states), url=url))
    parts = [feed, *feed.iter(f"{ATOM}entry")]

    assert feed.tag == f"{ATOM}feed"
    for part in parts:
        for name in ("id", "title", "updated"):
            assert len(part.findall(f"{ATOM}{name}")) == 1
        assert UUID(str(part.findtext(f"{ATOM}id")).removeprefix("urn:uuid:")).version == 5
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(part.findtext(f"{ATOM}updated")))
        links = [(link.get("rel"), link.get("type")) for link in part.findall(f"{ATOM}link")]
        assert links.count(("alternate", "text/html")) == 1
        assert all(str(link.get("href")).startswith(url) for link in part.findall(f"{ATOM}link"))
    assert feed.findtext(f"{ATOM}author/{ATOM}name")
    own = [link.get("href") for link in feed.findall(f"{ATOM}link") if link.get("rel") == "self"]
    assert own == ([f"{url}feed.xml"] if url else [])
    assert feed.findtext(f"{ATOM}updated") == max(str(part.findtext(f"{ATOM}updated")) for part in parts)


def test_the_latest_hundred_are_kept():
    states: list[State] = ["passed", "failed"] * 75 + ["passed"]

    assert [entry["updated"] for entry in entries(site(nights(states)))][::99] == [
        "2027-04-17T02:00:00Z",
        "2027-01-08T02:00:00Z",
    ]


def test_what_xml_cannot_hold_is_spelt_out():
    before, night = nights(("passed", "failed"))
    found = entries(site([before, replace(night, date="<b>&\x00\ufffe\u202e", failing=("\x0b]]>",))]))

    assert found[0]["title"] == "nightly: failed on <b>&\\x00\\ufffe\\u202e, after passed"
    assert "Not passed: \\x0b]]>." in found[0]["summary"]
