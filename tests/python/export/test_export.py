"""torch.export: values and gradients of exported modules, dynamic sizes, input checks and errors."""

from __future__ import annotations

import copy

import pytest

from tests.python.export.modules import NAMES, cases


def leaves(torch, value):
    return [v for v in torch.utils._pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def check_equal(torch, found, expected):
    a, b = leaves(torch, found), leaves(torch, expected)
    assert len(a) == len(b) > 0
    for x, y in zip(a, b):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5)
        assert x.requires_grad == y.requires_grad


def gradients(torch, module, result):
    outputs = [r for r in leaves(torch, result) if r.requires_grad]
    parameters = [p for p in module.parameters() if p.requires_grad]
    return torch.autograd.grad([r.square().sum() for r in outputs], parameters) if outputs and parameters else ()


@pytest.mark.parametrize("name", NAMES)
def test_module_equals_eager_at_three_sizes(torch, name):
    case = cases(torch)[name]
    reference = copy.deepcopy(case.module)
    program = torch.export.export(case.module, case.arguments(4), dynamic_shapes=case.dynamic)
    program.validate()
    assert list(program.range_constraints) == ["batch"]
    module = program.module()
    for n in (4, 2, 11):
        args = case.arguments(n)
        found, expected = module(*args), reference(*args)
        check_equal(torch, found, expected)
        for a, b in zip(gradients(torch, module, found), gradients(torch, reference, expected), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    for (key, a), b in zip(reference.named_buffers(), (dict(program.named_buffers())[n] for n, _ in reference.named_buffers())):
        torch.testing.assert_close(b, a, msg=key)


@pytest.mark.parametrize("name", NAMES)
def test_exporting_changes_nothing(torch, name):
    case = cases(torch)[name]
    before = {k: v.clone() for k, v in case.module.state_dict().items()}
    torch.export.export(case.module, case.arguments(4), dynamic_shapes=case.dynamic)
    for key, value in case.module.state_dict().items():
        assert torch.equal(value, before[key])
        assert type(value) is torch.Tensor or isinstance(value, torch.nn.Parameter)
    assert all(p.grad is None for p in case.module.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_without_writes(torch, name):
    case = cases(torch)[name]
    reference = copy.deepcopy(case.module)
    program = torch.export.export(case.module, case.arguments(4)).run_decompositions()
    mutable = [n for n in program.graph.nodes if hasattr(n.target, "_schema") and n.target._schema.is_mutable]
    assert not mutable
    module = program.module(check_guards=False)
    args = case.arguments(4)
    check = [x.detach() for x in leaves(torch, module(*args))]
    for a, b in zip(check, leaves(torch, reference(*args)), strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=1e-4, atol=1e-5)
    found = dict(program.named_buffers())
    for key, value in reference.named_buffers():
        torch.testing.assert_close(found[key], value)
    assert set(program.graph_signature.buffers_to_mutate.values()) == {
        "written": {"count", "last"}, "cnn_train": {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"},
    }.get(name, set())  # fmt: skip


def test_signature_and_names(torch):
    case = cases(torch)["written"]
    program = torch.export.export(case.module, case.arguments(4), dynamic_shapes=case.dynamic)
    assert [str(s) for s in program.graph_signature.input_specs] == [
        "b_count: BUFFER target='count' persistent=True", "b_last: BUFFER target='last' persistent=False",
        "c_scale: CONSTANT_TENSOR target='scale'", "x: USER_INPUT", "options_shift: USER_INPUT",
    ]  # fmt: skip
    assert set(program.state_dict) == {"count"}
    assert set(program.constants) == {"scale", "last"}
    assert str(program.range_constraints) == "{'batch': VR[0, 64]}"
    assert program.example_inputs[0][0].shape == (4, 3)
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(*case.arguments(4))
    assert "ExportedProgram:" in str(program)


def test_arguments_are_checked(torch):
    class Net(torch.nn.Module):
        def forward(self, x, y, flag, *, scale):
            return (x + y) * scale if flag else x

    batch = torch.export.Dim("b", min=2, max=9)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    shapes = {"x": {0: batch}, "y": {0: batch}, "flag": None, "scale": None}
    module = torch.export.export(Net(), (x, y, True), {"scale": 2.0}, dynamic_shapes=shapes).module()
    check_equal(torch, module(x, y, True, scale=2.0), (x + y) * 2)
    z = torch.randn(5, 4)
    check_equal(torch, module(z, z, True, scale=2.0), z * 4)
    for args, message in (
        ((torch.randn(1, 4), torch.randn(1, 4), True), r"2 <= b <= 9 for b of x.size\(\)\[0\], got 1"),
        ((torch.randn(10, 4), torch.randn(10, 4), True), "got 10"),
        ((z, y, True), r"y.size\(\)\[0\]"), ((torch.randn(3, 5), y, True), r"x.size\(\)\[1\] == 4, got 5"),
        ((x.double(), y, True), "x.dtype"), ((x[0], y, True), r"x.dim\(\) == 2"), ((x, y, False), "flag == True"),
    ):  # fmt: skip
        with pytest.raises(AssertionError, match=message):
            module(*args, scale=2.0)
    with pytest.raises(ValueError, match="Trying to flatten user inputs"):
        module(x, y, True)


def exported(torch, forward, *args, dynamic=None):
    module = torch.nn.Module()
    module.forward = forward
    return torch.export.export(module, args, dynamic_shapes=dynamic)


def test_branches_on_values_raise(torch):
    from teletensor.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    with pytest.raises(GuardOnDataDependentSymNode):
        exported(torch, lambda x: x if x.sum() > 0 else -x, torch.randn(3))


@pytest.mark.parametrize("forward", [
    lambda x: x if x.shape[0] > 8 else -x, lambda x: x if x.size(0) % 2 else -x, lambda x: x if x.numel() == 40 else -x,
    lambda x: x if len(x) == 3 else -x, lambda x: x * int(x.shape[0]), lambda x: x * int(x.shape[0] * 0.5), lambda x: sum(x.unbind(0)),
    lambda x: x.view(3, -1), lambda x: [x + i for i in range(x.shape[0])], lambda x: x.reshape(x.shape[0] // 3, -1),
    lambda x: x * (1 if x.shape[0] < 1000 else 2), lambda x: x.chunk(3), lambda x: x if x.shape[0] in {777, 999} else -x,
    lambda x: x if divmod(x.shape[0], 555)[1] else -x, lambda x: x if x.shape[0] & 1024 else -x,
    lambda x: x * x.new_tensor(x.shape[0]), lambda x: x.new_tensor([x.shape[0], 2.0]) * x.sum(),
], ids="compare odd numel len int float unbind view range divide large chunk member divmod bits constant constants".split())  # fmt: skip
def test_sizes_that_are_not_dynamic_raise(torch, forward):
    from teletensor.export._errors import UserError

    batch = torch.export.Dim("batch")
    with pytest.raises(UserError, match="batch"):
        exported(torch, forward, torch.randn(3, 4), dynamic=[{0: batch}])
    module = exported(torch, forward, torch.randn(3, 4), dynamic=[{0: torch.export.Dim.AUTO}]).module()
    for n in (2, 3, 4, 6, 8, 9, 10, 555, 777, 1000, 1024):  # other sizes are refused, or served
        x = torch.randn(n, 4)
        try:
            got = module(x)
        except AssertionError:
            assert n != 3
        else:
            check_equal(torch, got, forward(x))


def test_guards_within_the_range(torch):
    def forward(x):
        return x if x.shape[0] > 8 else -x

    low, high = torch.export.Dim("b", max=8), torch.export.Dim("b", min=9)
    x = torch.randn(3, 4)
    check_equal(torch, exported(torch, forward, x, dynamic=[{0: low}]).module()(x), -x)
    x = torch.randn(12, 4)
    check_equal(torch, exported(torch, forward, x, dynamic=[{0: high}]).module()(x), x)


def test_sizes_that_a_module_treats_specially_are_not_in_the_range(torch):
    program = exported(torch, lambda x: x[0] if x.shape[0] == 1 else x.sum(0), torch.randn(3, 4), dynamic=[{0: torch.export.Dim("b")}])
    assert str(program.range_constraints) == "{'b': VR[2, int_oo]}"
    with pytest.raises(AssertionError, match="2 <= b"):
        program.module()(torch.randn(1, 4))


def test_computed_sizes(torch):
    def forward(x, y):
        b, t = x.shape[:2]
        flat = x.reshape(b * t, -1)
        pad = torch.zeros(b, 2 * t + 1, device=x.device)
        h = torch.nn.functional.conv1d(x.transpose(1, 2), torch.ones(2, 4, 3), stride=2)
        return flat, pad, h.reshape(h.shape[0], h.shape[2] * 2), torch.arange(t) * 2, x[:, : t - 1], y.expand(b, 3), b + t

    b, t = torch.export.Dim("b"), torch.export.Dim("t", min=3)
    program = exported(torch, forward, torch.randn(2, 7, 4), torch.randn(1, 3), dynamic=[{0: b, 1: t}, None])
    module = program.module()
    for sizes in ((2, 7), (3, 3), (5, 16), (6, 9)):
        x, y = torch.randn(*sizes, 4), torch.randn(1, 3)
        found, expected = module(x, y), forward(x, y)
        check_equal(torch, found, expected)
        assert found[-1] == expected[-1]


def test_derived_and_automatic_dimensions(torch):
    n = torch.export.Dim("n", min=2)
    program = exported(torch, lambda x, y: x + y[::2], torch.randn(4), torch.randn(8), dynamic=[{0: n}, {0: 2 * n}])
    check_equal(torch, program.module()(torch.ones(6), torch.ones(12)), torch.ones(6) * 2)
    with pytest.raises(AssertionError, match=r"y.size\(\)\[0\]"):
        program.module()(torch.ones(6), torch.ones(13))
    auto = torch.export.Dim.AUTO
    program = exported(torch, lambda x, y: x @ y, torch.randn(3, 4), torch.randn(4, 5), dynamic=[{0: auto, 1: auto}, {0: auto, 1: auto}])
    assert len(program.range_constraints) == 3
    check_equal(torch, program.module()(torch.ones(2, 7), torch.ones(7, 3)), torch.ones(2, 3) * 7)
    with pytest.raises(RuntimeError):
        exported(torch, lambda x: x.view(3, 4), torch.randn(3, 4), dynamic=[{0: torch.export.Dim.DYNAMIC}])


def test_wrong_declarations(torch):
    from teletensor.export._errors import UserError

    b = torch.export.Dim("b", max=2)
    with pytest.raises(UserError, match="to be in the range"):
        exported(torch, lambda x: x, torch.randn(3), dynamic=[{0: b}])
    with pytest.raises(UserError, match="2 arguments|1 arguments"):
        exported(torch, lambda x: x, torch.randn(3), dynamic=[{}, {}])
    with pytest.raises(UserError, match="arg names"):
        exported(torch, lambda x: x, torch.randn(3), dynamic={"z": None})
    with pytest.raises(UserError, match="tuple"):
        torch.export.export(torch.nn.Linear(2, 2), torch.randn(1, 2))
    with pytest.raises(ValueError, match="nn.Module"):
        torch.export.export(lambda x: x, (torch.randn(1, 2),))
    with pytest.raises(NotImplementedError):
        -1 - torch.export.Dim("x")


def test_shared_parameters(torch):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    net[1].weight = net[0].weight
    program = torch.export.export(net, (torch.randn(2, 3),))
    assert program.graph_signature.parameters == ("0.weight", "0.bias", "1.bias")
    assert set(program.state_dict) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    module = program.module()
    assert module.get_parameter("1.weight") is module.get_parameter("0.weight")
    x = torch.randn(2, 3)
    check_equal(torch, module(x), net(x))


def test_attributes_must_be_buffers(torch):
    class Net(torch.nn.Module):
        def forward(self, x):
            self.seen = x * 2
            return x

    with pytest.raises(RuntimeError, match="self.seen was assigned during export"):
        torch.export.export(Net(), (torch.randn(2),))


@pytest.mark.parametrize("name", ["mlp", "attention", "encoder"])
def test_program_runs_in_the_engine(torch, name):
    case = cases(torch)[name]
    args = case.arguments(4)
    module = torch.export.export(case.module, args, dynamic_shapes=case.dynamic).module()
    program = torch.compiler.trace(module, *args)
    assert program.instructions > 3
    for a, b in zip(leaves(torch, program(*args)), leaves(torch, case.module(*args))):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_control_flow(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3))

        def forward(self, x):
            a = torch.cond(x.sum() > 0, lambda x: x * self.weight, lambda x: x - self.weight, (x,))
            i, b = torch._higher_order_ops.while_loop(lambda i, b: i < 3, lambda i, b: (i + 1, b * 2), (torch.tensor(0), a))
            c, d = torch._higher_order_ops.scan(lambda c, x: (c + x, c * x), torch.zeros(3), x)
            return a, b, c, d, torch._higher_order_ops.map(lambda row, w: row * w, x, c)

    net = Net()
    program = torch.export.export(net, (torch.randn(4, 3),))
    names = [getattr(n.target, "_opname", "") for n in program.graph.nodes]
    assert {"cond", "while_loop", "scan", "map_impl"} <= set(names)
    for x in (torch.ones(4, 3), -torch.ones(4, 3)):
        check_equal(torch, program.module()(x), net(x))


def test_branches_that_catch_the_error_of_a_read_value(torch):
    def reads(x):
        return x * x.sum().item()

    def selects(x):
        return x * x[x > 1].sum()

    for read in (reads, selects):

        def catches(x, read=read):
            try:
                return read(x)
            except Exception:  # noqa: BLE001 - as a user may write
                return x + 1

        def catches_outside(x, read=read):
            try:
                return torch.cond(x.sum() > 0, read, lambda x: x - 1, (x,))
            except Exception:  # noqa: BLE001
                return x + 1

        module = torch.nn.Module()
        for function in (lambda x, catches=catches: torch.cond(x.sum() > 0, catches, lambda x: x - 1, (x,)), catches_outside):
            module.forward = function
            with pytest.raises(RuntimeError, match="data-dependent|depend on values"):
                torch.export.export(module, (torch.ones(3),))


def test_branches_add_nothing_to_the_graph(torch):
    module = torch.nn.Module()
    module.forward = lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))
    program = torch.export.export(module, (torch.ones(3),))
    assert [getattr(n.target, "_opname", "") for n in program.graph.nodes if n.op == "call_function"] == ["sum", "gt", "cond", ""]


def test_draft_export(torch):
    module = torch.nn.Module()
    module.forward = lambda x: x.view(3, 4)
    program = torch.export.draft_export(module, (torch.randn(3, 4),), dynamic_shapes=[{0: torch.export.Dim("b")}])
    assert not program.range_constraints and not program._report.successful()


@pytest.mark.parametrize("name", NAMES)
def test_unflatten(torch, name):
    case = cases(torch)[name]
    reference = copy.deepcopy(case.module)
    program = torch.export.export(case.module, case.arguments(4), dynamic_shapes=case.dynamic)
    module = torch.export.unflatten(program)
    for n in (4, 9):
        args = case.arguments(n)
        check_equal(torch, module(*args), reference(*args))
    assert {k.split("@")[0] for k, _ in module.named_modules()} >= {k.rpartition(".")[0] for k, _ in reference.named_parameters()}
    assert {id(p) for p in module.parameters()} == {id(p) for p in case.module.parameters()}


def test_dataclasses_are_arguments(torch):
    import dataclasses

    @dataclasses.dataclass
    class Pair:
        a: torch.Tensor
        b: int

    torch.export.register_dataclass(Pair)

    class Net(torch.nn.Module):
        def forward(self, pair):
            return Pair(pair.a * pair.b, 3)

    program = torch.export.export(Net(), (Pair(torch.ones(2), 2),))
    result = program.module()(Pair(torch.ones(2) * 2, 2))
    assert isinstance(result, Pair) and result.a.tolist() == [4, 4] and result.b == 3


def test_other_sources_of_dynamic_sizes(torch):
    net = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3)
    shapes = torch.export.ShapesCollection()
    shapes[x] = {0: torch.export.Dim("n")}
    assert list(torch.export.export(net, (x,), dynamic_shapes=shapes).range_constraints) == ["n"]
    more = torch.export.AdditionalInputs()
    more.add((torch.randn(7, 3),))
    program = torch.export.export(net, (x,), dynamic_shapes=more)
    more.verify(program)
    check_equal(torch, program.module()(torch.ones(9, 3)), net(torch.ones(9, 3)))
