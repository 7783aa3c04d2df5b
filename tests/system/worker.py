"""The process that talks to MLflow, forked by a command that was forked itself: in its session, and killed with it."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rankledger.pipeline.delivery.mlflow import worker
from rankledger.pipeline.record import mlflow_stores as client
from tests.support.forked import take
from tests.support.warm_worker import COMMAND, SUBPROCESS

CHANGING = (  # system calls that change a file or reach a server
    "write,writev,pwrite64,sendto,sendmsg,fsync,fdatasync,ftruncate,rename,renameat,renameat2,link,linkat,symlink,"
    "symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,chmod,fchmod,fchmodat,copy_file_range,sendfile"
)


def trace(notes: str, call: str, kill_at: int) -> None:
    """Have the system calls written down, and the process killed before the call with that number in its thread."""
    kill = ["-e", f"inject={call}:signal=KILL:when={kill_at}"] if kill_at else []
    command = ["strace", "-f", "-qq", "-p", str(os.getpid()), "-o", f"{notes}/calls", "-e", f"trace={CHANGING}", *kill]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    status = Path("/proc/self/status")
    while "TracerPid:\t0\n" in status.read_text():
        time.sleep(0.001)


def become_nobody() -> None:
    """Take root's rights and name from this process, if it has them. Its files stay its own."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000) != 0:  # CLONE_NEWUSER
        raise OSError(ctypes.get_errno(), "no namespace of users")
    for file, line in (("setgroups", "deny"), ("gid_map", "12345 0 1"), ("uid_map", "12345 0 1")):
        Path("/proc/self", file).write_text(line)
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()  # version 3, this process
    if libc.capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capabilities stay")


def fork_workers(notes: Mapping[str, Any]) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        _wait(theirs, notes)
    theirs.close()

    def start(command: list[str], *, env: Mapping[str, str], **_: object) -> SimpleNamespace:
        assert command == COMMAND
        (asked, ask), (answers, answer) = os.pipe(), os.pipe()
        with Path(os.devnull).open("w") as nowhere:
            socket.send_fds(ours, [json.dumps(dict(env)).encode()], [asked, answer, nowhere.fileno()])
        os.close(asked)
        os.close(answer)
        end = cache(lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        return SimpleNamespace(
            stdin=os.fdopen(ask, "w", encoding="utf-8"),
            stdout=os.fdopen(answers, encoding="utf-8"),
            kill=lambda: end.cache_info().currsize or os.kill(pid, signal.SIGKILL),
            wait=lambda _=None: end(),
        )

    client.subprocess = SimpleNamespace(**SUBPROCESS, Popen=start)  # type: ignore[attr-defined]


def _wait(channel: socket.socket, notes: Mapping[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.environ.get("KILLS"):
        notes["_append"]("processes", str(os.getpid()))
    take([os.open(os.devnull, os.O_RDWR) for _ in range(3)], os.environ.copy())  # or the command's pipes stay open
    environment, ends, _, _ = socket.recv_fds(channel, 1 << 20, 3)
    if environment:
        take(ends, json.loads(environment))
        worker.main()
    os._exit(0)
