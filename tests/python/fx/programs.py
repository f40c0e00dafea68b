"""Programs that are traced: each function takes the module `torch` and returns a module or function, and its inputs' sizes."""

import math
import operator
from types import ModuleType
from typing import Any, Callable, Optional

Program = tuple[Any, list[tuple[int, ...]]]


def arithmetic(torch: ModuleType) -> Program:
    def f(x, y):
        a = x + y * 2 - 1 / (x * x + 1)
        b = -a // 3 + a % 2 + (a**2) @ y.T
        return b[:, 0], b[0, ..., None], 2**b.sum() > 3, abs(y), x != y

    return f, [(3, 3), (3, 3)]


def methods(torch: ModuleType) -> Program:
    def f(x):
        y = x.view(2, 3).transpose(0, 1).contiguous()
        return y.relu().sum(dim=-1, keepdim=True), y.shape[0] * y.mean(), y.size(1)

    return f, [(6,)]


def defaults(torch: ModuleType) -> Program:
    def f(x, scale: float = 0.5, bias=None, *, power: int = 2):
        return {"value": x * scale, "list": [x, (x,), x**power]}

    return f, [(2,)]


def annotated(torch: ModuleType) -> Program:
    def f(x: torch.Tensor, n: int = 3, m: Optional[list[float]] = None, k: "int" = 2) -> torch.Tensor:
        return x * n

    return f, [(2,)]


def perceptron(torch: ModuleType) -> Program:
    class Perceptron(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
            self.scale = torch.nn.Parameter(torch.ones(2))
            self.register_buffer("shift", torch.full((2,), 0.5))

        def forward(self, x):
            return self.layers(x) * self.scale + self.shift

    return Perceptron(), [(3, 4)]


def residual(torch: ModuleType) -> Program:
    class Block(torch.nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(channels)
            self.act = torch.nn.ReLU(inplace=False)

        def forward(self, x):
            return self.act(x + self.norm(self.conv(x)))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = torch.nn.Conv2d(1, 4, 3)
            self.blocks = torch.nn.ModuleList([Block(4), Block(4)])
            self.head = torch.nn.Linear(4, 3)

        def forward(self, x):
            x = self.stem(x)
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean((2, 3)))

    return Net().eval(), [(2, 1, 6, 6)]


def shared(torch: ModuleType) -> Program:
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.lin(self.lin(x) + self.lin.weight) + self.lin.bias

    return Shared(), [(3, 3)]


def names(torch: ModuleType) -> Program:
    def f(input, type, len, mul):
        list = input * type
        x_1 = list + 1
        return x_1 * mul - len

    return f, [(2,), (2,), (2,), (2,)]


def constants(torch: ModuleType) -> Program:
    weights = torch.arange(3, dtype=torch.float32)

    def f(x):
        return x * weights + weights - torch.zeros(3)

    return f, [(3,)]


def variadic(torch: ModuleType) -> Program:
    def f(x, *rest, **options):
        return rest[0] + x, rest

    return f, [(2,), (2,)]


def unpacked(torch: ModuleType) -> Program:
    def f(x):
        values, indices = x.max(dim=0)
        a, b, c = values.unbind()
        return a + b * c, indices

    return f, [(2, 3)]


def functional(torch: ModuleType) -> Program:
    F = torch.nn.functional

    def f(x, w):
        y = F.relu(torch.add(x, 1, alpha=2))
        z = torch.cat([y, torch.sigmoid(w)], dim=1)
        z = F.softmax(torch.matmul(z, z.transpose(0, 1)), dim=-1)
        values, _ = torch.topk(z, 2)
        return torch.where(z > 0.3, z, torch.zeros_like(z)), torch.sum(values), torch.stack((x, w)).flatten(1)

    return f, [(3, 2), (3, 2)]


def convolution(torch: ModuleType) -> Program:
    F = torch.nn.functional

    def f(x, w):
        y = F.conv2d(x, w, stride=2, padding=1)
        y = F.layer_norm(y, (3, 3))
        return F.adaptive_avg_pool2d(F.gelu(y), (1, 1)).squeeze(), F.pad(y, (1, 1)), F.dropout(y, 0.5, training=False)

    return f, [(2, 1, 5, 5), (3, 1, 3, 3)]


def mixed_arguments(torch: ModuleType) -> Program:
    bias = torch.ones(2)

    def f(x):
        return bias.add(x), bias + x, torch.mul(bias, x), torch.full((2,), 2.0).sub(x, alpha=2), bias[x.long()]

    return f, [(2,)]


def asserting(torch: ModuleType) -> Program:
    def f(x):
        torch._assert(x.dim() == 1, "one dimension")
        return x + 1

    return f, [(2,)]


def transformer(torch: ModuleType) -> Program:
    F = torch.nn.functional

    class Attention(torch.nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.qkv = torch.nn.Linear(width, 3 * width)
            self.out = torch.nn.Linear(width, width)

        def forward(self, x):
            b, n, c = x.shape
            q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(b, n, c))

    class Block(torch.nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.attention = Attention(width, heads)
            self.mlp = torch.nn.Sequential(
                torch.nn.Linear(width, 2 * width), torch.nn.GELU(), torch.nn.Linear(2 * width, width)
            )

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    return Block(8, 2), [(2, 5, 8)]


def recurrent(torch: ModuleType) -> Program:
    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(3, 4, batch_first=True)
            self.head = torch.nn.Linear(4, 2)

        def forward(self, x):
            y, (h, c) = self.lstm(x)
            return self.head(y), h + c

    return Tagger(), [(2, 5, 3)]


def math_functions(torch: ModuleType) -> Program:
    def f(x):
        return x * math.sqrt(2.0) + float("inf"), operator.neg(x), x.new_zeros(2) + math.pi

    return f, [(2,)]


# Programs of operators, methods and modules only.
PLAIN: tuple[Callable, ...] = (
    arithmetic, methods, defaults, annotated, perceptron, residual, shared, names, constants, variadic, unpacked, recurrent,
    math_functions,
)  # fmt: skip
# Programs that call the library's functions with proxies.
CALLING: tuple[Callable, ...] = (functional, convolution, mixed_arguments, asserting, transformer)
