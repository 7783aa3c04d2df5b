"""Location of evaluations, and their source: a config, a record with unchanged inputs, or data in memory."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date as calendar_date
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from rankledger.metrics.measure import Measure
from rankledger.metrics.metric import Metric
from rankledger.pipeline.config.loader import given
from rankledger.pipeline.config.paths import is_path, is_url, paths_of, split_reference
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.planned import Plan, Planning, kind_of
from rankledger.pipeline.config.schema import Config, Loaded, load, validate
from rankledger.pipeline.config.sources import FORMATS, IN_MEMORY, Given, GivenPairs, InMemory
from rankledger.pipeline.config.values import checked_jobs, is_printable
from rankledger.pipeline.config.yaml import KeyPath, Value, dotted
from rankledger.pipeline.data.cache import OutputCache
from rankledger.pipeline.data.files import suffixes
from rankledger.pipeline.data.formats import format_of
from rankledger.pipeline.data.joined import Failure
from rankledger.pipeline.data.outputs import EvaluatedInputs
from rankledger.pipeline.record.evaluation import Evaluation
from rankledger.pipeline.record.folder import config_of, read_record
from rankledger.pipeline.record.manifest import evaluation_name
from rankledger.pipeline.record.scores import read_query_ids
from rankledger.pipeline.record.store import Records, open_records, own_places
from rankledger.pipeline.record.tables import read_file
from rankledger.pipeline.support.errors import InputError, InputWarning, shorten
from rankledger.pipeline.support.parallel import DaskScheduler, Workers
from rankledger.pipeline.support.text import without_credentials

Backend = Literal["threads", "processes", "dask"]
MeasureLike: TypeAlias = str | Measure | Metric | Callable[..., Any]
"""A measure of outputs in memory: its name, itself, or a metric, of which a function will do."""


@dataclass(frozen=True)
class Workspace:
    """Runs folder and records, opened once by the function that a user calls."""

    runs_dir: Path  # has the default MLflow store, copies from MLflow and the output cache
    records: Records
    tracking_uri: str | None = None  # MLflow store instead of the config's
    cache_place: str | None = None  # None for `cache` in the runs folder

    @classmethod
    def open(
        cls,
        runs_dir: str | Path,
        records: str | None = None,
        tracking_uri: str | None = None,
        *,
        wanted: str | Path | None = None,
    ) -> Workspace:
        """Open the workspace of a runs folder.

        Args:
            runs_dir: Runs folder.
            records: Folder or URL of the records, or a config that names it. By default in the runs folder.
            tracking_uri: MLflow store instead of the config's.
            wanted: Evaluation to read, or a reference to its record, empty for all. By default its records are where
                the user recorded it last. A place that its config names and that cannot be reached is warned of.
        """
        runs, place = Path(runs_dir), records
        for folder in (runs, *runs.parents):
            if folder.is_symlink() and not folder.exists():  # the volume is not mounted
                reason = f"is a link to {folder.readlink()}, which is not there. Check that it is mounted"
                raise OSError(errno.ENOENT, reason, str(folder))
        _find_temporary_folder(runs)
        is_config = records is not None and _is_file(records)
        if is_config:
            place = Planning(load(str(records), ["tracking=", "notify="]), None).records()
        elif place is None and wanted is not None:
            place = _find_place(runs, str(wanted))
        opened = open_records(runs, place)
        if wanted is not None and place is not None and (records is None or is_config):
            opened = _use_reachable(opened, runs)
        return cls(runs, opened, tracking_uri)

    @property
    def cache(self) -> OutputCache:
        return OutputCache(self.cache_place or self.runs_dir / "cache")


def _find_temporary_folder(runs_dir: Path) -> None:
    """Have this process and its children use the runs folder if the system has no folder for temporary files."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        with suppress(OSError):
            runs_dir.mkdir(parents=True, exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = str(runs_dir.absolute())


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # no file has so long a name
        return False


def _find_place(runs_dir: Path, wanted: str) -> str | None:
    """Return where the user recorded an evaluation, or all of them. None if that is the runs folder or unclear."""
    if wanted and (_is_file(wanted) or is_path(wanted)):
        return None
    places = own_places(runs_dir)
    record = split_reference(wanted)[1]
    name = evaluation_name(record) or record
    chosen = {places[name]} if name in places else set(places.values())
    default = str((runs_dir / "records").resolve())
    return chosen.pop() if len(chosen) == 1 and chosen != {default} else None


def _use_reachable(records: Records, runs_dir: Path) -> Records:
    """Return the records, or those in the runs folder with a warning if the others cannot be reached."""
    try:
        if records.remote is not None:
            records.remote.folders()
        elif not records.folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, "folder not found", str(records.folder))
    except OSError as error:
        here = open_records(runs_dir)
        line = f"{records.describe_error(error)}. Only the records in {here.place} are used. Check the place."
        warnings.warn(line, InputWarning, stacklevel=4)
        return here
    return records


