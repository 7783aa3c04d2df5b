"""The Atom feed of verdict changes: which nights are entries, ids that stay, and what RFC 4287 asks for."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID
from xml.etree import ElementTree

import pytest

from rankledger.pipeline.record.evaluation import State
from rankledger.pipeline.report.html.site import Site, SiteEvaluation, SiteRecord, atom

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
