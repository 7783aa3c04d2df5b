"""What every section of the config is: frozen, and without keys that nobody knows."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

__all__ = ["Section"]


class Section(BaseModel):
    """A part of the config."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    shorthand: ClassVar[JsonSchemaValue | None] = None  # the JSON Schema of what may stand for the whole section

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_keys(cls, data: object) -> object:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}
        return {} if data is None else data

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The section's JSON Schema, its shorthand included."""
        mapping = handler(schema)
        return {"anyOf": [cls.shorthand, mapping]} if cls.shorthand else mapping
