"""Sections of the config for `rankledger nightly`: what it waits for, and where it sends changes of state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from string import Formatter
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from rankledger.pipeline.config.values import Duration, Interval, Section, is_printable
from rankledger.pipeline.config.yaml import KeyPath, Value
from rankledger.pipeline.support.text import has_credentials

EXISTS = "exists"
STABLE = "stable"


def _ready(ready: str) -> str:
    try:
        fields = [(spec, conversion) for _, name, spec, conversion in Formatter().parse(ready) if name is not None]
    except ValueError:
        raise ValueError(f"{ready!r} has a single brace; write {{{{ or }}}} to mean it literally") from None
    if any(spec or conversion for spec, conversion in fields):
        raise ValueError(f"{ready!r} has a placeholder with a format; write it as {{model}}")
    if ready.endswith("/"):
        raise ValueError(f"{ready!r} is a folder; name the file in it that is written last, such as _SUCCESS")
    return ready


Ready: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_ready)]


class Nightly(Section):
    """What `rankledger nightly` waits for, and how long."""

    wait: Duration = Field(timedelta(0), json_schema_extra={"default": "0"})
    """How long to wait for what is not ready, such as `90s`, `30m` or `2h`; `0` is not at all. An output that is still
    late has failed, and the others are evaluated."""

    ready: Ready = EXISTS
    """When an output is ready: `exists`, as soon as it exists; `stable`, when its size has not changed for one `every`;
    or the name of a marker file that is written beside it last, such as `_SUCCESS` or `{model}.done`."""

    every: Interval = Field(timedelta(seconds=30), json_schema_extra={"default": "30s"})
    """How often to check."""

    @model_validator(mode="after")
    def _holds_together(self) -> Nightly:
        if self.ready == STABLE and self.wait < self.every:
            raise ValueError("`ready: stable` checks twice, `every` apart; set `wait` to at least as long")
        return self


KINDS = ("webhook", "command", "metrics")
_SECRET_HOSTS = ("slack.com", "office.com", "azure.com", "powerplatform.com", "discord.com")  # with keys in paths
_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-)?\}")  # whose default is empty
_IN_THE_URL = "contains credentials, which would be recorded; write the address as ${NAME}"
_IS_SECRET = "is a secret, which would be recorded; write it as ${NAME}"


def _address(url: str) -> str:
    if not re.fullmatch(r"https?://[^/\s]+\S*", url) or not is_printable(url):
        raise ValueError("found no address of a server; write one that begins with https:// or http://")
    return url


def _page(template: str) -> str:
    _address(template)
    try:
        words = {name for _, name, spec, conversion in Formatter().parse(template) if name is not None}
    except ValueError:
        words = {""}
    if not words <= {"evaluation_id"}:
        raise ValueError("has another placeholder than {evaluation_id}; write a literal brace as {{ or }}")
    return template


Address: TypeAlias = Annotated[str, AfterValidator(lambda url: url and _address(url))]  # empty: no target
Word: TypeAlias = Annotated[str, Field(min_length=1)]


class Notify(Section):
    """A target that `rankledger nightly` sends to when what fails changes: one of `webhook`, `command` and
    `metrics`."""

    webhook: Address | None = None
    """Address that the alert is posted to as JSON. If it is a secret, as those of Slack and Teams are, write `${NAME}`;
    `${NAME:-}` is no target where the variable is not set."""

    command: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """Program and its arguments, as a list; it gets the alert as JSON on stdin. No shell reads it."""

    metrics: Word | None = None
    """Text file for Prometheus that each night replaces: estimates, intervals, states and times. A relative path
    starts at the runs folder."""

    remind_after: int = Field(7, ge=0)
    """Nights after which an alert is repeated if the same gates still fail, counted by their dates; 0 is never."""

    page: Annotated[str, AfterValidator(_page)] | None = None
    """Address of the page of a record for the link in alerts, with `{evaluation_id}`."""

    timeout: Interval = Field(timedelta(seconds=15), json_schema_extra={"default": "15s"})
    """Time limit for a webhook's answer, and for a command."""

    @model_validator(mode="after")
    def _is_one_target(self) -> Notify:
        named = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(named) != 1:
            problem = f"has {' and '.join(named)}" if named else "has no target"
            raise ValueError(f"{problem}; write one of {', '.join(KINDS)} for each target")
        return self


def recorded_secrets(raw: Value) -> Iterator[tuple[KeyPath, str]]:
    """Yield key path and message for each secret that `notify` as written would put into the record."""
    for position, target in enumerate(raw if isinstance(raw, list) else ()):
        url = target.get("webhook") if isinstance(target, dict) else None
        if isinstance(url, str) and not _VARIABLE.fullmatch(url):
            host = re.sub(r"^\w+://([^/:]*).*", r"\1", url)
            if has_credentials(_VARIABLE.sub("", url)):
                yield ("notify", position, "webhook"), _IN_THE_URL
            elif host.endswith(_SECRET_HOSTS):
                yield ("notify", position, "webhook"), _IS_SECRET
