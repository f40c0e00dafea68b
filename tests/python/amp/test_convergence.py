"""Short training runs reach float32's loss in lower precision; benchmarks/amp.py has longer ones."""

import numpy as np
import pytest

from ...conftest import ROOT

MODES = {"float32": (None, False), "bfloat16": ("bfloat16", False), "float16": ("float16", True)}


def language_model(torch):
    """A transformer of one layer that predicts the next character of a text, and its batches."""
    nn = torch.nn
    text = np.frombuffer((ROOT / "CONTRIBUTING.md").read_bytes(), np.uint8).astype("int64")
    starts = np.random.default_rng(0).integers(0, len(text) - 25, (60, 8, 1))
    windows = torch.from_numpy(text[starts + np.arange(25)])

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(256, 32)
            self.block = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
            self.head = nn.Linear(32, 256)

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.head(self.block(self.token(x), src_mask=mask, is_causal=True)).flatten(0, 1)

    return Model(), [(w[:, :-1], w[:, 1:].flatten()) for w in windows]


def convnet(torch):
    """A small convolutional net that tells horizontal from vertical stripes, and its batches."""
    nn = torch.nn
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (60, 16))
    stripes = np.sin(np.arange(12) * 1.2)
    plain = np.stack([np.tile(stripes, (12, 1)), np.tile(stripes[:, None], (1, 12))])
    images = (plain[labels] + rng.normal(0, 1.5, (60, 16, 12, 12)))[:, :, None].astype("float32")
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(200, 2)
    )
    return model, [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in zip(images, labels)]


def losses(torch, make, mode: str) -> list[float]:
    lower, scales = MODES[mode]
    torch.manual_seed(0)
    model, batches = make(torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=scales)
    found = []
    for x, y in batches:
        with torch.autocast("cpu", lower and getattr(torch, lower), enabled=lower is not None):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        found.append(loss.detach())
    return torch.stack(found).tolist()


@pytest.mark.parametrize("make", [language_model, convnet])
def test_lower_precision_reaches_the_loss_of_float32(torch, make):
    runs = {mode: losses(torch, make, mode) for mode in MODES}
    first, last = np.mean(runs["float32"][:3]), np.mean(runs["float32"][-15:])
    assert last < 0.75 * first
    for mode in ("bfloat16", "float16"):
        assert abs(np.mean(runs[mode][-15:]) - last) < 0.05 * first, runs[mode]
