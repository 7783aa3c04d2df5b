"""A static site over all records, written incrementally: unchanged records are not read again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ValidationError

from rankledger.pipeline.history.history import History, HistoryEntry, history_of, nights_of
from rankledger.pipeline.inference.tables import ALL
from rankledger.pipeline.record.evaluation import Evaluation, Tables, find_state
from rankledger.pipeline.record.folder import RecordEntry, scan_records
from rankledger.pipeline.record.manifest import Manifest, is_evaluation_id, read_typed
from rankledger.pipeline.record.workspace import Workspace
from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.html.render import GENERATOR
from rankledger.pipeline.report.html.site import (
    FEED,
    Site,
    SiteDataset,
    SiteEvaluation,
    SiteRecord,
    atom,
    evaluation_path,
    pages,
    record_path,
)
from rankledger.pipeline.support.atomic import hold_lock, write_whole
from rankledger.pipeline.support.errors import InputError
from rankledger.pipeline.support.progress import each, work
from rankledger.pipeline.support.text import counted

_STATE = "site-state.json"
_LAYOUT = 4  # of the state file, a cache
_POOLED = "*"  # what the summary calls all datasets together
_SLUG = re.compile(r"[a-z0-9-]*[0-9a-f]{16}")
_FOLDERS: Mapping[str, Callable[[str], object]] = {
    "records": is_evaluation_id,
    "evaluations": _SLUG.fullmatch,
    "models": _SLUG.fullmatch,
}
"""Folders of the site with their pages."""


@dataclass(frozen=True)
class SiteResult:
    """Index page of a written site, and counts."""

    index: Path
    n_evaluations: int
    n_records: int
    n_read: int  # records that were read again
    remarks: tuple[str, ...] = ()  # on what was left out

    def __str__(self) -> str:
        evaluations = counted(self.n_evaluations, "evaluation")
        return f"site: {self.index} ({evaluations}, {counted(self.n_records, 'record')}, {self.n_read:,} read)"


@work()
def site(output: str | Path, *, url: str = "", runs_dir: str | Path = "runs", records: str | None = None) -> SiteResult:
    """Write a static site over all records.

    Args:
        output: Folder of the site.
        url: Public address for the links of the feed. By default they are relative.
        runs_dir: Runs folder.
        records: Records location, by default as in the evaluated config.

    Raises:
        InputError: There are no records, the folder has other contents, or the URL is invalid.
        LockedError: Another process is writing the site.
        OSError: The records location cannot be reached, or the folder cannot be written.
    """
    folder, base = Path(output), _checked_url(url)
    workspace = Workspace.open(runs_dir, records, wanted="")
    place = workspace.records.place
    if not workspace.records.ids():
        raise InputError(f"{place}: no records; run `rankledger evaluate`, or check --runs-dir and --records")
    _refuse_other_folder(folder)
    with _alone(folder):
        before = _read_state(folder)
        scan = scan_records(workspace.records, None, lambda entry: _summarize(entry, before, folder))
        if not scan.found:
            example = next((f", such as {remark}" for remark in scan.remarks), " any more")
            raise InputError(f"{place}: no record can be read{example}")
        known = {record.evaluation_id: record for record in scan.found}
        remote = workspace.records.remote
        evaluations = tuple(_evaluations(scan.found))
        made = Site(evaluations, base or (remote.url if remote else ""), base, str(datetime.now(UTC).date()))
        _write(folder, made)
        state = _writer(), {name: asdict(known[name]) for name in sorted(known)}
        text = json.dumps(state, default=datetime.isoformat, separators=(",", ":"))
        _write_changed(folder / _STATE, text.encode())
    return SiteResult(
        index=folder / "index.html",
        n_evaluations=len(made.evaluations),
        n_records=len(known),
        n_read=sum(record is not before.get(name) for name, record in known.items()),
        remarks=scan.remarks,
    )


def _checked_url(url: str) -> str:
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"[\s<>\"]", url)
    except ValueError:
        is_good = False
    if not is_good or parts.query or parts.fragment or parts.username or parts.password:
        raise InputError(f"--url: found {url!r}; write where the site will be, such as https://eval.example.com/site/")
    return f"{url.rstrip('/')}/"


def _refuse_other_folder(folder: Path) -> None:
    index = folder / "index.html"
    try:
        if GENERATOR in index.read_text(encoding="utf-8", errors="replace"):
            return
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise InputError(f"{folder}: is a file; name a folder with --output") from None
    raise InputError(f"{index}: is not a page of `rankledger site`; name another folder with --output")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of the site, because two processes would delete each other's pages."""
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder / ".site.lock", f"{folder}: another process is writing this site; wait until it is done", 0):
        yield


def _writer() -> str:
    return f"rankledger {version('rankledger')}, layout {_LAYOUT}"


def _read_state(folder: Path) -> dict[str, SiteRecord]:
    """Return the summaries that this version wrote by id. Empty if there are none."""
    try:
        writer, records = read_typed(tuple[str, dict[str, SiteRecord]], (folder / _STATE).read_bytes())
    except (OSError, ValidationError, ValueError):
        return {}
    return records if writer == _writer() else {}


