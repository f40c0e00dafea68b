"""The cost of TLS: `python -m benchmarks.tls` prints times and rates over loopback TCP, with and without it, and ratios.

Both engines run at the same time, and each client measures them in alternation, without shared memory.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path

from benchmarks.engine_pair import Engine, compare


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(folder: Path) -> tuple:
    plain = Engine(folder / "plain", f"127.0.0.1:{free_port()}", "--no-auth")
    tls = Engine(folder / "tls", f"127.0.0.1:{free_port()}", "--no-auth", "--tls-self-signed")
    fingerprint = re.search(r"sha256:[0-9a-f]{64}", tls.log.read_text())[0]
    return (plain, {"address": plain.address}), (tls, {"address": f"teletensors://{tls.address}", "fingerprint": fingerprint})


if __name__ == "__main__":
    compare("loopback TCP", ("plain", "TLS"), start, 0, TELETENSOR_SHARED_MEMORY="0")
