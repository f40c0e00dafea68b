"""run_decompositions: values, aliases and dynamic sizes of programs without writes."""

from __future__ import annotations

import pytest


def decomposed(torch, forward, *args, dynamic=None, setup=None):
    module = torch.nn.Module()
    if setup is not None:
        setup(module)
    module.forward = (lambda *a: forward(module, *a)) if setup else forward
    return torch.export.export(module, args, dynamic_shapes=dynamic).run_decompositions().module()


def pair(torch):
    return torch.arange(1.0, 5.0), torch.tensor([10.0, 20.0, 30.0, 40.0])


def assigned_and_cleared(x, y):
    return x.copy_(y), y.zero_(), x + y


def exchanged(x, y):
    kept = y.clone()
    y.copy_(x)
    x.copy_(kept)
    return x + 1, y * 2


def reversed_view(x, y):
    x.copy_(y.view(2, 2).t().reshape(4))
    y.copy_(x * 2)
    return x, y


def copied_twice(x, y):
    made = x.new_empty(4)
    made.copy_(y)
    y.add_(1)
    return made, y


@pytest.mark.parametrize("forward", [assigned_and_cleared, exchanged, reversed_view, copied_twice], ids=lambda f: f.__name__)
def test_inputs_that_are_values_of_others(torch, forward):
    found_args, expected_args = pair(torch), pair(torch)
    found = decomposed(torch, forward, *pair(torch))(*found_args)
    expected = forward(*expected_args)
    for a, b in zip((*found, *found_args), (*expected, *expected_args), strict=True):
        torch.testing.assert_close(a, b)


def test_a_copied_value_is_no_input(torch):
    x, y = pair(torch)
    made = decomposed(torch, lambda x: x.new_empty(4).copy_(x), x)(y)
    made.zero_()
    assert y.tolist() == [10, 20, 30, 40]


@pytest.mark.parametrize("name", ["contiguous", "ravel", "flatten", "reshape", "view"])
def test_copies_of_inputs_that_are_written_later(torch, name):
    def made(x):
        base = x if name == "view" else x.t()
        return {"contiguous": base.contiguous, "reshape": lambda: base.reshape(-1), "view": lambda: x.reshape(1, 4)}.get(
            name, getattr(base, name, None)
        )()  # fmt: skip

    def forward(x):
        value = made(x)
        x.add_(1)
        return value * 1, x * 1

    given, expected = torch.arange(4.0).view(2, 2), torch.arange(4.0).view(2, 2)
    for a, b in zip(decomposed(torch, forward, given.clone())(given), forward(expected), strict=True):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(given, expected)


def added(x, y):
    x.add_(1)
    return y * 2


def test_written_inputs_that_share_memory(torch):
    module = torch.nn.Module()
    module.forward = added
    program = torch.export.export(module, pair(torch))
    a = torch.arange(4.0)
    assert program.module()(a, a).tolist() == [2, 4, 6, 8]  # writes where the function does
    with pytest.raises(NotImplementedError, match="share memory"):
        program.run_decompositions().module()(a, a)


def test_parts_of_one_tensor_that_do_not_overlap(torch):
    module = decomposed(torch, added, torch.ones(2), torch.ones(2))
    whole = torch.arange(4.0)
    assert module(whole[:2], whole[2:]).tolist() == [4, 6]
    assert whole.tolist() == [1, 2, 2, 3]
    with pytest.raises(NotImplementedError, match="share memory"):
        module(whole[:2], whole[1:3])


def test_buffers_that_share_memory(torch):
    def setup(module):
        module.register_buffer("whole", torch.arange(4.0))
        module.register_buffer("part", module.whole[1:])

    def forward(module, x):
        module.whole.add_(x)
        return module.part * 1

    with pytest.raises(NotImplementedError, match="share memory"):
        decomposed(torch, forward, torch.ones(4), setup=setup)(torch.ones(4))


def test_numbers_among_the_inputs(torch):
    module = decomposed(torch, lambda x, k, flag: x.mul_(k) if flag else x, torch.ones(3), 3, True)
    x = torch.ones(3)
    assert module(x, 3, True).tolist() == x.tolist() == [3, 3, 3]
    with pytest.raises(AssertionError):
        module(x, 4, True)


DYNAMIC = {
    "flatten": lambda torch, x: x.flatten() * 2, "group_norm": lambda torch, x: torch.nn.functional.group_norm(x[:, :, None], 3),
    "expand": lambda torch, x: x.clone().copy_(x[0]), "other_dimension": lambda torch, x: x.chunk(3, 1)[1],
}  # fmt: skip


@pytest.mark.parametrize("name", DYNAMIC)
def test_sizes_stay_symbolic(torch, name):
    def forward(x):
        return DYNAMIC[name](torch, x)

    batch = torch.export.Dim("batch", min=2)
    module = decomposed(torch, forward, torch.randn(4, 3), dynamic=[{0: batch}])
    for n in (2, 4, 9, 130):
        x = torch.randn(n, 3)
        torch.testing.assert_close(module(x), forward(x))


def test_decompositions_that_depend_on_dynamic_sizes(torch):
    batch = torch.export.Dim("batch", min=2)
    module = decomposed(torch, lambda x: x.chunk(2)[0], torch.randn(4, 3), dynamic=[{0: batch}])
    for n in (2, 3, 4, 9):
        x = torch.randn(n, 3)
        torch.testing.assert_close(module(x), x.chunk(2)[0])

    doubled = torch.nn.Module()
    doubled.forward = lambda x: x * 2
    program = torch.export.export(doubled, (torch.randn(4, 3),), dynamic_shapes=[{0: batch}])
    table = {torch.ops.aten.mul.Tensor: lambda a, b: a + a if a.shape[0] > 3 else a - a}
    with pytest.raises(NotImplementedError, match="depends on dynamic sizes"):
        program.run_decompositions(table)


def test_writes_without_gradients(torch):
    def forward(x):
        y = x.clone()
        with torch.no_grad():
            y.add_(1)
        return y * 2

    module = decomposed(torch, forward, torch.ones(2))
    assert module(torch.ones(2)).tolist() == [4, 4]


def test_dynamic_sizes_that_are_computed(torch):
    def forward(x):
        y = x.clone()
        y[: x.shape[0] - 1].mul_(2)
        return y.reshape(x.shape[0] * 3)

    batch = torch.export.Dim("batch", min=2)
    module = decomposed(torch, forward, torch.randn(4, 3), dynamic=[{0: batch}])
    for n in (2, 5, 130):
        x = torch.randn(n, 3)
        torch.testing.assert_close(module(x), forward(x))


def test_custom_operators_that_write_are_refused(torch):
    @torch.library.custom_op("decompositions_test::relu_", mutates_args={"x"}, schema="(Tensor(a!) x) -> ()")
    def halve(x):
        x.mul_(0.5)

    halve.register_fake(lambda x: None)

    def forward(x):
        y = x + 1
        torch.ops.decompositions_test.relu_(y)
        return y

    with pytest.raises(NotImplementedError, match="no variant that returns a new tensor"):
        decomposed(torch, forward, torch.ones(3))
