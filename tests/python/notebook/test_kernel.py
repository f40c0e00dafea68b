"""A Jupyter kernel: results, completion, and Ctrl-C. deploy/requirements_notebook.txt has the packages."""

from __future__ import annotations

import os
import queue
import signal

import pytest

from tests.conftest import IN_PROCESS, client_environment

jupyter_client = pytest.importorskip("jupyter_client", reason="needs deploy/requirements_notebook.txt")
pytest.importorskip("ipykernel", reason="needs deploy/requirements_notebook.txt")
pytestmark = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")


class Kernel:
    """A kernel process and its client."""

    def __init__(self, folder):
        environment = client_environment(IPYTHONDIR=str(folder / "ipython"), JUPYTER_RUNTIME_DIR=str(folder / "runtime"))
        environment.pop("TELETENSOR_ADDRESS", None)
        self.manager = jupyter_client.KernelManager(kernel_name="python3")
        self.manager.start_kernel(env=environment, cwd=str(folder))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def messages(self, cell: str):
        """Runs a cell; yields the kinds and contents of its messages until it has ended."""
        request = self.client.execute(cell)
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != request:
                continue
            content, kind = message["content"], message["msg_type"]
            if kind == "status" and content["execution_state"] == "idle":
                return
            yield kind, content

    def run(self, cell: str) -> dict:
        """The result's data by type, with the output as "stdout"; the error's name and value otherwise."""
        found: dict = {"stdout": ""}
        for kind, content in self.messages(cell):
            if kind == "stream":
                found["stdout"] += content["text"]
            elif kind in ("execute_result", "display_data"):
                found.update(content["data"])
            elif kind == "error":
                found["error"] = content["ename"], content["evalue"]
        return found

    def complete(self, code: str) -> list[str]:
        """The completions at the end of the code."""
        request = self.client.complete(code)
        while True:
            reply = self.client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == request:
                return reply["content"]["matches"]

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    started = Kernel(tmp_path_factory.mktemp("kernel"))
    try:
        result = started.run("import teletensor as torch; x = torch.arange(4.0).reshape(2, 2); torch.synchronize()")
        assert "error" not in result, result
        yield started
    finally:
        started.stop()


def test_results(kernel):
    found = kernel.run("x")
    assert found["text/plain"] == "tensor([[0., 1.],\n        [2., 3.]])"
    assert "<td>3.</td>" in found["text/html"] and "shape (2, 2)" in found["text/html"]
    found = kernel.run("torch.connection()")
    assert found["text/plain"].startswith("<Connection to unix:") and "<td>engine</td>" in found["text/html"]


def test_a_display_reads_once(kernel):
    kernel.run("before = torch.connection().counters()['waits']")
    assert {"text/plain", "text/html"} <= set(kernel.run("x + 1"))
    assert kernel.run("torch.connection().counters()['waits'] - before")["text/plain"] == "1"


def test_error(kernel):
    """One traceback, and the session continues."""
    kinds = [kind for kind, _ in kernel.messages("torch.linalg.inv(torch.zeros(2, 2))")]
    assert kinds.count("error") == 1 and "execute_result" not in kinds
    assert kernel.run("x.sum().item()")["text/plain"] == "6.0"


COMPLETIONS = [
    ("torch.lin", "torch.linalg"), ("torch.matm", "torch.matmul"), ("x.unsq", "x.unsqueeze"), ("torch.ops.at", "torch.ops.aten"),
    ("torch.nn.functional.gel", "torch.nn.functional.gelu"), ("layer.weig", "layer.weight"),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", COMPLETIONS, ids=[code for code, _ in COMPLETIONS])
def test_completion(kernel, code, expected):
    kernel.run("layer = torch.nn.Linear(2, 2)")
    # jedi completes the last name only, IPython's own completer the whole expression.
    assert {expected, expected.rpartition(".")[2], "." + expected.rpartition(".")[2]} & set(kernel.complete(code))


def test_interrupt_ends_a_wait(kernel):
    """The cell that waits for a stopped engine ends with KeyboardInterrupt; the next cell reads the same tensor."""
    result = kernel.run("""
import os, pathlib
engine, = (int(pid) for file in pathlib.Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()
           if os.readlink(f"/proc/{pid}/exe").endswith("teletensord"))
print(engine)
""")
    engine = int(result["stdout"])
    os.kill(engine, signal.SIGSTOP)
    try:
        # The line and its end may come as two messages, so that the line is written as one string.
        messages = kernel.messages("import sys; sys.stdout.write('waiting'); sys.stdout.flush(); (x * 2).sum().item()")
        for kind, content in messages:
            if kind == "stream" and "waiting" in content["text"]:
                break
        with pytest.raises(queue.Empty):  # it waits
            kernel.client.get_iopub_msg(timeout=0.5)
        kernel.manager.interrupt_kernel()
        errors = [content["ename"] for kind, content in messages if kind == "error"]
    finally:
        os.kill(engine, signal.SIGCONT)
    assert errors == ["KeyboardInterrupt"]
    assert kernel.run("(x * 2).sum().item()")["text/plain"] == "12.0"
    assert kernel.run("x.tolist()")["text/plain"] == "[[0.0, 1.0], [2.0, 3.0]]"
