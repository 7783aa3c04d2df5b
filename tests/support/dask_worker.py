"""What a worker of the tests does before it starts, and when it opens an input whose name says so.

Dask loads this file into the worker. An input `held.txt` is opened once there is a file `held.txt.released`; until then
`held.txt.opened` holds the worker's process id. `buggy.txt` raises ZeroDivisionError. `deadly.txt` kills the process,
and `deadly.txt.killed` has a byte for each time. With LACKS_PACKAGE in its environment, the worker cannot import this
package; with SLOW it opens nothing in a folder `web` without waiting that many seconds.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

_DELAY = float(os.environ.get("SLOW", "0"))


def _behave(event: str, arguments: tuple[Any, ...]) -> None:
    name = str(arguments[0]) if event == "open" else ""
    if _DELAY and "web" in Path(name).parts:
        time.sleep(_DELAY)
    if name.endswith("buggy.txt"):
        raise ZeroDivisionError
    if name.endswith("deadly.txt"):
        with Path(f"{name}.killed").open("a") as killed:
            killed.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    if name.endswith("held.txt"):
        Path(f"{name}.opened").write_text(str(os.getpid()))
        while not Path(f"{name}.released").exists():
            time.sleep(0.02)


sys.addaudithook(_behave)
if "LACKS_PACKAGE" in os.environ:
    sys.modules["rankledger"] = None  # type: ignore[assignment]
