"""Graph mode: the values of prepared and converted graphs."""

from .record import ao, error, filled, values


def models(torch):
    """Models as functions of the module `torch`, with the sizes of their inputs."""
    nn, F = torch.nn, torch.nn.functional

    class Convolutions(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.relu, self.conv2, self.fc = (
                nn.Conv2d(1, 4, 3, padding=1),
                nn.BatchNorm2d(4),
                nn.ReLU(),
                nn.Conv2d(4, 4, 3, padding=1),
                nn.Linear(36, 3),
            )

        def forward(self, x):
            x = self.relu(self.bn(self.conv(x)))
            x = F.max_pool2d(F.relu(self.conv2(x) + x), 2)
            return self.fc(torch.flatten(x, 1))

    class Activations(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.hard, self.leaky, self.norm, self.sigmoid, self.tanh = (
                nn.Linear(6, 6),
                nn.Hardswish(),
                nn.LeakyReLU(),
                nn.LayerNorm(6),
                nn.Sigmoid(),
                nn.Tanh(),
            )

        def forward(self, x):
            x = self.leaky(self.fc(x))
            x = self.norm(self.hard(x)) * 0.5
            return torch.cat([self.sigmoid(x), self.tanh(x)], 1).reshape(-1, 3).relu()

    class Functions(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.bias, self.kernel = (
                nn.Parameter(torch.zeros(4, 6)),
                nn.Parameter(torch.zeros(4)),
                nn.Parameter(torch.zeros(2, 1, 2, 2)),
            )
            self.shift = nn.Parameter(torch.zeros(2))

        def forward(self, x):
            y = F.relu(F.linear(x, self.weight, self.bias))
            return F.conv2d(y.reshape(1, 1, 4, 4), self.kernel, self.shift, (2, 2), (0, 0), (1, 1), 1)

    return [(Convolutions, (4, 1, 6, 6)), (Activations, (4, 6)), (Functions, (4, 6))]


def observed(torch, net, mapping, sizes, **options):
    """A prepared graph after some inputs."""
    fx = ao(torch, "quantization.quantize_fx")
    made = fx.prepare_fx(net, mapping, (values(torch, *sizes),), **options)
    for step in range(2):
        made(values(torch, *sizes, offset=step / 8))
    return made


def kinds(net):
    """The classes of a graph's modules in order, without observers."""
    nodes = [
        n for n in net.graph.nodes if n.op == "call_module" and not n.target.endswith("_quantized")
    ]  # functions in PyTorch
    found = [type(net.get_submodule(n.target)).__name__ for n in nodes]
    return [name for name in found if "Observer" not in name and "Fake" not in name]


def observers(net):
    """The ranges of a graph's observers, sorted."""
    found = {
        m
        for name, m in net.named_modules()
        if name.startswith("activation_post_process") and hasattr(m, "min_val") and m.min_val.numel() == 1
    }
    return sorted([round(float(m.min_val), 4), round(float(m.max_val), 4)] for m in found)


def case_static(torch):
    q, fx, rows = ao(torch, "quantization"), ao(torch, "quantization.quantize_fx"), []
    for backend in ("x86", "qnnpack"):
        for make, sizes in models(torch):
            net = filled(torch, make()).eval()
            prepared = observed(torch, net, q.get_default_qconfig_mapping(backend), sizes)
            x = values(torch, *sizes)
            row = [kinds(prepared), observers(prepared), prepared(x)]
            made = fx.convert_fx(prepared)
            rows.append([*row, kinds(made), made(x)])
    return rows


def case_references(torch):
    q, fx, rows = ao(torch, "quantization"), ao(torch, "quantization.quantize_fx"), []
    nn = torch.nn
    for net in (
        nn.Sequential(nn.Linear(4, 6), nn.Hardswish(), nn.Linear(6, 3)),
        nn.Sequential(nn.Linear(4, 6), nn.ReLU()),
    ):
        prepared = observed(torch, filled(torch, net).eval(), q.get_default_qconfig_mapping("qnnpack"), (3, 4))
        made = fx.convert_to_reference_fx(prepared)
        rows.append([kinds(made), made(values(torch, 3, 4))])
    return rows


def case_dynamic(torch):
    q, fx, rows = ao(torch, "quantization"), ao(torch, "quantization.quantize_fx"), []
    net = filled(torch, torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))).eval()
    for qconfig in (q.default_dynamic_qconfig, q.per_channel_dynamic_qconfig):
        prepared = fx.prepare_fx(net, q.QConfigMapping().set_global(qconfig), (values(torch, 2, 4),))
        made = fx.convert_fx(prepared)
        rows.append([kinds(made), made(values(torch, 3, 4))])
    return rows


def case_mapping(torch):
    """Configurations by name, class, expression and number."""
    q, fx, rows = ao(torch, "quantization"), ao(torch, "quantization.quantize_fx"), []
    nn, qconfig = torch.nn, q.get_default_qconfig("qnnpack")
    for mapping in (
        q.QConfigMapping().set_global(qconfig).set_module_name("0", None),
        q.QConfigMapping().set_object_type(nn.Linear, qconfig),
        q.QConfigMapping().set_module_name("2", qconfig),
        q.QConfigMapping().set_global(qconfig).set_module_name_regex("[12]", None),
        {"": None, "object_type": [(nn.Linear, qconfig)]},
    ):
        net = filled(torch, nn.Sequential(nn.Linear(4, 6), nn.Hardswish(), nn.Linear(6, 3))).eval()
        prepared = observed(torch, net, mapping, (3, 4))
        made = fx.convert_fx(prepared)
        rows.append([observers(prepared), kinds(made), made(values(torch, 3, 4))])
    return rows


def case_quantized_inputs_and_results(torch):
    q, fx = ao(torch, "quantization"), ao(torch, "quantization.quantize_fx")
    custom = (
        ao(torch, "quantization.fx.custom_config")
        .PrepareCustomConfig()
        .set_input_quantized_indexes([0])
        .set_output_quantized_indexes([0])
    )
    net = filled(torch, torch.nn.Sequential(torch.nn.Linear(4, 3))).eval()
    prepared = observed(
        torch,
        net,
        q.QConfigMapping().set_global(q.get_default_qconfig("qnnpack")),
        (3, 4),
        prepare_custom_config=custom,
    )
    made = fx.convert_fx(prepared)
    return [observers(prepared), made(torch.quantize_per_tensor(values(torch, 3, 4), 1 / 32, 90, torch.quint8))]


def case_training(torch):
    q, fx, rows = ao(torch, "quantization"), ao(torch, "quantization.quantize_fx"), []
    make, sizes = models(torch)[0]
    net = filled(torch, make()).train()
    prepared = fx.prepare_qat_fx(net, q.get_default_qat_qconfig_mapping("x86"), (values(torch, *sizes),))
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.01)
    for step in range(2):
        y = prepared(values(torch, *sizes, offset=step / 16))
        optimizer.zero_grad()
        (y * values(torch, *y.shape)).sum().backward()
        optimizer.step()
        rows.append(y)
    return [*rows, kinds(prepared), kinds(fx.convert_fx(prepared.eval()))]


def case_fusion(torch):
    fx, rows = ao(torch, "quantization.quantize_fx"), []
    make, sizes = models(torch)[0]
    net = filled(torch, make()).eval()
    made = fx.fuse_fx(net)
    return [
        kinds(made),
        made(values(torch, *sizes)),
        error(fx.prepare_fx, net.train(), {}, (values(torch, *sizes),)).partition(":")[0] != "",
        rows,
    ]
