"""Passwords in a config, which would stay in every record of it, and so would those of an input's URL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pipeline.config.entries import Model
from pipeline.config.loader import Document
from pipeline.config.paths import paths_of
from pipeline.config.source import KeyPath
from pipeline.credentials import has_credentials

__all__ = ["secrets_in"]

_OF_TRACKING = "it holds credentials; take them from the environment, as in https://${NAME}:${PASSWORD}@host"
_OF_AN_INPUT = "it holds credentials; set those of the filesystem in the environment, as AWS_ACCESS_KEY_ID"
_OF_A_MODEL = "it holds credentials, and would be recorded; leave them out"


def secrets_in(document: Document, models: Mapping[KeyPath, Model]) -> Iterator[tuple[KeyPath, str]]:
    """Where credentials are, and what to do instead; those that the environment gives are none in `tracking` alone.

    Args:
        document: what was written.
        models: the models, by where they are written.
    """
    section = document.raw.get("tracking")
    uri = section.get("uri") if isinstance(section, dict) else None
    written = re.sub(r"\$\{\w+(:-)?\}?", "", uri) if isinstance(uri, str) else ""  # a default is written in the config
    if has_credentials(written):
        yield ("tracking", "uri"), _OF_TRACKING
    for path, value in paths_of(document.data):
        if has_credentials(value):
            yield path, _OF_AN_INPUT
    for entry, model in models.items():
        for key, param in model.params.items():
            if has_credentials(str(param)):
                yield (*entry, "params", key), _OF_A_MODEL
