"""The JSON Schema of a config file."""

from __future__ import annotations

from pipeline.config.sections import ConfigFile

__all__ = ["json_schema"]


def json_schema() -> dict[str, object]:
    """The JSON Schema of a config file, from which editors complete it."""
    schema = ConfigFile.model_json_schema()
    schema.pop("required")  # what one file leaves out, another that it extends may hold
    required = ["name", "datasets", "models"]
    of_scores = {"type": "object", "required": ["scores"]}
    every = {"datasets": {"type": "object", "additionalProperties": of_scores}}
    by_default = {"defaults": {"type": "object", "required": ["dataset"], "properties": {"dataset": of_scores}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "rankledger config",
        "anyOf": [
            {"required": ["extends"]},
            {"required": [*required, "suites"]},
            {"required": required, "properties": every},
            {"required": [*required, "defaults"], "properties": by_default},
        ],
    }
