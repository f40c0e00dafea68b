"""--hosts, with a local shell in place of ssh."""

import os
import re
import signal

import pytest

from .conftest import all_ended, environments, eventually, processes_in

pytestmark = pytest.mark.slow
SHELL = ("--ssh-command", "sh -c {command}", "--local-addr", "127.0.0.1")


def test_ranks_are_numbered_in_the_order_of_hosts(launch, tmp_path):
    script = "record_environment(); print('out', rank); print('err', rank, file=sys.stderr)"
    code, out, err = launch("--hosts", "first:1,second:2", *SHELL, "script.py", script=script).finish()
    assert code == 0
    assert sorted(out.splitlines()) == [f"[{r}] out {r}" for r in range(3)]
    assert {f"[{r}] err {r}" for r in range(3)} <= set(err.splitlines())
    found = environments(tmp_path)
    names = ("GROUP_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "MASTER_ADDR")
    assert [tuple(found[r][n] for n in names) for r in range(3)] == [
        ("0", "0", "1", "3", "127.0.0.1"), ("1", "0", "2", "3", "127.0.0.1"), ("1", "1", "2", "3", "127.0.0.1"),
    ]  # fmt: skip
    assert len({found[r]["TELETENSOR_GROUP_TOKEN"] for r in range(3)}) == 1


def test_variables_and_the_token_reach_the_hosts_unseen(launch, tmp_path):
    """The token is not in the command lines of any process."""
    given = {"TELETENSOR_GROUP_TOKEN": "very-secret", "OMP_NUM_THREADS": "3"}
    script = """
record_environment()
if rank == 0:
    wait_for("environment.?", 2)
    found = [p for p in os.listdir("/proc") if p.isdigit()]
    lines = []
    for pid in found:
        try:
            lines.append(open(f"/proc/{pid}/cmdline").read())
        except OSError:
            pass
    record("lines", json.dumps(lines))
"""
    code, *_ = launch("--hosts", "a,localhost", *SHELL, "script.py", script=script, environment=given).finish()
    assert code == 0
    found = environments(tmp_path)
    assert [found[r]["TELETENSOR_GROUP_TOKEN"] for r in range(2)] == ["very-secret"] * 2
    assert [found[r]["OMP_NUM_THREADS"] for r in range(2)] == ["3"] * 2
    lines = (tmp_path / "lines").read_text()
    assert "teletensor.launch.remote" in lines and "very-secret" not in lines


def test_failure_on_one_host_ends_the_others(launch):
    script = "record_pid(); rank == 2 and (wait_for('pid.*', 3), sys.exit('why')); time.sleep(1000)"
    run = launch("--hosts", "a:2,b:1", *SHELL, "script.py", script=script)
    code, _, err = run.finish()
    assert code == 1
    assert "rank 2 failed first, on b" in err and "\n  why\n" in err
    assert err.count("failed first") == 1
    all_ended(run.pids(3))


def test_restart_on_all_hosts(launch, tmp_path):
    script = "record_environment(); rank == 1 and restart < 2 and sys.exit(4)"
    code, _, err = launch("--hosts", "a,b", "--max-restarts", "2", *SHELL, "script.py", script=script).finish()
    assert code == 0 and err.count("all ranks restart") == 2
    assert {e["TELETENSOR_GROUP_RUN"].partition("/")[2] for e in environments(tmp_path).values()} == {"2"}


def test_host_that_is_lost_ends_the_run(launch, tmp_path):
    """The launcher of a host is killed, so that only the end of its connection shows it."""
    script = "record(f'launcher.{rank}', os.getppid()); time.sleep(1000)"
    run = launch("--hosts", "a,b", *SHELL, "script.py", script=script)
    run.wait_for("launcher.*", 2)
    os.kill(int((tmp_path / "launcher.1").read_text()), signal.SIGKILL)
    code, _, err = run.finish()
    assert code == 1 and "the launcher on b ended" in err


def test_elastic_run_continues_without_a_lost_host(launch, tmp_path):
    script = """
record_pid(f"{restart}.{rank}")
record(f"launcher.{restart}.{rank}", os.getppid())
record(f"world.{restart}", world)
if restart == 0:
    time.sleep(1000)
"""
    run = launch("--hosts", "a,b", "--nnodes", "1:2", "--max-restarts", "1", *SHELL, "script.py", script=script)
    run.wait_for("launcher.0.*", 2)
    os.kill(int((tmp_path / "launcher.0.1").read_text()), signal.SIGKILL)
    code, _, err = run.finish()
    assert code == 0, err
    assert (tmp_path / "world.0").read_text() == "2\n" and (tmp_path / "world.1").read_text() == "1\n"


def test_host_that_cannot_be_reached(launch):
    shell = ("--local-addr", "127.0.0.1", "--ssh-command", "sh -c 'exit 255' {host} {command}")
    code, _, err = launch("--hosts", "a,b", *shell, "script.py", script="").finish()
    assert code == 1 and re.search("the launcher on [ab] ended with exit code 255", err)  # the one that ended first


def test_interrupt_ends_all_hosts(launch, tmp_path):
    run = launch("-n", "2", "--hosts", "a,b", *SHELL, "script.py", script="record_pid(); time.sleep(1000)")
    pids = run.pids(4)
    run.send(signal.SIGINT)
    assert run.finish()[0] == 130
    all_ended(pids)


def test_killed_launcher_leaves_nothing_on_the_hosts(launch, tmp_path):
    run = launch("-n", "2", "--hosts", "a,b", *SHELL, "script.py", script="record_pid(); time.sleep(1000)")
    pids = run.pids(4)
    run.send(signal.SIGKILL)
    run.process.wait()
    all_ended(pids)
    eventually(lambda: not processes_in(tmp_path), "the end of all processes")


def test_template_receives_the_host(launch, tmp_path):
    (tmp_path / "shell").write_text('echo "$1" >>hosts\nexec sh -c "$2"\n')
    command = f"sh {tmp_path}/shell {{host}} {{command}}"
    assert (
        launch(
            "--hosts", "x1,x2", "--local-addr", "127.0.0.1", "--ssh-command", command, "script.py", script=""
        ).finish()[0]
        == 0
    )
    assert sorted((tmp_path / "hosts").read_text().split()) == ["x1", "x2"]
