"""Observers: states and scales after several inputs."""

import re

from .record import ao, error, values


def short(text: str) -> str:
    """The type of an error."""
    return text.partition(":")[0]


def inputs(torch):
    """Inputs by name, each a list of tensors that are observed in order."""
    base = values(torch, 6, 8)
    return {
        "same range": [base, base],
        "wider": [base * 0.3, base, base * 2 + 1],
        "narrower": [base * 2, base * 0.5],
        "constant": [torch.full((3,), 2.5), torch.full((2,), 2.5)],
        "constants": [torch.full((3,), 0.5), torch.full((2,), -1.5), base],
        "zeros": [torch.zeros(4), torch.zeros(2)],
        "positive": [base.abs() + 0.5, base.abs() + 3],
        "negative": [-base.abs() - 1],
        "empty": [torch.zeros(0)],
        "empty later": [base, torch.zeros(0)],
        "skewed": [base**3, (base - 1) ** 5],
        "large": [base * 1e6, base * 1e-6],
        "one": [torch.tensor([1.25])],
        "infinite": [torch.tensor([1.0, float("inf"), -2.0]), base],
        "only infinite": [torch.tensor([float("inf")])],
    }


def case_histogram(torch):
    q, found = ao(torch, "quantization"), {}
    for options in (
        {},
        {"bins": 64},
        {"dtype": torch.qint8, "qscheme": torch.per_tensor_symmetric},
        {"reduce_range": True},
    ):
        for name, tensors in inputs(torch).items():
            observer = q.HistogramObserver(**options)
            for tensor in tensors:
                observer(tensor)
            filled = observer.histogram.nonzero().flatten()
            found[f"{options} {name}"] = [
                observer.min_val,
                observer.max_val,
                filled[:40],
                observer.histogram[filled[:40]],
                observer.histogram.sum(),
                *observer.calculate_qparams(),
            ]
    return found


def case_histogram_search(torch):
    """Ranges that the search narrows: few numbers far from the others."""
    q, found = ao(torch, "quantization"), []
    base = values(torch, 50, 60)
    for tensors in (
        [base, torch.tensor([20.0])],
        [base, torch.tensor([-15.0, 30.0])],
        [base**3 * 4, base],
        [(base * 2).exp()],
    ):
        observer = q.HistogramObserver(bins=256)
        for tensor in tensors:
            observer(tensor)
        found.append([*observer._non_linear_param_search(), *observer.calculate_qparams()])
    return found


def case_histogram_state(torch):
    q = ao(torch, "quantization")
    observer, other = q.HistogramObserver(bins=16), q.HistogramObserver(bins=16)
    observer(values(torch, 4, 8))
    state = observer.state_dict()
    other.load_state_dict(state)
    return [
        list(state),
        state["histogram"],
        *other.calculate_qparams(),
        other.bins,
        other.dst_nbins,
        other.quant_min,
        other.quant_max,
    ]


def makers(torch, q):
    """Observers of ranges by name."""
    channel = {"qscheme": torch.per_channel_symmetric, "dtype": torch.qint8}
    return {
        "min max": q.MinMaxObserver,
        "symmetric": q.MinMaxObserver.with_args(qscheme=torch.per_tensor_symmetric, dtype=torch.qint8),
        "unsigned symmetric": q.MinMaxObserver.with_args(qscheme=torch.per_tensor_symmetric),
        "customized": q.MinMaxObserver.with_args(quant_min=-10, quant_max=20, dtype=torch.qint8),
        "customized symmetric": q.MinMaxObserver.with_args(
            quant_min=0, quant_max=100, qscheme=torch.per_tensor_symmetric
        ),
        "int32": q.MinMaxObserver.with_args(dtype=torch.qint32),
        "int16": q.MinMaxObserver.with_args(dtype=torch.int16),
        "eps": q.MinMaxObserver.with_args(eps=0.5),
        "average": q.MovingAverageMinMaxObserver.with_args(averaging_constant=0.25),
        "memoryless": q.MovingAverageMinMaxObserver.with_args(averaging_constant=1, is_dynamic=True),
        "reduced": q.MinMaxObserver.with_args(reduce_range=True),
        "four bits": q.MinMaxObserver.with_args(dtype=torch.quint4x2),
        "channels": q.PerChannelMinMaxObserver,
        "last channels": q.PerChannelMinMaxObserver.with_args(ch_axis=-1, **channel),
        "average channels": q.MovingAveragePerChannelMinMaxObserver.with_args(
            ch_axis=1, averaging_constant=0.25, **channel
        ),
        "float channels": q.default_float_qparams_observer,
        "four bits channels": q.default_float_qparams_observer_4bit,
    }


def case_ranges(torch):
    q, found = ao(torch, "quantization"), {}
    skipped = {"infinite", "only infinite"}
    for kind, make in makers(torch, q).items():
        for name, tensors in inputs(torch).items():
            if name in skipped or ("channels" in kind and tensors[0].dim() == 1):
                continue
            observer = make()
            for tensor in tensors:
                if tensor.dim() > 1 or "channels" not in kind:
                    observer(tensor)
            found[f"{kind} {name}"] = [
                observer.min_val,
                observer.max_val,
                *observer.calculate_qparams(),
                observer.quant_min,
                observer.quant_max,
            ]
    return found


