"""Targets of packages, and webhooks."""

import json
import socket
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import rankledger
from rankledger.pipeline.commands.upkeep import SyncResult
from rankledger.pipeline.delivery.alerts import NotSentError, post_alert, run_alert_command
from tests.support.generated_data import search_collection, write_config
from tests.support.webhook_receiver import SILENT, Receiver, receiver

CODE = """
from pathlib import Path

def deliver(evaluation):
    with Path("told.txt").open("a") as file:
        file.write(f"{evaluation.evaluation_id} {len(evaluation.estimates)}\\n")
    if Path("away").exists():
        raise ConnectionError("the warehouse is away")
    return None if evaluation.name == "unwanted" else "2 rows"
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    info = site / "warehouse_target-1.0.dist-info"
    info.mkdir(parents=True)
    work.mkdir()
    (site / "warehouse_target.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: warehouse-target\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rankledger.delivery]\nwarehouse = warehouse_target:deliver\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "warehouse_target", raising=False)
    monkeypatch.chdir(work)


def evaluate(**changes: object) -> rankledger.Evaluation:
    config = write_config(
        Path(), {"web": search_collection(3, n_queries=6)}, {"search": ["ap"]}, report=False, **changes
    )
    return rankledger.evaluate_config(config, tracking=False)


def test_a_target_gets_a_record_once_and_leaves_a_receipt():
    evaluation = evaluate()

    assert Path("told.txt").read_text() == f"{evaluation.evaluation_id} {len(evaluation.estimates)}\n"
    assert evaluation.record is not None
    receipt = json.loads((evaluation.record / "receipt-warehouse.json").read_text())
    assert (receipt["evaluation_id"], receipt["target"], receipt["text"]) == (
        evaluation.evaluation_id,
        "warehouse",
        "2 rows",
    )
    assert [*rankledger.sync()] == []
    assert rankledger.verify(evaluation.evaluation_id, tracking=False).remarks == ()


def test_a_target_that_fails_gets_the_record_by_sync():
    Path("away").touch()
    evaluation = evaluate()
    reason = "warehouse: ConnectionError: the warehouse is away"

    assert f"not delivered: {reason}; `rankledger sync` tries it again" in evaluation.warnings
    assert [*rankledger.sync()] == [SyncResult(evaluation.evaluation_id, reason=reason)]
    Path("away").unlink()
    assert [*rankledger.sync()] == [SyncResult(evaluation.evaluation_id, delivered=("warehouse: 2 rows",))]
    assert len(Path("told.txt").read_text().splitlines()) == 3


def test_a_target_that_wants_no_record_leaves_no_receipt():
    evaluation = evaluate(name="unwanted")

    assert evaluation.record is not None
    assert not (evaluation.record / "receipt-warehouse.json").exists()


def test_somebody_elses_record_is_given_to_no_target(monkeypatch, tmp_path):
    evaluate()
    for receipt in Path("runs/records").glob("*/receipt-warehouse.json"):
        receipt.unlink()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of somebody else"))

    assert [*rankledger.sync()] == []
    assert len(Path("told.txt").read_text().splitlines()) == 1


BODY = b'{"state":"failed"}'


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankledger.pipeline.delivery.alerts._PAUSE", 0.0)


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as started:
        yield started


def refuse_post(url: str, seconds: float = 10) -> str:
    with pytest.raises(NotSentError) as raised:
        post_alert(url, "alert-7", BODY, seconds)
    return str(raised.value)


def refuse_command(*words: str, seconds: float = 60) -> str:
    with pytest.raises(NotSentError) as raised:
        run_alert_command(words, BODY, seconds)
    return str(raised.value)


def test_a_post_has_the_body_and_one_id(hook):
    post_alert(f"{hook.address}/a?b=c", "alert-7", BODY, 10)
    (post,) = hook.posts

    assert (post.path, post.body) == ("/a?b=c", BODY)
    assert post.headers["idempotency-key"] == "alert-7"
    assert post.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(hook, status):
    """A redirected POST would become a GET without the alert. The line says what to set."""
    with receiver() as other:
        hook.answers, hook.location = [status], f"{other.address}/elsewhere"
        reason = refuse_post(hook.address)

        assert other.posts == []
    assert reason == f"answered {status}, a redirect, which is not followed. Set the address that it leads to"


@pytest.mark.parametrize(("status", "posts"), [(400, 1), (404, 1), (429, 1), (500, 2), (503, 2)])
def test_a_server_that_fails_is_asked_twice(hook, status, posts):
    hook.answers, hook.said = [status, status], "invalid\n payload"

    assert refuse_post(hook.address) == f"answered {status} (invalid payload)"
    hook.answers = [SILENT]
    post_alert(hook.address, "alert-7", BODY, 10)
    assert hook.ids == ["alert-7"] * (posts + 2)


def test_a_receiver_that_does_not_answer_is_named():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert refuse_post(f"http://127.0.0.1:{port}", 0.2) == "no answer within 0.2 s"
    assert "Connection refused" in refuse_post(f"http://127.0.0.1:{port}")
    assert "gaierror" in refuse_post("http://no-such-host.invalid")


def test_a_receiver_that_sends_a_byte_at_a_time_is_given_up():
    """Each byte comes before the timeout of the socket."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def drip() -> None:
            with server.accept()[0] as connection, suppress(OSError):
                for byte in b"HTTP/1.1 200 OK" * 10:
                    time.sleep(0.05)
                    connection.sendall(bytes([byte]))

        pool.submit(drip)
        assert refuse_post(f"http://127.0.0.1:{server.getsockname()[1]}", 0.5) == "no answer within 0.5 s"


