"""The section that says when a nightly evaluation may begin: how long it waits, and what makes an output ready."""

from __future__ import annotations

from datetime import timedelta
from string import Formatter
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from pipeline.config.fields import Duration, Interval
from pipeline.config.section import Section

__all__ = ["EXISTS", "STABLE", "Nightly"]

EXISTS = "exists"
STABLE = "stable"


def _ready(ready: str) -> str:
    """A marker's name must be one that `fill` can fill; its words are known when it is planned."""
    try:
        fields = [(spec, conversion) for _, name, spec, conversion in Formatter().parse(ready) if name is not None]
    except ValueError:
        raise ValueError(f"{ready!r} has a single brace; write {{{{ or }}}} to mean it literally") from None
    if any(spec or conversion for spec, conversion in fields):
        raise ValueError(f"{ready!r} has a placeholder that is more than a word; write it as {{model}}")
    if ready.endswith("/"):
        raise ValueError(f"{ready!r} is a folder; name the file in it that is written last, such as _SUCCESS")
    return ready


Ready: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_ready)]


class Nightly(Section):
    """When `rankledger nightly` begins: how long it waits for outputs that are late, and what makes one ready."""

    wait: Duration = Field(timedelta(0), json_schema_extra={"default": "0"})
    """How long it waits for what is not ready, such as `90s`, `30m` or `2h`; `0` is not at all. What is late then is a
    failed output, and the others are evaluated."""

    ready: Ready = EXISTS
    """What makes an output ready: `exists`, that it is there; `stable`, that its size has not changed for as long as
    `every` says; or the name of a file that is written beside it last, such as `_SUCCESS` or `{model}.done`."""

    every: Interval = Field(timedelta(seconds=30), json_schema_extra={"default": "30s"})
    """How often it looks."""

    @model_validator(mode="after")
    def _holds_together(self) -> Nightly:
        if self.ready == STABLE and self.wait < self.every:
            raise ValueError("`ready: stable` looks twice, `every` apart; let `wait` be at least as long")
        return self
