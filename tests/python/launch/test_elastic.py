"""torch.distributed.elastic without ranks: events, metrics, timers, rendezvous, stores, samplers, and processes of a host."""

import argparse
import json
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time

import pytest

from teletensor.distributed import HashStore, argparse_util
from teletensor.distributed.elastic import events, metrics, rendezvous, timer
from teletensor.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std, start_processes, to_map
from teletensor.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from teletensor.distributed.elastic.rendezvous.utils import _parse_rendezvous_config, parse_rendezvous_endpoint
from teletensor.distributed.elastic.utils import macros
from teletensor.distributed.elastic.utils import store as stores
from teletensor.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler
from tests.sockets import port_below_the_ephemeral_ones

RANDPERM = [4, 0, 1, 3, 2]  # PyTorch's torch.randperm(5) with the seed 0


class Metrics(metrics.MetricHandler):
    def __init__(self):
        self.seen = []

    def emit(self, metric_data):
        self.seen.append((metric_data.group_name, metric_data.name, metric_data.value))


def test_metrics_reach_the_handler_of_their_group(monkeypatch):
    monkeypatch.setattr(metrics.api, "_handlers", {})
    monkeypatch.setattr(metrics.api, "_default_handler", metrics.NullMetricHandler())
    own, others = Metrics(), Metrics()
    metrics.configure(own, group="mine")
    metrics.configure(others)
    metrics.put_metric("a", 1, "mine")
    metrics.put_metric("b", 2)
    assert own.seen == [("mine", "a", 1)] and others.seen == [("torchelastic", "b", 2)]

    @metrics.prof(group="mine")
    def halve(x):
        return 1 / x

    halve(2)
    with pytest.raises(ZeroDivisionError):
        halve(0)
    names = [name.rpartition("halve")[2] for _, name, _ in own.seen[1:]]
    assert names == [".success", ".duration.ms", ".failure", ".duration.ms"]


