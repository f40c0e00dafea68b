"""Module.register_backward_hook, the deprecated form: values are those of PyTorch 2.15."""

import pytest

ROWS = [  # module, arguments that require no grad, (sums of grad_input, sums of grad_output)
    ("ReLU", (), ([2.0], [3.0])),
    ("Tanh", (), ([0.5005], [3.0])),
    ("LeakyReLU", (), ([2.01], [3.0])),
    ("GELU", (), ([2.0139], [3.0])),
    ("MSELoss", ([-2.0, 4.0, 6.0],), ([-2.6667], [1.0])),
    ("Identity", (), None),
]


def total(gradients):
    return [round(g.sum().item(), 4) for g in gradients if g is not None]


@pytest.mark.parametrize("name, further, expected", ROWS)
def test_gradients_of_the_last_operation(torch, name, further, expected):
    rows, x = [], torch.tensor([[-1.0, 2.0, 3.0]], requires_grad=True)
    module = getattr(torch.nn, name)()
    handle = module.register_backward_hook(lambda m, inputs, outputs: rows.append((total(inputs), total(outputs), m is module)))
    module(x, *[torch.tensor([values]) for values in further]).sum().backward()
    assert rows == ([] if expected is None else [(*expected, True)])
    handle.remove()
    module(x, *[torch.tensor([values]) for values in further]).sum().backward()
    assert len(rows) == (expected is not None)


def test_replaced_gradients_and_errors(torch):
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    relu, linear, full = torch.nn.ReLU(), torch.nn.Linear(2, 1), torch.nn.ReLU()
    relu.register_backward_hook(lambda m, inputs, outputs: (inputs[0] * 5,))
    relu(x).sum().backward()
    assert x.grad.tolist() == [0, 5]
    linear.register_backward_hook(print)
    with pytest.raises(NotImplementedError, match="one operation on its arguments, got Linear"):
        linear(x)
    full.register_full_backward_hook(print)
    for call in (lambda: full.register_backward_hook(print), lambda: relu.register_full_backward_hook(print)):
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks on a single Module"):
            call()


def test_operations_with_other_inputs(torch):
    """The hooks receive the gradients of the node of the first result, as in PyTorch."""

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            return (x * self.weight).exp().mean(), x

    x, rows = torch.zeros(2, 3), []
    for module in (Loss(), torch.nn.LayerNorm(3), torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())):
        module.register_backward_hook(
            lambda m, inputs, outputs: rows.append(([g if g is None else tuple(g.shape) for g in inputs], total(outputs)))
        )
        result = module(x)
        (result[0] if isinstance(result, tuple) else result).sum().backward()
    assert rows == [([(2, 3)], [1]), ([None, (3,), (3,)], [6]), ([(2, 3)], [6])]
    scaled = Loss()
    scaled.register_backward_hook(lambda m, inputs, outputs: (inputs[0] * 10,))
    scaled(x + 1)[0].backward()
    assert scaled.weight.grad.tolist() == pytest.approx([10 / 3 * 2.7182817] * 3)


def test_hooks_of_all_modules(torch, monkeypatch):
    from teletensor.nn.modules import _calls

    monkeypatch.setattr(_calls, "_global_is_full", [])
    rows, x = [], torch.tensor([-1.0, 2.0], requires_grad=True)
    with torch.nn.modules.module.register_module_backward_hook(lambda m, inputs, outputs: rows.append(total(inputs))):
        torch.nn.ReLU()(x).sum().backward()
        with pytest.raises(RuntimeError, match="Cannot use both.*global"):
            torch.nn.modules.module.register_module_full_backward_hook(print)
    assert rows == [[1]]


def test_missing_gradients_of_results_are_none_for_full_hooks(torch):
    class Two(torch.nn.Module):
        def forward(self, a, b):
            return a * 2, b * 3

    rows = []
    module = Two()
    module.register_full_backward_hook(lambda _, inputs, outputs: rows.append((inputs, outputs)))
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    module(a, b)[0].sum().backward()
    ((inputs, outputs),) = rows
    assert [g.tolist() for g in inputs] == [[2], [0]] and outputs[0].tolist() == [1] and outputs[1] is None
    assert a.grad.tolist() == [2]
