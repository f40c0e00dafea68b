"""Small models of common kinds, of modules that PyTorch has too. Used by the tests and by benchmarks/onnx_export.py."""

from __future__ import annotations

from typing import Any

# Name: (function of torch that returns the module, shapes of the inputs, dynamic sizes). "i" inputs are indices.
MODELS: dict[str, tuple[Any, Any, Any]] = {}


def _model(name: str, inputs: Any, dynamic: Any) -> Any:
    def add(make: Any) -> Any:
        MODELS[name] = (make, inputs, dynamic)
        return make

    return add


def example(torch: Any, inputs: Any, sizes: dict[str, int]) -> tuple:
    """Arguments: ("f", sizes) or ("i", bound, sizes), with names for dynamic sizes."""
    made = []
    for kind, *rest in inputs:
        shape = [sizes.get(n, n) for n in rest[-1]]
        made.append(torch.randn(*shape) if kind == "f" else torch.randint(0, rest[0], tuple(shape)))
    return tuple(made)


@_model("character GPT", [("i", 65, ["batch", "length"])], {"tokens": {0: "batch", 1: "length"}})
def gpt(torch: Any, width: int = 64, heads: int = 4, layers: int = 2, symbols: int = 65) -> Any:
    """A decoder of characters."""
    nn, F = torch.nn, torch.nn.functional  # noqa: N806

    class Block(nn.Module):
        """Attention and a feed-forward layer."""

        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            """One step."""
            batch, length, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        """The model."""

        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(symbols, width), nn.Embedding(128, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, tokens: Any) -> Any:
            """Logits."""
            places = torch.arange(tokens.shape[1], device=tokens.device)
            return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(places))))

    return GPT()


@_model("ResNet-18", [("f", ["batch", 3, 64, 64])], {"x": {0: "batch"}})
def resnet(torch: Any, blocks: tuple = (2, 2, 2, 2), base: int = 16) -> Any:
    """Residual blocks as in ResNet-18, with fewer channels."""
    nn = torch.nn

    class Block(nn.Module):
        """Two convolutions and a shortcut."""

        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
            self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU(inplace=True)
            self.short = None
            if stride != 1 or inputs != outputs:
                self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x: Any) -> Any:
            """The sum of both ways."""
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            y += x if self.short is None else self.short(x)
            return self.relu(y)

    class ResNet(nn.Module):
        """The model."""

        def __init__(self) -> None:
            super().__init__()
            parts = nn.Conv2d(3, base, 7, 2, 3, bias=False), nn.BatchNorm2d(base), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
            self.stem = nn.Sequential(*parts)
            layers, inputs = [], base
            for i, count in enumerate(blocks):
                for j in range(count):
                    layers.append(Block(inputs, base << i, 2 if i and not j else 1))
                    inputs = base << i
            self.layers, self.pool, self.head = nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), nn.Linear(inputs, 10)

        def forward(self, x: Any) -> Any:
            """Logits."""
            return self.head(torch.flatten(self.pool(self.layers(self.stem(x))), 1))

    return ResNet()


