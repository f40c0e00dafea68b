"""HTML of tensors and sessions, and completion, without a notebook."""

from __future__ import annotations

import os
import signal
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.conftest import IN_PROCESS, Daemon, eventually


class Table(HTMLParser):
    """The cells and the caption of a table; fails at tags that are not closed."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.caption = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "caption" in self.open:
            self.caption += data
        elif self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


TAGS = {"table", "caption", "tbody", "tr", "td", "b"}


def test_matrix(torch):
    table = Table(torch.arange(6.0).reshape(2, 3)._repr_html_())
    assert table.rows == [["0.", "1.", "2."], ["3.", "4.", "5."]]
    assert table.caption == "Tensor shape (2, 3), torch.float32, cpu"
    assert table.tags == TAGS


CASES = [
    ("torch.tensor(7)", [["7"]], "shape (), torch.int64"),
    ("torch.tensor([True, False])", [["True", "False"]], "shape (2,), torch.bool"),
    ("torch.tensor([1 + 2j])", [["1.+2.j"]], "shape (1,), torch.complex64"),
    ("torch.arange(16).reshape(2, 2, 2, 2)", [["0", "1"], ["2", "3"]], "torch.int64, cpu; [0, 0, :, :]"),
    ("torch.zeros(0, 3)", [], "shape (0, 3)"),
    ("torch.ones(3, device='meta')", [], "torch.float32, meta"),
    ("torch.ones(1, requires_grad=True)", [["1."]], "requires_grad"),
    ("torch.ones(1, requires_grad=True) * 2", [["2."]], "grad_fn Mul"),
    ("torch.nn.Parameter(torch.ones(1))", [["1."]], "Parameter shape"),
    ("torch.tensor([float('nan'), -float('inf')])", [["nan", "-inf"]], "shape (2,)"),
]


@pytest.mark.parametrize("code, rows, caption", CASES, ids=[case[0] for case in CASES])
def test_tensors(torch, code, rows, caption):
    table = Table(eval(code, {"torch": torch})._repr_html_())
    assert table.rows == rows and caption in table.caption


MORE = [
    "torch.arange(3_000_000).reshape(3, 1000, 1000)", "torch.arange(420.0).reshape(20, 21)", "torch.arange(30000.0).reshape(20, 1500)",
    "torch.zeros(2000, 0)", "torch.randn(7, 7, 3, 3, dtype=torch.complex64)", "torch.ones(3).expand(1000, 3)",
    "torch.arange(30.0).reshape(5, 6).t()", "torch.tensor([1.5], dtype=torch.bfloat16)",
]  # fmt: skip


@pytest.mark.parametrize("code", [case[0] for case in CASES] + MORE)
def test_display_reads_once(torch, code):
    """The text is that of repr(), the table that of _repr_html_(), and both are of the same read."""
    x = eval(code, {"torch": torch})
    before = torch.connection().counters()["waits"]
    shown = x._repr_mimebundle_(include=None, exclude=None)
    assert torch.connection().counters()["waits"] - before == (x.numel() > 0 and x.device.type != "meta")
    assert shown == {"text/plain": repr(x), "text/html": x._repr_html_()}
    assert set(x._repr_mimebundle_(include=["text/html"])) == {"text/html"}
    assert set(x._repr_mimebundle_(exclude={"text/html"})) == {"text/plain"}


def test_large_tensor_is_not_read(torch):
    """Six rows and six columns are read, whatever the tensor's size."""
    x = torch.arange(3_000_000, dtype=torch.float32).reshape(3, 1000, 1000)
    torch.synchronize()
    before = torch.connection().counters()
    table = Table(x._repr_html_())
    after = torch.connection().counters()
    assert table.rows[0] == ["0.0000e+00", "1.0000e+00", "2.0000e+00", "…", "9.9700e+02", "9.9800e+02", "9.9900e+02"]
    assert len(table.rows) == 7 and table.rows[3] == ["⋮"] * 7
    assert after["waits"] - before["waits"] == 1 and after["download_bytes"] == before["download_bytes"]


def test_long_vector(torch):
    (row,) = Table(torch.arange(900)._repr_html_()).rows
    assert row == ["0", "1", "2", "…", "897", "898", "899"]
    (row,) = Table(torch.arange(20)._repr_html_()).rows
    assert row == [str(i) for i in range(20)]


def test_print_options(torch):
    with torch._tensor_str.printoptions(precision=1, edgeitems=1):
        assert Table(torch.full((30, 30), 0.26)._repr_html_()).rows == [["0.3", "…", "0.3"], ["⋮"] * 3, ["0.3", "…", "0.3"]]


def test_names_are_escaped(torch):
    kind = type("<img src=x onerror=alert(1)>", (torch.Tensor,), {})
    text = torch.ones(1).as_subclass(kind)._repr_html_()
    assert Table(text).tags == TAGS and "&lt;img src=x onerror=alert(1)&gt;" in text


