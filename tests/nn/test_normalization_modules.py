"""Normalisation modules: input without a batch, checks of sizes, and reset_parameters."""

import pytest


@pytest.mark.parametrize("options", [{}, {"affine": True}, {"track_running_stats": True}])
@pytest.mark.parametrize("name, ndim", [("InstanceNorm1d", 2), ("InstanceNorm2d", 3), ("InstanceNorm3d", 4)])
def test_instance_norm_of_a_sample_without_a_batch(torch, name, ndim, options):
    batched, single = (getattr(torch.nn, name)(3, **options) for _ in range(2))
    x = torch.arange(3.0**ndim).reshape([3] * ndim) ** 2
    for _ in range(2):  # in training, then in evaluation
        assert torch.equal(single(x), batched(x.unsqueeze(0)).squeeze(0))
        single.eval(), batched.eval()
    if options.get("track_running_stats"):
        assert torch.equal(single.running_var, batched.running_var)
    with pytest.raises(ValueError, match=f"expected {ndim}D or {ndim + 1}D input"):
        single(torch.ones([3] * (ndim + 2)))


def test_instance_norm_checks_sizes(torch):
    nn = torch.nn
    with pytest.raises(ValueError, match=r"size at dim=1 to match num_features \(3\), but got: 4."):
        nn.InstanceNorm1d(3, affine=True)(torch.ones(2, 4, 5))
    with pytest.warns(UserWarning, match="size at dim=0 does not match num_features"):
        nn.InstanceNorm1d(3)(torch.ones(4, 5))
    with pytest.raises(ValueError, match="Expected more than 1 spatial element when training"):
        nn.InstanceNorm1d(3)(torch.ones(2, 3, 1))
    with pytest.raises(RuntimeError, match="running_mean and running_var to be defined when use_input_stats is false"):
        nn.functional.instance_norm(torch.ones(2, 3, 4), use_input_stats=False)
    with pytest.raises(ValueError, match="must either both be None or neither"):
        nn.functional.instance_norm(torch.ones(2, 3, 4), running_mean=torch.ones(3))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_rms_norm_of_small_numbers(torch, name):
    """The default eps is float32's machine epsilon for 16-bit dtypes too, as in PyTorch; their own is larger than x * x."""
    x = torch.tensor([0.001, 0.002, 0.0003], dtype=getattr(torch, name))
    expected = [0.7420905, 1.4841810, 0.2226272]
    assert torch.nn.functional.rms_norm(x, (3,)).tolist() == pytest.approx(expected, rel=1e-6 if name == "float32" else 6e-3)


def test_reset_parameters(torch):
    nn = torch.nn
    for norm in (nn.LayerNorm(3), nn.GroupNorm(1, 3), nn.RMSNorm(3), nn.LayerNorm(3, elementwise_affine=False)):
        for parameter in norm.parameters():
            nn.init.constant_(parameter, 5)
        norm.reset_parameters()
        assert all((p == (name == "weight")).all() for name, p in norm.named_parameters())
