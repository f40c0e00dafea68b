"""sync_report() names the user's lines, wherever they are and however they are called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.test_session import run_script

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")

PROGRAM = """
import contextlib
import functools
import statistics
import threading
import teletensor as torch

x = torch.ones(3)

def run():
    for _ in range(3):
        if x.sum() > 2:  # if in a loop
            pass
    with torch.no_grad():
        x.sum().item()  # with
    with contextlib.suppress(ValueError), torch.autocast("cpu"):
        x.sum().item()  # two in one with
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(x.tolist)
            raise ValueError
    except ValueError:
        x.tolist()  # except
    with leave():  # a way out that reads
        pass
    y = x.clone().requires_grad_()
    y.register_hook(lambda g: g.sum().item() and None)  # hook
    (y * 2).sum().backward()
    layer = torch.nn.Linear(3, 3)
    layer.register_forward_hook(lambda *a: a[2].sum().item() and None)  # module's hook
    layer(x)
    sorted([x[0], x[1]], key=lambda t: t.item())  # key
    functools.reduce(lambda a, b: a + b.item(), x, 0)  # reduce
    statistics.fmean(x)  # iterated by Python's library
    thread = threading.Thread(target=lambda: x.sum().item())  # thread
    thread.start()
    thread.join()
    method = threading.Thread(target=x.tolist)
    method.start()
    method.join()

class leave:
    def __enter__(self):
        return self
    def __exit__(self, *_):
        x.sum().item()  # __exit__

run()
print(torch.sync_report(1000))
torch.connect()
x = torch.ones(3)
{padding}x.tolist()  # another session
print(torch.sync_report(1000))
"""


@pytest.mark.parametrize("folder", ["project", "teletensor/examples"])
def test_every_read_is_reported_with_its_line(daemon, tmp_path, folder):
    program = PROGRAM.replace("{padding}", "\n" * 40)
    path = tmp_path / folder / "program.py"
    path.parent.mkdir(parents=True)
    path.write_text(program)
    result = run_script(f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')", daemon)
    assert result.returncode == 0, result.stderr
    assert "(unknown)" not in result.stdout
    lines = program.splitlines()
    named = [lines[int(n) - 1] for n in re.findall(rf"{re.escape(str(path))}:(\d+) in", result.stdout)]
    for what in re.findall(r"#.*", program):
        if "way out" not in what:  # __exit__ is attributed to its own line
            assert any(line.endswith(what) for line in named), (what, result.stdout)
    others = [line for line in result.stdout.splitlines() if " x " in line and str(path) not in line]
    assert len(others) == 1 and "threading.py" in others[0], others  # the thread that runs library code only


def test_frames_of_the_package_are_skipped(torch):
    package = str(Path(torch.__file__).parent)
    print(torch.ones(2))
    torch.ones(2).tolist()
    # A graph's code is named after the module that was traced: "<eval_with_key>.0 from /.../container.py:109 in forward".
    assert not re.search(rf"(read|upload|window) +{re.escape(package)}", torch.sync_report(10_000))