def test_subclass_with_its_own_text(torch):
    """Its text is shown, its handler is not called with functions that PyTorch does not have, and its table remains."""

    class Named(torch.Tensor):
        def __repr__(self):
            return "a name"

    class Handler(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if "_repr_" in func.__name__:
                raise AssertionError(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    class OwnTable(torch.Tensor):
        def _repr_html_(self):
            return "<i>own</i>"

    for kind in Named, Handler:
        x = torch.ones(1).as_subclass(kind)
        assert x._repr_html_() is None and x._repr_mimebundle_() is None
    x = torch.ones(1).as_subclass(OwnTable)
    assert x._repr_mimebundle_() is None and x._repr_html_() == "<i>own</i>"


def test_replaced_text(torch, monkeypatch):
    """Libraries that replace Tensor.__repr__ are shown."""
    monkeypatch.setattr(torch.Tensor, "__repr__", lambda self: "short")
    assert torch.ones(1)._repr_mimebundle_() is None


@pytest.mark.parametrize(
    "code", ["torch.ones(2).index_select(0, torch.tensor([5]))", "torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)"]
)
def test_what_is_left_to_the_text(torch, code):
    """An error, whose traceback a notebook then shows once, and values that are not those of a plain tensor."""
    x = eval(code, {"torch": torch})
    assert x._repr_html_() is None and x._repr_mimebundle_() is None


def test_error_is_left_to_the_text(torch):
    with pytest.raises(IndexError, match="out of range"):
        repr(torch.ones(2).index_select(0, torch.tensor([5])))


@pytest.mark.skipif(IN_PROCESS, reason="ends a connection")
def test_ended_session_is_left_to_the_text(torch):
    """The error of a connection is not shown twice."""
    x, address = torch.ones(2), torch.connection().address
    torch.disconnect()
    try:
        assert x._repr_html_() is None and x._repr_mimebundle_() is None
    finally:
        torch.connect(address)


@pytest.mark.skipif(IN_PROCESS, reason="describes a connection")
def test_connection(torch):
    connection = torch.connection()
    x = torch.ones(1 << 20)
    rows = dict(Table(connection._repr_html_()).rows)
    assert rows["address"] == connection.address and rows["engine"] == f"teletensord {torch.__version__}"
    assert "GiB" in rows["cpu"] and f"{x.nbytes >> 20} MiB in this session's tensors" in rows["cpu"]
    assert rows["limits"].startswith("memory without a limit; 1,048,576 tensors; ")
    waits = connection.counters()["waits"]
    assert repr(connection).startswith(f"<Connection to {connection.address}: session ")
    assert connection.counters()["waits"] == waits


@pytest.mark.skipif(IN_PROCESS, reason="stops a daemon")
def test_limit_and_an_engine_that_does_not_answer(torch, tmp_path):
    """The limit of the session; without an answer the table shows what is known without it."""
    daemon, address = Daemon(tmp_path), torch.connection().address
    try:
        torch.connect(daemon.address, memory_limit=3 << 20)
        assert dict(Table(torch.connection()._repr_html_()).rows)["limits"].startswith("3 MiB of memory; ")
        os.kill(daemon.process.pid, signal.SIGSTOP)
        threads = Path(f"/proc/{daemon.process.pid}/task")  # which stop one after the other
        eventually(lambda: all((each / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T" for each in threads.iterdir()))
        rows = dict(Table(torch.connection()._repr_html_()).rows)
        assert rows["limits"].startswith("1,048,576 tensors") and "this session" not in rows["cpu"]
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
        torch.disconnect()
        daemon.stop()
        torch.connect(address)


def test_text_of_an_engine_is_escaped():
    """What an engine states about itself is text, not HTML."""
    from teletensor import _connection_html

    class Hostile:
        address = "<script>alert(1)</script>"

        def engine(self):
            devices = [{"device": "cpu", "name": '<b onload="x">', "total_memory": 5, "compute_capability": "<i>", "driver": "&"}]
            return {"version": "<script>", "session": 1, "lease_seconds": 60.0, "devices": devices,
                    "limits": {"max_handles": 1, "max_frame_bytes": 2}}  # fmt: skip

        def counters(self):
            return {"instructions": 0, "frames": 0, "bytes_sent": 0, "round_trip": 0.0, "waits": 0}

    table = Table(_connection_html.connection_table(Hostile(), is_current=False))
    assert table.tags == TAGS
    assert dict(row for row in table.rows)["address"] == "<script>alert(1)</script>"


def test_completion(torch):
    """dir() has the names that are imported at their first use, and operators."""
    assert {"add", "nn", "optim", "float32", "export"} <= set(dir(torch))
    assert {"matmul", "shape", "grad", "to", "_repr_html_"} <= set(dir(torch.ones(1)))
    assert {"aten", "teletensor", "higher_order", "quantized_decomposed"} <= set(dir(torch.ops))
    assert {"add", "mm"} <= set(dir(torch.ops.aten)) and {"matmul", "sum"} <= set(dir(torch.ops.teletensor))
    assert "cond" in dir(torch.ops.higher_order) and "allreduce_" in dir(torch.ops.c10d)
    for space in "aten", "teletensor", "higher_order", "profiler", "c10d", "quantized_decomposed":
        for name in dir(getattr(torch.ops, space)):
            assert getattr(getattr(torch.ops, space), name) is not None, f"{space}.{name}"
    model = torch.nn.ModuleDict({"first": torch.nn.Linear(1, 1)})
    model.register_buffer("scale", torch.ones(1))
    assert {"first", "scale", "forward"} <= set(dir(model)) and "weight" in dir(model.first)
    assert "int" in dir(_scaled(torch))


def _scaled(torch):
    torch.library.define("notebook::scaled.int", "(Tensor x, int n) -> Tensor") if not hasattr(torch.ops.notebook, "scaled") else None
    assert "notebook" in dir(torch.ops) and dir(torch.ops.notebook) == list(torch.ops.notebook) == ["scaled"]
    return torch.ops.notebook.scaled