def test_events_are_lines_of_json_for_a_handler(monkeypatch):
    lines = []

    class Lines(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    monkeypatch.setitem(events.handlers._log_handlers, "mine", Lines())
    event = events.Event("step", events.EventSource.WORKER, 3, {"rank": 1})
    events.record(event, "mine")
    assert events.Event.deserialize(lines[0]) == event and json.loads(lines[0])["source"] == "WORKER"
    with pytest.raises(KeyError):
        events.record(event, "none")
    monkeypatch.setitem(events.handlers._log_handlers, "dynamic_rendezvous", Lines())
    events.construct_and_record_rdzv_event("run", "joined", events.NodeState.INIT)
    found = events.RdzvEvent.deserialize(lines[1])
    assert found.name == "test_elastic.py:test_events_are_lines_of_json_for_a_handler" and found.pid == os.getpid()


def _late(queue):
    timer.configure(timer.LocalTimerClient(queue))
    with timer.expires(after=60):
        pass
    with timer.expires(after=0.05, scope="slow"):
        time.sleep(60)


def test_a_worker_that_stays_in_a_block_is_killed():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    server = timer.LocalTimerServer(queue, max_interval=0.05)
    server.start()
    worker = context.Process(target=_late, args=(queue,))
    worker.start()
    worker.join(30)
    server.stop()
    assert worker.exitcode == -signal.SIGKILL
    with pytest.raises(RuntimeError, match="Configure timer client"), timer.expires(after=1):
        pass


def test_timers_are_set_released_and_expire_by_scope():
    server = timer.LocalTimerServer(multiprocessing.get_context("fork").Queue())
    server.register_timers(
        [timer.TimerRequest(1, "a", 5), timer.TimerRequest(1, "b", 9), timer.TimerRequest(2, "a", 5)]
    )
    server.register_timers([timer.TimerRequest(2, "a", -1)])
    assert server.get_expired_timers(5) == {1: [timer.TimerRequest(1, "a", 5)]}
    server.clear_timers({1})
    assert server.get_expired_timers(100) == {}


def test_parameters_and_registry_of_rendezvous():
    params = rendezvous.RendezvousParameters("static", "[::1]:5", "run", 1, 2, rank="1", on="yes")
    assert params.get_as_int("rank") == 1 and params.get_as_bool("on") is True and params.get("none") is None
    handler = get_rendezvous_handler(params)
    assert (handler.master_addr, handler.master_port, handler.rank, handler.world_size) == ("::1", 5, 1, 2)
    with pytest.raises(ValueError, match="greater than or equal"):
        rendezvous.RendezvousParameters("c10d", "", "run", 2, 1)
    with pytest.raises(ValueError, match="boolean"):
        rendezvous.RendezvousParameters("c10d", "", "run", 1, 1, on="2").get_as_bool("on")
    registry = rendezvous.RendezvousHandlerRegistry()
    with pytest.raises(ValueError, match="not registered"):
        registry.create_handler(params)
    registry.register("static", lambda params: handler)
    assert registry.create_handler(params) is handler
    with pytest.raises(ValueError, match="already registered"):
        registry.register("static", get_rendezvous_handler)
    with pytest.raises(NotImplementedError, match="etcd"):
        get_rendezvous_handler(rendezvous.RendezvousParameters("etcd", "h:1", "run", 1, 1))
    c10d = get_rendezvous_handler(rendezvous.RendezvousParameters("c10d", "h:1", "run", 1, 1))
    with pytest.raises(NotImplementedError, match="LocalElasticAgent"):
        c10d.next_rendezvous()


def test_texts_of_rendezvous():
    assert parse_rendezvous_endpoint("host:12", 5) == ("host", 12) and parse_rendezvous_endpoint("", 5) == (
        "localhost",
        5,
    )
    assert parse_rendezvous_endpoint("[::1]", 5) == ("::1", 5) and parse_rendezvous_endpoint("[::1]:7", 5) == ("::1", 7)
    for wrong in ("host:x", "host:70000", "ho st"):
        with pytest.raises(ValueError):
            parse_rendezvous_endpoint(wrong, 5)
    assert _parse_rendezvous_config(" a=1, b=x=y") == {"a": "1", "b": "x=y"} and _parse_rendezvous_config(" ") == {}
    for wrong in ("a=", "=1", "a=1,,b=2"):
        with pytest.raises(ValueError):
            _parse_rendezvous_config(wrong)


def test_static_rendezvous_of_two_nodes():
    port = port_below_the_ephemeral_ones()
    found = {}

    def join(rank):
        params = rendezvous.RendezvousParameters("static", f"127.0.0.1:{port}", "run", 2, 2, rank=rank, timeout=30)
        info = get_rendezvous_handler(params).next_rendezvous()
        assert info.rank == rank and info.world_size == 2
        found[rank] = stores.synchronize(info.store, bytes([65 + rank]), rank, 2, "names", timeout=30)

    threads = [threading.Thread(target=join, args=(rank,)) for rank in (1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: [b"A", b"B"], 1: [b"A", b"B"]}


def test_a_barrier_names_the_missing_ranks():
    store = HashStore()
    stores.barrier(store, 1, "alone")
    before = store.timeout
    with pytest.raises(RuntimeError, match=r"missing_ranks=\[node 1, node 2\]"):
        stores.barrier(
            store,
            3,
            "some",
            barrier_timeout=0.05,
            rank=0,
            rank_tracing_decoder=lambda r: f"node {r}",
            trace_timeout=0.05,
        )
    assert store.timeout == before


def test_samplers_and_iterators_of_epochs():
    sampler = [ElasticDistributedSampler(range(10), num_replicas=2, rank=rank, start_index=5) for rank in (0, 1)]
    parts = [list(part) for part in sampler]
    assert [len(part) for part in parts] == [3, 3] and set(parts[0] + parts[1]) == {5, 6, 7, 8, 9}
    order = [5 + i for i in RANDPERM]
    assert parts[0] == [*order, order[0]][0::2] and parts[1] == [*order, order[0]][1::2]
    with pytest.raises(ValueError, match="less than dataset size"):
        ElasticDistributedSampler(range(3), 1, 0, start_index=3)
    assert list(CyclingIterator(3, lambda epoch: iter([epoch, epoch]), start_epoch=1)) == [1, 1, 2, 2]


def test_macros_and_streams():
    assert macros.substitute(["--rank=${local_rank}", 3, "$x"], "1") == ["--rank=1", 3, "$x"]
    assert Std.from_str("3") is Std.ALL and Std.from_str("0:1,2:3") == {0: Std.OUT, 2: Std.ALL}
    assert to_map({1: Std.OUT}, 2) == {0: Std.NONE, 1: Std.OUT}
    with pytest.raises(ValueError):
        Std.from_str("4")


def test_arguments_with_defaults_from_the_environment(monkeypatch):
    monkeypatch.setenv("PET_NAME", "given")
    monkeypatch.setenv("PET_FAST", "1")
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", action=argparse_util.env, required=True)
    parser.add_argument("--fast", action=argparse_util.check_env)
    parser.add_argument("--slow", action=argparse_util.check_env)
    args = parser.parse_args([])
    assert (args.name, args.fast, args.slow) == ("given", True, False)
    assert parser.parse_args(["--name", "x", "--slow"]).name == "x"


def _work(x, y):
    print("out", x, flush=True)
    print("err", x, file=sys.stderr, flush=True)
    if y == "fail":
        raise ValueError(f"no {x}")
    if y == "wait":
        time.sleep(60)
    return [x] * 100_000, os.environ["OWN"]


def _start(entrypoint, args, tmp_path, **more):
    logs = DefaultLogsSpecs(str(tmp_path), redirects={0: Std.ERR}, tee={1: Std.OUT})
    return start_processes("worker", entrypoint, args, {i: {"OWN": f"v{i}"} for i in args}, logs, **more)


@pytest.fixture
def handlers():
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_functions_of_processes_return_values_and_write_files(tmp_path, handlers, capfd):
    context = _start(
        _work, {0: ("a", ""), 1: ("b", "")}, tmp_path, start_method="fork", duplicate_stdout_filters=["out"]
    )
    result = context.wait(30)
    assert not result.is_failed()
    assert result.return_values == {0: (["a"] * 100_000, "v0"), 1: (["b"] * 100_000, "v1")}
    assert (
        open(result.stderrs[0]).read() == "err a\n"
        and result.stdouts[0] == ""
        and open(result.stdouts[1]).read() == "out b\n"
    )
    (filtered,) = tmp_path.glob("*/attempt_0/filtered_stdout.log")
    assert filtered.read_text() == "[worker1]:out b\n"
    shown = capfd.readouterr()
    assert sorted(shown.out.splitlines()) == ["[worker1]:out b", "out a"] and shown.err == "err b\n"


def test_a_failed_process_ends_the_others(tmp_path, handlers):
    context = _start(_work, {0: ("a", "fail"), 1: ("b", "wait")}, tmp_path, start_method="fork")
    result = context.wait(30)
    assert list(result.failures) == [0] and result.failures[0].exitcode == 1
    assert result.failures[0].message["message"] == "ValueError: no a"
    assert [context._exit_code(rank) for rank in (0, 1)] == [1, -signal.SIGTERM]


def test_programs_of_processes(tmp_path, handlers):
    context = _start("sh", {0: ("-c", "exit 3"), 1: ("-c", "sleep 60")}, tmp_path)
    assert set(context.pids()) == {0, 1}
    result = context.wait(30)
    assert result.failures[0].exitcode == 3
    result = _start("sh", {0: ("-c", "echo $OWN >&2"), 1: ("-c", "true")}, tmp_path).wait(30)
    assert result.return_values == {0: None, 1: None} and open(result.stderrs[0]).read() == "v0\n"
    with pytest.raises(RuntimeError, match="local rank mapping mismatch"):
        start_processes("x", "true", {0: ()}, {1: {}}, DefaultLogsSpecs(str(tmp_path)))
