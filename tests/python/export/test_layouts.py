"""Exports of programs whose results depend on strides, on which sizes are equal, and on objects that outlive the recording."""

from __future__ import annotations

import pytest


@pytest.fixture
def module(torch):
    """A module with a function as its forward."""

    def made(function):
        class Module(torch.nn.Module):
            def forward(self, *args):
                return function(*args)

        return Module()

    return made


def auto(torch, *tensors):
    return (tuple({d: torch.export.Dim.AUTO for d in range(t.dim())} for t in tensors),)


LAYOUTS = {
    "dense": lambda t, n: t.arange(float(n * 4)).reshape(n, 4),
    "transposed": lambda t, n: t.arange(float(n * 4)).reshape(4, n).t(),
    "every_second": lambda t, n: t.arange(float(n * 8)).reshape(n, 8)[:, ::2],
    "offset": lambda t, n: t.arange(float(n * 6)).reshape(n, 6)[:, 2:],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_of_inputs(torch, module, layout):
    """The graph reads the strides and the offset that an input has in the run."""
    function = module(lambda x: (x * x.stride()[0], x * x.stride()[1], x + x.storage_offset()))
    example, other = LAYOUTS[layout](torch, 3), LAYOUTS[layout](torch, 5)
    program = torch.export.export(function, (example,), dynamic_shapes=auto(torch, example))
    for x in (example, other):
        for found, expected in zip(program.module()(x), function(x)):
            assert torch.equal(found, expected)


@pytest.mark.parametrize("first", ["AUTO", "DYNAMIC"])
def test_a_later_name_for_equal_sizes(torch, module, first):
    """A size without a name that is equal to one with a name is that one, also if it comes first."""
    dim = torch.export.Dim
    function = module(lambda x, y: (x + y) * x.shape[0])
    x = torch.ones(4, 3)
    program = torch.export.export(function, (x, x), dynamic_shapes=(({0: getattr(dim, first)}, {0: dim("n")}),))
    assert list(program.range_constraints) == ["n"]
    assert torch.equal(program.module()(torch.ones(7, 3), torch.ones(7, 3)), torch.full((7, 3), 14.0))
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(torch.ones(7, 3), torch.ones(1, 3))


def test_three_equal_sizes(torch, module):
    """Equalities of pairs make all sizes one."""
    x = torch.ones(4)
    for pairs in ("ab bc", "bc ab", "ac bc", "ab ac", "bc ac"):
        function = module(lambda *given, pairs=pairs: [given["abc".index(p[0])] + given["abc".index(p[1])] for p in pairs.split()])
        program = torch.export.export(function, (x, x, x), dynamic_shapes=auto(torch, x, x, x))
        assert len(program.range_constraints) == 1, pairs
        assert program.module()(*[torch.ones(6)] * 3)[0].shape == (6,)


def written(x, k):
    whole = x * 1
    part = whole[:, : k.shape[0]].reshape(-1)
    part += 1
    return whole


@pytest.mark.parametrize("is_decomposed", [False, True], ids=["export", "decomposed"])
def test_writes_to_a_view(torch, module, is_decomposed):
    """A write to a view that reshape() returns requires that it is one in all runs."""
    given = torch.zeros(4, 6), torch.ones(6)
    program = torch.export.export(module(written), given, dynamic_shapes=auto(torch, *given))
    program = program.run_decompositions() if is_decomposed else program
    other = torch.zeros(5, 8), torch.ones(8)
    assert torch.equal(program.module()(*other), written(*other))
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(torch.zeros(5, 8), torch.ones(5))


def test_writes_to_a_copy(torch, module):
    """The program calls reshape() and is right for copies and views; without writes it would be right for copies only."""
    given = torch.zeros(4, 6), torch.ones(3)
    program = torch.export.export(module(written), given, dynamic_shapes=auto(torch, *given))
    for n in (5, 8):
        other = torch.zeros(5, 8), torch.ones(n)
        assert torch.equal(program.module()(*other), written(*other))
    with pytest.raises(NotImplementedError, match="depends on dynamic sizes"):
        program.run_decompositions()


def test_the_stride_of_a_size_of_1_decides_nothing(torch):
    """The result of reshape() is a view because the dimensions around one of size 1 are adjacent in memory."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    def function(x):
        part = x.reshape(-1)
        part += 1
        return x

    graph = make_fx(function, tracing_mode="symbolic")(torch.zeros(24).as_strided((4, 1, 6), (6, 99, 1)))
    guards = graph.shape_env.format_guards()
    assert "x_1.stride()[0] == x_1.size()[2]" in guards
    assert "x_1.stride()[1]" not in guards


@pytest.mark.parametrize("is_decomposed", [False, True], ids=["export", "decomposed"])
def test_writes_to_a_copy_for_all_sizes(torch, module, is_decomposed):
    """reshape() of a transposed tensor is a copy for all sizes from 2 on, without a guard."""
    dim = torch.export.Dim

    def function(x):
        y = x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)
        y += 1
        return y

    program = torch.export.export(
        module(function), (torch.randn(2, 3, 4, 5),), dynamic_shapes=(({0: dim("b", min=2), 2: dim("t", min=2)},),)
    )
    program = program.run_decompositions() if is_decomposed else program
    x = torch.randn(3, 3, 7, 5)
    assert torch.equal(program.module()(x), function(x))


def test_sizes_that_a_module_keeps(torch):
    """A size of a recording that has ended is the example, in calls, in arithmetic and in other recordings."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    class Cache(torch.nn.Module):
        longest = 0

        def forward(self, x):
            if x.shape[0] > self.longest:
                self.longest = x.shape[0]
                self.scale = x.shape[0] / 4
            return x * torch.arange(self.longest)[: x.shape[0]] / self.longest

    cache = Cache()
    make_fx(cache, tracing_mode="symbolic")(torch.ones(8))
    assert torch.arange(9).lt(cache.longest).sum() == 8
    assert torch.ones(cache.longest).shape == (8,)
    assert torch.add(torch.ones(1), cache.longest).item() == 9
    assert torch.add(torch.ones(1), cache.scale).item() == 3
    assert (cache.longest * 2 + 1, cache.scale + 1) == (17, 3.0)
    dim = torch.export.Dim("n", min=2, max=8)
    program = torch.export.export(cache, (torch.ones(4),), dynamic_shapes=({0: dim},))
    for n in (3, 8):
        assert torch.equal(program.module()(torch.ones(n)), torch.arange(n) / 8)


def test_a_float_of_sizes_is_assigned(torch):
    """x[0] = a float that sizes give is computed for the sizes of the run."""
    from teletensor.fx.experimental.proxy_tensor import make_fx

    def function(x):
        x = x.clone()
        x[0] = x.shape[0] * 0.5
        return x

    graph = make_fx(function, tracing_mode="symbolic")(torch.ones(5))
    assert graph(torch.ones(3)).tolist() == [1.5, 1.0, 1.0]


def test_long_chains_of_sizes(torch, module):
    """Each size is half more than the one before: an expression that has the one before it twice."""

    def function(x):
        for _ in range(24):
            x = torch.nn.functional.pad(x, (0, (x.shape[0] + 1) // 8))
        return x

    program = torch.export.export(module(function), (torch.ones(9),), dynamic_shapes=(({0: torch.export.Dim("n", min=2)},),))
    assert program.module()(torch.ones(20)).shape == function(torch.ones(20)).shape


def test_limits_of_one_size(torch, module):
    """A guard that needs sizes of at least 1 limits the sizes that it is about, and no others."""
    function = module(lambda x, y: (torch.nn.functional.interpolate(x, scale_factor=1.5), y + 1))
    x, y = torch.randn(2, 3, 8), torch.randn(5)
    program = torch.export.export(function, (x, y), dynamic_shapes=(({2: torch.export.Dim.AUTO}, {0: torch.export.Dim.AUTO}),))
    assert [r.lower for r in program.range_constraints.values()] == [1, 0]
    assert program.module()(x, torch.ones(0))[1].shape == (0,)


@pytest.mark.parametrize("padding", ["(7 - t % 7) % 7", "-t % 7"])
def test_padding_to_a_multiple(torch, module, padding):
    """A padded length is a multiple, and is at least the length, for all sizes."""
    dim = torch.export.Dim

    def function(x):
        b, t, c = x.shape
        return torch.nn.functional.pad(x, (0, 0, 0, eval(padding))).view(b, -1, 7, c)  # noqa: S307

    declared = {0: dim("b", min=2), 1: dim("t", min=2)}
    program = torch.export.export(module(function), (torch.randn(2, 16, 8),), dynamic_shapes=((declared,),))
    for t in (2, 7, 13, 21):
        x = torch.randn(3, t, 8)
        assert torch.equal(program.module()(x), function(x))
