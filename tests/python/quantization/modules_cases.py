"""Quantized modules: made of observed float modules, called, saved and loaded."""

from .record import ao, error, filled, values


def quantized_input(torch, *sizes, scale=1 / 32, zero_point=100):
    """A quint8 tensor."""
    return torch.quantize_per_tensor(values(torch, *sizes), scale, zero_point, torch.quint8)


def prepared(torch, module, sizes, qconfig, name=None):
    """The float module with the observer of its results, after one input."""
    q = ao(torch, "quantization")
    filled(torch, module).eval().qconfig = qconfig
    q.propagate_qconfig_(module)
    module.activation_post_process = qconfig.activation()
    module.activation_post_process(module(values(torch, *sizes)))
    return module


def described(made, y):
    """A module's result, text and state."""
    state = made.state_dict()
    return [type(made).__name__, y, repr(made).partition("scale=")[0], {k: state[k] for k in state}]


def layers(torch):
    """Float modules with the sizes of their inputs, for static quantization."""
    nn, nni = torch.nn, ao(torch, "nn.intrinsic")
    return [
        (nn.Linear(5, 3), (4, 5)),
        (nn.Linear(5, 3, bias=False), (2, 3, 5)),
        (nn.Conv1d(2, 4, 3, padding=1), (2, 2, 6)),
        (nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2), (2, 2, 6, 5)),
        (nn.Conv2d(3, 2, (1, 2), dilation=(1, 2), bias=False), (1, 3, 4, 5)),
        (nn.Conv2d(2, 3, 2, padding=1, padding_mode="reflect"), (1, 2, 4, 4)),
        (nn.Conv3d(2, 3, 2), (1, 2, 3, 3, 3)),
        (nni.LinearReLU(nn.Linear(5, 3), nn.ReLU()), (4, 5)),
        (nni.ConvReLU1d(nn.Conv1d(2, 3, 2), nn.ReLU()), (2, 2, 5)),
        (nni.ConvReLU2d(nn.Conv2d(2, 3, 2), nn.ReLU()), (1, 2, 4, 4)),
        (nni.ConvReLU3d(nn.Conv3d(2, 3, 2), nn.ReLU()), (1, 2, 3, 3, 3)),
    ]


def case_static_layers(torch):
    q, rows = ao(torch, "quantization"), []
    for name in ("qnnpack", "x86"):
        for module, sizes in layers(torch):
            module = prepared(torch, module, sizes, q.get_default_qconfig(name))
            kind = q.get_static_quant_module_class(type(module))
            made = kind.from_float(module)
            rows.append(described(made, made(quantized_input(torch, *sizes))))
    return rows


def case_transposed_convolutions(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    for module, sizes in (
        (nn.ConvTranspose1d(2, 3, 2), (1, 2, 4)),
        (nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1, groups=2), (1, 4, 3, 3)),
        (nn.ConvTranspose3d(2, 2, 2), (1, 2, 2, 2, 2)),
    ):
        module = prepared(torch, module, sizes, q.get_default_qconfig("qnnpack"))
        made = q.get_static_quant_module_class(type(module)).from_float(module)
        rows.append(described(made, made(quantized_input(torch, *sizes))))
    return rows


