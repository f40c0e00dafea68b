"""The command line: what is accepted, and what is rejected because it would have no effect."""

import argparse

import pytest

from teletensor.launch.options import OptionError, add_arguments, check

TOKEN = {"TELETENSOR_GROUP_TOKEN": "t"}
C10D = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "h:1"]


def options(*arguments, environment=TOKEN):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_arguments(parser)
    return check(parser.parse_args([*arguments, "script.py"]), "python", environment)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--start-method", "fork"], "--start-method"),
        (["-n", "0"], "--nproc-per-node"),
        (["-n", "all"], "--nproc-per-node"),
        (["--nnodes", "2:1"], "MIN <= MAX"),
        (["--nnodes", "0"], "--nnodes"),
        (["--nnodes", "1:2"], "requires --rdzv-backend c10d"),
        (["--nnodes", "2"], "--node-rank"),
        (["--nnodes", "2", "--node-rank", "2"], "from 0 to 1"),
        (["--nnodes", "2", "--rdzv-backend", "c10d"], "--rdzv-endpoint"),
        (["--nnodes", "2", *C10D, "--master-addr", "x"], "--master-addr has no effect"),
        (
            ["--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "h:1", "--master-port", "1"],
            "--master-port has no effect",
        ),
        (["--nnodes", "2", "--node-rank", "0", "--rdzv-conf", "is_host=1"], "is_host has no effect"),
        (["--standalone", "--rdzv-id", "x"], "--rdzv-id has no effect with --standalone"),
        (["--standalone", "--nnodes", "2"], "--standalone"),
        (["--standalone", "--hosts", "a"], "--standalone"),
        (["--hosts", "a,b", "--nnodes", "3"], "at most 2 nodes"),
        (["--hosts", "a,b", "--node-rank", "1"], "--node-rank has no effect"),
        (["--hosts", "a,-b"], "--hosts"),
        (["--hosts", "a:x"], "--hosts"),
        (["--hosts", "a", "--ssh-command", "ssh {host}"], "{command}"),
        (["--ssh-command", "x {command}"], "--ssh-command has no effect"),
        (["--rdzv-conf", "join_timeout=1"], "no effect with one node"),
        (["--local-addr", "x"], "--local-addr has no effect"),
        (["--nnodes", "2", *C10D, "--rdzv-conf", "unknown=1"], "unknown"),
        (["--nnodes", "2", *C10D, "--rdzv-conf", "join_timeout=x"], "join_timeout"),
        (["--max-restarts", "-1"], "--max-restarts"),
        (["--monitor-interval", "0"], "--monitor-interval"),
        (["--redirects", "4"], "--redirects"),
        (["--tee", "1,2"], "--tee"),
        (["--local-ranks-filter", "a"], "--local-ranks-filter"),
        (["--rdzv-id", "a/b"], "--rdzv-id"),
        (["-m", "--no-python"], "exclude each other"),
        (["--signals-to-handle", "SIGTERM,SIGNONE"], "--signals-to-handle"),
        (["--signals-to-handle", "SIGKILL"], "--signals-to-handle"),
        (["--log-line-prefix-template", "${nothing}"], "--log-line-prefix-template"),
        (["--shutdown-timeout", "-1"], "--grace"),
        (["--run-path"], "--run-path"),
        (["--event-log-handler", "x"], "--event-log-handler"),
        (["--logs-specs", "x"], "--logs-specs"),
        (["--numa-binding", "node"], "--numa-binding"),
    ],
)
def test_rejected(arguments, message):
    with pytest.raises(OptionError, match=message.replace("{", r"\{")):
        options(*arguments)


@pytest.mark.parametrize(
    "arguments", [["--nnodes", "2", *C10D], ["--nnodes", "1:2", *C10D], ["--nnodes", "2", "--node-rank", "1"]]
)
def test_several_nodes_require_a_token(arguments):
    with pytest.raises(OptionError, match="TELETENSOR_GROUP_TOKEN"):
        options(*arguments, environment={})
    assert options(*arguments).token == "t"


def test_underscores():
    dashes = options("--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "3", "--rdzv-id", "x")
    assert (
        options("--nproc_per_node", "2", "--max_restarts", "1", "--monitor_interval", "3", "--rdzv_id", "x") == dashes
    )


def test_addresses():
    two = ("--nnodes", "2")
    assert options(*two, "--rdzv-backend", "c10d", "--rdzv-endpoint", "h").endpoint == ("h", 29400)
    assert options(*two, "--rdzv-backend", "c10d", "--rdzv-endpoint", "[::1]:5").endpoint == ("::1", 5)
    static = options(*two, "--node-rank", "0", "--master-addr", "m", "--master-port", "7")
    assert (static.master, static.endpoint, static.hosts_store) == (("m", 7), ("m", 8), True)
    assert options(*two, "--rdzv-conf", "rank=1", "--rdzv-endpoint", "m:7").node_rank == 1
    assert options(*C10D).rendezvous == options("--standalone").rendezvous == options().rendezvous == "local"


def test_hosts():
    assert options("--hosts", "a,b:3", "-n", "2").hosts == (("a", 2), ("b", 3))
    assert (options("--hosts", "a,b").min_nodes, options("--hosts", "a,b").max_nodes) == (2, 2)
    assert (options("--hosts", "a,b", "--nnodes", "1:2").min_nodes) == 1


def test_command():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parse = lambda *a: check(parser.parse_args(a), "python", {}).command  # noqa: E731
    assert parse("s.py", "-x", "--tee") == ("python", "-u", "s.py", "-x", "--tee")
    assert parse("-m", "pkg.mod", "1") == ("python", "-u", "-m", "pkg.mod", "1")
    assert parse("--no-python", "prog", "1") == ("prog", "1")


def test_log_dir_alone_shows_and_stores_everything():
    assert options("--log-dir", "d").tee == {-1: 3} and options("--log-dir", "d", "--tee", "1").tee == {-1: 1}
