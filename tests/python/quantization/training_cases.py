"""Quantization-aware training: modules that round their weights, and steps of training."""

from .record import ao, error, filled, values


def case_modules(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    qat = ao(torch, "nn.qat")
    config, embedded = q.get_default_qat_qconfig("x86"), q.default_embedding_qat_qconfig
    for module, sizes, qconfig in (
        (nn.Linear(4, 3), (5, 4), config),
        (nn.Conv1d(2, 3, 2, padding_mode="circular", padding=1), (2, 2, 5), config),
        (nn.Conv2d(2, 4, 2, groups=2, stride=2), (2, 2, 5, 5), config),
        (nn.Conv3d(1, 2, 2, bias=False), (1, 1, 3, 3, 3), config),
        (nn.Embedding(6, 3), None, embedded),
        (nn.EmbeddingBag(6, 3, mode="sum"), None, embedded),
    ):
        filled(torch, module).qconfig = qconfig
        made = getattr(qat, type(module).__name__).from_float(module)
        x = torch.tensor([[0, 5, 2], [1, 1, 3]]) if sizes is None else values(torch, *sizes)
        y = made(x)
        (y * values(torch, *y.shape)).sum().backward()
        rows.append(
            [
                type(made).__mro__[1].__name__ != "",
                y,
                {n: p.grad for n, p in made.named_parameters()},
                list(made.state_dict()),
                made.weight_fake_quant.scale,
                made.weight_fake_quant.zero_point,
                made.to_float()(x),
                made.weight is module.weight,
            ]
        )
    return rows


def case_errors(torch):
    q, nn = ao(torch, "quantization"), torch.nn
    qat, dynamic = ao(torch, "nn.qat"), ao(torch, "nn.qat.dynamic")
    texts = [
        error(qat.Linear, 2, 3),
        error(qat.Conv2d, 1, 1, 1),
        error(qat.Linear.from_float, nn.Linear(1, 1)),
        error(qat.Linear.from_float, nn.ReLU()),
        error(qat.Embedding, 2, 3, qconfig=q.default_qat_qconfig),
        error(dynamic.Linear, 2, 3, qconfig=q.default_qat_qconfig),
        error(dynamic.Linear, 2, 3, qconfig=q.default_dynamic_qat_qconfig),
        error(q.prepare_qat, nn.Linear(1, 1).eval()),
    ]
    return [text.partition(":")[0] for text in texts]


class Net:
    """A small convolutional network as a function of the module `torch`."""

    @staticmethod
    def make(torch):
        nn, q = torch.nn, ao(torch, "quantization")
        return filled(
            torch,
            nn.Sequential(
                q.QuantStub(),
                nn.Conv2d(1, 4, 3, padding=1),
                nn.BatchNorm2d(4),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(36, 8),
                nn.ReLU(),
                nn.Linear(8, 3),
                q.DeQuantStub(),
            ),
        )

    FUSED = [["1", "2", "3"], ["6", "7"]]


def trained(torch, qconfig, steps=2):
    """A network prepared for training, after some steps, and its losses."""
    q, F = ao(torch, "quantization"), torch.nn.functional
    net = q.fuse_modules_qat(Net.make(torch).train(), Net.FUSED)
    net.qconfig = qconfig
    net = q.prepare_qat(net)
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=0.05), []
    for step in range(steps):
        x, target = values(torch, 6, 1, 6, 6, offset=step / 16), torch.arange(6) % 3
        loss = F.cross_entropy(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return net, losses


def case_steps(torch):
    q, rows = ao(torch, "quantization"), []
    for qconfig in (
        q.get_default_qat_qconfig("x86"),
        q.get_default_qat_qconfig("qnnpack", 0),
        q.default_qat_qconfig_v2,
    ):
        net, losses = trained(torch, qconfig)
        state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        scales = {name: state[name] for name in state if name.endswith((".scale", ".zero_point", "min_val"))}
        rows.append(
            [losses, [type(m).__name__ for m in net], scales, list(state), net.eval()(values(torch, 2, 1, 6, 6))]
        )
    return rows


def case_dynamic_training(torch):
    q = ao(torch, "quantization")
    net = filled(torch, torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())).train()
    net.qconfig = q.default_dynamic_qat_qconfig
    made = q.prepare_qat(net, {torch.nn.Linear: ao(torch, "nn.qat.dynamic").Linear})
    first, second = made(values(torch, 2, 4)), made(values(torch, 2, 4) * 4)
    return [first, second, [type(m).__name__ for m in made.modules()], list(made.state_dict())]
