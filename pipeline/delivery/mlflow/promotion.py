"""Moving an alias of MLflow's model registry to the version that an evaluation passed: forward only, and once.

MLflow has no compare-and-set for it: `set_registered_model_alias` overwrites the alias whatever it is, and its server
calls the webhooks of the alias each time, also if nothing changes. So the alias and its tag are read first, each step
that is done already is left out, and no request that sets the alias is sent twice. The caller holds a claim.

The tag `rankledger.promoted_by.ALIAS` of a version says which night promoted it to that alias. It is written before the
alias, so that an alias that moved has one, and a promotion that was broken off is taken up where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from rankledger.pipeline.delivery.mlflow.conflicts import without_retries
from rankledger.pipeline.delivery.mlflow.delivery import NO_REGISTRY
from rankledger.pipeline.record.manifest import is_evaluation_id
from rankledger.pipeline.support.errors import TrackingError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion


OUTPUTS = "rankledger.outputs_sha256"
"""The tag of a version by which it is known which outputs it made."""

PROMOTED_BY = "rankledger.promoted_by"
"""What the tag of a version begins with that says which night promoted it; the alias follows after a full stop."""

Outcome: TypeAlias = Literal["promoted", "kept", "removed", "superseded"]

_UNAVAILABLE = (  # what is said without a code of its own: of MLflow's server, and of Databricks without Unity Catalog
    "Model registry functionality is unavailable",
    "is unsupported for models in the Workspace Model Registry",
)
_ABSENT = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")  # an alias: the second of MLflow's own stores


@dataclass(frozen=True)
class Promotion:
    """A version that passed.

    Attributes:
        registered: the name of the registered model.
        version: the version that made the outputs.
        alias: the alias that is to be its.
        outputs_sha256: the digest of the outputs that were evaluated.
        by: the night and the evaluation, `2026-11-20 20261120T020000Z-nightly-1f0c9a2b`: of two the later is greater.
    """

    registered: str
    version: int
    alias: str
    outputs_sha256: str
    by: str

    @property
    def uri(self) -> str:
        """The version as configs name it."""
        return f"models:/{self.registered}/{self.version}"


@dataclass(frozen=True)
class AliasState:
    """What the alias came to.

    Attributes:
        outcome: `promoted`, the version has the alias by this promotion; `kept`, the alias stays where it is, for that
            is this version, a newer one, or one that a later night promoted; `removed`, the version was promoted
            before, and somebody took the alias away; `superseded`, it is too late to move the alias.
        version: the version that has the alias; None if none has.
        by: the night that promoted that version or, if this one was removed, promoted this one; None if none did.
    """

    outcome: Outcome
    version: int | None
    by: str | None


def promote(
    client: MlflowClient, wanted: Promotion, *, broken_off: Collection[str] = (), superseded: bool = False
) -> AliasState:
    """Move an alias to a version, unless it is there, at a newer version, or where a later night put it.

    Args:
        client: of the tracking store.
        wanted: the version that passed.
        broken_off: promotions of this version, by their `by`, that are known never to have come to their end.
        superseded: whether a later night is known, so that nothing is moved; that it was is found anyway.

    Raises:
        TrackingError: the store has no registry, there is no such version, its outputs are not those that were
            evaluated, or another set the alias at the same time.
        Exception: whatever MLflow raises; the version then has the tag, the alias, both or none.
    """
    key = f"{PROMOTED_BY}.{wanted.alias}"
    with _needing_a_registry():
        version = _version(client, wanted.registered, wanted.version)
        holder = _holder(client, wanted)
        if settled := _settled(wanted, version, holder, key, broken_off):
            return settled
        if superseded:
            return AliasState("superseded", None if holder is None else int(holder.version), None)
        _refuse_other_outputs(version, wanted)
        if version.tags.get(key) != wanted.by:
            client.set_model_version_tag(wanted.registered, str(wanted.version), key, wanted.by)
        return _set_alias(client, wanted)


def _settled(
    wanted: Promotion, version: ModelVersion, holder: ModelVersion | None, key: str, broken_off: Collection[str]
) -> AliasState | None:
    """Why the alias is not to be moved; None if it is."""
    at, by = (None, None) if holder is None else (int(holder.version), _night(holder.tags.get(key)))
    if at is not None and (at >= wanted.version or (by is not None and by >= wanted.by)):
        return AliasState("promoted" if (at, by) == (wanted.version, wanted.by) else "kept", at, by)
    earlier = _night(version.tags.get(key))
    if earlier is not None and earlier != wanted.by and earlier not in broken_off:
        return AliasState("removed", at, earlier)
    return None


def _set_alias(client: MlflowClient, wanted: Promotion) -> AliasState:
    """Set the alias with one request, and read it back: whether that was carried out its answer may not say."""
    from mlflow.exceptions import MlflowException

    failure: MlflowException | None = None
    try:
        with without_retries():
            client.set_registered_model_alias(wanted.registered, wanted.alias, str(wanted.version))
    except MlflowException as error:
        failure = error
    holder = _holder(client, wanted)
    if holder is not None and int(holder.version) == wanted.version:
        return AliasState("promoted", wanted.version, wanted.by)
    if failure is not None:
        raise failure
    found = "gone" if holder is None else f"at version {holder.version}"
    raise TrackingError(f"the alias {wanted.alias!r} of {wanted.registered!r} is {found}: another set it meanwhile")


def tag_outputs(client: MlflowClient, registered: str, version: int, outputs_sha256: str) -> str | None:
    """Have a version say which outputs it made; a tag that says so already is not set again.

    Args:
        client: of the tracking store.
        registered: the name of the registered model.
        version: its version.
        outputs_sha256: the digest of the outputs.

    Returns:
        What the tag said before; None if there was none.

    Raises:
        TrackingError: the store has no registry, or there is no such version.
    """
    with _needing_a_registry():
        before = _version(client, registered, version).tags.get(OUTPUTS)
        if before != outputs_sha256:
            client.set_model_version_tag(registered, str(version), OUTPUTS, outputs_sha256)
    return None if before is None else str(before)


def _refuse_other_outputs(version: ModelVersion, wanted: Promotion) -> None:
    tagged = version.tags.get(OUTPUTS)
    if tagged is None:
        advice = "run `rankledger tag-outputs` in the job that makes the outputs"
        raise TrackingError(f"{wanted.uri} has no tag {OUTPUTS}, so what it made is not known; {advice}")
    if tagged != wanted.outputs_sha256:
        digests = f"{OUTPUTS} is {tagged[:12]}…, and {wanted.outputs_sha256[:12]}… was evaluated"
        raise TrackingError(f"{wanted.uri} made other outputs ({digests}); name the version that made them")


def _version(client: MlflowClient, registered: str, version: int) -> ModelVersion:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version(registered, str(version))
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
        unknown = f"models:/{registered}/{version} is no version of a registered model in MLflow"
        raise TrackingError(f"{unknown}; fix model_uri in the config") from None


def _holder(client: MlflowClient, wanted: Promotion) -> ModelVersion | None:
    """The version that has the alias; None if none has."""
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version_by_alias(wanted.registered, wanted.alias)
    except MlflowException as error:
        if error.error_code not in _ABSENT:
            raise
        return None


def _night(tag: str | None) -> str | None:
    """The tag, if it is what a promotion writes: somebody else's text is before and after no night."""
    night, _, evaluation_id = (tag or "").partition(" ")
    return tag if re.fullmatch(r"\d{4}-\d\d-\d\d", night, re.ASCII) and is_evaluation_id(evaluation_id) else None


@contextmanager
def _needing_a_registry() -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if error.error_code not in NO_REGISTRY and not any(text in str(error) for text in _UNAVAILABLE):
            raise
        advice = "remove `promote` from the config, or set tracking.uri to a store that has one"
        raise TrackingError(f"the MLflow store has no model registry with aliases; {advice}") from None