_PUBLIC = ("file", "gs", "gcs", "memory", "s3")  # schemes whose server the URL does not name, but in its options
_LONGEST = 100  # characters of a date
_TARGETS = ("records", "execution.cache", "execution.scheduler")  # keys that no untrusted record sets


@dataclass(frozen=True)
class Opened:
    """Config, its plan, and the record that it belongs to."""

    config: Path
    loaded: Loaded
    planned: Plan
    record: Evaluation | None  # None if a config was named

    @property
    def is_trusted(self) -> bool:
        """True if the user passed the config, or made the record on this machine."""
        return self.record is None or self.record.is_trusted

    @property
    def is_in_memory(self) -> bool:
        return not self.config.name

    @property
    def original_config(self) -> Path:
        """User's config and not a record's copy, relative to the working directory if it is below that."""
        record = self.record if self.record and self.record.manifest.config else None
        path = (config_of(record) if record else self.config).absolute()
        return Path(os.path.relpath(path)) if path.is_relative_to(Path.cwd()) else path

    @property
    def repository(self) -> Path:
        """Folder of the config's repository, the working directory for an untrusted record."""
        return self.config.parent if self.is_trusted else Path()

    def is_overridden(self, key: KeyPath) -> bool:
        return self.loaded.document.origin(key).line is None


def open_source(
    source: str | Path,
    workspace: Workspace,
    *,
    overrides: Sequence[str] = (),
    date: str | None = None,
    tracking: bool = True,
) -> Opened:
    """Open the config that is named, or a record with the config that it holds.

    Args:
        source: Config, or a record by its path or id.
        workspace: Place to look for a record by its id.
        overrides: `key.path=value` texts that win over the config.
        date: Value of `{date}` in paths. A record has its own.
        tracking: True if `tracking` is needed, whose variables a record does not hold.

    Raises:
        InputError: There is neither, the config or the date is wrong, a date is given to a record, or the inputs of an
            untrusted record name a server.
    """
    path = workspace.records.find(str(source))
    if path is None:
        if isinstance(source, str | Path) and not Path(source).exists():
            place = workspace.records.place
            raise InputError(f"{source}: there is no such config, and no record of that id in {place}")
        return open_config(source, overrides=overrides, date=date)
    if date is not None:
        raise InputError(f"{path}: a record has its own date; remove --date")
    opened = open_record(path, overrides=overrides, tracking=tracking, runs_code=True)
    refuse_foreign_inputs(opened)
    if opened.is_trusted:
        return opened
    ignored = f"{opened.config}: {' and '.join(_TARGETS)} are ignored"
    warning = f"{ignored}, because you did not make the record on this machine. Set them with --set."
    return replace(opened, planned=replace(opened.planned, warnings=(*opened.planned.warnings, warning)))


def open_config(config: str | Path, *, overrides: Sequence[str] = (), date: str | None = None) -> Opened:
    """Return a config and its plan, with the arguments and errors of `open_source`."""
    loaded = load(config, overrides)
    return Opened(Path(config), loaded, plan(loaded, _check_date(date)), None)


def _check_date(date: str | None) -> str | None:
    """Return the date that fills `{date}`: a day as 2026-11-20 or 20261120, or a label such as `release-7`."""
    if date is None:
        return None
    if not (isinstance(date, str) and date.strip()):
        raise InputError(f"--date: found {date!r}; write text such as '2026-11-20', or remove it")
    found = f"--date: found {shorten(repr(date))}"
    leads_elsewhere = ".." in date or set(date) & {"/", "\\"}
    if len(date) > _LONGEST or date != date.strip() or leads_elsewhere or not is_printable(date):
        raise InputError(f"{found}; it fills {{date}} in paths; write a plain word such as '2026-11-20'")
    if re.fullmatch(r"[0-9]+-[0-9]+-[0-9]+|[0-9]{8}", date):
        try:
            calendar_date.fromisoformat(date)
        except ValueError:
            raise InputError(f"{found}, which is not a day; write it as YYYY-MM-DD") from None
    return date


def open_record(
    path: Path, *, overrides: Sequence[str] = (), tracking: bool = False, runs_code: bool = False
) -> Opened:
    """Open the record in a folder with the config that it holds."""
    record, config = read_record(path), path / "config.yaml"
    trusted = record.is_trusted
    text = read_file(path, record.manifest, config.name) or b""
    overrides = [*overrides, "notify="] if b"notify" in text else overrides  # only `sync_alerts` sends, and reads it
    overrides = overrides if tracking else [*overrides, "tracking="]
    overrides = overrides if trusted else [*(f"{key}=" for key in _TARGETS), *overrides]
    manifest = record.manifest
    secrets = {**os.environ, **manifest.expansions} if trusted else manifest.expansions
    loaded = load(config, overrides, manifest.expansions, secrets)
    tasks = [*(output.key for output in manifest.outputs), *(failure.output for failure in manifest.failures)]
    metrics = None if runs_code and trusted else _own_metrics(record)
    roles = {name: dataset.inputs for name, dataset in manifest.datasets.items()}
    return Opened(config, loaded, plan(loaded, manifest.date, tasks, metrics, roles), record)


