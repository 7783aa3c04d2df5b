"""A change of state as a message: JSON for any webhook, command or file, and the forms of Slack and Teams.

Names and reasons come from files of others. Slack shows them as `plain_text` and Teams as a `TextRun`, in which neither
reads mark-up, so that a name mentions nobody and links nowhere.

Reference:
    Slack, Block Kit: https://docs.slack.dev/reference/block-kit/blocks; Microsoft, Adaptive Cards by a webhook of
    Workflows: https://learn.microsoft.com/connectors/teams; the envelope: https://www.standardwebhooks.com.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rankledger.pipeline.report.headline import headline_of
from rankledger.pipeline.report.messages import promotions
from rankledger.pipeline.report.text_table import counted, short_sentence, short_text
from rankledger.pipeline.types.alerts import Alert
from rankledger.pipeline.types.gates import Verdict
from rankledger.pipeline.types.manifest import Manifest
from rankledger.pipeline.types.results import Evaluation

AlertForm: TypeAlias = Literal["json", "slack", "teams"]

_TYPE = "rankledger.state_changed"
_REASONS = 20
_REASON = 300  # characters
_LINE = 500  # characters: a reason behind names
_TITLE = 150  # characters: what Slack's header takes
_TEXT = 3_000  # characters: what Slack's section takes
_REPEAT = "Sent again: nothing confirms that it arrived the first time."


@dataclass(frozen=True)
class Links:
    """Where an evaluation is to be seen.

    Attributes:
        record: the folder or URL of its record.
        page: the address or path of its page; None if it has none.
        mlflow: the page of its run in MLflow, or the store; None if it was not logged.
    """

    record: str
    page: str | None = None
    mlflow: str | None = None


def alert_message(
    form: AlertForm, alert: Alert, evaluation: Evaluation, manifest: Manifest, links: Links, *, repeat: bool
) -> bytes:
    """What is sent: the same bytes for the same alert, but for the mark of a repeat.

    Args:
        form: what the target reads.
        alert: the change of state.
        evaluation: that of its night.
        manifest: the manifest of its record.
        links: where it is to be seen.
        repeat: whether it may have arrived before.
    """
    found = _data(alert, evaluation, manifest, links)
    message = {"type": _TYPE, "id": alert.alert_id, "timestamp": manifest.finished, "repeat": repeat, "data": found}
    return json.dumps(_FORMS[form](message)).encode()


def _data(alert: Alert, evaluation: Evaluation, manifest: Manifest, links: Links) -> dict[str, Any]:
    night, before = alert.night, alert.before
    models, n_left = _models(evaluation, manifest)
    return {
        "name": manifest.name,
        "date": night.date,
        "state": night.state,
        "before": before and {"state": before.state, "date": before.date, "evaluation_id": before.evaluation_id},
        "evaluation_id": night.evaluation_id,
        "headline": headline_of(evaluation),
        "promotions": short_sentence("; ".join(promotions(manifest)), _LINE),
        "models": models,
        "n_more_reasons": n_left,
        "links": {name: link for name, link in vars(links).items() if link},
    }


def _models(evaluation: Evaluation, manifest: Manifest) -> tuple[list[dict[str, Any]], int]:
    """The models that something is wrong with, their owners, and what it is; and how many reasons were left out."""
    found = [*_reasons(evaluation)]
    models: dict[str, dict[str, Any]] = {}
    for model, reason in found[:_REASONS]:
        entry: dict[str, Any] = {"model": model, "owner": manifest.owners.get(model), "reasons": []}
        models.setdefault(model, entry)["reasons"].append(reason)
    return [*models.values()], max(0, len(found) - _REASONS)


def _reasons(evaluation: Evaluation) -> Iterator[tuple[str, dict[str, str]]]:
    """(model, what is wrong with it): gates that failed, outputs and measures that are missing, undecided gates."""
    blocking = sorted((line for line in evaluation.verdicts if line.blocks), key=lambda line: line.effect != "fail")
    for verdict in blocking:
        if verdict.effect == "fail":
            yield verdict.model, _of_gate(verdict)
    for failure in evaluation.failures:
        yield failure.model, {"dataset": failure.dataset, "reason": short_sentence(failure.reason, _REASON)}
    for warning in evaluation.failed_measures:
        reason = short_sentence(warning.warning, _REASON)
        yield warning.model, {"dataset": warning.dataset, "measure": warning.measure, "reason": reason}
    for verdict in blocking:
        if verdict.effect != "fail":
            yield verdict.model, _of_gate(verdict)


def _of_gate(verdict: Verdict) -> dict[str, str]:
    names = ("gate", "effect", "outcome", "dataset", "measure", "slice")
    return {name: getattr(verdict, name) for name in names} | {"reason": short_sentence(verdict.reason, _REASON)}


def _title(message: Mapping[str, Any]) -> str:
    """Such as `nightly failed on 2026-11-20 (passed on 2026-11-19)`."""
    data = message["data"]
    verb = data["state"] if data["state"] in ("passed", "failed") else f"is {data['state']}"
    before = f" ({data['before']['state']} on {data['before']['date']})" if data["before"] else ""
    return short_text(f"{data['name']} {verb} on {data['date']}{before}", _TITLE)


def _lines(message: Mapping[str, Any]) -> list[str]:
    data, lines = message["data"], []
    for model in data["models"]:
        owner = f" (owner: {model['owner']})" if model["owner"] else ""
        for found in model["reasons"]:
            gate = f"{found['effect']}: {found['gate']}: " if "gate" in found else ""
            on = f" on {found['dataset']}" if found["dataset"] else ""
            lines.append(short_sentence(f"{model['model']}{on}{owner}: {gate}{found['reason']}", _LINE))
    if data["n_more_reasons"]:
        lines.append(f"and {counted(data['n_more_reasons'], 'more reason')}")
    return lines


def _addresses(message: Mapping[str, Any]) -> dict[str, str]:
    titles = {"page": "Page", "mlflow": "MLflow run", "record": "Record"}
    links = message["data"]["links"]
    return {titles[key]: link for key, link in links.items() if link.startswith(("http://", "https://"))}


def _places(message: Mapping[str, Any]) -> str:
    links = message["data"]["links"]
    return "; ".join(
        f"{key}: {short_text(link, _REASON)}" for key, link in links.items() if not link.startswith("http")
    )


def _paragraphs(message: Mapping[str, Any]) -> list[str]:
    cut = short_sentence(message["data"]["headline"], _TEXT)
    ends = [_places(message), _REPEAT if message["repeat"] else ""]
    return [part for part in (cut, *_lines(message), message["data"]["promotions"], *ends) if part]


def _slack(message: Mapping[str, Any]) -> dict[str, Any]:
    title = _title(message)
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain_text(title)}]
    blocks += [{"type": "section", "text": _plain_text(part)} for part in _paragraphs(message)]
    if links := [f"<{_in_link(url)}|{name}>" for name, url in _addresses(message).items()]:
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": " · ".join(links)}]})
    return {"text": _escaped(title), "blocks": blocks}


def _plain_text(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _in_link(url: str) -> str:
    return _escaped(url).replace("|", "%7C")


def _teams(message: Mapping[str, Any]) -> dict[str, Any]:
    colour = "Good" if message["data"]["state"] == "passed" else "Attention"
    body = [_run(_title(message), size="Large", weight="Bolder", color=colour), *map(_run, _paragraphs(message))]
    actions = [{"type": "Action.OpenUrl", "title": name, "url": url} for name, url in _addresses(message).items()]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
        "msteams": {"width": "Full"},
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [content]}


def _run(text: str, **style: str) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


def _json(message: Mapping[str, Any]) -> Mapping[str, Any]:
    data = message["data"]
    return {name: value for name, value in message.items() if name != "data"} | {"title": _title(message), "data": data}


_FORMS: Mapping[AlertForm, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "json": _json,
    "slack": _slack,
    "teams": _teams,
}
