"""A link between two Linux network namespaces, with a limited rate and lost packets."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

TOOLS = ("ip", "tc", "iptables", "nsenter")


class UnavailableError(Exception):
    """The machine does not allow such a link; the message has the reason."""


@dataclass
class Network:
    """Two ends of a link: this process's namespace has the address `address`; `inside` runs a command at the other."""

    address: str
    inside: list[str]
    device: str

    def dropped(self) -> int:
        """The number of packets that were dropped at random, in both directions."""
        rules = [["iptables", "-nvxL", "INPUT"], [*self.inside, "iptables", "-nvxL", "INPUT"]]
        lines = [line.split() for rule in rules for line in run(*rule).splitlines() if "statistic" in line]
        return sum(int(words[0]) for words in lines if self.device in words)


def run(*command: str) -> str:
    """Runs a command; returns its output."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise UnavailableError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


@contextlib.contextmanager
def network(rate: str, loss: float) -> Iterator[Network]:
    """A link of `rate` (as in tc, such as "50mbit") which loses this part of the packets in each direction.

    Raises UnavailableError if the machine does not allow it.
    """
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise UnavailableError(f"network namespaces require {', '.join(missing)}")
    name = device = f"tt{os.getpid()}"  # device names have at most 15 characters
    number = os.getpid() % 16384  # so that tests can run at the same time: 10.231.0.0/16 in blocks of four addresses
    prefix, last = f"10.231.{number // 64}", number % 64 * 4
    inside = ["nsenter", f"--net=/run/netns/{name}"]
    drop = ["INPUT", "-i", device, "-m", "statistic", "--mode", "random", "--probability", str(loss), "-j", "DROP"]
    with contextlib.ExitStack() as undo:
        run("ip", "netns", "add", name)
        undo.callback(run, "ip", "netns", "delete", name)  # deletes both devices
        run("ip", "link", "add", device, "type", "veth", "peer", "name", device, "netns", name)
        for end, address in ([], last + 1), (inside, last + 2):
            run(*end, "ip", "address", "add", f"{prefix}.{address}/30", "dev", device)
            run(*end, "ip", "link", "set", device, "up")
            run(*end, *f"tc qdisc add dev {device} root tbf rate {rate} burst 32kb latency 50ms".split())
            run(*end, "iptables", "-A", *drop)
            if not end:
                undo.callback(run, "iptables", "-D", *drop)
        yield Network(f"{prefix}.{last + 1}", inside, device)
