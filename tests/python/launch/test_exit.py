"""Exit codes, signals and what remains of a run."""

import os
import signal

import pytest

from .conftest import alive, all_ended, eventually, processes_in

pytestmark = pytest.mark.slow

SLEEP = "record_pid(); time.sleep(1000)"


def test_success(launch, tmp_path):
    assert launch("-n", "2", "script.py", script="").finish()[0] == 0
    assert not processes_in(tmp_path)


def test_code_and_summary_of_the_first_failure(launch, tmp_path):
    script = """
record_pid()
if rank == 1:
    wait_for("pid.*", 3)
    for i in range(30):
        print("line", i, file=sys.stderr)
    print("only on standard output")
    sys.exit(37)
time.sleep(1000)
"""
    code, out, err = launch("-n", "3", "script.py", script=script).finish()
    assert code == 37
    summary = err.partition("teletensor launch: rank 1 failed first, on ")[2]
    assert "exit code 37" in summary
    assert [line for line in summary.splitlines() if line.startswith("  ")] == [f"  line {i}" for i in range(10, 30)]
    all_ended([int((tmp_path / f"pid.{r}").read_text()) for r in range(3)])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_rank_killed_by_a_signal(launch, number):
    code, _, err = launch(
        "-n", "2", "script.py", script=f"rank or os.kill(os.getpid(), {int(number)})\n{SLEEP}"
    ).finish()
    assert code == 128 + number
    assert f"killed by {number.name}, exit code {128 + number}" in err


def test_other_ranks_receive_sigterm(launch, tmp_path):
    script = """
def end(*_):
    record(f"terminated.{rank}", "yes")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
record_pid()
if rank == 0:
    wait_for("pid.*", 3)
    sys.exit(5)
while True:
    time.sleep(0.1)
"""
    assert launch("-n", "3", "script.py", script=script).finish()[0] == 5
    assert sorted(p.name for p in tmp_path.glob("terminated.*")) == ["terminated.1", "terminated.2"]


def test_ranks_that_ignore_sigterm_are_killed(launch, tmp_path):
    script = f"signal.signal(signal.SIGTERM, signal.SIG_IGN); record_pid(); rank == 0 and (wait_for('pid.*', 2), sys.exit(5)); {SLEEP}"
    run = launch("-n", "2", "--grace", "0.2", "script.py", script=script)
    assert run.finish()[0] == 5
    all_ended(run.pids(2))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_the_launcher(launch, tmp_path, number):
    run = launch("-n", "2", "script.py", script=SLEEP)
    pids = run.pids(2)
    run.send(number)
    code, _, err = run.finish()
    assert code == 128 + number
    assert f"stopped by {number.name}" in err
    all_ended(pids)
    assert not processes_in(tmp_path)


def test_chosen_signals_are_passed_on(launch):
    script = "signal.signal(signal.SIGUSR1, lambda *_: (record(f'received.{rank}', 1), sys.exit(0))); record_pid()\ntime.sleep(99)"
    run = launch("-n", "2", "--signals-to-handle", "SIGTERM,USR1", "script.py", script=script)
    run.pids(2)
    run.send(signal.SIGUSR1)
    assert run.finish()[0] == 128 + signal.SIGUSR1
    assert len(run.wait_for("received.*", 2)) == 2


def test_second_interrupt_kills(launch):
    script = "signal.signal(signal.SIGINT, lambda *_: record(f'interrupted.{rank}', 1)); record_pid()\nwhile True: time.sleep(1)"
    run = launch("-n", "2", "--grace", "100000", "script.py", script=script)
    pids = run.pids(2)
    run.send(signal.SIGINT)
    run.wait_for("interrupted.*", 2)
    run.send(signal.SIGINT)
    assert run.finish()[0] == 130
    all_ended(pids)


CHILDREN = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
record(f"pid.child{rank}", child.pid)
"""


def test_killed_launcher_leaves_nothing(launch, tmp_path):
    (tmp_path / "tmp").mkdir()
    run = launch("-n", "2", "script.py", script=CHILDREN + SLEEP, environment={"TMPDIR": str(tmp_path / "tmp")})
    pids = run.pids(4)
    assert all(alive(pid) for pid in pids)
    run.send(signal.SIGKILL)
    run.process.wait()
    all_ended(pids)
    eventually(lambda: not processes_in(tmp_path), "the end of all processes")
    eventually(lambda: not any((tmp_path / "tmp").iterdir()), "no temporary files")


def test_killed_guard_and_launcher_leave_no_rank(launch, tmp_path):
    run = launch("-n", "2", "script.py", script=SLEEP)
    pids = run.pids(2)
    guards = processes_in(tmp_path) - set(pids) - {run.process.pid}
    assert guards
    for pid in guards:
        os.kill(pid, signal.SIGKILL)
    run.send(signal.SIGKILL)
    run.process.wait()
    all_ended(pids)


def test_processes_of_a_finished_rank_are_ended(launch, tmp_path):
    run = launch("-n", "2", "script.py", script=CHILDREN)
    assert run.finish()[0] == 0
    all_ended(run.pids(2))


def test_missing_program(launch):
    code, _, err = launch("-n", "2", "--no-python", "/no/such/program").finish()
    assert code == 127 and "/no/such/program" in err


def test_program_that_cannot_be_executed(launch, tmp_path):
    (tmp_path / "data").write_text("no program")
    code, _, err = launch("--no-python", "./data").finish()
    assert code == 126 and "./data" in err


# Rank 1 fails first. Rank 0 notices while rank 1's interpreter still exits, and may end before it.
FIRST = """
import teletensor.distributed as dist
dist.init_process_group()
x = teletensor.ones(3)
if rank == 1:
    time.sleep(0.3)
    {fail}
try:
    dist.all_reduce(x)
    x.tolist()
except Exception as error:
    {react}
"""


@pytest.mark.parametrize(
    "fail, code, shown",
    [
        ("sys.exit(7)", 7, "exit code 7"),
        ("raise KeyError('the first failure')", 1, "KeyError: 'the first failure'"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "killed by SIGKILL"),
    ],
)
@pytest.mark.parametrize("react", ["raise", "os._exit(3)"])
def test_first_failure_is_named_by_the_time_of_the_failure(launch, fail, code, shown, react):
    script = "import teletensor\n" + FIRST.format(fail=fail, react=react)
    status, _, err = launch("-n", "2", "script.py", script=script).finish()
    assert "rank 1 failed first" in err and shown in err.partition("failed first")[2], err
    assert status == code


def test_traceback_of_record(launch, tmp_path):
    script = """
import atexit
from teletensor.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if rank == 0:
        atexit.register(lambda: time.sleep(2))  # ends last
        raise ValueError("recorded")
    wait_for("none")
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
rank and sys.exit((time.sleep(1), 5)[1])
main()
"""
    code, _, err = launch("-n", "2", "script.py", script=script).finish()
    assert code == 1 and "rank 0 failed first" in err and "ValueError: recorded" in err and "Traceback" in err