def case_reset(torch):
    q, rows = ao(torch, "quantization"), []
    for make in (q.MinMaxObserver, q.MovingAverageMinMaxObserver, q.PerChannelMinMaxObserver):
        observer = make()
        observer(values(torch, 3, 4))
        observer.reset_min_max_vals()
        rows.append([observer.min_val.numel(), *observer.calculate_qparams()])
        observer(values(torch, 3, 4) * 2)
        rows.append([observer.min_val, observer.max_val, *observer.calculate_qparams()])
    return rows


def case_errors(torch):
    q = ao(torch, "quantization")
    utils = ao(torch, "quantization.utils")
    t = torch.tensor
    return [
        *(
            short(error(q.HistogramObserver, **o))
            for o in ({"qscheme": torch.per_channel_affine}, {"is_dynamic": True}, {"dtype": torch.float32})
        ),
        *(
            short(error(q.MinMaxObserver, **o))
            for o in (
                {"quant_min": 1, "quant_max": 5},
                {"quant_min": 0, "quant_max": 0},
                {"dtype": torch.qint8, "quant_min": -300, "quant_max": 300},
                {"qscheme": torch.per_channel_affine},
                {"dtype": torch.float16},
            )
        ),
        short(error(q.MovingAverageMinMaxObserver, is_dynamic=True)),
        short(
            error(
                q.PerChannelMinMaxObserver, qscheme=torch.per_channel_symmetric, reduce_range=True, dtype=torch.quint8
            )
        ),
        short(error(q.FixedQParamsObserver, 1.0, 0, is_dynamic=True)),
        short(error(utils.check_min_max_valid, t([2.0, 0.0]), t([1.0, 1.0]))),
        utils.check_min_max_valid(t([]), t([])),
        short(error(q.FakeQuantize, quant_min=-200, quant_max=10, dtype=torch.qint8)),
        short(error(q.FakeQuantize, quant_min=0, quant_max=300)),
        short(error(q.FixedQParamsFakeQuantize, q.MinMaxObserver)),
        short(error(q.FusedMovingAvgObsFakeQuantize, q.MinMaxObserver)),
    ]


def case_determine_qparams(torch):
    utils, rows = ao(torch, "quantization.utils"), []
    low, high, eps = torch.tensor([-1.0, 0.5, -3.0]), torch.tensor([2.0, 4.0, -1.0]), torch.tensor([1e-7])
    for scheme in (torch.per_tensor_affine, torch.per_channel_symmetric, torch.per_channel_affine_float_qparams):
        rows.append([*utils.determine_qparams(low, high, -128, 127, torch.int8, eps, False, scheme)])
    rows.append([*utils.determine_qparams(low[0], high[0], 0, 255, torch.uint8, eps, True, torch.per_tensor_symmetric)])
    return rows


def case_partial_constructors(torch):
    q = ao(torch, "quantization")
    counts = iter(range(10))
    made = q.MinMaxObserver.with_args(quant_min=0).with_args(quant_max=63)
    later = q.MovingAverageMinMaxObserver.with_callable_args(
        averaging_constant=lambda: next(counts) / 8
    ).with_callable_args(quant_min=lambda: 0)
    return [
        made().quant_max,
        [
            later(quant_max=7).averaging_constant,
            later(quant_max=7).averaging_constant,
            later(averaging_constant=0.5, quant_max=3).averaging_constant,
        ],
        re.sub(" at 0x[0-9a-f]+", "", repr(later))[-30:-20] != "",
    ]


def case_state_of_observers(torch):
    q = ao(torch, "quantization")
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval()
    net.qconfig = q.get_default_qconfig("qnnpack")
    prepared = q.prepare(net)
    prepared(values(torch, 4, 3))
    state = q.get_observer_state_dict(prepared)
    other = q.prepare(net)
    q.load_observer_state_dict(other, state)
    return [list(state), [*other[0].activation_post_process.calculate_qparams()] == [], list(prepared.state_dict())]


def case_fake_quantize_flags(torch):
    """Flags that are set in their buffers, and by loading a state."""
    q, x = ao(torch, "quantization"), values(torch, 3, 4)
    rows = []
    for make in (
        q.default_fake_quant,
        q.default_fused_act_fake_quant,
        q.default_histogram_fake_quant,
        q.default_embedding_fake_quant,
    ):
        fake = make()
        rows.append([fake(x), fake.scale, fake.zero_point])
        fake.observer_enabled[0] = 0
        rows.append([fake(x * 3), fake.scale])
        other = make()
        other.load_state_dict(fake.state_dict())
        rows.append([other(x * 5), other.scale])
        other.fake_quant_enabled[0] = 0
        rows.append([other(x * 5)])
        rows.append([other.is_per_channel, other.is_dynamic, other.quant_min, other.quant_max])
    return rows
