"""The sections that name inputs: datasets, models, and the files of both.

Conventions: a dataset and a model are entries of a mapping by name, and what stands under every one is in `defaults`.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from rankledger.metrics.measure import Measure, external_measure
from rankledger.pipeline.config.values import (
    Columns,
    DatasetName,
    Ends,
    Keys,
    Name,
    Plain,
    QueryColumns,
    ScoreName,
    Section,
)
from rankledger.pipeline.types.mlflow_names import MODEL_ID, MODEL_URI

__all__ = ["Dataset", "DatasetDefaults", "File", "Model", "OutputFile", "Outputs", "Score"]

_NOT_OF_SCORES = ("subtopics", "relevant", "documents", "interactions", "suites", "duplicates")


class File(Section):
    """A file: its path, or a mapping where the path alone does not say enough."""

    shorthand: ClassVar = {"type": "string"}

    path: str = Field(min_length=1)
    """A file, a glob, a folder of Parquet parts or a URL (`s3://…`). A relative path starts at the file that names it.
    `{dataset}`, `{model}`, `{date}` and own `keys` are filled in."""

    format: Literal["trec", "tsv", "csv", "jsonl", "json", "parquet"] | None = None
    """How the rows are written; by the path's ending unless given."""

    columns: Columns = Field(default_factory=dict)
    """The file's own column names, by ours: `{query_id: user_id}`."""

    allow_large: bool = False
    """Whether it may hold more than 1 GB that is stored in less than a 200th of that, which is refused otherwise."""

    @model_validator(mode="before")
    @classmethod
    def _read_shorthand(cls, data: object) -> object:
        return {"path": data} if isinstance(data, str) else data


class OutputFile(File):
    """A model's output: a file that may say, too, that it has nothing in common with the dataset."""

    allow_no_overlap: bool = False
    """Whether the output may have no query, document or rated pair of the dataset; it is refused otherwise, for its ids
    are likely written in another way."""


