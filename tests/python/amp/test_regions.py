"""Autocast regions: nesting, the cache of casts, gradients, client-side functions, several threads and sessions."""

import pickle
import threading

import numpy as np
import pytest


def kernels(torch, function) -> dict:
    """How often each operator runs in the engine during a call."""
    torch.synchronize()
    with torch.profiler.profile() as profile:
        function()
        torch.synchronize()
    return {e.key.rpartition("::")[2]: e.count for e in profile.key_averages()}


def test_nested_and_disabled_regions(torch):
    a = torch.ones(2, 2)
    with torch.autocast("cpu"):
        with torch.autocast("cpu", torch.float16):
            assert (a @ a).dtype is torch.float16
            with torch.autocast("cpu", enabled=False):
                assert (a @ a).dtype is torch.float32 and not torch.is_autocast_enabled("cpu")
                with torch.autocast("cpu", torch.bfloat16):
                    assert (a @ a).dtype is torch.bfloat16
            assert (a @ a).dtype is torch.float16
        assert (a @ a).dtype is torch.bfloat16
        for out in (torch.zeros(2, 2), torch.empty(0)):  # calls that write to a tensor are not changed
            torch.mm(a * 1.001, a, out=out)
            np.testing.assert_allclose(out.numpy(), 2.002, rtol=1e-6)
    assert (a @ a).dtype is torch.float32


def test_state_functions(torch):
    assert not torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is torch.bfloat16
    region = torch.autocast("cpu", torch.float16, cache_enabled=False)
    for _ in range(2):  # a region may be entered again
        with region:
            assert torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is torch.float16
            assert not torch.is_autocast_cache_enabled() and not torch.is_autocast_enabled()
        assert torch.get_autocast_dtype("cpu") is torch.bfloat16 and torch.is_autocast_cache_enabled()
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    try:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float16
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_dtype("cpu", torch.bfloat16)
    mode = torch.amp._enter_autocast("cpu", None, True, None)
    assert torch.is_autocast_enabled("cpu")
    torch.amp._exit_autocast(mode)
    assert not torch.is_autocast_enabled("cpu")
    with pytest.warns(UserWarning, match="CPU Autocast only supports dtypes of torch.bfloat16, torch.float16"):
        with torch.autocast("cpu", torch.float64):
            assert not torch.is_autocast_enabled("cpu")
    with pytest.raises(ValueError, match="device_type"):
        torch.autocast(torch.bfloat16)
    with pytest.raises(TypeError, match="requires a callable"):
        torch.autocast("cpu")(3)