@_model("MobileNetV3", [("f", ["batch", 3, 64, 64])], {"x": {0: "batch"}})
def mobilenet(torch: Any) -> Any:
    """Inverted residual blocks with squeeze and excitation, as in MobileNetV3 small."""
    nn = torch.nn

    class Squeeze(nn.Module):
        """Weights of channels."""

        def __init__(self, width: int) -> None:
            super().__init__()
            self.pool, self.down, self.up = nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)
            self.relu, self.gate = nn.ReLU(), nn.Hardsigmoid()

        def forward(self, x: Any) -> Any:
            """The weighted channels."""
            return x * self.gate(self.up(self.relu(self.down(self.pool(x)))))

    class Block(nn.Module):
        """Expansion, depthwise convolution, projection."""

        def __init__(self, inputs: int, wide: int, outputs: int, kernel: int, stride: int, squeeze: bool, hard: bool) -> None:
            super().__init__()
            act = nn.Hardswish if hard else nn.ReLU
            parts = [nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), act(inplace=True)]
            parts += [nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False), nn.BatchNorm2d(wide), act(inplace=True)]
            parts += [Squeeze(wide)] if squeeze else []
            self.parts = nn.Sequential(*parts, nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
            self.keeps = stride == 1 and inputs == outputs

        def forward(self, x: Any) -> Any:
            """One step."""
            return x + self.parts(x) if self.keeps else self.parts(x)

    rows = [(16, 16, 16, 3, 2, True, False), (16, 72, 24, 3, 2, False, False), (24, 88, 24, 3, 1, False, False),
            (24, 96, 40, 5, 2, True, True), (40, 240, 40, 5, 1, True, True), (40, 120, 48, 5, 1, True, True)]  # fmt: skip

    class MobileNet(nn.Module):
        """The model."""

        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(inplace=True))
            self.blocks = nn.Sequential(*[Block(*row) for row in rows])
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.head = nn.Sequential(nn.Linear(48, 96), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(96, 10))

        def forward(self, x: Any) -> Any:
            """Logits."""
            return self.head(self.pool(self.blocks(self.stem(x))).flatten(1))

    return MobileNet()


@_model("LSTM tagger", [("i", 200, ["batch", "length"])], {"tokens": {0: "batch", 1: "length"}})
def tagger(torch: Any) -> Any:
    """A bidirectional LSTM over words."""
    nn = torch.nn

    class Tagger(nn.Module):
        """The model."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(200, 32), nn.Linear(64, 9)
            self.lstm = nn.LSTM(32, 32, 2, batch_first=True, bidirectional=True)

        def forward(self, tokens: Any) -> Any:
            """Logarithms of probabilities."""
            return self.head(self.lstm(self.words(tokens))[0]).log_softmax(-1)

    return Tagger()


@_model("transformer encoder", [("f", ["batch", "length", 64])], {"src": {0: "batch", 1: "length"}})
def encoder(torch: Any) -> Any:
    """PyTorch's own encoder."""
    nn = torch.nn
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2, enable_nested_tensor=False)


@_model("MiniLM-like BERT", [("i", 300, ["batch", "length"]), ("i", 2, ["batch", "length"])],
        {"ids": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}})  # fmt: skip
def bert(torch: Any, width: int = 64, heads: int = 4, layers: int = 2) -> Any:
    """An encoder of sentences, with attention written out, and the mean of the tokens that the mask keeps."""
    nn = torch.nn

    class Layer(nn.Module):
        """One layer of BERT."""

        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
            self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any, bias: Any) -> Any:
            """One step."""

            def split(y: Any) -> Any:
                return y.view(y.size(0), y.size(1), heads, width // heads).transpose(1, 2)

            q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
            scores = q @ k.transpose(-1, -2) / (width // heads) ** 0.5 + bias
            y = (scores.softmax(-1) @ v).transpose(1, 2).contiguous().flatten(2)
            x = self.norm1(x + self.out(y))
            return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))

    class Bert(nn.Module):
        """The model."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.places, self.kinds = nn.Embedding(300, width), nn.Embedding(64, width), nn.Embedding(2, width)
            self.norm = nn.LayerNorm(width, 1e-12)
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])

        def forward(self, ids: Any, mask: Any) -> Any:
            """Unit vectors."""
            places = torch.arange(ids.size(1), device=ids.device).unsqueeze(0)
            x = self.norm(self.words(ids) + self.places(places) + self.kinds(torch.zeros_like(ids)))
            bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
            for layer in self.layers:
                x = layer(x, bias)
            kept = mask.unsqueeze(-1).to(x.dtype)
            mean = (x * kept).sum(1) / kept.sum(1).clamp(min=1e-9)
            return nn.functional.normalize(mean, p=2, dim=1)

    return Bert()
