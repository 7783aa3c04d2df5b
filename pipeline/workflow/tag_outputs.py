"""The digest of a model's outputs as a tag of the version in MLflow's registry that made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.schema import load
from rankledger.pipeline.data.dataset import describe
from rankledger.pipeline.support.errors import InputError, likely
from rankledger.pipeline.workflow.deliver import open_for_reading
from rankledger.pipeline.workflow.outputs import source_of
from rankledger.pipeline.workflow.promote import outputs_digest
from rankledger.pipeline.workflow.workspace import Workspace, checked_date

__all__ = ["TaggedOutputs", "tag_outputs"]


@dataclass(frozen=True)
class TaggedOutputs:
    """The outputs that a version of a registered model was tagged with.

    Attributes:
        version: the version, such as `models:/ranker/3`.
        sha256: the digest of its outputs, as the tag has it.
        n_files: files that it is of.
        n_bytes: their bytes.
        replaced: the digest that the tag had before; None if it had none, or the same.
    """

    version: str
    sha256: str
    n_files: int
    n_bytes: int
    replaced: str | None

    def __str__(self) -> str:
        """A line such as `models:/ranker/3: outputs 1f0c9a2b7d55… (2 files)`."""
        files = "1 file" if self.n_files == 1 else f"{self.n_files:,} files"
        instead = f", instead of {self.replaced[:12]}…" if self.replaced else ""
        return f"{self.version}: outputs {self.sha256[:12]}… ({files}){instead}"


def tag_outputs(
    config: str | Path,
    *,
    model: str,
    overrides: Sequence[str] = (),
    date: str | None = None,
    runs_dir: str | Path = "runs",
) -> TaggedOutputs:
    """Tag the version of a registered model that a model's `model_uri` names with the digest of its outputs.

    Args:
        config: the YAML file.
        model: the model, which has `promote`.
        overrides: `key.path=value` texts that win over the file.
        date: what `{date}` in paths stands for.
        runs_dir: the runs folder, which has the default MLflow store.

    Raises:
        InputError: the config is wrong, it has no such model or does not promote it, an output is missing, or MLflow
            cannot be reached or has no such version.
    """
    loaded = load(config, overrides, will_plan=True)
    planned = plan(loaded, checked_date(date))
    described = planned.models.get(model)
    if described is None:
        raise InputError(f"{config}: no model {model!r}{likely(model, planned.models)}")
    if described.promote is None:
        raise InputError(f"{config}: models.{model}: has no `promote`, so its outputs need no tag; add it")
    outputs = {task.dataset: describe(source_of(task.output)) for task in planned.tasks if task.model == model}
    files = [file for found in outputs.values() for file in found]
    version, sha256 = str(described.model_uri), outputs_digest(outputs)
    registered, number = version.removeprefix("models:/").rsplit("/", 1)
    with open_for_reading(loaded.config.tracking, Workspace.open(runs_dir)) as store:
        before = store.ask("tag_outputs", registered=registered, version=int(number), outputs_sha256=sha256)
    replaced = None if before == sha256 else before
    return TaggedOutputs(version, sha256, len(files), sum(file.size for file in files), replaced)
