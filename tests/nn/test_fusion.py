"""Batch norms folded into preceding layers."""

import pytest


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weight_requires_grad", [False, True])
def test_fused_parameters_keep_requires_grad_and_dtype(torch, bias, weight_requires_grad):
    conv, norm = torch.nn.Conv2d(2, 3, 2, bias=bias, dtype=torch.bfloat16).eval(), torch.nn.BatchNorm2d(3).eval()
    conv.weight.requires_grad_(weight_requires_grad)
    if bias:
        conv.bias.requires_grad_(not weight_requires_grad)
    fused = torch.nn.utils.fuse_conv_bn_eval(conv, norm)
    assert fused.weight.is_leaf and fused.weight.requires_grad is weight_requires_grad
    assert fused.bias.requires_grad is (bias and not weight_requires_grad)
    assert fused.weight.dtype is fused.bias.dtype is torch.bfloat16
    weight, shift = torch.nn.utils.fuse_conv_bn_weights(
        conv.weight, conv.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    )
    assert (weight.requires_grad, shift.requires_grad) == (fused.weight.requires_grad, fused.bias.requires_grad)


def test_fused_linear_layer(torch):
    linear, norm = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)
    norm(linear(torch.randn(8, 3)))
    linear.eval(), norm.eval()
    x, fused = torch.randn(8, 3), torch.nn.utils.fuse_linear_bn_eval(linear, norm)
    assert fused.weight.requires_grad and torch.allclose(fused(x), norm(linear(x)), atol=1e-5)


def test_fusion_checks_sizes_and_statistics(torch):
    nn = torch.nn
    for norm in (nn.BatchNorm1d(2), nn.BatchNorm1d(3, track_running_stats=False)):
        with pytest.raises(AssertionError, match="To fuse|must not be None"):
            nn.utils.fuse_linear_bn_eval(nn.Linear(3, 3).eval(), norm.eval())
