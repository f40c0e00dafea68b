"""HTML of tensors and sessions, and completion, without a notebook."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from tests.conftest import IN_PROCESS


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
    class Named(torch.Tensor):
        def __repr__(self):
            return "a name"

    assert torch.ones(1).as_subclass(Named)._repr_html_() is None


def test_error_is_left_to_the_text(torch):
    """A notebook shows the traceback of the text once."""
    x = torch.linalg.inv(torch.zeros(2, 2))
    assert x._repr_html_() is None
    with pytest.raises(RuntimeError, match="singular"):
        repr(x)


@pytest.mark.skipif(IN_PROCESS, reason="describes a connection")
def test_connection(torch):
    connection = torch.connection()
    waits = connection.counters()["waits"]
    rows = dict(Table(connection._repr_html_()).rows)
    assert rows["address"] == connection.address and rows["engine"] == f"teletensord {torch.__version__}"
    assert "GiB" in rows["cpu"] and "1,048,576 tensors" in rows["limits"]
    assert repr(connection).startswith(f"<Connection to {connection.address}: session ")
    assert connection.counters()["waits"] == waits


def test_text_of_an_engine_is_escaped():
    """What an engine states about itself is text, not HTML."""
    from teletensor import _html

    class Hostile:
        address = "<script>alert(1)</script>"

        def engine(self):
            devices = [{"device": "cpu", "name": '<b onload="x">', "total_memory": 5, "compute_capability": "<i>", "driver": "&"}]
            return {"version": "<script>", "session": 1, "lease_seconds": 60.0, "devices": devices,
                    "limits": {"max_handles": 1, "max_frame_bytes": 2}}  # fmt: skip

        def counters(self):
            return {"instructions": 0, "frames": 0, "bytes_sent": 0, "round_trip": 0.0, "waits": 0}

    table = Table(_html._connection_html(Hostile()))
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
    assert "notebook" in dir(torch.ops) and dir(torch.ops.notebook) == ["scaled"]
    return torch.ops.notebook.scaled
