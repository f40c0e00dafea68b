"""Methods of modules and optimizers that subclasses override, and functions of nn.functional that programs replace."""

import pytest

import teletensor as torch
from teletensor import nn
from teletensor.nn import functional as F


@pytest.mark.parametrize(
    ("cls", "args"),
    [
        (nn.BatchNorm1d, (2,)), (nn.BatchNorm2d, (2,)), (nn.LayerNorm, (2,)), (nn.GroupNorm, (1, 2)), (nn.RMSNorm, (2,)), (nn.PReLU, (2,)),
        (nn.Linear, (2, 2)), (nn.Conv2d, (1, 2, 1)), (nn.Embedding, (2, 2)),
    ],
)  # fmt: skip
def test_reset_parameters_of_a_subclass_is_called(cls, args):
    class Halves(cls):
        def reset_parameters(self):
            super().reset_parameters()
            nn.init.constant_(self.weight, 0.5)

    assert Halves(*args).weight.eq(0.5).all()
    usual = cls(*args)
    assert cls is nn.PReLU or not usual.weight.eq(0.5).all()


def test_reset_running_stats_of_a_subclass_is_called():
    class Fives(nn.BatchNorm1d):
        def reset_running_stats(self):
            super().reset_running_stats()
            self.running_var.fill_(5)

    assert Fives(2).running_var.tolist() == [5, 5]
    plain = nn.BatchNorm1d(2)
    assert plain.running_var.tolist() == [1, 1] and plain.running_mean.tolist() == [0, 0] and plain.num_batches_tracked == 0


IMAGES = (2, 4, 8, 8)
CALLS = {
    "relu": (nn.ReLU, (), 1), "leaky_relu": (nn.LeakyReLU, (), 1), "gelu": (nn.GELU, (), 1), "softmax": (nn.Softmax, (1,), 1),
    "glu": (nn.GLU, (1,), 1), "softplus": (nn.Softplus, (), 1), "threshold": (nn.Threshold, (0.1, 1), 1), "dropout": (nn.Dropout, (), 1),
    "dropout2d": (nn.Dropout2d, (), 1), "alpha_dropout": (nn.AlphaDropout, (), 1), "conv2d": (nn.Conv2d, (4, 2, 3), 1),
    "conv_transpose2d": (nn.ConvTranspose2d, (4, 2, 3), 1), "max_pool2d": (nn.MaxPool2d, (2,), 1), "avg_pool2d": (nn.AvgPool2d, (2,), 1),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d, (2,), 1), "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d, (2,), 1),
    "lp_pool2d": (nn.LPPool2d, (2, 2), 1), "fractional_max_pool2d": (nn.FractionalMaxPool2d, (2, 2), 1), "mse_loss": (nn.MSELoss, (), 2),
    "l1_loss": (nn.L1Loss, (), 2), "binary_cross_entropy": (nn.BCELoss, (), 2), "huber_loss": (nn.HuberLoss, (), 2),
    "cross_entropy": (nn.CrossEntropyLoss, (), 2), "triplet_margin_loss": (nn.TripletMarginLoss, (), 3),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("compiled", [False, True])
def test_modules_call_replaced_functions(monkeypatch, name, compiled):
    cls, args, inputs = CALLS[name]
    module = cls(*args)
    call = torch.compile(module) if compiled else module
    before = call(*[torch.rand(IMAGES)] * inputs)
    assert before.shape != (7,)
    monkeypatch.setattr(F, name, lambda *args, **kwargs: torch.full((7,), 7.0))
    assert call(*[torch.rand(IMAGES)] * inputs).tolist() == [7.0] * 7


def test_attention_calls_replaced_functions(monkeypatch):
    calls = []
    attention = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *args, **kwargs: calls.append(1) or attention(*args, **kwargs))
    x = torch.rand(2, 3, 8)
    nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x, need_weights=False)
    assert calls == [1]


def test_call_impl_is_replaced(monkeypatch):
    class Twice(nn.Linear):
        def _call_impl(self, *args, **kwargs):
            return 2 * super()._call_impl(*args, **kwargs)

    layer = Twice(1, 1, bias=False)
    nn.init.ones_(layer.weight)
    x = torch.ones(1)
    assert layer(x) == 2 and torch.compile(layer)(x) == 2
    original = nn.Module._call_impl
    monkeypatch.setattr(nn.Module, "_call_impl", lambda self, *args, **kwargs: original(self, *args, **kwargs) + 1)
    plain = nn.Linear(1, 1, bias=False)
    nn.init.ones_(plain.weight)
    assert plain(x) == 2


def test_checks_and_permutations_of_recurrent_modules():
    calls = []

    class Checked(nn.LSTM):
        def check_forward_args(self, input, hidden, batch_sizes):
            calls.append("check")
            super().check_forward_args(input, hidden, batch_sizes)

        def get_expected_cell_size(self, input, batch_sizes):
            calls.append("cell")
            return super().get_expected_cell_size(input, batch_sizes)

        def permute_hidden(self, hx, permutation):
            calls.append("permute")
            return super().permute_hidden(hx, permutation)

    lstm, x = Checked(2, 3, proj_size=1), torch.rand(4, 5, 2)
    output, (h, c) = lstm(x)
    assert (output.shape, h.shape, c.shape) == ((4, 5, 1), (1, 5, 1), (1, 5, 3))
    assert calls == ["check", "cell", "permute"]
    with pytest.raises(RuntimeError, match=r"Expected hidden\[1\] size \(1, 5, 3\), got \[1, 5, 2\]"):
        lstm(x, (h, c[..., :2]))
    with pytest.raises(RuntimeError, match="must be equal to input_size"):
        lstm(x[..., :1])


def test_instance_norm_is_applied_by_a_method():
    class Doubled(nn.InstanceNorm1d):
        def _apply_instance_norm(self, input):
            return 2 * super()._apply_instance_norm(input)

    x = torch.rand(2, 3, 4)
    assert torch.equal(Doubled(3)(x), 2 * nn.InstanceNorm1d(3)(x))
    assert torch.equal(Doubled(3)(x[0]), 2 * nn.InstanceNorm1d(3)(x[0]))


def test_load_state_dict_calls_setstate():
    class Old(torch.optim.SGD):
        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("ema", 0.9)

    p = nn.Parameter(torch.ones(2))
    before = torch.optim.SGD([p], lr=0.1, momentum=0.9)
    p.grad = torch.ones(2)
    before.step()
    loaded = Old([p], lr=0.2)
    calls = []
    loaded.register_load_state_dict_post_hook(lambda optimizer: calls.append(optimizer.param_groups[0]["ema"]))
    loaded.load_state_dict(before.state_dict())
    assert calls == [0.9] and loaded.param_groups[0]["lr"] == 0.1
    assert torch.equal(loaded.state[p]["momentum_buffer"], torch.ones(2))


def test_hooks_after_accumulation_write_to_the_leaf_and_return_none():
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: p.sub_(p.grad))
    (x * 2).sum().backward()
    assert x.tolist() == [-1, -1]
    x.register_post_accumulate_grad_hook(lambda p: 5)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        (x * 2).sum().backward()
