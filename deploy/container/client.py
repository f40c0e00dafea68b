"""Computes on the engine at TELETENSOR_ADDRESS and compares with NumPy. Run by check.sh."""

import numpy as np

import teletensor as torch

x = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
product = (torch.from_numpy(x) @ torch.from_numpy(x).T).numpy()
np.testing.assert_allclose(product, x @ x.T, rtol=1e-4, atol=1e-4)
print(f"client: engine {torch.connection().engine()['version']} computed a product of matrices")
