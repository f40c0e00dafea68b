"""Each decomposition of torch._decomp computes what its operator computes, also in place and with out=."""

import pytest

import teletensor as torch
from teletensor._decomp import core_aten_decompositions, decomposition_table, get_decompositions, register_decomposition
from teletensor._library.aten import accepts

aten = torch.ops.aten
pytestmark = pytest.mark.usefixtures("torch")


def values():
    """Arguments of samples: x, y, p (positive), u (in 0..1) and s (not finite, zero) are floats, i integers, b bools, c complex."""
    torch.manual_seed(5)
    return {
        "x": torch.randn(4, 6), "y": torch.randn(4, 6), "p": torch.rand(4, 6) + 0.5, "u": torch.rand(4, 6), "torch": torch,
        "s": torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -1.5, 2.0]), "v": torch.randn(4), "w": torch.randn(6),
        "i": torch.tensor([[5, -7, 0], [2, 3, -1]]), "b": torch.randn(4, 6) > 0, "c": torch.randn(4, 6, dtype=torch.complex64),
        "t": torch.randn(2, 8, 4, 6), "n": torch.tensor([2, 0]), "m": torch.randn(3, 4, 5), "d": torch.randn(4, 6).double(),
    }  # fmt: skip


# By operator. A sample is used for the overloads whose schemas accept it.
SAMPLES = {
    "_reshape_alias": ["x, [6, 4], [4, 1]", "x, [24], [1]"],
    "_softmax_backward_data": ["y, x.softmax(1), 1, torch.float32", "y.t(), x.t().softmax(0), -2, torch.float32"],
    "_unsafe_view": ["x, [3, 8]", "i, [6]"],
    "addcdiv": ["x, y, p", "x, w, p, value=2.5", "d, y, p, value=-1"],
    "addcmul": ["x, y, p", "i, i, i, value=3", "x, w, p, value=0.5", "c, c, c"],
    "addr": ["x, v, w", "x, v, w, beta=0.5, alpha=2", "s, v, s, beta=0", "w, v, w"],
    "affine_grid_generator": ["torch.randn(2, 2, 3), [2, 3, 4, 5], True", "torch.randn(2, 2, 3), [2, 1, 1, 3], False",
                              "torch.randn(1, 3, 4), [1, 2, 3, 4, 2], False"],
    "alias_copy": ["x", "x.t()"],
    "all": ["b", "s", "i.byte()", "b, 1", "b, 0, True", "i, [0, 1]", "b, None, True", "torch.tensor(True), 0"],
    "aminmax": ["x", "x, dim=1", "i, dim=0, keepdim=True", "s[1:], keepdim=True"],
    "arange": ["7", "2.5", "3, 9", "-1.5, 4, dtype=torch.float64", "2, 5, dtype=torch.int32"],
    "baddbmm": ["torch.randn(3, 4, 2), m, torch.randn(3, 5, 2)", "m[:, :1, :2], m, m.transpose(1, 2)[:, :, :2], beta=0.5, alpha=2",
                "m[:, :, :4] / 0, m, m.transpose(1, 2), beta=0"],
    "bernoulli": ["b.float()", "b.double()"],
    "binary_cross_entropy": ["u, b.float()", "u, b.float(), p, 0", "u.round(), u, None, 2", "u, b.float(), w"],
    "binary_cross_entropy_with_logits": ["x, b.float()", "x * 50, u, p, p, 0", "x, u, None, w, 2"],
    "block_diag": ["[x, v, i]", "[torch.tensor(2.0)]", "[x[:0], y]"],
    "celu": ["x", "x, 0.3", "s, 2"],
    "channel_shuffle": ["t, 4", "t[:, :, 0], 2"],
    "clamp_max": ["x, 0.5", "s, 1.0", "i, 2.5", "i, 2", "x, y", "s, w", "x, s"],
    "clamp_min": ["x, 0.5", "s, 1.0", "i, 2.5", "i, 2", "x, y", "s, w", "x, s"],
    "count_nonzero": ["i", "s", "b, [0]", "c, [0, 1]", "i, 1", "i, None"],
    "deg2rad": ["x", "i"],
    "diag_embed": ["w", "x, 2", "x, -1, 0, 2", "m, 1, 3, 1", "x, 1, 1, 0"],
    "diagonal_copy": ["x", "x, 2", "m, -1, 2, 0"],
    "dot": ["v, x[:, 1]", "i[0], i[1]", "c[0], c[1]"],
    "expand_copy": ["w, [4, 6]", "x.unsqueeze(0), [3, -1, -1]"],
    "eye": ["3", "3, dtype=torch.int64", "2, 5", "4, 1, dtype=torch.float64"],
    "fill": ["x, 2.5", "i, 3", "b, True", "x, torch.tensor(1.5)", "i, torch.tensor(3)"],
    "floor_divide": ["x, y", "i, i[:, :1]", "x, 0.3", "i, 2", "i, -2"],
    "frac": ["x * 10", "s"],
    "glu": ["x", "x, 0", "t, 1"],
    "hann_window": ["7", "1", "0", "7, False", "1, False", "6, True, dtype=torch.float64"],
    "hardshrink": ["x", "x, 1", "s"],
    "hardsigmoid": ["x * 5", "s"],
    "hardswish": ["x * 5"],
    "heaviside": ["x, y", "s, w", "i, i + 1", "i, torch.tensor(4)"],
    "huber_loss": ["x, y", "x, y, 0, 0.5", "x, y, 2, 3.0"],
    "index_add": ["x, 0, n, y[:2]", "x, -1, n, y[:, :2], alpha=0.5", "x, 0, torch.tensor([1, 1, 3]), y[:3]", "i, 1, n, i[:, :2], alpha=2",
                  "torch.tensor(2.0), 0, torch.tensor([0]), torch.tensor([3.0])"],
    "index_copy": ["x, 0, n, y[:2]", "x, -1, n, y[:, :2]", "torch.tensor(2.0), 0, torch.tensor([0]), torch.tensor(3.0)"],
    "index_fill": ["x, 0, n, 2.5", "x, 1, torch.tensor([-1, 0]), -1", "i, 1, n, torch.tensor(4)",
                   "torch.tensor(2.0), 0, torch.tensor(0), 5"],
    "isin": ["i, torch.tensor([2, 5])", "i, torch.tensor([[2], [5]]), invert=True", "i, 2", "i, 5, invert=True", "3, i",
             "4, i, invert=True"],
    "isneginf": ["s", "i", "x"],
    "isposinf": ["s", "i", "x"],
    "lerp": ["x, y, 0.3", "x, y, 0.7", "x, w, 1.0", "x, y, u", "c, c * 2, 0.25"],
    "linalg_cross": ["m[:, :3], m[:, 1:], dim=1", "torch.randn(4, 3), torch.randn(1, 3)", "m, m + 1, dim=0", "c[:3], c[1:], dim=0"],
    "linalg_vector_norm": ["x", "x, 3, [0]", "x, 1, [1], True", "s[3:], float('inf')", "x, -float('inf'), [0, 1]", "x, 0, [1]", "c, 2, [0]",
                           "x, 0.5, [0], dtype=torch.float64", "torch.tensor(-2.0), 0", "torch.tensor(-2.0)"],
    "linspace": ["0, 1, 5", "-2.5, 3, 7, dtype=torch.float64", "1, 1, 1", "3, 4, 0", "0, 10, 6, dtype=torch.int64",
                 "torch.tensor(1.0), 4, 3", "1, torch.tensor(4.0), 4", "torch.tensor(1.0), torch.tensor(4.0), 4",
                 "1, 1j, 4, dtype=torch.complex64"],
    "logaddexp": ["x, y", "s, s", "s, w", "x * 100, w"],
    "logaddexp2": ["x, y", "s, s", "s, w"],
    "logit": ["u", "u, 0.2", "s", "s, 0.1"],
    "logspace": ["0, 1, 5", "-2, 3, 4, 2.0, dtype=torch.float64", "torch.tensor(1.0), 2, 3", "1, torch.tensor(2.0), 4",
                 "0, 3, 4, dtype=torch.int64", "torch.tensor(1.0), torch.tensor(2.0), 4"],
    "logsumexp": ["x, [1]", "s[1:], [0]", "x, [0, 1], True", "-x / 0, [1]", "i, [1]", "torch.tensor(2.0), [0]"],
    "masked_fill": ["x, b, 2.5", "i, i > 0, 3", "x, b, torch.tensor(1.5)", "x, b[:1], -float('inf')", "w, b, 1"],
    "mish": ["x * 5", "x * 50"],
    "mse_loss": ["x, y", "x, y, 0", "w, w * 2, 2"],
    "multi_margin_loss": ["x, torch.tensor([0, 5, 2, 1])", "x, torch.tensor([0, 5, 2, 1]), 2, 0.5, w.abs(), 0",
                          "w, torch.tensor(3), 1, 1, None, 0", "w, torch.tensor([3]), 1, 1, None, 2"],
    "multilabel_margin_loss": ["x, torch.tensor([[3, 0, -1, 1, 2, 2]] * 4)", "w, torch.tensor([3, 0, 1, -1, 2, 2]), 0",
                               "x, torch.tensor([[-1, 0, 1, 1, 2, 2]] * 4), 2"],
    "mv": ["x, w", "i, i[0]"],
    "mvlgamma": ["p + 3, 3", "p, 1", "i.abs() + 3, 2"],
    "nan_to_num": ["s", "s, 1.0", "s, 0.5, 3, -2.5", "i, 2.0", "torch.complex(s, s), 1.0"],
    "nansum": ["s[3:]", "s", "s.reshape(2, 3), [0]", "x / b, [1], True", "x, None, dtype=torch.float64"],
    "native_dropout_backward": ["x, b, 2.0"],
    "new_full": ["x, [2, 3], 2.5", "i, [2], 7, dtype=torch.float32"],
    "new_ones": ["x, [2, 3]", "i, [], dtype=torch.bool"],
    "new_zeros": ["x, [2, 3]", "i, [0]"],
    "norm": ["x", "x, 3", "x, 1, [1]", "x, None, [0], True", "x, 2, dtype=torch.float64", "x, 2, [0], dtype=torch.float64",
             "x, None, [0, 1], True, dtype=torch.float64", "c, 2", "x, 0, [1]"],
    "ones": ["[2, 3]", "[2], dtype=torch.int64"],
    "ones_like": ["x", "i", "i, dtype=torch.float64"],
    "pixel_shuffle": ["t, 2", "t[0], 2"],
    "pixel_unshuffle": ["t, 2", "t[0], 2"],
    "rad2deg": ["x", "i"],
    "renorm": ["x, 2, 0, 1.5", "m, 1, 1, 2", "m * 9, 3, -1, 5.0"],
    "roll": ["x, [1]", "x, [2, -1], [0, 1]", "x, [7], [-1]", "i, 2", "i, 2, 1"],
    "rot90": ["x", "m, 2, [0, 2]", "m, 3, [1, 2]", "x, 4", "m, -1, [2, 1]"],
    "rsub": ["x, y", "i, i, alpha=2", "x, 3", "x, 3, 0.5"],
    "select_scatter": ["x, w, 0, 2", "m, m[:, 0], 1, -1"],
    "sgn": ["x", "i", "c", "c * 0", "s"],
    "silu": ["x", "x * 50"],
    "sinc": ["x", "s[3:]", "i"],
    "smooth_l1_loss": ["x, y", "x, y, 0, 0.5", "x, y, 2, 0.0"],
    "soft_margin_loss": ["x, y.sign()", "x, y.sign(), 0", "x, y.sign(), 2"],
    "softplus": ["x", "x * 50", "x, 3, 2.0"],
    "softshrink": ["x", "x, 1", "s"],
    "special_entr": ["x", "u", "s", "torch.zeros(2)"],
    "special_log_ndtr": ["x", "x * 20", "s"],
    "special_xlog1py": ["x, u", "s, w.abs()", "torch.zeros(6), s", "x, 2.0", "2.5, u", "0, s", "i, 2"],
    "split": ["x, 2, 1", "x, 4, 1", "x, 9", "x[:0], 2"],
    "split_with_sizes_copy": ["x, [1, 3]", "x, [2, 0, 4], 1"],
    "squeeze": ["x", "x[:1, :1]", "x.unsqueeze(1), 1", "x.unsqueeze(1), 0", "x[:1].t(), -1", "torch.tensor(2.0), 0"],
    "squeeze_copy": ["x[:1, :1]", "x.unsqueeze(1), 1", "x[:1, :1], [0, 1]", "x.unsqueeze(-1), [-1]"],
    "stack": ["[x, y]", "[x, y, p], 1", "[w], -1"],
    "std": ["x", "x, [0], correction=0", "x, [1], correction=2, keepdim=True", "x, [1], True", "x, [0, 1], False, True"],
    "std_mean": ["x", "x, [0], correction=0", "x, [1], correction=2, keepdim=True"],
    "sum": ["x", "b", "i, dtype=torch.float64"],
    "t": ["x", "w"],
    "t_copy": ["x", "w"],
    "take": ["x, n", "x.t(), torch.tensor([[1, -1], [7, 0]])"],
    "threshold": ["x, 0.2, 5", "i, 2, -1", "s, 0.0, 1.0"],
    "trace": ["x", "i", "c"],
    "transpose": ["x, 0, 1", "m, -1, 0"],
    "transpose_copy": ["x, 0, 1", "m, -1, 0"],
    "tril": ["x", "x, -2", "m, 1", "s[:, None] + s"],
    "triu": ["x", "x, -2", "m, 1", "b"],
    "unbind": ["x", "x, 1", "m, -1"],
    "unfold_copy": ["x, 1, 3, 2", "m, 0, 2, 1"],
    "unsafe_split": ["x, 4, 1", "x, 3"],
    "unsafe_split_with_sizes": ["x, [1, 3]", "x, [2, 0, 4], 1"],
    "unsqueeze_copy": ["x, 0", "x, -1"],
    "vdot": ["v, x[:, 1]", "c[0], c[1]"],
    "xlogy": ["x, u", "s, w.abs()", "torch.zeros(6), s", "x, 2.0", "2.5, u", "0, s", "i, 2"],
    "zero": ["x"],
    "zeros": ["[2, 3]", "[], dtype=torch.int64"],
    "zeros_like": ["x", "i", "c"],
}  # fmt: skip
TABLE = core_aten_decompositions()


