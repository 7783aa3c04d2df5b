"""The targets of alerts in a config: what each may be, and what would put a secret into a record."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rankledger.pipeline.config.schema import Loaded, Notify, load
from tests.support.data_files import refusal

pytestmark = pytest.mark.usefixtures("folder")

SMALL = "name: n\ndatasets: {web: {judgments: q}}\nsuites: {s: [ap]}\nmodels: {bm25: {outputs: o}}\n"
ENVIRON = {"URL": "https://hooks.example.com/T0/xyzzy", "KEY": "hush"}


def loaded(*targets: str, environ: Mapping[str, str] = ENVIRON) -> Loaded:
    Path("a.yaml").write_text(f"{SMALL}notify: [{', '.join(targets)}]\n", encoding="utf-8")
    return load("a.yaml", (), environ)


ONE = "write one of webhook, command, metrics for each target"
ADDRESS = "found no address of a server; write one that begins with https:// or http://"
NO_TEXT = "found a wrong value; write a text of at least one character"
PAGE = "has another placeholder than {evaluation_id}; write a literal brace as {{ or }}"


def test_targets_are_read_with_their_variables():
    config = loaded("{webhook: '${URL}'}", "{command: [pager, --now]}", "{metrics: b}").config
    assert [target.webhook or target.command or target.metrics for target in config.notify] == [
        *(ENVIRON["URL"], ("pager", "--now"), "b")
    ]
    Path("b.yaml").write_text(SMALL, encoding="utf-8")
    assert load("b.yaml").config.notify == ()


def test_variables_of_targets_are_not_kept():
    document = loaded("{webhook: '${URL}'}", "{command: ['${KEY}']}").document

    assert document.expansions == {}
    assert document.raw["notify"] == [{"webhook": "${URL}"}, {"command": ["${KEY}"]}]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{}", f": has no target; {ONE}"),
        ("{command: [a], metrics: b}", f": has command and metrics; {ONE}"),
        ("{url: x}", ".url: unknown key 'url'; known: webhook, command, metrics, remind_after, page, timeout"),
        ("{command: ls}", ".command: found a wrong value; write a list"),
        ("{command: []}", ".command: found a wrong value; write at least one"),
        ("{webhook: ftp://x}", f".webhook: {ADDRESS}"),
        ("{webhook: 'http://'}", f".webhook: {ADDRESS}"),
        ("{metrics: a, timeout: 0}", ".timeout: found 0; write a duration above 0, such as 30s"),
        ("{metrics: a, page: 'https://x/{date}'}", f".page: {PAGE}"),
        ("{command: ['${EMPTY}']}", f".command[0]: {NO_TEXT}"),
    ],
)  # fmt: skip
def test_wrong_targets(target, message):
    assert refusal(loaded, target, environ=ENVIRON | {"EMPTY": ""}) == f"a.yaml:5: notify[0]{message}"


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("{webhook: 'https://hooks.slack.com/services/T0/B0/xyzzy'}", ".webhook: is a secret"),
        ("{webhook: 'https://x.webhook.office.com/${URL:-xyzzy}'}", ".webhook: is a secret"),
        ("{webhook: 'https://ann:xyzzy@x'}", ".webhook: contains credentials"),
        ("{webhook: 'https://x?token=xyzzy'}", ".webhook: contains credentials"),
    ],
)
def test_a_secret_that_would_be_recorded_is_refused(target, key):
    message = refusal(loaded, target)

    assert message.startswith(f"a.yaml:5: notify[0]{key}")
    assert "${NAME}" in message
    assert "xyzzy" not in message


def test_a_plain_address_may_be_written():
    (target, off) = loaded("{webhook: 'https://eval.example.com/alerts'}", "{webhook: '${NONE:-}'}").config.notify

    assert target == Notify(webhook="https://eval.example.com/alerts")
    assert off.webhook == ""