def _write(folder: Path, made: Site) -> None:
    texts = dict(pages(made)) | {FEED: atom(made)}
    texts["index.html"] = texts.pop("index.html")  # last
    for path, text in each("Writing pages", texts.items(), len(texts), "pages"):
        _write_changed(folder / path, text.encode(errors="replace"))
    linked = {record_path(own.evaluation_id) for kept in made.evaluations for own in kept.records if own.page_size}
    for name, is_own in _FOLDERS.items():
        for page in (folder / name).glob("*.html"):
            if is_own(page.stem) and f"{name}/{page.name}" not in (texts.keys() | linked):
                page.unlink(missing_ok=True)


def _write_changed(path: Path, data: bytes) -> None:
    """Write a file if its content differs, so that unchanged files are not uploaded again."""
    try:
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def _summarize(entry: RecordEntry, known: Mapping[str, SiteRecord], folder: Path) -> SiteRecord:
    record, stamp = known.get(entry.evaluation_id), entry.stamp
    if record is None or record.stamp != stamp:
        record = replace(_read(entry), stamp=stamp)
    copy, size = folder / record_path(entry.evaluation_id), record.page_size
    copied_size = copy.stat().st_size if copy.is_file() else None
    linked = len(_with_link_back(_CONTENTS, record.name)) - len(_CONTENTS)
    if size is not None and copied_size not in (size, size + linked):
        page = entry.page()
        if page is not None:
            _write_changed(copy, _with_link_back(page, record.name))
    return record


_CONTENTS = b'<nav aria-label="Contents">\n<ul>'


def _with_link_back(page: bytes, name: str) -> bytes:
    link = f'\n<li><a href="../{evaluation_path(name)}">All nights</a></li>'
    return page.replace(_CONTENTS, _CONTENTS + link.encode(), 1)


def _read(entry: RecordEntry) -> SiteRecord:
    manifest, evaluation = entry.manifest, _load_evaluation(entry.record)
    figures = tuple(
        line for line in evaluation.estimates if line.slice == ALL and evaluation.leading[line.dataset] == line.measure
    )
    evaluated = {(line.dataset, line.model) for line in figures}
    failures = {
        (failure.dataset, failure.model): failure
        for failure in evaluation.failures
        if failure.dataset in evaluation.leading and (failure.dataset, failure.model) not in evaluated
    }
    page = manifest.files.get("report.html")
    git = manifest.environment.git
    return SiteRecord(
        evaluation_id=entry.evaluation_id,
        name=manifest.name,
        date=entry.manifest.night,
        created=datetime.fromisoformat(manifest.created).astimezone(UTC),
        repeats=bool(manifest.repeats),
        state=find_state(evaluation.verdicts, evaluation.failures, evaluation.data_warnings),
        has_gates=bool(evaluation.verdicts),
        headline=headline_of(evaluation),
        failing=tuple(
            f"{model} ({manifest.owners[model]})" if model in manifest.owners else model
            for model in dict.fromkeys(verdict.model for verdict in evaluation.verdicts if verdict.blocks)
        ),
        version=manifest.environment.packages.get("rankledger"),
        commit=git.commit if git else None,
        page_size=page.size if page else None,
        owners=manifest.owners,
        datasets={name: _describe_measure(manifest, name, measure) for name, measure in evaluation.leading.items()},
        figures=figures,
        failures=tuple(failures.values()),
    )


def _load_evaluation(record: Evaluation) -> Evaluation:
    tables = {name: record.tables[name] for name in ("estimates", "verdicts", "changes")}
    return replace(record, tables=Tables(tables))


def _describe_measure(manifest: Manifest, name: str, measure: str) -> SiteDataset:
    direction = manifest.definitions_for(name)[measure].direction
    return SiteDataset(measure, direction, manifest.comparability(name, measure))


def _evaluations(records: Iterable[SiteRecord]) -> Iterator[SiteEvaluation]:
    for _, own in groupby(sorted(records, key=lambda record: record.name), key=lambda record: record.name):
        known = tuple(own)
        nights, _ = nights_of(known)
        found = SiteEvaluation(known, tuple(nights))
        yield replace(found, histories=tuple(_histories(found)))


def _histories(evaluation: SiteEvaluation) -> Iterator[History]:
    last = {name: dataset.measure for name, dataset in evaluation.last.datasets.items()}
    for measure in dict.fromkeys(last.values()):
        entries = [_history_entry(night, measure) for night in evaluation.nights]
        if any(entry.lines for entry in entries):
            whole = history_of(evaluation.name, measure, entries)
            series = tuple(series for series in whole.series if last.get(series.dataset) == measure)
            yield replace(whole, series=series)


def _history_entry(night: SiteRecord, measure: str) -> HistoryEntry:
    datasets = {name: dataset for name, dataset in night.datasets.items() if dataset.measure == measure}
    return HistoryEntry(
        evaluation_id=night.evaluation_id,
        measure=measure,
        date=night.date,
        created=night.created,
        repeats=night.repeats,
        lines={(line.dataset, line.model): line for line in night.figures if line.dataset in datasets},
        failures={(own.dataset, own.model): own.reason for own in night.failures if own.dataset in datasets},
        verdicts=(),
        direction=next((dataset.direction for dataset in datasets.values()), None),
        rests_on={name: dataset.rests_on for name, dataset in datasets.items()},
        version=night.version,
        commit=night.commit,
    )
