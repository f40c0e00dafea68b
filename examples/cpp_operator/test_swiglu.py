"""Tests swiglu.so in a private engine: python test_swiglu.py FOLDER_OF_THE_SHARED_OBJECT"""

import os
import sys

import numpy as np

os.environ["TELETENSOR_OPERATORS"] = sys.argv[1]  # for the engine that starts below

import teletensor as torch  # noqa: E402


def reference(x, gate, beta=1.0):
    return x * gate / (1 + np.exp(-beta * gate))


def main() -> None:
    torch.manual_seed(0)
    x, gate = torch.randn(64, 33), torch.randn(64, 33)
    swiglu = torch.ops.example.swiglu
    np.testing.assert_allclose(swiglu(x, gate).numpy(), reference(x.numpy(), gate.numpy()), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        swiglu(x.t(), gate.t(), beta=1.5).numpy(), reference(x.t().numpy(), gate.t().numpy(), 1.5), rtol=1e-5, atol=1e-6
    )
    inputs = [torch.randn(3, 5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(lambda a, b: swiglu(a, b, beta=0.5), inputs)
    try:  # would read twice the bytes of the gradient
        with torch.no_grad():
            torch.ops.example.swiglu_backward(torch.zeros(3, 5), *inputs, 0.5)[0].tolist()
        raise SystemExit("a gradient of another dtype was accepted")
    except RuntimeError as error:
        assert "expected tensors of float32 or of float64" in str(error)
    compiled = torch.compile(lambda a, b: swiglu(a, b).relu() + 1)
    np.testing.assert_allclose(compiled(x, gate).numpy(), (swiglu(x, gate).relu() + 1).numpy(), rtol=1e-6)
    print("swiglu: ok")


if __name__ == "__main__":
    main()
