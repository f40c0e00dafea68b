"""Fusion of modules, and fused modules for training."""

from .record import ao, error, filled, values


def short(text: str) -> str:
    """The type of an error."""
    return text.partition(":")[0]


def pairs(torch):
    """Sequences of modules that are fused, with sizes of inputs."""
    nn = torch.nn
    return [
        ([nn.Conv1d(2, 3, 2, bias=False), nn.BatchNorm1d(3)], (2, 2, 5)),
        ([nn.Conv2d(2, 4, 2, groups=2), nn.BatchNorm2d(4)], (2, 2, 4, 4)),
        ([nn.Conv3d(1, 2, 2), nn.BatchNorm3d(2)], (2, 1, 3, 3, 3)),
        ([nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.ReLU()], (2, 2, 5)),
        ([nn.Conv2d(2, 3, 3, padding=1, stride=2), nn.BatchNorm2d(3), nn.ReLU()], (2, 2, 5, 5)),
        ([nn.Conv3d(1, 2, 2), nn.BatchNorm3d(2), nn.ReLU()], (2, 1, 3, 3, 3)),
        ([nn.Conv2d(2, 3, 2), nn.ReLU()], (2, 2, 4, 4)),
        ([nn.Conv1d(2, 3, 2), nn.ReLU()], (2, 2, 5)),
        ([nn.Conv3d(1, 2, 2), nn.ReLU()], (2, 1, 3, 3, 3)),
        ([nn.Linear(3, 4), nn.ReLU()], (5, 3)),
        ([nn.Linear(3, 4), nn.BatchNorm1d(4)], (5, 3)),
        ([nn.BatchNorm2d(2), nn.ReLU()], (2, 2, 3, 3)),
        ([nn.BatchNorm3d(2), nn.ReLU()], (2, 2, 3, 3, 3)),
        ([nn.ConvTranspose2d(2, 3, 2), nn.BatchNorm2d(3)], (2, 2, 3, 3)),
        ([nn.ConvTranspose1d(2, 3, 2), nn.BatchNorm1d(3)], (2, 2, 3)),
    ]


def case_fusion_for_evaluation(torch):
    q, rows = ao(torch, "quantization"), []
    for modules, sizes in pairs(torch):
        net = filled(torch, torch.nn.Sequential(*modules)).eval()
        fused = q.fuse_modules(net, [str(i) for i in range(len(modules))])
        x = values(torch, *sizes)
        rows.append(
            [
                [type(m).__name__ for m in fused],
                bool(torch.allclose(fused(x), net(x), atol=1e-4)),
                fused(x),
                list(fused.state_dict()),
            ]
        )
    return rows


def case_fusion_for_training(torch):
    q, rows = ao(torch, "quantization"), []
    for modules, sizes in pairs(torch)[:11]:
        net = filled(torch, torch.nn.Sequential(*modules)).train()
        fused = q.fuse_modules_qat(net, [[str(i) for i in range(len(modules))]])
        rows.append(
            [[type(m).__name__ for m in fused], fused(values(torch, *sizes)), list(fused.state_dict()), fused.training]
        )
    return rows


def case_hooks_move_to_the_fused_module(torch):
    q, calls = ao(torch, "quantization"), []
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).eval()
    net[0].register_forward_pre_hook(lambda m, a: calls.append(type(m).__name__))
    net[1].register_forward_hook(lambda m, a, r: calls.append(type(m).__name__))
    fused = q.fuse_modules(net, ["0", "1"], inplace=True)
    fused(torch.ones(1, 2))
    return [calls, fused is net]


def case_errors(torch):
    q, nn = ao(torch, "quantization"), torch.nn
    nni = ao(torch, "nn.intrinsic")
    return [
        short(error(q.fuse_modules, nn.Sequential(nn.ReLU(), nn.ReLU()), ["0", "1"])),
        short(error(q.fuse_modules, nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)), ["0", "1"])),
        short(error(q.fuse_modules_qat, nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(3)), ["0", "1"])),
        short(
            error(q.fuse_modules_qat, nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2, affine=False)), ["0", "1"])
        ),
        short(
            error(
                q.fuse_modules_qat,
                nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2, track_running_stats=False)),
                ["0", "1"],
            )
        ),
        short(error(q.fuse_modules_qat, nn.Sequential(nn.ConvTranspose2d(1, 2, 1), nn.BatchNorm2d(2)), ["0", "1"])),
        *(
            short(error(nni.ConvReLU2d, nn.Conv1d(1, 1, 1), nn.ReLU())),
            short(error(nni.LinearReLU, nn.Linear(1, 1), nn.ReLU6())),
        ),
        short(error(q.get_fuser_method, (nn.ReLU,))),
        q.get_fuser_method((nn.ReLU,), {(nn.ReLU,): 7}),
    ]


def case_fused_for_training_modules(torch):
    """Modules that round their weights: results, gradients, statistics, the float module, and further modes."""
    q, rows = ao(torch, "quantization"), []
    nniqat = ao(torch, "nn.intrinsic.qat")
    for modules, sizes in pairs(torch)[:11]:
        net = filled(torch, torch.nn.Sequential(*modules)).train()
        fused = q.fuse_modules_qat(net, [[str(i) for i in range(len(modules))]])[0]
        fused.qconfig = q.get_default_qat_qconfig("qnnpack")
        q.propagate_qconfig_(fused)
        kind = getattr(nniqat, type(fused).__name__)
        made = kind.from_float(fused)
        x = values(torch, *sizes).requires_grad_()
        y = made(x)
        (y * values(torch, *y.shape)).sum().backward()
        grads = {name: p.grad for name, p in made.named_parameters()}
        row = [type(made).__name__, y, x.grad, grads, dict(made.state_dict())]
        if hasattr(made, "bn"):
            made.apply(nniqat.freeze_bn_stats)
            frozen = [made.freeze_bn, made.bn.training, made.train().bn.training, made(x)]
            made.apply(nniqat.update_bn_stats)
            row += [frozen, made.freeze_bn, made.bn.training]
        made.eval()
        row += [made(x), made.to_float().eval()(x)]
        rows.append(row)
    return rows


def case_slow_path(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    nniqat, nni = ao(torch, "nn.intrinsic.qat"), ao(torch, "nn.intrinsic")
    fused = filled(torch, nni.ConvBn2d(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3))).train()
    fused.qconfig = q.get_default_qat_qconfig("qnnpack")
    made = nniqat.ConvBn2d.from_float(fused)
    made._enable_slow_path_for_better_numerical_stability = True
    for _ in range(2):
        rows.append(made(values(torch, 3, 2, 4, 4)))
    made.eval()
    return [*rows, made(values(torch, 3, 2, 4, 4)), made.bn.running_mean]


def case_old_names_of_states(torch):
    q, nn = ao(torch, "quantization"), torch.nn
    nniqat, nni = ao(torch, "nn.intrinsic.qat"), ao(torch, "nn.intrinsic")
    fused = filled(torch, nni.ConvBn2d(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3))).train()
    fused.qconfig = q.get_default_qat_qconfig("qnnpack")
    made = nniqat.ConvBn2d.from_float(fused)
    names = {
        "bn.weight": "gamma",
        "bn.bias": "beta",
        "bn.running_mean": "running_mean",
        "bn.running_var": "running_var",
        "bn.num_batches_tracked": "num_batches_tracked",
    }
    state = {names.get(k, k): v * 2 for k, v in made.state_dict().items()}
    made.load_state_dict(state)
    return [made.bn.weight, made.bn.running_var]
