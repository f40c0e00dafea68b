"""torch.ao.quantization: fusion of batch norms, stubs, block sizes."""

import warnings

from .record import error


def values(torch, *sizes):
    """Numbers that are the same in both libraries."""
    count = 1
    for n in sizes:
        count *= n
    return torch.sin(torch.arange(1.0, count + 1)).reshape(sizes)


def filled(torch, module):
    """The module, in evaluation mode, with given parameters and statistics."""
    with torch.no_grad():
        for i, (name, t) in enumerate(module.state_dict().items()):
            if t.is_floating_point():
                t.copy_(values(torch, *t.shape) / (i + 1) + (1 if "running_var" in name else 0.1))
    return module.eval()


def case_fusion(torch):
    nn, q = torch.nn, __import__(f"{torch.__name__}.ao.quantization", fromlist=["x"])
    rows = []
    for layer, bn, size, fuse in (
        (nn.Conv2d(2, 4, 2, groups=2), nn.BatchNorm2d(4), (1, 2, 3, 3), q.fuse_conv_bn),
        (nn.Conv1d(2, 3, 2, bias=False), nn.BatchNorm1d(3, affine=False), (1, 2, 4), q.fuse_conv_bn),
        (nn.Linear(3, 2), nn.BatchNorm1d(2), (2, 3), q.fuse_linear_bn),
        (nn.ConvTranspose2d(2, 4, 2), nn.BatchNorm2d(4), (1, 2, 2, 2), q.fuse_convtranspose_bn),
    ):
        fused, x = fuse(False, filled(torch, layer), filled(torch, bn)), values(torch, *size)
        rows.append([bool(torch.allclose(fused(x), bn(layer(x)), atol=1e-5)), fused(x)])
    rows.append(error(q.fuse_conv_bn, False, nn.Conv2d(1, 2, 1).eval(), nn.BatchNorm2d(2)).partition(":")[0])
    return rows


def case_stubs(torch):
    q = __import__(f"{torch.__name__}.ao.quantization", fromlist=["x"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = q.QuantWrapper(filled(torch, torch.nn.Linear(2, 2)))
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        net[0].qconfig = q.QConfig(int, float)
        q.add_quant_dequant(net)
    return [
        wrapped(torch.ones(1, 2)), [n for n, _ in wrapped.named_modules()], wrapped.training, [type(m).__name__ for m in net],
        q.qconfig_equals(q.QConfig(int, float), q.QConfig(int, float)), q.qconfig_equals(None, q.QConfig(int, float)),
        *(list(q.get_block_size((4, 6), g)) for g in (q.PerTensor(), q.PerAxis(0), q.PerRow(), q.PerToken(), q.PerGroup(3))),
        error(q.get_block_size, (4, 6), q.PerGroup(4)).partition(":")[0], [t.name for t in q.QuantType],
    ]  # fmt: skip
