"""Uses the engine of TELETENSOR_ADDRESS: values, a gradient, an error, and the versions."""

import teletensor as torch

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
print(f"client {torch.__version__}, engine {torch.connection().engine()['version']}: ok")
