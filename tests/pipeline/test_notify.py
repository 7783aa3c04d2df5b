"""Sending: signatures, redirects, and what an answer or its absence says of whether an alert arrived."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from rankledger.pipeline.notify import Command, Delivery, NotSentError, OutputFile, Webhook, signature
from tests.support.webhook_receiver import SILENT, Receiver, receiver

ALERT = Delivery("alert_7", b'{"state":"failed"}')


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


def refused(target: Webhook | Command | OutputFile, delivery: Delivery = ALERT) -> NotSentError:
    with pytest.raises(NotSentError) as raised:
        target.send(delivery)
    return raised.value


def test_a_signature_is_that_of_standard_webhooks():
    """Secret, id, time and body of the test vector in the libraries of Standard Webhooks, and its signature."""
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'

    assert (
        signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_a_secret_that_claims_to_be_base64_must_be():
    """What a receiver would check with another key is not sent."""
    with pytest.raises(NotSentError, match="whsec_ and is no base64"):
        signature("whsec_no base64", "alert_7", "0", b"")


def test_a_receiver_can_check_what_it_gets(hook):
    """Headers of Standard Webhooks and `Idempotency-Key`: the signature is of the bytes that came, the time is now."""
    Webhook(f"{hook.address}/a?b=c", 10, "plain key").send(ALERT)
    (post,) = hook.posts
    signed = b".".join([b"alert_7", post.headers["webhook-timestamp"].encode(), post.body])
    expected = base64.b64encode(hmac.digest(b"plain key", signed, hashlib.sha256)).decode()

    assert (post.path, post.body) == ("/a?b=c", ALERT.body)
    assert post.headers["webhook-id"] == post.headers["idempotency-key"] == "alert_7"
    assert post.headers["webhook-signature"] == f"v1,{expected}"
    assert abs(int(post.headers["webhook-timestamp"]) - time.time()) < 600
    assert post.headers["content-type"] == "application/json"
    assert "rankledger-repeat" not in post.headers


def test_without_a_secret_nothing_is_signed_and_a_repeat_is_marked(hook):
    """The mark stands in a header, too, for receivers that do not read the body."""
    Webhook(hook.address, 10).send(Delivery("alert_7", b"{}", repeat=True))

    assert "webhook-signature" not in hook.posts[0].headers
    assert hook.posts[0].headers["rankledger-repeat"] == "true"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(hook, status):
    """Wherever it leads, another host hears nothing of the body and its signature; the line says what to set."""
    with receiver() as other:
        hook.answers, hook.location = [status], f"{other.address}/elsewhere"
        error = refused(Webhook(hook.address, 10, "key"))

        assert other.posts == []
    assert str(error) == f"answered {status}, a redirect, which is not followed; set the address that it leads to"
    assert not error.may_have_arrived


@pytest.mark.parametrize(
    ("status", "may_have_arrived"), [(400, False), (404, False), (410, False), (429, False), (500, True), (503, True)]
)
def test_an_answer_says_whether_it_may_have_arrived(hook, status, may_have_arrived):
    """4xx: the receiver did not take it. 5xx: it may have acted before it failed."""
    hook.answers, hook.said = [status], "invalid\n payload"
    error = refused(Webhook(hook.address, 10))

    assert str(error) == f"answered {status} (invalid payload)"
    assert error.may_have_arrived == may_have_arrived


def test_no_answer_may_mean_that_it_arrived(hook):
    """The connection breaks after the post; and nobody answers within the time limit."""
    hook.answers = [SILENT]
    assert refused(Webhook(hook.address, 10)).may_have_arrived
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        error = refused(Webhook(f"http://127.0.0.1:{silent.getsockname()[1]}", 0.2))
    assert error.may_have_arrived
    assert "timed out" in str(error)


def test_what_cannot_be_reached_did_not_arrive():
    """Nobody listens on the port, and no host has the name."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert not refused(Webhook(f"http://127.0.0.1:{port}", 10)).may_have_arrived
    assert not refused(Webhook("http://no-such-host.invalid", 10)).may_have_arrived


def test_a_receiver_that_speaks_no_http_is_named(monkeypatch):
    """Its line is no status line; as it took the post, that may have arrived."""
    server = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = server.accept()
        connection.recv(65_536)
        connection.sendall(b"SSH-2.0-OpenSSH\r\n")
        connection.close()

    thread = threading.Thread(target=answer)
    thread.start()
    error = refused(Webhook(f"http://127.0.0.1:{server.getsockname()[1]}", 10))
    thread.join()
    server.close()

    assert "BadStatusLine" in str(error)
    assert error.may_have_arrived


def test_the_address_is_in_no_message(hook):
    """The path of a webhook is often its secret: an answer that repeats it is left out, and so is its port's login."""
    hook.answers, hook.said = [404], "Cannot POST /services/T0/B0/xyzzy"
    assert str(refused(Webhook(f"{hook.address}/services/T0/B0/xyzzy", 10))) == "answered 404"
    assert "xyzzy" not in repr(Webhook(f"{hook.address}/xyzzy", 10, "xyzzy"))


def test_a_command_that_hangs_is_ended():
    """After its time limit it is killed; nobody knows what it did until then."""
    error = refused(Command((sys.executable, "-c", "import time; time.sleep(600)"), 0.3))

    assert str(error) == "did not end within 0.3 s"
    assert error.may_have_arrived


def test_a_command_that_reads_nothing_may_still_succeed(tmp_path):
    """It exits with 0 without reading stdin, which is longer than a pipe takes, and no error is raised."""
    program = "import sys; open(sys.argv[1], 'w').close()"
    Command((sys.executable, "-c", program, str(tmp_path / "ran")), 60).send(Delivery("alert_7", b" " * 1_000_000))

    assert (tmp_path / "ran").exists()


def test_what_a_command_says_steers_no_terminal():
    """The last line of stderr, with escape codes spelled out."""
    program = "import sys; print('first', file=sys.stderr); sys.exit('\\x1b[31mred')"

    assert str(refused(Command((sys.executable, "-c", program), 60))) == "exited with 1 (\\x1b[31mred)"


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path):
    """Where a folder has its name, the line says so; a file in its place has the new bytes and no other beside it."""
    (tmp_path / "folder").mkdir()
    error = refused(OutputFile(tmp_path / "folder"))
    assert str(error).startswith("cannot be written: ")
    OutputFile(tmp_path / "new" / "alert.json").send(ALERT)
    OutputFile(tmp_path / "new" / "alert.json").send(Delivery("alert_8", b"{}"))

    assert [path.name for path in (tmp_path / "new").iterdir()] == ["alert.json"]
    assert (tmp_path / "new" / "alert.json").read_bytes() == b"{}"
