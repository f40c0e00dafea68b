"""torch.distributed.launcher and torch.distributed.run: ranks that a program starts."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from teletensor.distributed.elastic.agent.server import LocalElasticAgent, SimpleElasticAgent, WorkerSpec, WorkerState
from teletensor.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, Std
from teletensor.distributed.elastic.multiprocessing.errors import ChildFailedError
from teletensor.distributed.elastic.rendezvous import RendezvousHandler, RendezvousParameters, RendezvousTimeoutError
from teletensor.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from teletensor.distributed.launcher import LaunchConfig, elastic_launch
from teletensor.distributed.run import config_from_args, get_args_parser, parse_args, run
from tests.conftest import client_environment

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in [name for name in os.environ if name.startswith(("PET_", "TORCHELASTIC_", "TELETENSOR_GROUP"))]:
        monkeypatch.delenv(name)


def config(ranks: int = 2, **more) -> LaunchConfig:
    given = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "max_restarts": 0, "start_method": "fork", **more}
    return LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=ranks, **given)


def _describe(*args):
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "ROLE_NAME", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
    print("shown", os.environ["RANK"])
    return args, [os.environ[name] for name in names]


def test_a_function_returns_its_values_by_rank(capfd):
    result = elastic_launch(config(run_id="r", role="worker"), _describe)("a", 1)
    assert result == {rank: (("a", 1), [str(rank), str(rank), "2", "worker", "r", "0"]) for rank in (0, 1)}
    assert sorted(capfd.readouterr().out.splitlines()) == ["[0] shown 0", "[1] shown 1"]
    assert "RANK" not in os.environ


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_the_program_may_use_multiprocessing_meanwhile(start_method):
    ended = threading.Event()

    def reap():  # as does the start of a process
        while not ended.is_set():
            multiprocessing.active_children()

    thread = threading.Thread(target=reap)
    thread.start()
    try:
        assert set(elastic_launch(config(start_method=start_method), _describe)()) == {0, 1}
    finally:
        ended.set()
        thread.join()


def _fail(folder):
    rank, restart = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    with open(f"{folder}/{restart}.{rank}", "w"):
        pass
    if rank == 1:
        raise ValueError("broken")
    signal.pause()


def test_a_failure_has_the_traceback_of_the_rank_after_its_restarts(tmp_path, capfd):
    logs = DefaultLogsSpecs(str(tmp_path / "logs"), redirects=Std.ERR)
    with pytest.raises(ChildFailedError, match="ValueError: broken") as caught:
        elastic_launch(config(max_restarts=1, logs_specs=logs, run_id="r"), _fail)(tmp_path)
    rank, failure = caught.value.get_first_failure()
    assert (rank, failure.local_rank, failure.exitcode) == (1, 1, 1) and caught.value.name == "_fail"
    assert failure.error_file == str(tmp_path / "logs/r/attempt_1/1/error.json")
    assert {p.name for p in tmp_path.glob("?.?")} == {"0.0", "0.1", "1.0", "1.1"}
    assert "ValueError: broken" in (tmp_path / "logs/r/attempt_1/1/stderr.log").read_text()
    capfd.readouterr()


def test_a_program_and_its_signal(capfd):
    assert elastic_launch(config(), "echo")("rank", "${local_rank}") == {0: None, 1: None}
    assert sorted(capfd.readouterr().out.splitlines()) == ["[0] rank 0", "[1] rank 1"]
    with pytest.raises(ChildFailedError) as caught:
        elastic_launch(config(1), "sh")("-c", "kill -9 $$")
    assert caught.value.failures[0].exitcode == -signal.SIGKILL
    capfd.readouterr()


def test_handlers_of_the_program_are_restored(capfd):
    before = signal.signal(signal.SIGTERM, print)
    try:
        elastic_launch(config(1), "true")()
        assert signal.getsignal(signal.SIGTERM) is print and signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_too_few_nodes(monkeypatch, capfd):
    monkeypatch.setenv("TELETENSOR_GROUP_TOKEN", "t")
    from teletensor.launch.launcher import free_port

    few = LaunchConfig(
        2, 2, 1, rdzv_backend="c10d", rdzv_endpoint=f"127.0.0.1:{free_port()}", rdzv_configs={"timeout": 0.3}
    )
    with pytest.raises(RendezvousTimeoutError, match="1 of at least 2 nodes joined"):
        elastic_launch(few, "true")()
    capfd.readouterr()


def test_what_is_not_supported_raises(tmp_path):
    logs = DefaultLogsSpecs(str(tmp_path))

    def spec(handler=None, **more):
        c10d = get_rendezvous_handler(RendezvousParameters("c10d", "", "run", 1, 1))
        return WorkerSpec("role", 1, handler or c10d, entrypoint="true", **more)

    class Other(RendezvousHandler):
        get_backend = get_run_id = next_rendezvous = is_closed = set_closed = num_nodes_waiting = shutdown = (
            lambda self: "x"
        )

    class OtherLogs(LogsSpecs):
        root_log_dir, reify = "", None

    for make, error, match in (
        (lambda: elastic_launch(LaunchConfig(1, 1, 1, rdzv_endpoint="h:1"), "true")(), NotImplementedError, "etcd"),
        (lambda: LocalElasticAgent(spec(), logs, "forkserver"), ValueError, "start_method"),
        (lambda: LocalElasticAgent(spec(), logs, exit_barrier_timeout=1), NotImplementedError, "exit_barrier_timeout"),
        (lambda: LocalElasticAgent(spec(numa_options=1), logs), NotImplementedError, "numa_options"),
        (lambda: LocalElasticAgent(spec(Other()), logs), NotImplementedError, "rendezvous backend"),
        (lambda: LocalElasticAgent(spec(), OtherLogs()), TypeError, "DefaultLogsSpecs"),
        (lambda: LocalElasticAgent(spec(event_log_handler="none"), logs), ValueError, "--event-log-handler"),
        (lambda: type("Own", (SimpleElasticAgent,), {"_start_workers": None}), TypeError, "_start_workers"),
    ):
        with pytest.raises(error, match=match):
            make()


def test_an_agent_records_events_and_metrics(tmp_path, capfd, monkeypatch):
    from teletensor.distributed.elastic import metrics

    seen = {}
    handler = type(
        "Handler", (metrics.MetricHandler,), {"emit": lambda self, data: seen.update({data.name: data.value})}
    )
    monkeypatch.setattr(metrics.api, "_default_handler", handler())
    c10d = get_rendezvous_handler(RendezvousParameters("c10d", "", "run", 1, 1))
    spec = WorkerSpec("role", 1, c10d, entrypoint="false", max_restarts=1, event_log_handler="console")
    agent = LocalElasticAgent(spec, DefaultLogsSpecs(str(tmp_path)))
    group = agent.get_worker_group()
    assert group.state is WorkerState.INIT and (group.group_rank, group.group_world_size, group.master_addr) == (None, None, None)
    from teletensor.distributed.elastic.events import handlers

    lines = []
    monkeypatch.setattr(handlers._log_handlers["console"], "emit", lambda record: lines.append(record.getMessage()))
    result = agent.run()
    assert result.is_failed() and result.failures[0].exitcode == 1
    assert agent.get_worker_group().state is WorkerState.FAILED and agent.get_worker_group().workers[0].global_rank == 0
    assert (group.group_rank, group.group_world_size) == (0, 1) and group.master_addr and group.master_port > 0
    assert seen["workers.role.run_failed_with_retries"] == 1 and seen["workers.role.run_success_no_retries"] == 0
    assert ['"WORKER"' in line and '"FAILED"' in line for line in lines] == [True, False] and '"AGENT"' in lines[1]
    capfd.readouterr()


def test_the_command_line_as_a_configuration(capfd):
    made, program, arguments = config_from_args(
        parse_args(["--nproc_per_node=2", "-t", "0:1", "script.py", "--x", "1"])
    )
    assert (made.nproc_per_node, made.rdzv_backend, made.logs_specs._tee) == (2, "c10d", {0: Std.OUT, 1: Std.NONE})
    assert (program, arguments) == (sys.executable, ["-u", "script.py", "--x", "1"])
    made, *_ = config_from_args(parse_args(["--master-port", "1234", "--max-restarts", "2", "script.py"]))
    assert (made.rdzv_backend, made.rdzv_endpoint, made.max_restarts) == ("static", "127.0.0.1:1234", 2)
    # PyTorch's names and defaults, which programs set on a namespace.
    args = get_args_parser().parse_args(["script.py"])
    args.training_script, args.no_python, args.local_ranks_filter, args.duplicate_stdout_filters = "true", True, "", []
    args.nnodes, args.node_rank, args.rdzv_id, args.log_line_prefix_template, args.redirects = "1:1", 0, "none", "", "0"
    run(args)
    args.training_script = "false"
    with pytest.raises(ChildFailedError, match="false FAILED"):
        run(args)
    capfd.readouterr()


def _run(script: str, *arguments: str, **more) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "teletensor.as_torch", script, *arguments]
    return subprocess.run(
        command, env=client_environment(OMP_NUM_THREADS="1"), capture_output=True, text=True, timeout=300, **more
    )


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_ranks_of_a_function_form_a_group(tmp_path, method):
    # As from a notebook: in a thread, because a loop runs in the main thread. With spawn, the program has a session.
    (tmp_path / "script.py").write_text(textwrap.dedent("""
        import asyncio, sys
        import torch, torch.distributed as dist
        from torch.distributed.run import LaunchConfig, elastic_launch

        def work(x):
            dist.init_process_group("gloo")
            total = x.repeat(2) + dist.get_rank()
            dist.all_reduce(total)
            return total

        async def main():
            config = LaunchConfig(1, 1, 2, rdzv_backend="c10d", start_method=sys.argv[1], max_restarts=0)
            x = 2 if sys.argv[1] == "fork" else torch.tensor([2.0])
            return elastic_launch(config, work if sys.argv[1] == "spawn" else lambda x: work(torch.tensor([x * 1.0])))(x)

        if __name__ == "__main__":
            print(torch.ones(2).sum().item() if sys.argv[1] == "spawn" else 2.0)
            print({rank: total.tolist() for rank, total in asyncio.run(main()).items()})
    """))  # fmt: skip
    done = _run(str(tmp_path / "script.py"), method)
    assert done.stdout.splitlines() == ["2.0", "{0: [5.0, 5.0], 1: [5.0, 5.0]}"], done.stderr


def test_forked_ranks_of_a_program_with_a_session_are_refused(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent("""
        import torch
        from torch.distributed.run import LaunchConfig, elastic_launch

        if __name__ == "__main__":
            torch.ones(2).sum().item()
            torch.disconnect()
            config = LaunchConfig(1, 1, 1, rdzv_backend="c10d", start_method="fork", max_restarts=0)
            elastic_launch(config, lambda: torch.ones(2))()
    """))  # fmt: skip
    done = _run(str(tmp_path / "script.py"))
    assert "expected start_method='spawn', because this program has used an engine" in done.stderr


def test_a_signal_ends_the_ranks_and_is_raised(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent("""
        import os, signal
        from torch.distributed.elastic.multiprocessing import SignalException
        from torch.distributed.launcher.api import LaunchConfig, elastic_launch

        config = LaunchConfig(1, 1, 1, rdzv_backend="c10d")
        try:
            elastic_launch(config, "sh")("-c", "kill -TERM $PPID; sleep 60")
        except SignalException as error:
            print("signal", error.sigval.name)
    """))  # fmt: skip
    done = _run(str(tmp_path / "script.py"))
    assert done.stdout.splitlines() == ["signal SIGTERM"], done.stderr