@pytest.mark.parametrize(("user", "sent"), [("bot:hun%2Fter", b"bot:hun/ter"), ("token", b"token:")])
def test_a_password_in_the_address_becomes_a_header(hook, user, sent):
    post_alert(f"{hook.address.replace('://', f'://{user}@')}/hook", "alert-7", BODY, 10)
    (post,) = hook.posts

    assert b64decode(post.headers["authorization"].removeprefix("Basic ")) == sent
    assert (post.path, post.body) == ("/hook", BODY)


def test_a_proxy_that_refuses_is_named(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://ann:S3CR3T@127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    reason = refuse_post("http://alerts.invalid/hook")
    assert reason.endswith("Connection refused (through the proxy http://127.0.0.1:1 of HTTP_PROXY)")


def test_a_receiver_that_speaks_no_http_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def answer() -> None:
            for _ in range(2):
                with server.accept()[0] as connection:
                    connection.recv(4096)
                    connection.sendall(b"SSH-2.0-OpenSSH\r\n")

        pool.submit(answer)
        assert refuse_post(f"http://127.0.0.1:{server.getsockname()[1]}") == r"BadStatusLine: SSH-2.0-OpenSSH\r\n"


def test_the_address_is_in_no_message(hook):
    hook.answers, hook.said = [404], "Cannot POST /services/T0/B0/xyzzy"

    assert refuse_post(f"{hook.address}/services/T0/B0/xyzzy") == "answered 404 (Cannot POST ***)"
    assert "xyzzy" not in refuse_post(f"{hook.address}/xyzzy with blanks")


def test_a_command_that_hangs_is_ended():
    assert (
        refuse_command(sys.executable, "-c", "import time; time.sleep(600)", seconds=0.3) == "did not end within 0.3 s"
    )


def test_a_command_that_reads_nothing_may_still_succeed(tmp_path):
    program = "import sys; open(sys.argv[1], 'w').close()"
    run_alert_command((sys.executable, "-c", program, str(tmp_path / "ran")), b" " * 1_000_000, 60)

    assert (tmp_path / "ran").exists()


def test_a_line_of_a_command_steers_no_terminal():
    program = "import sys; print('first', file=sys.stderr); sys.exit('\\x1b[31mred')"

    assert refuse_command(sys.executable, "-c", program) == "exited with 1 (\\x1b[31mred)"
