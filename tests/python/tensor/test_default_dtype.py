"""set_default_dtype: the dtypes of results with each default dtype, as PyTorch's, and changes of it within a program."""

from __future__ import annotations

import threading

import numpy as np
import pytest

DEFAULTS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = {"float64": "complex128"}
# Rounding error of a few operations relative to a result.
TOLERANCES = {"float32": 1e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2, "complex64": 1e-5, "complex128": 1e-12}

# Expressions by the dtype of their result: the default dtype, the complex dtype of the default, or one that is the same
# for each default. Values with float64 as default are the reference.
DEFAULT = """
torch.zeros(2); torch.ones(2); torch.full((2,), 1.5); torch.eye(2); torch.arange(3.0); torch.arange(0, 1, 0.3)
torch.linspace(0, 1, 5); torch.logspace(0, 1, 5); torch.range(0, 2); torch.tensor(1.5); torch.tensor([])
torch.tensor([1, 2.5]); torch.as_tensor([1.5]); torch.asarray(1.5); torch.scalar_tensor(2); torch.Tensor([1, 2])
torch.hann_window(5); torch.kaiser_window(5); torch.fft.fftfreq(5); i.sqrt(); i8.exp(); u8.log(); b.sin()
torch.rsqrt(i); torch.reciprocal(i0); torch.sigmoid(i); torch.erf(b); torch.lgamma(i); torch.atan2(i, i)
torch.special.expit(i); torch.special.xlog1py(i, i); torch.xlogy(i, i); torch.polygamma(1, i); i / i; i / 2; 2 / i
i0 / 2; b / 2; i * 1.5; 1.5 * i; i + 0.5; i - 0.5; i0 * 1.5; b + 1.5; i // 1.5; i % 1.5; i ** 0.5; 2.0 ** i; i ** -1.0
torch.div(i, i); torch.true_divide(i, 3); torch.add(i, 1.5); torch.mul(b, 0.5); torch.maximum(i, torch.tensor(1.5))
torch.clamp(i, min=1.5); torch.where(b, 1.5, 2.5); torch.where(b, i, 2.5); torch.where(b, 1, 0.5)
torch.lerp(torch.zeros(2), torch.ones(2), 0.5); torch.cat([i, torch.zeros(2)]); torch.stack([torch.ones(3), i])
(i @ i) / 2; torch.cov(m); torch.corrcoef(m); torch.mean(torch.arange(4.0)); torch.std(torch.arange(4.0))
torch.logsumexp(i, 0); torch.softmax(torch.arange(3.0), 0); F.mse_loss(torch.ones(2), torch.zeros(2))
F.mse_loss(torch.ones(3), i); F.l1_loss(torch.ones(3), i); F.cross_entropy(torch.eye(3), i - 1)
F.linear(torch.ones(2), torch.ones(3, 2)); F.embedding(i - 1, torch.ones(3, 2)); F.layer_norm(torch.arange(3.0), (3,))
F.gelu(torch.ones(2)); F.one_hot(i) / 2; F.interpolate(torch.ones(1, 1, 2, 2), scale_factor=2)
F.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2)); F.softplus(torch.ones(1))
F.scaled_dot_product_attention(torch.ones(1, 2, 2), torch.ones(1, 2, 2), torch.ones(1, 2, 2))
F.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)); nn.LayerNorm(2).weight; nn.BatchNorm1d(2).running_var
nn.PReLU().weight; nn.init.constant_(torch.empty(2), 0.1); nn.Transformer.generate_square_subsequent_mask(2)
D.Normal(0.0, 1.0).log_prob(torch.tensor(0.5)); D.Normal(0, 2).scale; D.Bernoulli(0.5).log_prob(torch.tensor(1.0))
D.Uniform(0, 1).mean; D.Categorical(torch.ones(3)).log_prob(torch.tensor(1)); D.Exponential(2.0).mean
D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)); torch.vander(i) / 2
torch.cartesian_prod(torch.arange(2.0), torch.arange(2.0)); 10000 ** (torch.arange(0, 4, 2) / 4); torch.ldexp(i, i)
torch.logaddexp2(torch.ones(3), i); torch.frexp(torch.ones(2))[0]; torch.func.vmap(lambda x: x / 2)(i)
torch.compile(lambda x: x / 2)(i); torch.func.grad(lambda x: (x**2).sum())(torch.ones(2)); torch.trapezoid(i, dx=0.5)
"""
RANDOM = """
torch.rand(2); torch.randn(2); torch.empty(2); torch.normal(0.0, 1.0, (2,)); torch.normal(torch.zeros(2), 1.0)
torch.bernoulli(torch.full((2,), 0.5)); nn.Linear(2, 2).weight; nn.Conv2d(1, 1, 2).bias; nn.Embedding(2, 2).weight
nn.LSTM(2, 2)(torch.ones(3, 1, 2))[0]; nn.MultiheadAttention(4, 2).in_proj_weight
nn.TransformerEncoderLayer(4, 2, 4)(torch.ones(2, 1, 4)); nn.LazyLinear(2)(torch.ones(3))
nn.init.xavier_uniform_(torch.empty(2, 2)); D.Normal(0.0, 1.0).sample(); D.Bernoulli(0.5).sample()
D.Gamma(1.0, 1.0).sample(); D.Uniform(0, 1).rsample((2,)); torch.quasirandom.SobolEngine(2).draw(2)
F.gumbel_softmax(torch.zeros(3)); F.dropout(torch.ones(3)); torch.empty_strided((2,), (1,))
torch.poisson(torch.ones(3))
"""
COMPLEX_DEFAULT = """
torch.tensor(1j); torch.tensor([1, 2j]); torch.full((2,), 1j); i * 1j; b + 1j; i0 * 1j; torch.linspace(0, 1j, 3)
torch.where(b, 1j, 2)
"""
# Not for 16-bit defaults, with which PyTorch raises, or returns complex numbers with 16-bit parts.
WIDE = """
torch.fft.rfft(i); torch.fft.fft(i); torch.fft.fft(b); torch.polar(torch.ones(2), torch.ones(2))
torch.complex(torch.zeros(2), torch.ones(2)); torch.linalg.eigvals(torch.eye(2))
"""
FIXED = {
    "float32": """
        f * 1.5; f + torch.tensor(1.0); 0.1 * f; f / 3; f ** 0.5; f + i; i / f; torch.where(b, f, 2.5); f0 * 1.5
        f.sum(); f.mean(); f * i0; i.float() / 2; torch.zeros(2, dtype=torch.float32)
        torch.from_numpy(np.ones(2, np.float32)); torch.tensor(np.float32(1.5)); i.to(torch.float32).sqrt()
        f.new_tensor(1.5); torch.zeros_like(f); torch.full_like(f, 0.1); torch.rand_like(f) * 0
        torch.maximum(f, torch.tensor(0.2)); f.softmax(0); torch.arange(3, dtype=torch.float32) / 7
        torch.ones((), dtype=torch.float64) * f; torch.logaddexp2(f, i); torch.ldexp(f, i); torch.clamp(f, 0.1, 0.2)
        F.mse_loss(f, i); c.abs(); c.real
    """,
    "float64": """
        d * 1.5; f + d; torch.from_numpy(np.ones(2)); torch.tensor(np.ones(2)); torch.float_power(i, 2)
        i.double().sqrt(); torch.ldexp(i, d); torch.tensor([np.float64(0.1)]); torch.dist(f, d)
        torch.logaddexp2(f, d)
    """,
    "float16": """
        h * 1.5; h + i; h + torch.ones((), dtype=torch.float32); h / 3; torch.where(b, h, 1e6)
    """,
    "complex64": """
        c * 1.5; c + i; f * 1j; c / 2; f0 * 1j
    """,
    "int64": """
        i * 2; i + b; torch.arange(3); i.new_tensor([1.5]); torch.full((2,), 1); torch.sum(b); torch.tensor(1)
        torch.randint(0, 5, (2,)) * 0; i // 2; i.cumsum(0); torch.where(b, 1, 2); torch.argmax(torch.ones(3))
        torch.bincount(i)
    """,
    "bool": """
        torch.full((2,), True); torch.tensor(True); i == 1.5; torch.isclose(i, i); torch.zeros(2) == 0
    """,
}