def case_activations(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    nnq = ao(torch, "nn.quantized")
    x = quantized_input(torch, 3, 4)
    for module in (nn.ReLU6(), nn.Hardswish(), nn.ELU(alpha=0.5), nn.LeakyReLU(0.2), nn.Sigmoid(), nn.Softmax(1)):
        module = prepared(torch, module, (3, 4), q.default_quint8_weight_qconfig)
        made = getattr(nnq, type(module).__name__).from_float(module)
        rows.append([type(made).__name__, made(x), list(made.state_dict()), made._get_name()])
    return rows


def case_norms(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    nni = ao(torch, "nn.intrinsic")
    for module, sizes in (
        (nn.LayerNorm(4), (3, 4)),
        (nn.GroupNorm(2, 4), (2, 4, 3)),
        (nn.InstanceNorm1d(2, affine=True), (2, 2, 5)),
        (nn.InstanceNorm2d(2, affine=True), (2, 2, 3, 3)),
        (nn.InstanceNorm3d(2, affine=True), (1, 2, 2, 2, 3)),
        (nn.BatchNorm2d(2), (2, 2, 3, 3)),
        (nn.BatchNorm3d(2), (1, 2, 2, 3, 2)),
        (nni.BNReLU2d(nn.BatchNorm2d(2), nn.ReLU()), (2, 2, 3, 3)),
    ):
        module = prepared(torch, module, sizes, q.get_default_qconfig("qnnpack"))
        made = q.get_static_quant_module_class(type(module)).from_float(module)
        rows.append(
            [type(made).__name__, made(quantized_input(torch, *sizes)), list(made.state_dict()), made._get_name()]
        )
    return rows


def case_embeddings(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    nnq, indices = ao(torch, "nn.quantized"), torch.tensor([1, 4, 4, 0, 2])
    for module in (nn.Embedding(6, 12), nn.EmbeddingBag(6, 12, mode="sum")):
        filled(torch, module).qconfig = q.float_qparams_weight_only_qconfig
        made = getattr(nnq, type(module).__name__).from_float(module)
        y = made(indices) if isinstance(module, nn.Embedding) else made(indices, torch.tensor([0, 2]))
        rows.append(
            [
                type(made).__name__,
                y,
                repr(made),
                list(made.state_dict()),
                str(made.state_dict()["_packed_params.dtype"]),
            ]
        )
    return rows


def case_functional_modules(torch):
    q, nnq, rows = ao(torch, "quantization"), ao(torch, "nn.quantized"), []
    x, y = quantized_input(torch, 2, 3), quantized_input(torch, 2, 3, scale=1 / 16, zero_point=20)
    for name, args in (
        ("add", (x, y)),
        ("mul", (x, y)),
        ("add_relu", (x, y)),
        ("cat", ([x, y], 1)),
        ("add_scalar", (x, 0.5)),
        ("mul_scalar", (x, -2.0)),
        ("matmul", (x, y.t())),
    ):
        floating = nnq.FloatFunctional()
        floating.activation_post_process = q.MinMaxObserver()
        numbers = [
            a.dequantize() if hasattr(a, "dequantize") else [v.dequantize() for v in a] if isinstance(a, list) else a
            for a in args
        ]
        expected = getattr(floating, name)(*numbers)
        if "scalar" in name:
            floating.activation_post_process(expected)
        made = nnq.QFunctional.from_float(floating)
        rows.append(
            [
                name,
                expected,
                getattr(nnq.FXFloatFunctional(), name)(*numbers),
                getattr(made, name)(*args),
                repr(made),
                made.state_dict(),
            ]
        )
    return [*rows, error(made, 1), error(floating, 1)]


def case_stubs(torch):
    q, nnq = ao(torch, "quantization"), ao(torch, "nn.quantized")
    stub = q.QuantStub(q.default_qconfig)
    stub.activation_post_process = q.MinMaxObserver()
    stub.activation_post_process(values(torch, 3, 3))
    made = nnq.Quantize.from_float(stub)
    y = made(values(torch, 2, 2))
    return [y, nnq.DeQuantize.from_float(None)(y), made.state_dict(), repr(made).partition("(")[0]]


def case_functions(torch):
    nnq, x = ao(torch, "nn.quantized.functional"), quantized_input(torch, 1, 2, 4, 4)
    weight = torch.quantize_per_tensor(values(torch, 3, 2, 2, 2) / 4, 1 / 64, 0, torch.qint8)
    matrix = torch.quantize_per_tensor(values(torch, 3, 4) / 4, 1 / 64, 0, torch.qint8)
    return {
        "avg_pool2d": nnq.avg_pool2d(x, 2),
        "adaptive_avg_pool2d": nnq.adaptive_avg_pool2d(x, 2),
        "max_pool2d": nnq.max_pool2d(x, 2),
        "conv2d": nnq.conv2d(x, weight, torch.tensor([0.5, -0.5, 0.0]), stride=2, scale=1 / 16, zero_point=70),
        "interpolate": nnq.interpolate(x, scale_factor=2),
        "linear": nnq.linear(x[0, 0], matrix, torch.tensor([0.5, -0.5, 0.0])),
        "celu": nnq.celu(x, 0.05, 90),
        "leaky_relu": nnq.leaky_relu(x, 0.1),
        "leaky_relu scaled": nnq.leaky_relu(x, 0.1, scale=0.05, zero_point=3),
        "hardtanh": nnq.hardtanh(x),
        "hardswish": nnq.hardswish(x, 0.02, 40),
        "threshold": nnq.threshold(x, 0.25, 0.5),
        "elu": nnq.elu(x, 0.05, 90),
        "hardsigmoid": nnq.hardsigmoid(x),
        "clamp": nnq.clamp(x, -0.5, 0.75),
        "errors": [
            error(nnq.elu, values(torch, 2), 1.0, 0).partition(":")[0],
            error(nnq.conv2d, values(torch, 1, 2, 4, 4), weight, None).partition(":")[0],
        ],
    }


def case_dynamic_layers(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    nni = ao(torch, "nn.intrinsic")
    for qconfig in (q.default_dynamic_qconfig, q.per_channel_dynamic_qconfig, q.float16_dynamic_qconfig):
        for module, sizes in (
            (nn.Linear(5, 3), (4, 5)),
            (nn.Linear(5, 3, bias=False), (2, 2, 5)),
            (nni.LinearReLU(nn.Linear(5, 3), nn.ReLU()), (4, 5)),
        ):
            filled(torch, module).eval().qconfig = qconfig
            q.propagate_qconfig_(module)
            made = q.get_dynamic_quant_module_class(type(module)).from_float(module)
            rows.append(
                [
                    type(made).__name__,
                    made(values(torch, *sizes)),
                    repr(made),
                    {k: str(v) if "dtype" in k else v for k, v in made.state_dict().items()},
                ]
            )
    return rows


def recurrent(torch):
    """Recurrent modules with arguments."""
    nn = torch.nn
    packed = nn.utils.rnn.pack_padded_sequence(values(torch, 5, 3, 4), [5, 2, 4], enforce_sorted=False)
    return [
        (nn.LSTM(4, 3), (values(torch, 5, 2, 4),)),
        (nn.GRU(4, 3, num_layers=2, batch_first=True), (values(torch, 2, 5, 4),)),
        (
            nn.LSTM(4, 3, num_layers=2, bidirectional=True),
            (values(torch, 5, 2, 4), (values(torch, 4, 2, 3), values(torch, 4, 2, 3) / 2)),
        ),
        (nn.LSTM(4, 3, bidirectional=True), (packed,)),
        (nn.GRU(4, 3), (packed, values(torch, 1, 3, 3))),
        (nn.LSTMCell(4, 3), (values(torch, 2, 4),)),
        (nn.GRUCell(4, 3), (values(torch, 2, 4), values(torch, 2, 3))),
        (nn.RNNCell(4, 3), (values(torch, 2, 4),)),
        (nn.RNNCell(4, 3, nonlinearity="relu"), (values(torch, 2, 4),)),
    ]


def flat(result):
    """The tensors of a recurrent module's result."""
    if hasattr(result, "batch_sizes"):
        return [result.data]
    return [t for r in result for t in flat(r)] if isinstance(result, tuple) else [result]


def case_dynamic_recurrent_modules(torch):
    q, rows = ao(torch, "quantization"), []
    for qconfig in (q.default_dynamic_qconfig, q.float16_dynamic_qconfig):
        for module, args in recurrent(torch):
            filled(torch, module).eval().qconfig = qconfig
            made = q.get_dynamic_quant_module_class(type(module)).from_float(module)
            rows.append(
                [
                    type(made).__name__,
                    flat(made(*args)),
                    made.get_weight(),
                    made.get_bias(),
                    made._get_name(),
                    made.extra_repr(),
                ]
            )
    return rows


def case_dynamic_convolutions(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    dynamic = ao(torch, "nn.quantized.dynamic")
    for module, sizes in (
        (nn.Conv1d(2, 3, 2), (1, 2, 5)),
        (nn.Conv2d(2, 3, 2, padding=1), (1, 2, 4, 4)),
        (nn.ConvTranspose2d(2, 3, 2), (1, 2, 3, 3)),
    ):
        filled(torch, module).eval().qconfig = q.default_dynamic_qconfig
        made = getattr(dynamic, type(module).__name__).from_float(module)
        rows.append([made._get_name(), made(values(torch, *sizes)), made.weight()])
    return rows


def case_references(torch):
    q, nn, rows = ao(torch, "quantization"), torch.nn, []
    reference, utils = ao(torch, "nn.quantized.reference"), ao(torch, "quantization.utils")
    for module, sizes in (
        (nn.Linear(5, 3), (4, 5)),
        (nn.Conv1d(2, 3, 2), (1, 2, 5)),
        (nn.Conv2d(2, 3, 2, bias=False), (1, 2, 4, 4)),
        (nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3)),
        (nn.ConvTranspose2d(2, 3, 2, stride=2), (1, 2, 3, 3)),
        (nn.Embedding(6, 4), None),
    ):
        for make in (q.default_weight_observer, q.default_per_channel_weight_observer):
            observer = (q.default_float_qparams_observer if sizes is None else make)()
            observer(filled(torch, module).weight)
            made = getattr(reference, type(module).__name__).from_float(module, utils.get_qparam_dict(observer))
            x = torch.tensor([1, 3, 5]) if sizes is None else values(torch, *sizes)
            rows.append([made._get_name(), made(x), made.get_quantized_weight(), sorted(made.state_dict())])
    return rows


def case_recurrent_references(torch):
    rows, reference = [], ao(torch, "nn.quantized.reference")
    table = {"qscheme": torch.per_tensor_affine, "dtype": torch.qint8, "scale": 1 / 64, "zero_point": 0}
    dynamic = ao(torch, "nn.quantized.dynamic")
    for module, args in recurrent(torch):
        filled(torch, module).eval()
        names = [n for n, _ in module.named_parameters() if n.startswith("weight")]
        made = getattr(reference, type(module).__name__).from_float(
            module, {**dict.fromkeys(names, table), "is_decomposed": False}
        )
        lowered = getattr(dynamic, type(module).__name__).from_reference(made)
        rows.append([made._get_name(), flat(made.eval()(*args)), lowered.get_weight(), flat(lowered(*args))])
    return rows
