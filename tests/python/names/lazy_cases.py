"""Lazy modules, uninitialized parameters, and small modules."""

import copy
import warnings

from .record import error


def settings(torch):
    """The constructor, arguments and an input of each lazy module."""
    nn = torch.nn
    rows = [(nn.LazyLinear, (3,), (2, 5))]
    for n in (1, 2, 3):
        sizes = (6,) * n
        rows += [
            (getattr(nn, f"LazyConv{n}d"), (4, 2), (2, 6, *sizes)),
            (getattr(nn, f"LazyConv{n}d"), (4, 2, 2, 1, 1, 2, False), (2, 6, *sizes)),
            (getattr(nn, f"LazyConv{n}d"), (4, 2), (6, *sizes)),
            (getattr(nn, f"LazyConvTranspose{n}d"), (4, 2, 1, 0, 0, 2), (2, 6, *sizes)),
            (getattr(nn, f"LazyBatchNorm{n}d"), (), (2, 6, *sizes)),
            (getattr(nn, f"LazyBatchNorm{n}d"), (1e-3, None, False, False), (2, 6, *sizes)),
            (getattr(nn, f"LazyInstanceNorm{n}d"), (), (2, 6, *sizes)),
        ]
    return rows


def text(module):
    """The module's repr, without the argument `bias` of norms that PyTorch 2.15 has added."""
    return (
        repr(module)
        .replace("affine=True, bias=True", "affine=True")
        .replace("affine=False, bias=False", "affine=False")
        .replace("affine=False, bias=True", "affine=False")
    )


def shapes(module):
    """The sizes of a module's parameters and buffers."""
    return {k: [list(v.shape), str(v.dtype).rpartition(".")[2], v.requires_grad] for k, v in module.state_dict(keep_vars=True).items()}


def case_first_call(torch):
    rows = []
    for make, args, size in settings(torch):
        module = make(*args)
        rows.append([text(module), module.has_uninitialized_params(), list(module.state_dict()), len(module._forward_pre_hooks)])
        result = module(torch.ones(size))
        rows.append(
            [
                list(result.shape),
                text(module),
                type(module).__name__,
                shapes(module),
                len(module._forward_pre_hooks),
                hasattr(module, "_load_hook"),
                len(module._load_state_dict_pre_hooks),
            ]
        )
    return rows


def case_loading(torch):
    rows, nn = [], torch.nn
    source, module = nn.BatchNorm2d(3), nn.LazyBatchNorm2d()
    source.running_mean.fill_(4)
    rows += [str(module.load_state_dict(source.state_dict())), module.running_mean, module.weight, type(module).__name__]
    lazy = nn.LazyLinear(2)
    rows += [
        str(nn.LazyLinear(2).load_state_dict(lazy.state_dict())),
        error(nn.Linear(3, 2).load_state_dict, lazy.state_dict()).partition(" T")[0],
    ]
    linear = nn.LazyLinear(2)
    linear.load_state_dict(nn.Linear(3, 2).state_dict())
    rows += [error(linear, torch.ones(1, 4)), error(linear, torch.ones(1, 3)), repr(linear)]
    return rows


def case_parameters(torch):
    parameter = torch.nn.parameter
    p, b = parameter.UninitializedParameter(), parameter.UninitializedBuffer()
    rows = [
        repr(p),
        repr(b),
        parameter.is_lazy(p),
        parameter.is_lazy(torch.ones(1)),
        isinstance(p, torch.nn.Parameter),
        isinstance(b, torch.nn.Buffer),
        isinstance(p, torch.Tensor),
        p.requires_grad,
        b.requires_grad,
        p.is_leaf,
        str(p.dtype),
        p.device.type,
        error(lambda: p.shape),
        error(lambda: p + 1).partition(" in ")[0],
        error(lambda: p.sum()).partition(" in ")[0],
        error(p.share_memory_),
        error(len, p).partition(" in ")[0],
        repr(copy.deepcopy(p)),
        copy.deepcopy(p) is p,
    ]
    p.materialize((2, 3), dtype=torch.float64)
    b.materialize([4])
    rows += [
        list(p.shape),
        str(p.dtype),
        type(p).__name__,
        p.requires_grad,
        list(b.shape),
        isinstance(b, torch.nn.Buffer),
        parameter.is_lazy(p),
    ]
    with torch.no_grad():
        p.fill_(2)
    (p * p).sum().backward()
    return [*rows, p.grad, torch.nn.Parameter(), torch.nn.Buffer()]


def case_casts_and_copies(torch):
    nn = torch.nn
    net = nn.Sequential(nn.LazyConv2d(3, 2), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2)).double()
    other = copy.deepcopy(nn.Sequential(nn.LazyConv2d(3, 2), nn.LazyLinear(2)).double())
    rows = [text(net), str(net[1].running_mean.dtype), str(net[0].weight.dtype), [type(x).__name__ for x in net.state_dict().values()]]
    net(torch.ones(2, 4, 5, 5, dtype=torch.float64)).sum().backward()
    return [*rows, shapes(net), [list(p.grad.shape) for p in net.parameters()], repr(other), error(other, torch.ones(3))]


def case_factory_kwargs(torch):
    function = torch.nn.factory_kwargs
    return [
        function(None),
        function({"device": "cpu", "factory_kwargs": {"dtype": "x"}}),
        error(function, {"bias": 1}),
        error(function, {"dtype": 1, "factory_kwargs": {"dtype": 2}}),
    ]


def case_mixin(torch):
    class Scale(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.UninitializedParameter()

        def initialize_parameters(self, input, scale=1):
            self.weight.materialize(input.shape)
            with torch.no_grad():
                self.weight.fill_(scale)

        def forward(self, input, scale=1):
            return input * self.weight

    class Missing(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
        pass

    class Partial(Scale):
        def initialize_parameters(self, *args):
            pass

    return [Scale()(torch.ones(2), scale=3), error(Missing(), 1), error(Partial(), 1)]


def case_small_modules(torch):
    nn, x = torch.nn, torch.arange(96.0).reshape(1, 6, 4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        container = nn.Container(a=nn.Identity(), b=nn.ReLU())
    norms = [nn.CrossMapLRN2d(size, 0.1, 0.75, 2)(x[:, :3]) for size in (5, 7)]  # as many channels as the window includes
    samples2, samples3 = torch.full((1, 6, 2), 0.4), torch.full((1, 1, 3), 0.7)
    pool2 = nn.FractionalMaxPool2d(2, output_size=(2, 3), return_indices=True, _random_samples=samples2)
    pool3 = nn.FractionalMaxPool3d(2, output_ratio=0.5, _random_samples=samples3)
    return [
        repr(nn.ChannelShuffle(3)),
        nn.ChannelShuffle(3)(x),
        repr(container),
        repr(nn.CrossMapLRN2d(5)),
        norms,
        pool2(x),
        pool3(x[None]),
        list(pool2.state_dict()),
        error(nn.FractionalMaxPool2d, 2),
        error(nn.FractionalMaxPool3d, 2, 1, 0.5),
        error(nn.FractionalMaxPool2d, 2, output_ratio=1.5),
        error(nn.CrossMapLRN2d(5), x[0]),
    ]
