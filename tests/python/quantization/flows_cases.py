"""Whole flows of eager mode: prepare, observe, convert; states of quantized models."""

from .record import ao, error, filled, values
from .training_cases import Net, trained


def types(net):
    """The classes of the modules in a model."""
    return {name: type(m).__name__ for name, m in net.named_modules()}


def quantized(torch, backend):
    """A fused, an observed and a converted network."""
    q = ao(torch, "quantization")
    net = q.fuse_modules(Net.make(torch).eval(), Net.FUSED)
    net.qconfig = q.get_default_qconfig(backend)
    observed = q.prepare(net)
    for step in range(3):
        observed(values(torch, 4, 1, 6, 6, offset=step / 8))
    return net, observed, q.convert(observed)


def case_static(torch):
    q, rows = ao(torch, "quantization"), []
    for backend in ("x86", "qnnpack"):
        net, observed, made = quantized(torch, backend)
        state = made.state_dict()
        other = q.convert(q.prepare(net))
        other.load_state_dict(state)
        x = values(torch, 2, 1, 6, 6)
        rows.append(
            [
                types(observed),
                types(made),
                made(x),
                other(x),
                {k: str(v) if "dtype" in k else v for k, v in state.items()},
            ]
        )
    return rows


def case_trained(torch):
    q = ao(torch, "quantization")
    net, _ = trained(torch, q.get_default_qat_qconfig("x86"))
    made = q.convert(net.eval())
    return [types(made), made[1].weight(), made[1].scale, made[1].zero_point]


def case_quantize(torch):
    q, calls = ao(torch, "quantization"), []

    def run(model, *data):
        for x in data:
            model(x)
            calls.append(list(x.shape))

    net = Net.make(torch).eval()
    net.qconfig = q.get_default_qconfig("qnnpack")
    made = q.quantize(net, run, [values(torch, 2, 1, 6, 6), values(torch, 3, 1, 6, 6)])
    return [calls, types(made), made(values(torch, 1, 1, 6, 6))]


def case_dynamic(torch):
    q, nn = ao(torch, "quantization"), torch.nn
    net = filled(torch, nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)))
    x, rows = values(torch, 3, 4), []
    for arguments in (
        {},
        {"qconfig_spec": {nn.Linear}},
        {"qconfig_spec": {"0": q.per_channel_dynamic_qconfig}},
        {"dtype": torch.float16},
        {"qconfig_spec": {"2"}},
    ):
        made = q.quantize_dynamic(net, **arguments)
        rows.append([types(made), made(x)])
    return [
        *rows,
        error(q.quantize_dynamic, net, dtype=torch.int32).partition(":")[0],
        error(q.quantize_dynamic, net, {nn.Linear}, torch.int32).partition(":")[0],
    ]


def case_dynamic_embeddings(torch):
    q, nn = ao(torch, "quantization"), torch.nn
    net = filled(torch, nn.Sequential(nn.EmbeddingBag(6, 8, mode="sum"), nn.Linear(8, 2)))
    made = q.quantize_dynamic(net, dtype=torch.quint8)
    return [types(made), made(torch.tensor([[0, 2], [5, 5]]))]


class Sum:
    """A model with a residual sum, as a function of the module `torch`."""

    @staticmethod
    def make(torch):
        nn, q, nnq = torch.nn, ao(torch, "quantization"), ao(torch, "nn.quantized")

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
                self.first, self.second, self.sum = nn.Linear(4, 4), nn.Linear(4, 4), nnq.FloatFunctional()
                self.sigmoid, self.drop = nn.Sigmoid(), nn.Dropout()

            def forward(self, x):
                x = self.quant(x)
                return self.dequant(self.drop(self.sum.add_relu(self.second(self.first(x)), x)))

        return filled(torch, Block())


def case_functional(torch):
    q = ao(torch, "quantization")
    net = Sum.make(torch).eval()
    net.qconfig = q.get_default_qconfig("qnnpack")
    observed = q.prepare(net)
    observed(values(torch, 5, 4))
    made = q.convert(observed)
    return [types(observed), types(made), made(values(torch, 3, 4)), list(made.state_dict())]


def case_references(torch):
    q = ao(torch, "quantization")
    net = Sum.make(torch).eval()
    net.qconfig = q.get_default_qconfig("qnnpack")
    observed = q.prepare(net)
    observed(values(torch, 5, 4))
    made = q.convert(observed, is_reference=True)
    return [types(made), made.first.get_quantized_weight()]


def case_recurrent(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    for options in ({}, {"bidirectional": True, "batch_first": True}, {"num_layers": 2}):
        net = filled(torch, nn.Sequential(q.QuantStub(), nn.LSTM(4, 3, **options))).eval()
        net.qconfig = q.get_default_qconfig("qnnpack")
        x = values(torch, 3, 2, 4)
        before, _ = net(x)
        observed = q.prepare(net)
        y, (h, c) = observed(x)
        made = q.convert(observed)
        z, (_, cell) = made(x)
        rows.append([bool(torch.allclose(before, y, atol=1e-5)), y, h, c, types(observed), types(made), z, cell])
    return rows


def case_attention(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    for options in ({}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 6, "vdim": 5}):
        attention = filled(torch, nn.MultiheadAttention(8, 2, **options)).eval()
        attention.qconfig = q.get_default_qconfig("qnnpack")
        observed = q.prepare(nn.ModuleList([attention]))[0]
        query, key, value = (
            values(torch, 3, 2, 8),
            values(torch, 4, 2, options.get("kdim", 8)),
            values(torch, 4, 2, options.get("vdim", 8)),
        )
        expected, y = attention(query, key, value), observed(query, key, value)
        made = q.convert(nn.ModuleList([observed]))[0]
        inputs = [torch.quantize_per_tensor(t, 1 / 40, 64, torch.quint8) for t in (query, key, value)]
        z, weights = made(*inputs)  # softmax rounds differently: integers may differ by 1
        close = (
            torch.allclose(z.dequantize(), expected[0], atol=0.25),
            torch.allclose(weights.dequantize(), expected[1], atol=0.1),
        )
        rows.append([bool(torch.allclose(expected[0], y[0], atol=1e-4)), *y, types(made), *map(bool, close)])
        rows.append([z.q_scale(), z.q_zero_point(), made(*inputs, need_weights=False)[1]])
    return rows


def case_hooks_and_lists(torch):
    q, nn, calls = ao(torch, "quantization"), torch.nn, []
    net = filled(torch, nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))).eval()
    net[0].register_forward_pre_hook(lambda m, a: calls.append(type(m).__name__))
    net[0].register_forward_hook(lambda m, a, r: calls.append(type(r).__name__ != ""))
    net[1].qconfig = q.get_default_qconfig("qnnpack")
    observed = q.prepare(net)
    observed(values(torch, 2, 2))
    dynamic = q.quantize_dynamic(net, {"0"})
    dynamic[0](values(torch, 2, 2))
    return [types(observed), calls, hasattr(dynamic[0], "qconfig"), len(dynamic[0]._forward_hooks)]
