"""Ranks on two hosts: network namespaces connected by a virtual cable."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from ..ranks import Rank, free_port
from ..rpc import rpc_failure_cases as rpc_cases
from . import failure_cases as cases

pytestmark = pytest.mark.slow


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Hosts:
    """Two network namespaces with addresses 10.213.N.1 and 10.213.N.2."""

    def __init__(self):
        tag = secrets.token_hex(3)
        number = int(tag[:2], 16)
        self.names = [f"tt-{tag}-{i}" for i in range(2)]
        self.links = [f"tt{tag}{i}" for i in range(2)]
        self.addresses = [f"10.213.{number}.{i + 1}" for i in range(2)]
        try:
            for name in self.names:
                ip("netns", "add", name)
            ip("link", "add", self.links[0], "netns", self.names[0], "type", "veth",
               "peer", "name", self.links[1], "netns", self.names[1])  # fmt: skip
            for name, link, address in zip(self.names, self.links, self.addresses):
                ip("-n", name, "address", "add", f"{address}/24", "dev", link)
                ip("-n", name, "link", "set", link, "up")
                ip("-n", name, "link", "set", "lo", "up")
        except subprocess.CalledProcessError:
            self.remove()
            raise

    def run_on(self, host: int) -> list[str]:
        """Returns the words that precede a command that runs on a host."""
        return ["nsenter", f"--net=/run/netns/{self.names[host]}", "--"]

    def cut(self) -> None:
        """Disconnects the hosts without a message to either."""
        ip("-n", self.names[1], "link", "set", self.links[1], "down")

    def remove(self) -> None:
        for name in self.names:
            with suppress(subprocess.CalledProcessError):
                ip("netns", "delete", name)


@pytest.fixture
def hosts():
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("network namespaces require root")
    try:
        hosts = Hosts()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot create network namespaces: {error}")
    yield hosts
    hosts.remove()


@pytest.fixture
def start(hosts):
    """Starts ranks, given by their hosts."""
    started = []

    def start(*where: int) -> list[Rank]:
        started.extend(Rank(prefix=hosts.run_on(host)) for host in where)
        return started

    yield start
    for rank in started:
        rank.stop()


def form(ranks: list[Rank], address: str, timeout: float) -> None:
    """Forms the default group over TCP: the namespaces share the memory of one host."""
    port = free_port()
    for rank, process in enumerate(ranks):
        process.start(cases.form, rank, len(ranks), port, "gloo", timeout, address)
    assert [process.result()[0] for process in ranks] == [""] * len(ranks)


def test_collectives_between_hosts(hosts, start):
    ranks = start(0, 1, 1)
    form(ranks, hosts.addresses[0], 30)
    for process in ranks:
        process.start(cases.all_kinds)
    for rank, process in enumerate(ranks):
        assert process.result() == [[6.0] * 70_000, [0.0, 1.0, 2.0], float((rank - 1) % 3)]


def test_cut_link_gives_errors_on_both_sides(hosts, start):
    ranks = start(0, 1)
    form(ranks, hosts.addresses[0], 5)
    for process in ranks:
        process.start(cases.stream, 1 << 16, 60)
    time.sleep(0.5)
    hosts.cut()
    for rank, process in enumerate(ranks):
        message, _, kept = process.result()
        assert f"rank {1 - rank}" in message and "all_reduce" in message
        assert kept == [0, 2, 4, 6, 8]


def start_workers(ranks: list[Rank], address: str) -> None:
    port = free_port()
    for rank, process in enumerate(ranks):
        process.start(rpc_cases.begin, rank, len(ranks), port, host=address)
    assert [process.result() for process in ranks] == [["", ""]] * len(ranks)


def test_remote_procedure_calls_between_hosts(hosts, start):
    ranks = start(0, 1, 1)
    start_workers(ranks, hosts.addresses[0])
    for peer in range(3):
        for process in ranks:
            process.start(rpc_cases.call_echo, peer)
        assert [process.result() for process in ranks] == [["", ""]] * 3
    for process in ranks:
        process.start(rpc_cases.end)
    assert [process.result() for process in ranks] == [["", ""]] * 3


def test_cut_link_ends_calls_on_both_sides(hosts, start):
    ranks = start(0, 1, 1)
    start_workers(ranks, hosts.addresses[0])
    hosts.cut()
    for rank, process in enumerate(ranks):
        process.start(rpc_cases.call_echo, 0 if rank else 1)
    for rank, process in enumerate(ranks):
        kind, message = process.result()
        assert kind == "DistError" and f"worker{0 if rank else 1}) was lost" in message
    ranks[1].start(rpc_cases.call_echo, 2)
    assert ranks[1].result() == ["", ""], "workers on one side go on"
    for process in ranks:
        process.start(rpc_cases.end, False)
    assert [process.result() for process in ranks] == [["", ""]] * 3
