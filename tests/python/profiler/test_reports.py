"""Reports: torch.utils.bottleneck, anomaly mode, and the engine's continuous profile."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import IN_PROCESS, client_environment

SCRIPT = """
import sys
import teletensor as torch

x = torch.rand(200, 200)

def slow():
    total = 0
    for _ in range(5):
        total += (x @ x).sum().item()
    return total

print("arguments", sys.argv[1:], slow() > 0)
if len(sys.argv) > 2:
    sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "work.py"
    path.write_text(SCRIPT)
    return str(path)


def test_bottleneck(torch, script, capsys):
    from teletensor.utils import bottleneck

    before = list(sys.argv)
    assert bottleneck.main([script, "--flag", "0"]) == 0
    report = capsys.readouterr().out
    assert report.count("arguments ['--flag', '0'] True") == 2 and sys.argv == before
    for part in ("environment", "work.py:7(slow)", "aten::matmul", "frames", "5 x", "work.py:10 in slow", "wall time"):
        assert part in report, part
    with pytest.raises(SystemExit):
        bottleneck.main([script, "--flag", "3"])


CONCLUSIONS = [
    ((1.0, 0.9, []), "operators take most"),
    ((1.0, 0.1, [("a.py:1", "read", 3, 0.6)]), "numpy_async"),
    ((1.0, 0.1, [("a.py:1", "window", 3, 0.6)]), "own code"),
]


@pytest.mark.parametrize(("numbers", "expected"), CONCLUSIONS)
def test_conclusion(numbers, expected):
    from teletensor.utils import bottleneck

    assert expected in bottleneck._conclusion(*numbers)


def test_anomaly_names_the_forward_line(torch):
    x = torch.zeros(2, requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = torch.sqrt(x) * 0  # 0 / 0 in its gradient
        with pytest.raises(RuntimeError, match=r"nan.*test_reports\.py:\d+"):
            y.sum().backward()
            x.grad.tolist()
    line = test_anomaly_names_the_forward_line.__code__.co_firstlineno + 3
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError) as error:
        x.grad = None
        z = torch.sqrt(x) * 0
        z.sum().backward()
        x.grad.tolist()
    assert "test_anomaly_names_the_forward_line" in str(error.value) and f":{line}" not in str(error.value)


PROFILE = """
import time
import teletensor as torch

x = torch.rand(400, 400, requires_grad=True)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    (x @ x).tanh().sum().backward()
    torch.synchronize()
"""


@pytest.mark.skipif(IN_PROCESS, reason="samples are the daemon's")
def test_continuous_profile(own_daemon):
    from teletensor import _C
    from teletensor.profiler import _engine_profile as profiles

    engine = own_daemon("--profile-rate", "500")
    admin = _C.Admin(engine.address)
    before = profiles.decode(admin.profile())
    subprocess.run([sys.executable, "-c", PROFILE], env=client_environment(TELETENSOR_ADDRESS=engine.address), check=True)
    found = profiles.since(before, profiles.decode(admin.profile()))
    assert found["samples"] > 0 and found["cpu_seconds"] >= 0 and found["rate"] == 500
    stacks = profiles.collapsed(found)
    assert "in <module>;execute;backward;matmul " in stacks and ";execute;matmul " in stacks, stacks
    phases = {row[0] for row in profiles.rows(found, ("phase",))}
    assert "execute" in phases and phases <= {"prepare", "execute", "suspended", "reply"}
    command = [sys.executable, "-m", "teletensor.cli", "--address", engine.address, "profile"]
    for options, expected in (([], "share"), (["--by", "op,kernel"], "backward  matmul"), (["--format", "collapsed"], ";execute;")):
        shown = subprocess.run([*command, *options], env=client_environment(), capture_output=True, text=True, check=True)
        assert expected in shown.stdout, shown.stdout
    shown = subprocess.run([*command, "--format", "json"], env=client_environment(), capture_output=True, text=True, check=True)
    assert json.loads(shown.stdout)["entries"]


@pytest.mark.skipif(IN_PROCESS, reason="samples are the daemon's")
def test_profile_can_be_off(own_daemon):
    from teletensor import _C

    with pytest.raises(ValueError, match="profile-rate=0"):
        _C.Admin(own_daemon("--profile-rate", "0").address).profile()


def test_profile_without_samples():
    from teletensor.profiler import _engine_profile as profiles

    empty = {"samples": 3, "seconds": 1.0, "rate": 100.0, "cpu_seconds": 0.0, "entries": []}
    assert profiles.table(empty).endswith("no session had work") and profiles.collapsed(empty) == ""