def _own_metrics(record: Evaluation) -> Mapping[str, Metric]:
    if not record.manifest.own_metrics:
        return {}
    from rankledger.pipeline.record.manifest_parts import restore_metric

    return {name: restore_metric(name, **described) for name, described in record.manifest.own_metrics.items()}


def refuse_foreign_inputs(opened: Opened) -> None:
    """Reject inputs of untrusted records on servers, or in formats of installed packages."""
    if opened.is_trusted:
        return
    for key, path in paths_of(opened.loaded.document.data):
        named = opened.loaded.document.value((*key[:-1], "format")) if key[-1:] == ("path",) else None
        name = str(named) if named else format_of(suffixes(path)[0])  # no package is imported for it
        if name not in FORMATS and not opened.is_overridden(key):
            raise InputError(
                f"{opened.config}: {dotted(key)}: {without_credentials(path)} has the format {name!r} of an installed "
                "package, and the record was not made by you on this machine; if you trust it, evaluate its "
                "config.yaml instead"
            )
        if is_url(path) and not opened.is_overridden(key) and (urlsplit(path).scheme not in _PUBLIC or "?" in path):
            raise InputError(
                f"{opened.config}: {dotted(key)}: {without_credentials(path)} names a server, and the record was "
                "not made by you on this machine; if you trust it, evaluate its config.yaml instead"
            )


def evaluated_inputs(record: Evaluation) -> EvaluatedInputs:
    """Return the input files of a record."""
    manifest = record.manifest
    return EvaluatedInputs(
        {name: dataset.inputs for name, dataset in manifest.datasets.items()},
        {output.key: output.files for output in manifest.outputs},
        partial(read_query_ids, record),
    )


_VALUES = {"judgments": "relevance", "ratings": "rating", "rankings": "score", "predictions": "prediction"}
_TABLES = {
    "queries": ("query_id",),
    "documents": ("doc_id",),
    "interactions": ("query_id", "doc_id"),
    "exclude": ("query_id", "doc_id"),
}


def open_given(
    judgments: Given,
    outputs: Mapping[str, Given] | Given,
    measures: MeasureLike | Sequence[MeasureLike],
    *,
    tables: Mapping[str, Given | GivenPairs | None],
    settings: Mapping[str, object],
    baseline: str | None,
    dataset: str,
    recorded: bool,
) -> Opened:
    """Return the config and plan of the arguments of `evaluate`. `tables` has inputs of the dataset by key."""
    from rankledger.pipeline.data.formats.memory import hold

    lines, own = _lines(measures)
    of_ratings = _is_of_ratings(lines[0], own)
    role, kind = ("ratings", "predictions") if of_ratings else ("judgments", "rankings")
    roles = {role: ("judgments", judgments)} | {key: (key, data) for key, data in tables.items() if data is not None}
    arguments: dict[KeyPath, str] = {("suites", "measures"): "measures", ("metrics",): "measures"}
    held: dict[str, InMemory] = {}

    def file(key: KeyPath, argument: str, url: str, data: object, columns: Sequence[str]) -> dict[str, Value]:
        arguments.update({key: argument, (*key, "path"): argument})
        if isinstance(data, str | os.PathLike):
            return {"path": os.fspath(data).replace("{", "{{").replace("}", "}}")}
        held[url] = hold(argument, data, columns, recorded=recorded)
        return {"path": url.replace("{", "{{").replace("}", "}}")}

    config: dict[str, Any] = {
        "name": "in-memory",
        "datasets": {
            dataset: {
                key: file(("datasets", dataset, key), argument, f"{IN_MEMORY}{argument}", data, _list_columns(key))
                for key, (argument, data) in roles.items()
            }
        },
        "models": {
            model: {
                "outputs": file(
                    ("models", model, "outputs"), argument, f"{IN_MEMORY}outputs/{model}", data, _list_columns(kind)
                )
            }
            for model, (argument, data) in _name_outputs(outputs).items()
        },
        "suites": {"measures": lines},
        "metrics": {key: f"{metric.function.__module__}:{metric.code.split()[0]}" for key, metric in own.items()},
        "execution": {"cache": False},
    }
    if baseline is not None:
        arguments["comparison", "baseline"] = "baseline"
        config["comparison"] = {"baseline": baseline}
    loaded = validate(given(config, arguments, _plain(settings)))
    return Opened(Path(), loaded, plan(loaded, given=own, held=held), None)