@pytest.mark.parametrize(
    ("device", "name", "instead"),
    [
        *((d, name, f"{name}('{d}', args...)") for d in ("cpu", "cuda") for name in ("autocast", "GradScaler")),
        *(("cuda", name, f"{name}(args..., device_type='cuda')") for name in ("custom_fwd", "custom_bwd")),
    ],
)
def test_deprecated_names(torch, device, name, instead):
    def call(name, *args, **options):
        with pytest.warns(FutureWarning) as found:
            result = getattr(getattr(torch, device).amp, name)(*args, **options)
        assert found[0].filename == __file__
        text = f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{instead}` instead."
        assert str(found[0].message) == text
        return result

    if name.startswith("custom_"):
        assert call(name, abs).__name__ == "abs"
        return
    made = call(name, enabled=False)
    assert isinstance(made, getattr(torch.amp, name))
    if name == "GradScaler":
        assert type(pickle.loads(pickle.dumps(made))) is type(made)
    else:
        assert (made.device, made.fast_dtype) == (device, {"cpu": torch.bfloat16, "cuda": torch.float16}[device])
        assert call(name, False, torch.float32).fast_dtype is torch.float32


def multiply(torch, w, times=3, **options):
    x = torch.ones(2, 3)

    def run():
        with torch.autocast("cpu", **options):
            for _ in range(times):
                torch.nn.functional.linear(x, w)

    return run


# What differs, and how often the engine casts in three calls of linear(x, w): x in each of them, and w.
CASTS = {
    "kept": (lambda t: multiply(t, t.ones(3, 3, requires_grad=True)), 4),
    "disabled": (lambda t: multiply(t, t.ones(3, 3, requires_grad=True), cache_enabled=False), 6),
    "no parameter": (lambda t: multiply(t, t.ones(3, 3)), 6),
    "not a leaf": (lambda t: multiply(t, t.ones(3, 3, requires_grad=True) * 2), 6),
    "a view": (lambda t: multiply(t, t.ones(9, requires_grad=True).view(3, 3)), 6),
    "another dtype": (lambda t: multiply(t, t.ones(3, 3, requires_grad=True), dtype=t.float16), 4),
    "already lower": (lambda t: multiply(t, t.ones(3, 3, dtype=t.bfloat16, requires_grad=True)), 3),
}


@pytest.mark.parametrize("case", CASTS)
def test_casts_of_parameters_are_kept(torch, case):
    make, expected = CASTS[case]
    run = make(torch)
    assert kernels(torch, run).get("_to_copy", 0) == expected
    assert kernels(torch, run)["_to_copy"] == expected  # nothing is kept after the region


def test_kept_casts_are_dropped(torch):
    w = torch.ones(2, 2, requires_grad=True)
    x = torch.ones(1, 2, dtype=torch.bfloat16)

    def casts(between) -> int:
        def run():
            with torch.autocast("cpu"):
                with torch.autocast("cpu"):
                    x @ w
                between()
                x @ w

        return kernels(torch, run)["_to_copy"]

    assert casts(lambda: None) == 1  # an inner region drops nothing
    assert casts(torch.clear_autocast_cache) == 2
    with torch.autocast("cpu"):
        before = (x @ w).tolist()
        with torch.no_grad():
            w.mul_(3)
        assert before == [[2.0, 2.0]] and (x @ w).tolist() == [[6.0, 6.0]]  # a cast is not used after a write
    with torch.autocast("cpu"):
        with torch.no_grad():
            x @ w
        (x @ w).sum().backward()  # a cast that was not recorded is not used
    assert w.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_gradients_have_the_dtypes_of_parameters(torch):
    layer, x = torch.nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
    with torch.autocast("cpu"):
        y = layer(layer(x) @ layer.weight)  # one cast of the weight serves both uses
        loss = torch.nn.functional.mse_loss(y, torch.zeros(4, 2))
    assert y.dtype is torch.bfloat16 and loss.dtype is torch.float32
    loss.backward()
    got = [t.grad.numpy() for t in (x, layer.weight, layer.bias)]
    for t in (x, layer.weight, layer.bias):
        t.grad = None
    torch.nn.functional.mse_loss(layer(layer(x) @ layer.weight), torch.zeros(4, 2)).backward()
    for g, t in zip(got, (x, layer.weight, layer.bias)):
        assert g.dtype == np.float32
        np.testing.assert_allclose(g, t.grad.numpy(), rtol=0.05, atol=0.02)


def test_hooks_and_second_derivatives(torch):
    x = torch.randn(2, 2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.dtype))
    with torch.autocast("cpu"):
        y = (x @ x).float().square().sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        g.square().sum().backward()
    assert g.dtype is torch.float32 and x.grad.dtype is torch.float32 and set(seen) == {torch.float32}


@pytest.mark.parametrize("cast_inputs", [None, "float32"])
def test_client_side_functions(torch, cast_inputs):
    dtypes = []

    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs and getattr(torch, cast_inputs))
        def forward(ctx, x):
            y = x @ x
            dtypes.append((x.dtype, y.dtype))
            return y.float()

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            dtypes.append((g @ g).dtype)
            return g

    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        Double.apply(x.to(torch.bfloat16)).sum().backward()
    inner = torch.float32 if cast_inputs else torch.bfloat16
    assert dtypes == [(inner, inner), inner]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_run_again_in_the_same_region(torch, use_reentrant):
    layer, x, dtypes = torch.nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True), []

    def run(x):
        y = layer(x)
        dtypes.append(y.dtype)
        return y.sin()  # without it, the second run would end in the layer

    with torch.autocast("cpu", torch.float16):
        y = torch.utils.checkpoint.checkpoint(run, x, use_reentrant=use_reentrant)
    y.float().sum().backward()
    assert dtypes == [torch.float16, torch.float16]


def test_threads_have_their_own_state(torch):
    """Calls of a thread in a region and of one outside are in turn in the same session."""
    a = torch.ones(2, 2)
    turns, results = [threading.Event() for _ in range(4)], {}

    def other():
        results["before"] = (a @ a).dtype
        turns[0].set()
        turns[1].wait()
        results["during"] = (a @ a).dtype, (a @ a).tolist()
        turns[2].set()

    thread = threading.Thread(target=other)
    thread.start()
    turns[0].wait()
    with torch.autocast("cpu"):
        assert (a @ a).dtype is torch.bfloat16
        turns[1].set()
        turns[2].wait()
        y = a @ a
        assert y.dtype is torch.bfloat16 and y.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    thread.join()
    assert results == {"before": torch.float32, "during": (torch.float32, [[2.0, 2.0], [2.0, 2.0]])}


def test_recorded_functions_follow_the_state(torch):
    def f(x):
        return (x @ x).exp()

    x = torch.zeros(2, 2)
    recorded = {
        "fx": torch.fx.symbolic_trace(f),
        "compile": torch.compile(f),
        "jit": torch.jit.trace(f, (x,)),
    }
    for name, function in recorded.items():
        for _ in range(2):
            assert function(x).dtype is torch.float32, name
            with torch.autocast("cpu"):
                y = function(x)
                assert y.dtype is torch.bfloat16 and y.tolist() == [[1.0, 1.0], [1.0, 1.0]], name


def test_long_chains_are_not_fused_across_lists(torch):
    """A frame of pointwise operators, which the engine would run as one loop without autocast."""
    x = torch.full((1 << 15,), 0.5)
    with torch.autocast("cpu"):
        y = torch.trace((x * 2).add(1).view(128, 256)[:, :128].exp().contiguous())
    np.testing.assert_allclose(y.item(), 128 * np.exp(2.0), rtol=1e-5)
    w = torch.full((1 << 15,), 0.5, dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        z = torch.nn.functional.mse_loss(w * 2, w + 1, reduction="none").add(1).mul(2)
    assert z.dtype is torch.float32 and z[0].item() == 2.5


@pytest.mark.parametrize(
    ("layer", "packed", "dtypes", "expected"),
    [
        # dtypes: the region's, the input's, the parameters', the state's
        ("LSTM", False, "bfloat16 float32 float32 float32", "bfloat16"),
        ("LSTM", False, "bfloat16 float16 float16 float16", "float32"),
        ("LSTM", True, "bfloat16 float32 float32 float32", "float32"),
        ("LSTM", True, "float16 float32 float32 float32", "float32"),
        ("LSTM", True, "bfloat16 bfloat16 float32 bfloat16", "bfloat16"),
        ("LSTM", True, "bfloat16 bfloat16 float32 float32", "float32"),
        ("LSTM", True, "bfloat16 float32 float32 float16", "float32"),
        ("LSTM", True, "float16 bfloat16 bfloat16 bfloat16", "float32"),
        ("LSTM", True, "bfloat16 float64 float64 float64", "float64"),
        ("GRU", False, "bfloat16 float32 float32 float32", "float32"),
        ("GRU", True, "bfloat16 bfloat16 float32 bfloat16", "bfloat16"),
        ("GRU", True, "bfloat16 float16 float16 float16", "float32"),
        ("RNN", True, "bfloat16 float32 float32 float32", "bfloat16"),
    ],
)
def test_dtypes_of_recurrent_layers(torch, layer, packed, dtypes, expected):
    region, of_input, of_parameters, of_state = (getattr(torch, name) for name in dtypes.split())
    module = getattr(torch.nn, layer)(3, 4).to(of_parameters)
    x, h = torch.rand(5, 2, 3).to(of_input), torch.zeros(1, 2, 4, dtype=of_state)
    if packed:
        x = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]))
    with torch.autocast("cpu", region):
        out, states = module(x, (h, h) if layer == "LSTM" else h)
    states = states if isinstance(states, tuple) else (states,)
    assert {t.dtype for t in (out.data if packed else out, *states)} == {getattr(torch, expected)}


def test_tensors_of_the_other_16_bit_dtype(torch):
    a, b, c = (torch.ones(2, dtype=getattr(torch, name)) for name in ("float32", "bfloat16", "float16"))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.cat([a, c]).dtype == torch.stack([b, a, c]).dtype == torch.float32
        for tensors in ([c, a], [b, c], [c, c]):
            with pytest.raises(RuntimeError, match="expected tensors of dtype float32"):
                torch.cat(tensors)
        assert torch.linalg.pinv(torch.eye(3)).dtype == torch.bfloat16 and torch.pinverse(torch.eye(3)).dtype == torch.float32