def called(text):
    """The arguments of a sample, with new tensors."""
    return eval(f"pack({text})", {**values(), "pack": lambda *args, **kwargs: (args, kwargs)})


def fits(overload, args, kwargs):
    """Whether the overload accepts the arguments, without those that it writes to by keyword."""
    arguments = [a for a in overload._schema.arguments if not (a.is_write and a.kwarg_only)]
    positional = [a for a in arguments if not a.kwarg_only]
    values = {**{a.name: v for a, v in zip(positional, args)}, **kwargs}
    if len(args) > len(positional) or set(values) - {a.name for a in arguments}:
        return False
    return all(accepts(a.type, values[a.name]) if a.name in values else a.has_default for a in arguments)


def flat(result):
    return [result] if isinstance(result, torch.Tensor) else [t for part in result for t in flat(part)]


def outs(overload, expected):
    """Empty arguments for out=, of the results' dtypes."""
    names = [a.name for a in overload._schema.arguments if a.is_write and a.kwarg_only]
    if len(names) != 1:
        return {name: torch.empty(0, dtype=t.dtype) for name, t in zip(names, expected)}
    empty = [torch.empty(0, dtype=t.dtype) for t in flat(expected)]
    return {names[0]: empty[0] if isinstance(expected, torch.Tensor) else empty}