class Score(Section):
    """An external score of queries."""

    shorthand: ClassVar = {"enum": ["higher", "lower", "neither", None]}

    direction: Literal["higher", "lower", "neither"] = "higher"
    """Whether a higher or a lower score is better, or neither."""

    range: Ends = (None, None)
    """The least and the greatest score there can be; null where there is none. A score outside is refused."""

    def measure(self, name: str) -> Measure:
        """The score of that name as a measure.

        Raises:
            ValueError: the range holds nothing.
        """
        least, greatest = self.range
        ends = (-math.inf if least is None else least, math.inf if greatest is None else greatest)
        return external_measure(name, self.direction, ends)

    @model_validator(mode="before")
    @classmethod
    def _read_shorthand(cls, data: object) -> object:
        return {"direction": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _holds_together(self) -> Score:
        self.measure("it")
        return self


class DatasetDefaults(Section):
    """What a dataset may hold."""

    judgments: File | None = None
    """What is known to be relevant: (query, document, relevance). A dataset has judgments, ratings or scores."""

    subtopics: bool = False
    """Whether its judgments are of subtopics: (query, subtopic, document, relevance), as `alpha_ndcg` needs them."""

    relevant: float | None = Field(None, gt=0, allow_inf_nan=False)
    """The least relevance that makes a document relevant: what `rel` is in measures that do not say; 1 unless given."""

    ratings: File | None = None
    """What users gave: (query, document, rating), to be predicted."""

    scores: dict[ScoreName, Score] | None = Field(None, min_length=1)
    """External scores of queries, which models' outputs hold: `{faithfulness: higher, latency: lower}`. They are the
    dataset's measures, and its one suite, `scores`."""

    queries: File | None = None
    """The table of queries; every judged query must stand in it. Further columns make clusters and slices."""

    cluster: Name | None = None
    """A column of the queries table instead of the whole config's `cluster`; `query_id` for none."""

    slices: QueryColumns | None = None
    """Columns of the queries table instead of the whole config's `slices`; `[]` for none."""

    documents: File | None = None
    """The catalogue: every document there is, retrieved or not; and, in further columns, features of documents."""

    interactions: File | None = None
    """What queries (users) consumed before, in training: (query, document). Queries without judgments count, too."""

    suites: tuple[str, ...] | None = Field(None, min_length=1)
    """The suites to compute; all of the dataset's kind unless given."""

    columns: Columns = Field(default_factory=dict)
    """Column names in all files of the dataset and in models' outputs on it, where a file does not say otherwise."""

    duplicates: Literal["refuse", "keep_first"] = "refuse"
    """What to do with a pair of query and document that is judged or rated twice."""

    keys: Keys = Field(default_factory=dict)
    """Own words that fill templates: `{lang}` with `keys: {lang: de}`."""


class Dataset(DatasetDefaults):
    """Queries and what is known of them: judgments of documents, or ratings; or external scores."""

    shorthand: ClassVar = {"type": "null"}

    @property
    def kind(self) -> Literal["rankings", "ratings", "scores"]:
        """What is evaluated on it."""
        if self.scores is not None:
            return "scores"
        return "rankings" if self.ratings is None else "ratings"

    @model_validator(mode="after")
    def _has_one_kind(self) -> Dataset:
        kinds = [key for key in ("judgments", "ratings", "scores") if getattr(self, key) is not None]
        if not kinds:
            raise ValueError("it has neither judgments nor ratings nor scores; name a file, or the scores")
        if len(kinds) > 1:
            raise ValueError(f"it has both {kinds[0]} and {kinds[1]}; make two datasets of it")
        if self.subtopics and self.ratings is not None:
            raise ValueError("it has ratings, which have no subtopics; take `subtopics` out")
        if self.relevant is not None and self.ratings is not None:
            raise ValueError("it has ratings, and their measures have no `rel`; remove `relevant`")
        idle = [key for key in _NOT_OF_SCORES if self.scores is not None and self._says(key)]
        if idle:
            raise ValueError(f"its scores are external, so nothing else is known of its queries; take `{idle[0]}` out")
        return self

    def _says(self, key: str) -> bool:
        return bool(getattr(self, key) != type(self).model_fields[key].default)


def _outputs_tag(value: object) -> str:
    return "\0datasets" if isinstance(value, dict) and "path" not in value else "\0file"


Outputs: TypeAlias = Annotated[
    Annotated[OutputFile, Tag("\0file")] | Annotated[dict[DatasetName, OutputFile], Tag("\0datasets")],
    Discriminator(_outputs_tag),
]


class Model(Section):
    """A model that is evaluated, by what it returned."""

    shorthand: ClassVar = {"type": "null"}

    outputs: Outputs | None = None
    """Its rankings, rating predictions or scores: one path for all datasets, usually a template, or a path by dataset;
    then it is evaluated on those datasets only."""

    params: dict[str, Plain] = Field(default_factory=dict)
    """What it was made with; logged."""

    tags: dict[str, str] = Field(default_factory=dict)
    """What it is to be found by; logged."""

    owner: str | None = None
    """Who answers for it; logged."""

    keys: Keys = Field(default_factory=dict)
    """Own words that fill the template of its outputs; they win over the dataset's."""

    was: Name | None = None
    """What it was called before: looked up in older records that have no model of its name."""

    model_id: str | None = None
    """The id of the logged model that its outputs are of, as MLflow 3 gives it: `m-…`. Its figures are logged to that
    model, too."""

    model_uri: str | None = None
    """The same by a URI, of a registered model, too: `models:/ranker/3`, `models:/ranker@champion` or `models:/m-…`."""

    extra: File | None = None
    """External metrics, such as what it costs: a JSON object of numbers by name, for gates to judge."""

    @model_validator(mode="after")
    def _has_plain_extra(self) -> Model:
        if self.extra and (self.extra.columns or self.extra.allow_large or self.extra.format not in (None, "json")):
            raise ValueError("its `extra` is one JSON object of numbers; name its path alone")
        return self

    @model_validator(mode="after")
    def _names_one_logged_model(self) -> Model:
        if self.model_id is not None and self.model_uri is not None:
            raise ValueError("it has both model_id and model_uri; keep one")
        if self.model_id is not None and not MODEL_ID.fullmatch(self.model_id):
            raise ValueError(f"found the model_id {self.model_id!r}; write the id of a logged model, as in m-1f0c9a2b…")
        if self.model_uri is not None and not MODEL_URI.fullmatch(self.model_uri):
            forms = "models:/NAME/VERSION, models:/NAME@ALIAS or models:/m-…"
            raise ValueError(f"found the model_uri {self.model_uri!r}; write {forms}")
        return self