def rows():
    for names, text in (("default", DEFAULT), ("random", RANDOM), ("complex", COMPLEX_DEFAULT), ("wide", WIDE), *FIXED.items()):
        for expression in text.replace("\n", ";").split(";"):
            if expression.strip():
                yield names, expression.strip()


ROWS = list(rows())


@pytest.fixture
def operands(torch):
    """The names in the expressions. Restores the default dtype afterwards."""
    from teletensor import distributions, nn

    i = torch.tensor([1, 2, 3])
    f = torch.tensor([0.1, 0.2, 0.3])
    yield {
        "torch": torch, "nn": nn, "F": nn.functional, "D": distributions, "np": np, "i": i, "i8": i.to(torch.int8),
        "u8": i.to(torch.uint8), "i0": torch.tensor(3), "b": torch.tensor([True, False, True]), "f": f, "f0": f[0],
        "m": torch.arange(6).reshape(2, 3), "d": f.double(), "h": f.half(), "c": f.to(torch.complex64),
    }  # fmt: skip
    torch.set_default_dtype(torch.float32)


def evaluated(torch, default, operands):
    """The results of all rows with a default dtype: their dtypes, and their values in float64."""
    torch.set_default_dtype(getattr(torch, default))
    results = {}
    for kind, expression in ROWS:
        if kind == "wide" and default in ("float16", "bfloat16"):
            continue
        result = eval(expression, {}, operands)
        wide = result.detach().to(torch.complex128 if result.is_complex() else torch.float64)
        results[expression] = (result.dtype, None if kind == "random" else wide.cpu().numpy())
    return results


