"""Models and inputs that the recorded results of PyTorch and the tests share. `torch` is PyTorch or teletensor."""

import numpy as np


def classes(torch):
    nn, F = torch.nn, torch.nn.functional  # noqa: N806

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

        def forward(self, x):
            return self.second(F.relu(self.first(x)))

    class ConvBn(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.fc = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)

        def forward(self, x):
            x = F.relu(self.bn(self.conv(x)))
            x = x + x
            return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, bias=False)
            self.relu, self.relu2, self.pool, self.head = nn.ReLU(), nn.ReLU(), nn.MaxPool2d(2), nn.Linear(36, 3)

        def forward(self, x):
            y = self.relu(self.a(x))
            y = self.relu2(self.b(y) + x)
            return self.head(torch.flatten(self.pool(y), 1))

    class Cat(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 2, 1), nn.Conv2d(3, 3, 1)

        def forward(self, x):
            return torch.cat([self.a(x), self.b(x)], 1) * 0.5

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(10, 6), nn.Linear(6, 2)

        def forward(self, i):
            return self.out(self.table(i))

    return {"mlp": Mlp, "conv_bn": ConvBn, "residual": Residual, "cat": Cat, "words": Words}


SHAPES = {"mlp": (6, 8), "conv_bn": (2, 3, 8, 8), "residual": (2, 4, 6, 6), "cat": (2, 3, 4, 4), "words": (3, 4)}


def model(torch, name):
    """The model with weights that depend on its name only."""
    made = classes(torch)[name]()
    rng = np.random.default_rng(len(name))
    with torch.no_grad():
        for key, value in sorted(made.state_dict().items()):
            if value.is_floating_point():
                values = rng.standard_normal(tuple(value.shape)).astype(np.float32) * 0.3
                value.copy_(torch.tensor(np.abs(values) + 0.5 if key.endswith("var") else values))
    return made


def inputs(torch, name, count=3):
    """Inputs for calibration."""
    rng = np.random.default_rng(7)
    if name == "words":
        return [torch.tensor(rng.integers(0, 10, SHAPES[name])) for _ in range(count)]
    return [torch.tensor(rng.standard_normal(SHAPES[name]).astype(np.float32)) for _ in range(count)]


# name: the model and the quantizer. torchao's XNNPACKQuantizer does not find torch.cat in exported graphs; ours does.
CASES = {
    f"{model}-{kind}": (model, kind)
    for model in SHAPES
    for kind in ("xnnpack", "xnnpack-channels", "xnnpack-dynamic", "x86", "x86-dynamic", "arm", "arm-dynamic", "embedding")
    if (kind == "embedding") == (model == "words") and (model != "cat" or kind not in ("xnnpack", "xnnpack-channels"))
}
QAT = {f"{model}-{kind}": (model, kind) for model in ("mlp", "conv_bn") for kind in ("xnnpack", "xnnpack-channels", "x86", "arm")}


def quantizer(names, kind, is_qat=False):
    """The quantizer of a kind. `names`: the quantizers and configurations by name."""
    if kind == "embedding":
        linear = names["XNNPACKQuantizer"]().set_global(names["get_symmetric_quantization_config"]())
        return names["ComposableQuantizer"]([names["EmbeddingQuantizer"](), linear])
    dynamic = kind.endswith("dynamic")
    for processor, title in (("x86", "X86"), ("arm", "Arm")):
        if kind.startswith(processor):
            config = names[f"get_default_{processor}_inductor_quantization_config"](is_qat=is_qat, is_dynamic=dynamic)
            return names[f"{title}InductorQuantizer"]().set_global(config)
    config = names["get_symmetric_quantization_config"](is_per_channel=kind != "xnnpack", is_qat=is_qat, is_dynamic=dynamic)
    return names["XNNPACKQuantizer"]().set_global(config)