def _plain(settings: Mapping[str, object]) -> dict[str, Value]:
    try:
        plain = json.loads(json.dumps(settings))
    except (TypeError, ValueError) as error:
        raise InputError(f"settings: {error}. Use texts, numbers, lists and mappings.") from None
    if not isinstance(plain, dict):
        found = f"settings: found a {type(settings).__name__}"
        raise InputError(f"{found}. Use keys of a config, such as {{'bootstrap': {{'resamples': 1000}}}}.")
    return plain


def with_python_advice(failure: Failure) -> Failure:
    """Return the failure with advice for a call in Python instead of a config."""
    from rankledger.pipeline.data.checks import ALLOW_NO_OVERLAP

    settings = {"models": {failure.model: {"outputs": {"allow_no_overlap": True}}}}
    advice = f"or accept it with settings={settings}"
    return replace(failure, reason=failure.reason.replace(ALLOW_NO_OVERLAP, advice))


def _lines(measures: MeasureLike | Sequence[MeasureLike]) -> tuple[list[str], dict[str, Metric]]:
    listed = measures if isinstance(measures, Sequence) and not isinstance(measures, str) else [measures]
    if not listed or not all(isinstance(item, str | Measure | Metric) or callable(item) for item in listed):
        raise InputError(f"measures: found {shorten(repr(measures))}; give names, such as ['ndcg@10', 'ap']")
    lines: list[str] = []
    own: dict[str, Metric] = {}
    for item in listed:
        if isinstance(item, str):
            lines.append(item)
            continue
        from rankledger.pipeline.config.own_metrics import hold_metric  # here, because most measures are names

        try:
            metric = hold_metric(item.metric if isinstance(item, Measure) else item)
        except ValueError as error:
            raise InputError(f"measures: {error}") from None
        lines.append(str(item) if isinstance(item, Measure) else metric.name)
        if metric.code and own.setdefault(metric.name, metric) != metric:
            raise InputError(f"measures: found two metrics {metric.name!r}. Set another name for one of them.")
    return lines, own


def _name_outputs(outputs: object) -> dict[str, tuple[str, Any]]:
    """Return the argument's name and the data of each output by model. A single output needs no name."""
    if not isinstance(outputs, Mapping) or (outputs and all(map(_is_query, outputs.values()))):
        name = getattr(outputs, "name", None)  # of a run of ranx
        return {name if isinstance(name, str) and name else "output": ("outputs", outputs)}
    if not outputs:
        raise InputError("outputs: found none. Add the models' outputs by name, such as {'bm25': run}.")
    for model in outputs:
        if not isinstance(model, str):
            raise InputError(f"outputs: found the key {shorten(repr(model))}. Use the models' names as keys.")
    return {model: (f"outputs[{model!r}]", data) for model, data in outputs.items()}


def _is_query(value: Any) -> bool:
    """Return whether a value is the ranking of one query, or one column."""
    is_mapping = isinstance(value, Mapping)
    items = value.values() if is_mapping else value if isinstance(value, list | Set) else ()
    return isinstance(next(iter(items), None), Real if is_mapping else str | Real)


def _is_of_ratings(line: str, own: Mapping[str, Metric]) -> bool:
    try:
        return kind_of(Measure.expand(line, own=own)[0]) == "ratings"
    except ValueError:
        return False


def _list_columns(role: str) -> tuple[str, ...]:
    return _TABLES.get(role) or ("query_id", "doc_id", _VALUES[role])


def workers_of(
    config: Config, jobs: int | None = None, backend: Backend | None = None, scheduler: str | None = None
) -> Workers:
    """Return the workers of a config, or of a command instead."""
    try:
        n_jobs = config.execution.jobs if jobs is None else checked_jobs(jobs)
    except ValueError as error:
        raise InputError(f"--jobs: {error}") from None
    if backend not in (None, *get_args(Backend)):
        raise InputError(f"--backend: found {backend!r}; write threads, processes or dask")
    if scheduler is not None and backend not in (None, "dask"):
        raise InputError(f"--backend: found {backend!r} with --scheduler, which is for dask; remove one of them")
    chosen = "dask" if scheduler is not None else backend or config.execution.backend
    if chosen != "dask":
        return Workers(n_jobs, chosen, memory=config.execution.memory)
    address = scheduler or config.execution.scheduler
    if not address:
        raise InputError("the backend dask needs the address of a scheduler; add --scheduler, or execution.scheduler")
    if not config.execution.cache:
        raise InputError("the backend dask hands outputs over in the output cache; remove `execution: {cache: false}`")
    dask = DaskScheduler(address, config.execution.worker_timeout.total_seconds())
    return Workers(n_jobs, "threads", dask, config.execution.memory)
