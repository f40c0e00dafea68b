"""Whole models on a GPU: training, compiled and traced functions give the CPU's numbers."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request

import pytest

from tests.conftest import IN_PROCESS
from tests.python.distributed.ranks import free_port

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="the engine in this process has no GPU")


def convolutions(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.GroupNorm(2, 8), nn.Hardswish(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(32, 5),
    ), (torch.rand(4, 3, 8, 8),)  # fmt: skip


def recurrent(torch):
    class Reader(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = torch.nn.LSTM(6, 5, batch_first=True), torch.nn.GRU(5, 5, batch_first=True)
            self.head = torch.nn.Linear(5, 5)

        def forward(self, x):
            return self.head(self.gru(self.lstm(x)[0])[0][:, -1])

    return Reader(), (torch.rand(4, 7, 6),)


def transformer(torch):
    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(11, 16)
            layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, activation="gelu", batch_first=True)
            self.layers, self.head = torch.nn.TransformerEncoder(layer, 2), torch.nn.Linear(16, 5)

        def forward(self, tokens):
            return self.head(self.layers(self.words(tokens)).mean(1))

    return Encoder(), (torch.randint(0, 11, (4, 9)),)


def decoder(torch):
    """Causal attention, RMS norm, rotation of positions and a gated layer, written out."""
    nn, F = torch.nn, torch.nn.functional

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.qkv, self.out = nn.RMSNorm(16), nn.Linear(16, 48, bias=False), nn.Linear(16, 16)
            self.gate, self.up, self.down = nn.Linear(16, 24), nn.Linear(16, 24), nn.Linear(24, 5)
            angles = torch.arange(6.0)[:, None] / 10 ** (torch.arange(0, 8, 2) / 8)
            self.register_buffer("angles", angles)

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))

            def rotated(t):
                a, b = t.chunk(2, -1)
                cos, sin = self.angles.cos(), self.angles.sin()
                return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

            y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return self.down(F.silu(self.gate(x)) * self.up(x))[:, -1]

    return Decoder(), (torch.randn(4, 6, 16),)


MODELS = {f.__name__: f for f in (convolutions, recurrent, transformer, decoder)}


@pytest.fixture(params=MODELS)
def model(torch, request):
    """A function that makes the model and its arguments, with the same numbers in each call, on a device."""

    def make(device: str):
        torch.manual_seed(0)
        module, inputs = MODELS[request.param](torch)
        return module.to(device), tuple(x.to(device) for x in inputs)

    return make


def trained(torch, model, device: str, steps: int = 4, wrap=lambda module: module) -> list:
    """The losses of a few steps of AdamW, and the parameters after them, on the CPU."""
    module, inputs = model(device)
    labels = torch.arange(4).to(device)
    optimizer = torch.optim.AdamW(module.parameters(), 1e-3)
    callable_, losses = wrap(module), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(callable_(*inputs), labels, label_smoothing=0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [t.cpu() for t in [*losses, *module.state_dict().values()]]


def assert_equal(torch, ours, expected, tolerance: float) -> None:
    assert len(ours) == len(expected)
    for got, wanted in zip(ours, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


def test_training_equals_the_cpu(torch, model):
    """AdamW's first steps are as large for a small gradient as for a large one, hence the tolerance of its steps."""
    assert_equal(torch, trained(torch, model, "cuda"), trained(torch, model, "cpu"), 2e-3)


def test_gradients_equal_the_cpus(torch, model):
    found = {}
    for device in ("cpu", "cuda"):
        module, inputs = model(device)
        torch.nn.functional.cross_entropy(module(*inputs), torch.arange(4).to(device)).backward()
        found[device] = [p.grad.cpu() for p in module.parameters()]
    assert_equal(torch, found["cuda"], found["cpu"], 1e-4)


def test_compiled_training(torch, model):
    ours = trained(torch, model, "cuda", wrap=lambda module: torch.compile(module))
    assert_equal(torch, ours, trained(torch, model, "cuda"), 2e-3)


def test_traced_inference(torch, model):
    module, inputs = model("cuda")
    module.eval()
    with torch.no_grad():
        expected = module(*inputs)
        program = torch.compiler.trace(module, *inputs)
        for _ in range(3):
            torch.testing.assert_close(program(*inputs), expected, rtol=1e-4, atol=1e-5)


def test_graph_of_inference(torch, model):
    module, inputs = model("cuda")
    module.eval()
    with torch.no_grad():
        expected, graph = module(*inputs), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            static = module(*inputs)
        graph.replay()
        torch.testing.assert_close(static, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_autocast_lowers_the_loss(torch, model, dtype):
    """Mixed precision with scaled gradients trains: the loss decreases, and no step is skipped after the first few."""
    module, inputs = model("cuda")
    labels = torch.arange(4, device="cuda")
    optimizer = torch.optim.SGD(module.parameters(), 0.05)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10, enabled=dtype == "float16")
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        with torch.autocast("cuda", getattr(torch, dtype)):
            loss = torch.nn.functional.cross_entropy(module(*inputs).float(), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    losses = torch.stack(losses).tolist()
    assert losses[-1] < losses[0], losses


def serve(torch, module, inputs, own_daemon, folder):
    """A function of the model's inputs that a daemon answers with an instance on its GPU; raises AssertionError with its errors."""
    (folder / "net").mkdir()
    torch.serving.save(module.eval(), folder / "net" / "1", *inputs)
    (folder / "net" / "config.json").write_text(json.dumps({"instance_group": [{"kind": "KIND_GPU", "gpus": [0]}]}))
    place = f"127.0.0.1:{free_port()}"
    engine = own_daemon("--models", str(folder), "--http", place)
    until = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(f"http://{place}/v2/models/net/ready").read()
            break
        except urllib.error.URLError as error:
            if time.monotonic() > until:
                engine.log.seek(0)
                raise AssertionError(f"the model is not ready: {error}, {engine.log.read()}") from error
            time.sleep(0.05)
    described = json.load(urllib.request.urlopen(f"http://{place}/v2/models/net"))

    def infer(*values):
        request = {"inputs": [
            {"name": port["name"], "shape": list(x.shape), "datatype": port["datatype"], "data": x.flatten().tolist()}
            for port, x in zip(described["inputs"], values, strict=True)
        ]}  # fmt: skip
        asked = urllib.request.Request(f"http://{place}/v2/models/net/infer", json.dumps(request).encode())
        try:
            (output,) = json.load(urllib.request.urlopen(asked))["outputs"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error
        return torch.tensor(output["data"]).view(output["shape"])

    return infer


def test_served_model(torch, model, own_daemon, tmp_path):
    """A model with an instance on the GPU answers with the numbers of the session that saved it."""
    module, inputs = model("cpu")
    got = serve(torch, module, inputs, own_daemon, tmp_path)(*inputs)
    with torch.no_grad():
        torch.testing.assert_close(got, module(*inputs), rtol=1e-3, atol=1e-4)


def test_error_of_a_served_model(torch, own_daemon, tmp_path):
    """An index that the GPU finds to be out of range is an error of its request only."""
    torch.manual_seed(0)
    module, (tokens,) = transformer(torch)
    infer = serve(torch, module, (tokens,), own_daemon, tmp_path)
    expected = infer(tokens)
    for _ in range(2):
        with pytest.raises(AssertionError, match="index out of range in self"):
            infer(torch.full_like(tokens, 99))
        torch.testing.assert_close(infer(tokens), expected, rtol=1e-4, atol=1e-5)
