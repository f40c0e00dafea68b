"""torch.ops.onednn in programs, and with invalid arguments. Values: rows.py."""

import math
import subprocess
import sys

import pytest


def layers(torch):
    """A model of a linear layer and a convolution, and inputs."""
    O = torch.ops.onednn  # noqa: E741, N806 - used often, hence short

    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            w, c = torch.arange(48) % 13 - 6, torch.arange(108) % 11 - 5
            self.register_buffer("w", O.qlinear_prepack(w.reshape(6, 8).to(torch.int8), None))
            filters, lists = c.reshape(4, 3, 3, 3).to(torch.int8), ([1, 1], [1, 1], [1, 1])
            self.register_buffer("c", O.qconv_prepack(filters, torch.ones(4), 1.0, 0, *lists, 1))
            self.register_buffer("ws", torch.arange(1, 7) * 0.01)
            self.register_buffer("cs", torch.arange(1, 5) * 0.01)
            self.register_buffer("zeros", torch.zeros(6, dtype=torch.int32))

        def forward(self, x, y):
            a = O.qlinear_pointwise(x, 0.1, 3, self.w, self.ws, self.zeros, None, 0.05, 10, torch.uint8, "relu", [], "")
            lists = [1, 1], [1, 1], [1, 1]
            b = O.qconv2d_pointwise(y, 0.1, 3, self.c, self.cs, self.zeros, None, *lists, 1, 1.0, 0, torch.float32, "none", [], "")
            return a, b

    x = (torch.arange(16) * 37 % 256).to(torch.uint8).reshape(2, 8)
    return Layers(), (x, (torch.arange(75) * 41 % 256).to(torch.uint8).reshape(1, 3, 5, 5))


def test_programs(torch, tmp_path):
    model, inputs = layers(torch)
    expected = model(*inputs)
    program = torch.export.export(model, inputs)
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert targets == ["onednn.qlinear_pointwise.default", "onednn.qconv2d_pointwise.default"]
    for found in (program.module()(*inputs), torch.compile(model)(*inputs)):
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    torch.export.save(program, tmp_path / "m.pt2")
    torch.save((inputs, expected), tmp_path / "m.pt")
    code = (
        "import sys, teletensor as torch\n"
        "inputs, expected = torch.load(sys.argv[2])\n"
        "found = torch.export.load(sys.argv[1]).module()(*inputs)\n"
        "print(all(torch.equal(a, b) for a, b in zip(found, expected)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.pt2"), str(tmp_path / "m.pt")], capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr


def test_invalid_arguments_are_rejected(torch):
    O = torch.ops.onednn  # noqa: E741, N806
    model, (x, y) = layers(torch)
    w, ws, c, cs, zeros, ones = model.w, model.ws, model.c, model.cs, model.zeros, [1, 1]

    def linear(x=x, scale=0.1, point=3, w=w, ws=ws, bias=None, out=1.0, out_point=0, dtype=torch.float32, post="none", args=(), alg=""):
        return O.qlinear_pointwise(x, scale, point, w, ws, zeros, bias, out, out_point, dtype, post, list(args), alg)

    def conv(y=y, c=c, cs=cs, bias=None, stride=ones, padding=ones, dilation=ones, groups=1, out=1.0, out_point=0, dtype=torch.float32,
             post="none", args=()):  # fmt: skip
        lists = stride, padding, dilation
        return O.qconv_pointwise(y, 0.1, 3, c, cs, zeros, bias, *lists, groups, out, out_point, dtype, post, list(args), "")

    assert linear().shape == (2, 6) and conv().shape == (1, 4, 5, 5)
    assert linear(x=x[:0]).shape == (0, 6)
    for call in (
        lambda: linear(ws=ws[:3]), lambda: linear(ws=ws[:0]), lambda: linear(bias=ws[:2]), lambda: linear(x=x[:, :7]),
        lambda: linear(w=w[0]),
        lambda: linear(x=x[0, 0]), lambda: linear(x=x.int()), lambda: linear(w=w.float()), lambda: linear(post="sigmoid"),
        lambda: linear(post="hardtanh", args=[None, 1.0]), lambda: linear(dtype=torch.int32), lambda: linear(dtype=torch.int64),
        lambda: linear(dtype=torch.uint8, out=0.0), lambda: linear(dtype=torch.uint8, out=-1.0),
        lambda: linear(dtype=torch.uint8, out=math.nan),
        lambda: linear(dtype=torch.uint8, out=math.inf), lambda: linear(dtype=torch.uint8, out_point=256),
        lambda: linear(dtype=torch.int8, out_point=-129), lambda: linear(out=2.0), lambda: linear(out_point=1),
        lambda: conv(cs=cs[:2]), lambda: conv(bias=cs[:1]), lambda: conv(stride=[0, 1]), lambda: conv(stride=[1, 1, 1]),
        lambda: conv(padding=[-1, 0]), lambda: conv(dilation=[0, 1]), lambda: conv(groups=0), lambda: conv(groups=-1),
        lambda: conv(groups=2),
        lambda: conv(y=y[0, 0]), lambda: conv(y=y[:, :2]), lambda: conv(c=c[0]), lambda: conv(y=y[:, :, 0]), lambda: conv(post="gelu"),
        lambda: conv(padding=[2**62, 2**62]), lambda: conv(stride=[2**63 - 1, 1], padding=[2**63 - 1, 0]),
        lambda: O.qlinear_prepack(torch.ones(2, 2), None), lambda: O.qlinear_prepack(torch.ones(2, dtype=torch.int8), None),
        lambda: O.qconv_prepack(torch.ones(2, 2, dtype=torch.int8), cs, 0.1, 0, ones, ones, ones, 1),
        lambda: O.linear_dynamic_fp16(torch.ones(2, 2), torch.ones(2, 2), None), lambda: O.linear_prepack_fp16(torch.ones(2), None),
        lambda: O.qadd(x, 0.1, 0, x[:1], 0.1, 0, 0.1, 0, torch.uint8), lambda: O.qadd(x, 0.1, 0, x, 0.1, 0, 0.0, 0, torch.uint8),
        lambda: O.qmul(x.int(), 0.1, 0, x, 0.1, 0, 0.1, 0, torch.uint8), lambda: O.qmul(x, 0.1, 0, x, 0.1, 0, 0.1, 300, torch.uint8),
        lambda: O.qbatch_norm2d(y, 0.1, 0, torch.ones(2), *[torch.ones(3)] * 3, 1e-5, 0.1, 0, torch.uint8),
        lambda: O.qlinear_pointwise.tensor(x, ws, torch.tensor(3), w, ws, zeros, None, 1.0, 0, torch.float32, "none", [], ""),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            call()


def test_results_are_written_into_sums(torch):
    model, (x, _) = layers(torch)
    other = torch.ones(2, 6)
    alike = x, 0.1, 3, model.w, model.ws, model.zeros
    found = torch.ops.onednn.qlinear_pointwise.binary(*alike, other, None, 1.0, 0, torch.float32, 1.0, 0, "sum", 1.0, "none", [], "")
    assert torch.equal(found, other) and not torch.equal(other, torch.ones(2, 6))


def test_weights_are_copies(torch):
    w = torch.ones(2, 4, dtype=torch.int8)
    packed = torch.ops.onednn.qlinear_prepack(w, None)
    w.fill_(0)
    assert packed.shape == (4, 2) and int(packed.sum()) == 8
