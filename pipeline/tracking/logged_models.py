"""From what a config says of a model to the model that MLflow has logged."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.mlflow_names import MODEL_ID, MODEL_URI
from pipeline.tracking.names import TrackingError

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["logged_model_id"]

_REFUSED = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")  # the second of an alias, or of a name it never takes


def logged_model_id(client: MlflowClient, text: str) -> str:
    """The id of a logged model.

    Args:
        client: of the tracking store.
        text: `m-…`, or `models:/m-…`, `models:/name/3`, `models:/name@alias`.

    Raises:
        TrackingError: there is no such model.
    """
    from mlflow.exceptions import MlflowException

    try:
        if found := re.fullmatch(r"models:/(?P<name>[^/@]+)(?:/(?P<version>\d+)|@(?P<alias>.+))", text):
            name, version, alias = found["name"], found["version"], found["alias"]
            registered = (
                client.get_model_version(name, version) if version else client.get_model_version_by_alias(name, alias)
            )
            source = MODEL_URI.fullmatch(registered.source or "")  # MLflow's own registry keeps the id in it alone
            model_id = registered.model_id or (source and MODEL_ID.fullmatch(source[1]) and source[1])
            if not model_id:
                raise TrackingError(f"the registered model {text} is of no logged model; name another in the config")
            return str(model_id)
        return str(client.get_logged_model(text.removeprefix("models:/")).model_id)
    except MlflowException as error:
        if error.error_code not in _REFUSED:
            raise
        raise TrackingError(f"there is no model {text} in MLflow; mend model_id or model_uri in the config") from None