@pytest.mark.usefixtures("device")
def test_dtypes_and_values(torch, operands):
    reference = evaluated(torch, "float64", operands)
    for default in DEFAULTS:
        results = evaluated(torch, default, operands)
        names = {"default": default, "random": default, "complex": COMPLEX.get(default, "complex64")}
        for kind, expression in ROWS:
            if expression not in results:
                continue
            dtype, value = results[expression]
            if kind != "wide":
                assert dtype is getattr(torch, names.get(kind, kind)), (default, expression)
            if value is not None:
                tolerance = max(TOLERANCES.get(default), 1e-6 if kind in ("float32", "complex64") else TOLERANCES.get(kind, 0))
                np.testing.assert_allclose(value, reference[expression][1], tolerance, tolerance, err_msg=f"{default}: {expression}")


def test_queries_and_printing(torch, operands):
    f, d, c = operands["f"], operands["d"], operands["c"]
    for default, eps in (("float64", 2.0**-52), ("float32", 2.0**-23), ("float16", 2.0**-10)):
        torch.set_default_dtype(getattr(torch, default))
        assert torch.get_default_dtype() is getattr(torch, default) and torch.finfo().eps == eps
        assert torch.result_type(operands["i"], 1.5) is getattr(torch, default) and torch.result_type(f, 1.5) is torch.float32
        assert ("dtype" in repr(f)) == (default != "float32") and ("dtype" in repr(d)) == (default != "float64")
        assert "dtype" not in repr(torch.zeros(2)) and ("dtype" in repr(c)) == (default == "float64")
    torch.set_default_tensor_type(torch.DoubleTensor)
    assert torch.zeros(1).dtype is torch.float64 and torch.zeros(1).type() == "torch.DoubleTensor"
    for wrong in (torch.int64, torch.complex64, torch.bool):
        with pytest.raises(TypeError, match="only floating-point types"):
            torch.set_default_dtype(wrong)
    assert torch.get_default_dtype() is torch.float64


def test_is_of_all_threads(torch, operands):
    def work():
        torch.set_default_dtype(torch.float64)
        made.append(torch.zeros(1).dtype)

    made = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert made == [torch.float64] and (operands["i"] / 2).dtype is torch.float64


def test_fake_and_meta_tensors(torch, operands):
    from teletensor._subclasses import FakeTensorMode

    for default in DEFAULTS:
        torch.set_default_dtype(getattr(torch, default))
        assert (torch.arange(3, device="meta") / 2).dtype is getattr(torch, default)
        with FakeTensorMode():
            made = (torch.zeros(2), torch.arange(3) * 1.5, torch.nn.Linear(2, 2).weight)
            assert all(t.dtype is getattr(torch, default) for t in made)


def test_changes_within_a_frame(torch, operands):
    """Nothing waits between the changes, so one frame has instructions with each default."""
    i, results = operands["i"], []
    for step in range(300):
        torch.set_default_dtype(getattr(torch, DEFAULTS[step % 4]))
        results.append((i / 3) * 2 + torch.ones(3))
    for step, result in enumerate(results):
        assert result.dtype is getattr(torch, DEFAULTS[step % 4])
        np.testing.assert_allclose(result.double().cpu().numpy(), [5 / 3, 7 / 3, 3], rtol=TOLERANCES[DEFAULTS[step % 4]])


