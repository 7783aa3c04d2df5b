"""Changes of verdicts as an Atom feed (RFC 4287)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid5
from xml.etree import ElementTree

from rankledger.pipeline.report.site_pages import FEED, Site, SiteRecord
from rankledger.pipeline.report.text_table import printable, short_text

_ATOM = "http://www.w3.org/2005/Atom"
_IDS = UUID("6f6f0b0e-5d0c-4c3e-9a53-2c1f4bb0c7a1")  # the namespace of our ids, drawn once
_MOST = 100  # entries


def atom(site: Site) -> str:
    """Write the last 100 changes of a verdict as a feed, the most recent first.

    An id is made of name, date and verdict, so that it stays if the site moves or a night is evaluated again.

    Reference:
        RFC 4287, the Atom Syndication Format, sections 4.1.1 and 4.1.2.
    """
    changes = sorted(_changes(site), key=lambda change: (change[1].created, change[1].name), reverse=True)[:_MOST]
    moments = [night.created for _, night in changes]
    moments = moments or [min(evaluation.since.created for evaluation in site.evaluations)]
    feed = ElementTree.Element("feed", {"xmlns": _ATOM, "xml:lang": "en"})
    _add(feed, "id", _uuid(f"feed of {site.identity}"))
    _add(feed, "title", "rankledger: changes of verdicts")
    _add(feed, "updated", _moment(max(moments)))
    ElementTree.SubElement(ElementTree.SubElement(feed, "author"), "name").text = "rankledger"
    ElementTree.SubElement(feed, "link", {"rel": "alternate", "type": "text/html", "href": f"{site.url}index.html"})
    if site.url:
        own = {"rel": "self", "type": "application/atom+xml", "href": f"{site.url}{FEED}"}
        ElementTree.SubElement(feed, "link", own)
    for before, night in changes:
        _add_entry(feed, before, night, site.url)
    ElementTree.indent(feed)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(feed, encoding="unicode")}\n'


def _changes(site: Site) -> Iterator[tuple[SiteRecord, SiteRecord]]:
    for evaluation in site.evaluations:
        yield from evaluation.changes


def _add_entry(feed: ElementTree.Element, before: SiteRecord, night: SiteRecord, url: str) -> None:
    entry = ElementTree.SubElement(feed, "entry")
    name, date, earlier = map(short_text, (night.name, night.date, before.date))
    _add(entry, "id", _uuid(f"verdict\n{night.name}\n{night.date}\n{night.state}"))
    _add(entry, "title", f"{name}: {night.state} on {date}, after {before.state}")
    _add(entry, "updated", _moment(night.created))
    ElementTree.SubElement(entry, "link", {"rel": "alternate", "type": "text/html", "href": f"{url}{night.path}"})
    models = f" Not passed: {', '.join(map(short_text, night.failing))}." if night.failing else ""
    _add(entry, "summary", f"{printable(night.headline)}{models} The night before, {earlier}: {before.state}.")


def _add(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, name).text = text


def _uuid(name: str) -> str:
    return f"urn:uuid:{uuid5(_IDS, name)}"


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
