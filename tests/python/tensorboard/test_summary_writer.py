"""torch.utils.tensorboard: what the writer writes, and TensorBoard reads."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import client_environment

pytest.importorskip("tensorboard", reason="the package tensorboard is not installed")

from .cases import CASES  # noqa: E402 - after the check
from .contents import contents  # noqa: E402

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))


@pytest.fixture
def tensorboard(torch):
    import teletensor.utils.tensorboard

    return teletensor.utils.tensorboard


def close_to(found, expected, path: str = "") -> None:
    """Compares contents; numbers to float32's precision."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), path
        for key in expected:
            close_to(found[key], expected[key], f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for position, pair in enumerate(zip(found, expected, strict=True)):
            close_to(*pair, f"{path}[{position}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6), path
    else:
        assert found == expected, path


@pytest.mark.parametrize("name", CASES)
def test_writes_what_pytorch_writes(torch, tensorboard, tmp_path, name):
    with tensorboard.SummaryWriter(tmp_path) as writer:
        CASES[name](torch, writer)
    close_to(contents(tmp_path), RECORDED[name])


def read(folder):
    """TensorBoard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def test_tensorboard_reads_a_run(torch, tensorboard, tmp_path):
    x = torch.linspace(0, 1, 50)
    with tensorboard.SummaryWriter(tmp_path, purge_step=2) as writer:
        for step in range(5):
            writer.add_scalar("loss", x.sum() * step, step)
        writer.add_histogram("values", x, 1)
        writer.add_image("picture", x[:48].reshape(3, 4, 4))
        writer.add_text("note", "text")
    found = read(tmp_path)
    tags = found.Tags()
    assert (tags["scalars"], tags["histograms"], tags["images"]) == (["loss"], ["values"], ["picture"])
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(step, pytest.approx(25.0 * step)) for step in range(5)]
    assert found.Histograms("values")[0].histogram_value.num == 50


def test_scalars_do_not_wait(torch, tensorboard, tmp_path):
    x = torch.rand(100)
    torch.synchronize()
    before = {row[:2]: row[2] for row in torch.connection().wait_report()}
    writer = tensorboard.SummaryWriter(tmp_path)
    for step in range(20):
        writer.add_scalar("a", x.sum() + step, step)
        writer.add_scalars("b", {"c": x.max()}, step)
        writer.add_histogram("h", x + 1, step)
    rows = {row[:2]: row[2] for row in torch.connection().wait_report()}
    waited = {key for key, count in rows.items() if key[1] == "read" and count != before.get(key)}
    assert not waited, waited
    x.zero_()  # the values are those of the calls
    writer.flush()
    assert all(e.value > e.step for e in read(tmp_path).Scalars("a"))
    writer.close()
    writer.add_scalar("a", 1.0, 99)  # opens a new file
    writer.close()
    assert len(list(tmp_path.glob("*tfevents*"))) == 2


def test_error_of_a_value_is_raised_and_other_events_are_written(torch, tensorboard, tmp_path):
    writer = tensorboard.SummaryWriter(tmp_path)
    with pytest.raises(torch.linalg.LinAlgError):
        writer.add_scalar("bad", torch.linalg.cholesky(-torch.eye(2)).sum(), 0)
        writer.flush()
    writer.add_scalar("good", torch.ones(()), 1)
    writer.close()
    assert read(tmp_path).Tags()["scalars"] == ["good"]


def test_graph(torch, tensorboard, tmp_path, capsys):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
            self.bias = torch.nn.Parameter(torch.zeros(4))

        def forward(self, x):
            return torch.add(self.body(x), self.bias, alpha=2).relu()

    with tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_graph(Net(), torch.rand(2, 3), verbose=True)
        with pytest.raises(RuntimeError, match="symbolic_trace can trace"):
            writer.add_graph(lambda x: x if x.sum() > 0 else -x)
        with pytest.raises(NotImplementedError):
            writer.add_graph(Net(), use_strict_trace=False)
    assert "body_0" in capsys.readouterr().out
    nodes = {node.name: node for node in read(tmp_path).Graph().node}
    assert [(name, node.op) for name, node in nodes.items()] == [
        ("x", "IO Node"), ("body/0", "Linear"), ("body/1", "ReLU"), ("bias", "Parameter"), ("add", "add"), ("relu", "relu"),
        ("output", "IO Node"),
    ]  # fmt: skip
    assert list(nodes["add"].input) == ["body/1", "bias"] and b"alpha" in nodes["add"].attr["attr"].s
    shape = nodes["body/0"].attr["_output_shapes"].list.shape[0]
    assert [d.size for d in shape.dim] == [2, 4]


@pytest.mark.slow
def test_video_and_figure(torch, tensorboard, tmp_path):
    from PIL import Image

    pyplot = pytest.importorskip("matplotlib.pyplot")
    frames = (torch.rand(3, 4, 1, 8, 6) * 255).to(torch.uint8)
    with tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_video("v", frames, fps=5)
        figure = pyplot.figure(figsize=(1, 0.5), dpi=100)
        figure.patch.set_facecolor("red")
        writer.add_figure("f", [figure, figure])
    found = read(tmp_path)
    video = Image.open(io.BytesIO(found.Images("v")[0].encoded_image_string))
    assert (video.format, video.n_frames, video.size, video.info["duration"]) == ("GIF", 4, (24, 8), 200)
    first = np.asarray(video.convert("L"))
    expected = np.concatenate([*frames[:, 0, 0].numpy(), np.zeros((8, 6))], axis=1)  # a fourth video is black
    assert np.array_equal(first, expected)
    picture = np.asarray(Image.open(io.BytesIO(found.Images("f")[0].encoded_image_string)))
    assert picture.shape == (50, 200, 3) and picture.reshape(-1, 3).tolist() == [[255, 0, 0]] * 10000
    assert not pyplot.get_fignums()


ERRORS = {
    "several elements": (lambda t, w: w.add_scalar("a", t.ones(2)), AssertionError, "one element"),
    "several numbers": (lambda t, w: w.add_scalar("a", np.ones(2)), AssertionError, "one element"),
    "text as number": (lambda t, w: w.add_scalar("a", [1]), NotImplementedError, "numpy array or torch tensor"),
    "empty histogram": (lambda t, w: w.add_histogram("h", t.ones(0)), ValueError, "no element"),
    "values outside": (lambda t, w: [w.add_histogram("h", t.ones(2), bins=[2, 3]), w.flush()], ValueError, "within the limits"),
    "limits": (lambda t, w: w.add_histogram("h", t.ones(2), bins=[3, 2]), ValueError, "ascending"),
    "bucket limits": (lambda t, w: w.add_histogram_raw("h", 0, 1, 1, 1, 1, [1], [1, 2]), ValueError, "len"),
    "image format": (lambda t, w: w.add_image("i", t.ones(2, 3)), AssertionError, "are different"),
    "repeated letter": (lambda t, w: w.add_image("i", t.ones(2, 3, 3), dataformats="CHH"), AssertionError, "twice"),
    "unknown letter": (lambda t, w: w.add_image("i", t.ones(2, 3, 3), dataformats="ABC"), AssertionError, "dataformats"),
    "channels": (lambda t, w: w.add_images("i", t.ones(2, 2, 3, 3)), AssertionError, "1 or 3"),
    "video": (lambda t, w: w.add_video("v", t.ones(3, 3, 3)), AssertionError, "channels"),
    "margin": (lambda t, w: w.add_custom_scalars_marginchart(["a"]), AssertionError, "Expected 3"),
    "labels": (lambda t, w: w.add_embedding(t.ones(2, 2), ["a"]), AssertionError, "#labels"),
    "embedding": (lambda t, w: w.add_embedding(t.ones(2)), AssertionError, "2D"),
    "hyperparameter": (lambda t, w: w.add_hparams({"a": [1]}, {}), ValueError, "value should be one of"),
    "domain": (lambda t, w: w.add_hparams({"a": 1}, {}, {"a": ["x"]}), TypeError, "list of same type"),
    "metrics": (lambda t, w: w.add_hparams({"a": 1}, [1]), TypeError, "dictionary"),
    "dtype": (lambda t, w: w.add_tensor("x", t.ones(1, dtype=t.uint16)), ValueError, "unsupported tensor dtype"),
    "onnx": (lambda t, w: w.add_onnx_graph("x"), NotImplementedError, "add_graph"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(torch, tensorboard, tmp_path, name):
    call, error, message = ERRORS[name]
    writer = tensorboard.SummaryWriter(tmp_path)
    with pytest.raises(error, match=message):
        call(torch, writer)
    writer.close()


def test_sound_outside_is_clipped(torch, tensorboard, tmp_path):
    with tensorboard.SummaryWriter(tmp_path) as writer, pytest.warns(UserWarning, match="clipped"):
        writer.add_audio("s", torch.tensor([2.0, -2.0]))


def test_default_folder_and_values_at_exit(torch, tmp_path):
    script = (
        "import teletensor as torch\nfrom teletensor.utils.tensorboard import SummaryWriter\n"
        "w = SummaryWriter(comment='-x')\nw.add_scalar('a', torch.ones(3).sum(), 1)\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=60, env=client_environment())
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("-x") and read(folder).Scalars("a")[0].value == 3


def test_error_without_tensorboard():
    script = "import sys; sys.modules['tensorboard'] = None\nimport teletensor.utils.tensorboard"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
                           env=client_environment())  # fmt: skip
    assert "ModuleNotFoundError: [torch.utils.tensorboard]" in found.stderr and "pip install tensorboard" in found.stderr
