"""Uses the engine of TELETENSOR_ADDRESS: values, a gradient, an error, a training, called and compiled, and the versions."""

import os

os.environ.setdefault("TELETENSOR_STORED_CAPTURES", "0")  # an earlier run would change what is tried

import teletensor as torch
import teletensor.nn.functional as F
from teletensor import nn, optim

x = torch.arange(6.0).reshape(2, 3).requires_grad_()
(x @ x.T).sum().backward()
assert x.grad.tolist() == [[6.0, 10.0, 14.0], [6.0, 10.0, 14.0]]
large = torch.arange(2_000_000, dtype=torch.float64)
assert large.numpy().sum() == 1999999000000.0
try:
    torch.linalg.inv(torch.zeros(2, 2)).tolist()
except RuntimeError as error:
    assert "singular" in str(error), error
else:
    raise SystemExit("expected an error")
torch.manual_seed(0)
inputs, labels = torch.randn(128, 1, 8, 8), torch.randint(0, 4, (128,))
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4))
optimizer = optim.AdamW(model.parameters(), lr=1e-2)


def step(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


losses = [step(inputs, labels).item() for _ in range(20)]
assert losses[-1] < losses[0] / 2, losses
model.eval()
with torch.no_grad():
    called, compiled = model(inputs), torch.compile(model)(inputs)
assert torch.allclose(called, compiled, atol=1e-4), (called - compiled).abs().max().item()
print(f"client {torch.__version__}, engine {torch.connection().engine()['version']}: ok")
