"""Modules that are exported, with example arguments and their dynamic sizes."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple


class Case(NamedTuple):
    """A module, a function of a batch size that makes arguments, and the sizes that may differ."""

    module: Any
    arguments: Any
    dynamic: Any


def cases(torch: ModuleType) -> dict[str, Case]:
    nn, F = torch.nn, torch.nn.functional
    batch = torch.export.Dim("batch", max=64)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)
            self.out = nn.Linear(3, 2)

        def forward(self, x):
            h = F.relu(self.norm(self.conv(x)) + x)
            h = F.max_pool2d(h, 2)
            return self.out(h.mean((2, 3)))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
            h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + self.out(h.transpose(1, 2).reshape(b, t, c))

    class Written(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))
            self.register_buffer("last", torch.zeros(3), persistent=False)
            self.scale = torch.tensor([1.0, 2.0, 3.0])

        def forward(self, x, options):
            self.count.add_(1)
            self.last = x.sum(0)
            y = x * self.scale + options["shift"]
            with torch.no_grad():
                z = y * 2
            return {"y": y, "z": [z, self.count[0] + 1]}

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(4, 5)

        def forward(self, x):
            state = None
            for step in x.unbind(1):
                state = self.cell(step, state)
            return state

    def mlp():
        return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 2), nn.Softmax(-1)).eval()

    images = lambda n: (torch.randn(n, 3, 8, 8),)  # noqa: E731
    return {
        "mlp": Case(mlp(), lambda n: (torch.randn(n, 4),), ({0: batch},)),
        "cnn_eval": Case(Residual().eval(), images, ({0: batch},)),
        "cnn_train": Case(Residual(), images, ({0: batch},)),
        "attention": Case(Attention(), lambda n: (torch.randn(2, n, 8),), ({1: batch},)),
        "written": Case(Written(), lambda n: (torch.randn(n, 3), {"shift": torch.randn(3)}), ({0: batch}, {"shift": None})),
        "lstm_cell": Case(Cell(), lambda n: (torch.randn(n, 3, 4),), ({0: batch},)),
        "encoder": Case(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), lambda n: (torch.randn(n, 5, 8),), ({0: batch},)
        ),
    }  # fmt: skip


NAMES = ("mlp", "cnn_eval", "cnn_train", "attention", "written", "lstm_cell", "encoder")