@pytest.mark.parametrize("overload", TABLE, ids=str)
def test_decomposition(overload):
    function, schema = TABLE[overload], overload._schema
    name = schema.name.removeprefix("aten::")
    has_out = any(a.is_write and a.kwarg_only for a in schema.arguments)
    in_place = schema.is_mutable and not has_out
    used = 0
    for text in SAMPLES[name.removesuffix("_") if in_place else name]:
        args, kwargs = called(text)
        if not fits(overload, args, kwargs):
            continue
        if has_out:
            expected = getattr(aten, name)(*args, **kwargs)
            written = outs(overload, expected)
            result = function(*args, **kwargs, **written)
            assert all(a is b for a, b in zip(flat(result), flat(list(written.values())), strict=True))
        else:
            try:
                expected = overload(*args, **kwargs)
            except RuntimeError:
                assert in_place  # the result does not fit
                continue
            args, kwargs = called(text)
            result = function(*args, **kwargs)
            assert not in_place or result is args[0]
        used += 1
        for a, b in zip(flat(result), flat(expected), strict=True):
            assert a.dtype is b.dtype and a.shape == b.shape, f"{text}: {a.dtype} {a.shape}, expected {b.dtype} {b.shape}"
            torch.testing.assert_close(a, b, equal_nan=True, rtol=2e-5, atol=2e-5, msg=lambda m, text=text: f"{text}: {m}")
    assert used


def test_tables():
    assert len(TABLE) > 280 and all(overload in decomposition_table for overload in TABLE)
    found = get_decompositions([aten.mish, aten.celu_.default, aten.conv2d])
    assert set(map(str, found)) == {"aten.mish.default", "aten.mish.out", "aten.celu_.default"}
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_decomposition(aten.mish)(lambda x: x)
    own = {}
    register_decomposition(aten.mish.default, own)(lambda x: x + 1)
    assert own[aten.mish.default](torch.zeros(1)).item() == 1


def test_gradients_of_decompositions():
    x = torch.randn(5, requires_grad=True)
    for name in ("mish", "silu", "softplus", "celu", "sinc"):
        overload = getattr(aten, name).default
        expected, found = (torch.autograd.grad(f(x).sum(), x)[0] for f in (overload, TABLE[overload]))
        torch.testing.assert_close(found, expected)
