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


def described(value):
    """A partial constructor as its class and arguments."""
    parts = getattr(value, "p", None)
    if parts is None:
        return getattr(value, "__name__", str(value))
    return [parts.func.__name__, {k: described(v) if callable(v) else str(v) for k, v in sorted(parts.keywords.items())}]


QCONFIGS = (
    "default_qconfig", "default_dynamic_qconfig", "default_qat_qconfig", "float16_dynamic_qconfig", "float_qparams_weight_only_qconfig",
)  # fmt: skip


def case_defaults(torch):
    q, names = __import__(f"{torch.__name__}.ao.quantization", fromlist=["x"]), {}
    for name in dir(q):
        if name.startswith(("default_", "weight_", "per_channel_", "fused_", "float")) and "histogram" not in name:
            value = getattr(q, name)
            if "qconfig" in name and name not in QCONFIGS:
                continue
            if name.endswith("qconfig"):
                names[name] = [described(value.activation), described(value.weight)]
            elif name != "default_eval_fn" and not name.startswith("default_debug"):
                names[name] = described(value)
    return names


def case_observers(torch):
    q = __import__(f"{torch.__name__}.ao.quantization", fromlist=["x"])
    first, second = values(torch, 3, 4) * 2 + 0.3, values(torch, 3, 4) * 3 - 1
    rows = []
    for make in (
        q.MinMaxObserver, q.default_observer, q.default_weight_observer, q.weight_observer_range_neg_127_to_127,
        q.MinMaxObserver.with_args(reduce_range=True), q.MinMaxObserver.with_args(dtype=torch.quint8, qscheme=torch.per_tensor_symmetric),
        q.MovingAverageMinMaxObserver, q.MovingAverageMinMaxObserver.with_args(averaging_constant=0.5), q.PerChannelMinMaxObserver,
        q.default_per_channel_weight_observer, q.PerChannelMinMaxObserver.with_args(ch_axis=1), q.default_float_qparams_observer,
        q.MovingAveragePerChannelMinMaxObserver.with_args(averaging_constant=0.3), q.default_fixed_qparams_range_neg1to1_observer,
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            observer = make()
            rows.append([*observer.calculate_qparams()] if "Per" not in type(observer).__name__ else [])
            returned = observer(first)
            rows.append([*observer.calculate_qparams()])
            observer(second)
            rows.append([*observer.calculate_qparams(), returned is first, observer.quant_min, observer.quant_max])
            rows.append(list(observer.state_dict()))
            other = make()
            other.load_state_dict(observer.state_dict())
            rows.append([*other.calculate_qparams()])
    recorder = q.RecordingObserver()
    recorder(first)
    rows += [recorder.get_tensor_value(), error(q.MinMaxObserver, qscheme=torch.per_channel_affine).partition(":")[0]]
    return [*rows, error(q.PerChannelMinMaxObserver, is_dynamic=True).partition(":")[0], error(q.NoopObserver().calculate_qparams)]


def case_fake_quantize(torch):
    q = __import__(f"{torch.__name__}.ao.quantization", fromlist=["x"])
    rows = []
    for make in (
        q.FakeQuantize, q.default_fake_quant, q.default_weight_fake_quant, q.default_per_channel_weight_fake_quant,
        q.default_embedding_fake_quant, q.default_fixed_qparams_range_0to1_fake_quant, q.default_fused_act_fake_quant,
        q.fused_per_channel_wt_fake_quant_range_neg_127_to_127, q.default_dynamic_fake_quant, q.default_fused_wt_fake_quant,
        q.default_fused_per_channel_wt_fake_quant,
    ):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fake = make()
            x = (values(torch, 3, 4) * 1.5 + 0.2).requires_grad_()
            fake(x.detach())
            y = fake(x * 0.9)
            fake.disable_observer()
            z = fake(x * 3)
            (y.sum() + (z * z).sum()).backward()
            fake.disable_fake_quant()
            rows.append([y, z, x.grad, fake.scale, fake.zero_point, list(fake.state_dict()), fake(x), fake.quant_min, fake.quant_max])
            other = make()
            other.load_state_dict(fake.state_dict())
            rows.append([other.scale, other(x), other.fake_quant_enabled])
    net = torch.nn.Sequential(q.default_fake_quant(), torch.nn.ReLU())
    net.apply(q.disable_fake_quant).apply(q.disable_observer)
    rows.append([net[0].fake_quant_enabled, net[0].observer_enabled])
    net.apply(q.enable_fake_quant).apply(q.enable_observer)
    return [*rows, net[0].fake_quant_enabled, error(q.FakeQuantize, quant_min=3, quant_max=1).partition(":")[0]]
