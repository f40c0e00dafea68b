"""no_grad, enable_grad, set_grad_enabled and inference_mode: nested, as decorators, and for generators."""

import pytest

NESTED = [
    # modes from the outermost to the innermost; (grad enabled, inference) inside
    ("inference_mode()", (False, True)),
    ("inference_mode(); inference_mode(False)", (True, False)),
    ("no_grad(); inference_mode(False)", (True, False)),
    ("inference_mode(); no_grad()", (False, True)),
    ("inference_mode(); inference_mode(False); no_grad()", (False, False)),
    ("inference_mode(False); inference_mode()", (False, True)),
    ("no_grad(); enable_grad()", (True, False)),
    ("no_grad(); set_grad_enabled(True)", (True, False)),
    ("enable_grad(); set_grad_enabled(False)", (False, False)),
]


def state(torch):
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


@pytest.mark.parametrize("switches, expected", NESTED)
def test_nested(torch, switches, expected):
    def within(rest):
        before = state(torch)
        if not rest:
            return before
        with eval(f"torch.{rest[0]}", {"torch": torch}):  # noqa: S307
            found = within(rest[1:])
        assert state(torch) == before
        return found

    assert within(switches.split("; ")) == expected


@pytest.mark.parametrize("switches, expected", [row for row in NESTED if ";" not in row[0]] + [
    ("inference_mode", (False, True)), ("inference_mode(False)", (True, False)), ("no_grad", (False, False)),
    ("no_grad()", (False, False)), ("enable_grad", (True, False)), ("set_grad_enabled(False)", (False, False)),
])  # fmt: skip
def test_decorators(torch, switches, expected):
    switch = eval(f"torch.{switches}", {"torch": torch})  # noqa: S307

    @switch
    def function(value, named):
        return state(torch), value, named

    assert state(torch) == (True, False)  # also for set_grad_enabled, which takes effect when called
    assert function(1, named=2) == (expected, 1, 2) and function.__name__ == "function"
    assert state(torch) == (True, False)


def test_inference_mode_false_records_results(torch):
    w = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        with torch.inference_mode(False):
            loss = (w * 3).sum()
        assert not (w * 3).requires_grad
    loss.backward()
    assert w.grad.tolist() == [3, 3]


def test_generators_run_in_the_context_between_their_yields(torch):
    seen, closed = [], []

    @torch.no_grad()
    def steps(first):
        try:
            seen.append((torch.is_grad_enabled(), first))
            seen.append((torch.is_grad_enabled(), (yield 1)))
            try:
                yield 2
            except ValueError:
                seen.append((torch.is_grad_enabled(), "thrown"))
                yield 3
            return 7
        finally:
            closed.append(torch.is_grad_enabled())

    generator = steps("first")
    assert next(generator) == 1 and torch.is_grad_enabled()
    assert generator.send("sent") == 2 and torch.is_grad_enabled()
    assert generator.throw(ValueError()) == 3 and torch.is_grad_enabled()
    with pytest.raises(StopIteration) as e:
        next(generator)
    assert e.value.value == 7 and seen == [(False, "first"), (False, "sent"), (False, "thrown")]
    generator = steps("first")
    next(generator)
    generator.close()
    assert closed == [False, False] and torch.is_grad_enabled()


def test_grad_mode_set_between_generator_steps_is_kept(torch):
    @torch.no_grad()
    def steps():
        yield 1
        yield 2

    generator = steps()
    next(generator)
    with torch.enable_grad():
        next(generator)
        assert torch.is_grad_enabled()


def test_classes(torch):
    with pytest.warns(FutureWarning, match="Decorating classes"):

        @torch.no_grad()
        class DecoratedClass:
            def __init__(self):
                self.made = torch.is_grad_enabled()

            def later(self):
                return torch.is_grad_enabled()

    assert DecoratedClass().made is False and DecoratedClass().later() is True


def test_variable_is_a_leaf(torch):
    """Gradients end at a Variable, which shares the tensor's bytes; it was the tensor itself."""
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    kept = torch.autograd.Variable(y)
    leaf = torch.autograd.Variable(y, requires_grad=True)
    assert (kept.requires_grad, leaf.requires_grad, leaf.is_leaf) == (False, True, True)
    assert type(torch.autograd.Variable(torch.nn.Parameter(x))) is torch.Tensor
    (kept * x + leaf * x).sum().backward()
    assert x.grad.tolist() == [4, 4] and leaf.grad.tolist() == [1, 1]
    kept.add_(1)
    assert y.tolist() == [3, 3]
    assert isinstance(x, torch.autograd.Variable) and not isinstance(3, torch.autograd.Variable)
    assert torch.autograd.Variable().shape == (0,)
    assert torch.autograd.variable.Variable is torch.autograd.Variable
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        torch.autograd.Variable([1.0])


def test_is_inference_of_results_and_views(torch):
    """A view is what its base is, as in PyTorch."""
    x = torch.ones(3)
    with torch.inference_mode():
        made = [x + 1, torch.tensor([1.0]), torch.empty(2), x.clone(), x.to(torch.float64), x.sum(), torch.ones(2)[0], x.max(0)[0]]
        others = [x[1:], x.detach(), x.add_(1), x.to(torch.float32)]
        with torch.inference_mode(False):
            others.append(torch.ones(2))
    made += [made[0][1:], made[0].detach(), made[0].view(3, 1), made[0].data]
    others += [made[0] + 1, made[0].clone(), x.data]
    assert [t.is_inference() for t in made] == [True] * len(made)
    assert [torch.is_inference(t) for t in others] == [False] * len(others)


@pytest.mark.parametrize(
    ("name", "args"), [("unsqueeze_", (0,)), ("squeeze_", ()), ("t_", ()), ("transpose_", (0, 1)), ("as_strided_", ((3, 2), (2, 1)))]
)
def test_views_in_place_keep_their_history_in_no_grad(torch, name, args):
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        getattr(y, name)(*args)
    assert y.requires_grad and not y.is_leaf
    (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [[3.0] * 3] * 2
    leaf = torch.ones(2, 3, requires_grad=True)
    with torch.no_grad():
        getattr(leaf, name)(*args)
    assert leaf.requires_grad and leaf.is_leaf
    (leaf * 2).sum().backward()
    assert leaf.grad.shape == leaf.shape and leaf.grad.sum() == 12
