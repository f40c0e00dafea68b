"""Hooks of modules: their order, what they receive, and the effect of what they return."""

from tests.conformance.module_db import events

from ..names.record import error


def values(torch, *shape):
    """Numbers without a pattern, the same in all runs."""
    n = 1
    for size in shape:
        n *= size
    return (torch.arange(n, dtype=torch.float32) ** 2 * 0.37).sin().reshape(shape)


def filled(torch, module):
    """The module with parameters that do not depend on random numbers."""
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(values(torch, *p.shape))
    return module


def models(torch):
    """Modules with one and with several inputs and outputs, and without inputs that require grad."""
    nn, x = torch.nn, lambda *shape: values(torch, *shape).requires_grad_()
    return [
        (nn.Linear(3, 2), (x(4, 3),)), (nn.Bilinear(2, 3, 2), (x(4, 2), x(4, 3))), (nn.LSTM(2, 3), (x(4, 1, 2),)),
        (nn.Linear(3, 2), (values(torch, 4, 3),)), (nn.Embedding(4, 2), (torch.tensor([1, 3]),)), (nn.L1Loss(), (x(3), values(torch, 3))),
        (nn.NLLLoss(), (x(2, 3), torch.tensor([0, 2]))), (nn.Sequential(nn.Linear(3, 3), nn.ReLU()), (x(1, 3),)),
    ]  # fmt: skip


def case_forward(torch):
    return [events.forward(torch, filled(torch, module), args, {}) for module, args in models(torch)]


def case_backward(torch):
    return [events.backward(torch, filled(torch, module), args, {}) for module, args in models(torch)]


def case_state(torch):
    return [events.state(torch, filled(torch, module), (), {}) for module, _ in models(torch)]


def case_registration(torch):
    """Hooks on the registration of parameters, buffers and modules, and hooks of backward of all modules."""
    anywhere, seen = torch.nn.modules.module, []
    handles = [
        anywhere.register_module_parameter_registration_hook(lambda m, n, v: seen.append(["parameter", n])),
        anywhere.register_module_buffer_registration_hook(lambda m, n, v: seen.append(["buffer", n])),
        anywhere.register_module_module_registration_hook(lambda m, n, v: seen.append(["module", n]) or torch.nn.Tanh()),
        anywhere.register_module_full_backward_hook(lambda m, i, o: seen.append(["backward", type(m).__name__, i, o])),
        anywhere.register_module_full_backward_pre_hook(lambda m, o: seen.append(["pre", type(m).__name__, o])),
    ]
    net = torch.nn.Sequential(torch.nn.ReLU())
    norm = torch.nn.BatchNorm1d(2)
    norm(net(values(torch, 3, 2).requires_grad_())).sum().backward()
    for handle in handles:
        handle.remove()
    return [seen, type(net[0]).__name__]


def case_errors(torch):
    """Wrong numbers of gradients, and results whose gradients do not reach hooks."""
    def run(hook, module=None, pre=False):
        module = module or filled(torch, torch.nn.Linear(2, 2))
        getattr(module, "register_full_backward_pre_hook" if pre else "register_full_backward_hook")(hook)
        return error(lambda: module(values(torch, 1, 2).requires_grad_()).sum().backward())

    frozen = filled(torch, torch.nn.Linear(2, 2))
    frozen.register_full_backward_hook(lambda m, i, o: o)
    return [
        run(lambda m, i, o: (None, None)), run(lambda m, o: (o[0], o[0]), pre=True),
        error(lambda: frozen(values(torch, 1, 2)).sum().backward()),
    ]  # fmt: skip


def case_shared_inputs(torch):
    """An input used twice, a module called twice, and second derivatives."""
    x, module, seen = values(torch, 2, 3).requires_grad_(), filled(torch, torch.nn.Linear(3, 3)), []
    module.register_full_backward_hook(lambda m, i, o: seen.append([i, o]))
    y = module(module(x) + x)
    (gradient,) = torch.autograd.grad((y**2).sum(), x, create_graph=True)
    gradient.sum().backward()
    return [y, gradient, x.grad, len(seen)]