@pytest.mark.usefixtures("device")
def test_changes_in_fused_and_repeated_steps(torch, operands):
    """Large tensors, so that the engine fuses the chains; and repeated steps, which it may replay."""
    n = torch.arange(1 << 16, device="cpu").to(torch.get_default_device())
    expected = np.sqrt(np.arange(1 << 16) / 3 * 0.5 + 1)
    for default in ("float64", "float32", "float64", "float16", "float64"):
        torch.set_default_dtype(getattr(torch, default))
        for _ in range(12):
            result = torch.sqrt(n / 3 * 0.5 + 1)
        assert result.dtype is getattr(torch, default)
        if default != "float16":
            np.testing.assert_allclose(result.cpu().numpy(), expected, rtol=1e-14 if default == "float64" else 1e-6)
    torch.set_default_dtype(torch.float64)
    half = n / 3
    torch.set_default_dtype(torch.float32)
    assert (half * (n / 7)).dtype is torch.float64 and (n / 7).dtype is torch.float32


GRADIENTS = """
(x * i / 3).sum(); (x**i).sum(); (i**x).sum(); (i / x).sum(); torch.where(b, x, 0.5).sum(); F.mse_loss(x, i)
torch.dist(x, i); x.std(); x.norm(); torch.xlogy(i, x).sum(); (x * b).mean(); torch.atan2(x, i).sum()
F.smooth_l1_loss(x, i); torch.cumprod(x, 0).sum(); torch.quantile(x, 0.3); x.prod(); torch.logsumexp(x, 0)
F.layer_norm(x, (3,))[0]; torch.lerp(x, x * 2, 0.3).sum(); F.cross_entropy(x[None], i[:1]); (x % 0.07).sum()
x.erf().sum()
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients(torch, operands, dtype):
    """Gradients have their tensor's dtype and the same values, whatever the default is in forward and backward."""
    for expression in GRADIENTS.strip().replace("\n", ";").split(";"):
        gradients = []
        for forward, backward in (("float32", "float32"), ("float64", "float64"), ("float64", "float32"), ("float32", "bfloat16")):
            torch.set_default_dtype(getattr(torch, forward))
            x = torch.tensor([0.1, 0.2, 0.3], dtype=getattr(torch, dtype), requires_grad=True)
            loss = eval(expression.strip(), {}, {**operands, "x": x})
            torch.set_default_dtype(getattr(torch, backward))
            loss.backward()
            assert x.grad.dtype is getattr(torch, dtype), (expression, forward)
            gradients.append(x.grad.double().cpu().numpy())
        for gradient in gradients[1:]:
            np.testing.assert_allclose(gradient, gradients[0], rtol=1e-12 if dtype == "float64" else 1e-5, err_msg=expression)


def test_training_in_double_precision(torch, operands):
    """The parameters, optimizer state and state dict of a program that sets the default once, compared with NumPy."""
    nn = operands["nn"]
    torch.set_default_dtype(torch.float64)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    w1, b1, w2, b2 = (p.detach().cpu().numpy().copy() for p in model.parameters())
    assert all(p.dtype is torch.float64 for p in model.parameters())
    x, y = torch.linspace(0, 1, 15).reshape(5, 3), torch.arange(5).reshape(5, 1) / 7
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    a, t, moments = x.cpu().numpy(), y.cpu().numpy(), [[np.zeros_like(w)] * 2 for w in (w1, b1, w2, b2)]
    for step in range(1, 6):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        h = np.tanh(a @ w1.T + b1)
        error = h @ w2.T + b2 - t
        assert abs(loss.item() - (error**2).mean()) < 1e-13
        g = 2 * error / len(a)
        back = g @ w2 * (1 - h**2)
        weights = [w1, b1, w2, b2]
        for k, gradient in enumerate((back.T @ a, back.sum(0), g.T @ h, g.sum(0))):
            m, v = 0.9 * moments[k][0] + 0.1 * gradient, 0.999 * moments[k][1] + 0.001 * gradient**2
            moments[k] = [m, v]
            weights[k] -= 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    state = optimizer.state_dict()["state"][0]
    assert state["step"].dtype is torch.float64 and state["exp_avg"].dtype is torch.float64


def test_the_class_of_tensors_stands_for_the_default_dtype(torch):
    x = torch.arange(3) > 1
    assert x.type(torch.Tensor).dtype is torch.get_default_dtype()
