"""torch.library.custom_op(compile=True): one instruction per call, with the values and gradients of the function."""

import itertools
import threading

import pytest

from tests.conftest import IN_PROCESS

_numbers = itertools.count()


def gelu(x, weight, factor: float = 1.0):
    y = x @ weight
    return 0.5 * y * (1 + (0.79788456 * (y + 0.044715 * y**3)).tanh()) * factor


def define(torch, function, schema="(Tensor x, Tensor weight, float factor=1.0) -> Tensor", **options):
    name = f"compiled{next(_numbers)}::op"
    return torch.library.custom_op(name, function, mutates_args=options.pop("mutates_args", ()), schema=schema, compile=True, **options)


def kernel(op):
    return op._opoverload.kernels["CompositeExplicitAutograd"]


def instructions(torch, call):
    call()
    before = torch.connection().counters()["instructions"]
    for _ in range(10):
        call()
    return (torch.connection().counters()["instructions"] - before) / 10


def test_a_call_is_one_instruction(torch):
    op = define(torch, gelu)
    x, w = torch.randn(8, 4), torch.randn(4, 6)
    with torch.no_grad():
        assert instructions(torch, lambda: op(x, w)) == 1
        assert instructions(torch, lambda: gelu(x, w)) > 5
        assert torch.allclose(op(x, w, 3.0), gelu(x, w, 3.0), atol=1e-6)
        assert torch.allclose(op(x, w, factor=-0.5), gelu(x, w, -0.5), atol=1e-6)
    assert len(kernel(op).programs()) == 3


def test_one_program_serves_many_sizes(torch):
    op = define(torch, gelu)
    w = torch.randn(4, 6)
    for n in (8, 3, 17):
        x = torch.randn(n, 4)
        assert torch.allclose(op(x, w), gelu(x, w), atol=1e-6)
    assert len(kernel(op).programs()) == 1
    with pytest.raises(RuntimeError, match="matmul"):
        op(torch.randn(8, 5), w)


def test_a_decision_by_a_size_makes_another_program(torch):
    op = define(torch, lambda x: x.sum(0) if x.shape[0] > 4 else x * 2, "(Tensor x) -> Tensor")
    for n in (8, 3, 9, 2):
        x = torch.randn(n, 2)
        assert torch.allclose(op(x), x.sum(0) if n > 4 else x * 2)
    assert len(kernel(op).programs()) == 2


def test_signatures_are_dtypes_dimensions_and_values(torch):
    op = define(torch, gelu)
    for dtype in (torch.float32, torch.float64):
        x, w = torch.randn(2, 4, dtype=dtype), torch.randn(4, 3, dtype=dtype)
        assert op(x, w).dtype is dtype and torch.allclose(op(x, w), gelu(x, w), atol=1e-6)
    x = torch.randn(5, 2, 4)
    assert torch.allclose(op(x, torch.ones(4, 3)), gelu(x, torch.ones(4, 3)), atol=1e-6)
    assert len(kernel(op).programs()) == 3
    for factor in range(100):
        op(x, torch.ones(4, 3), factor=float(factor))
    assert len(kernel(op).programs()) == 64


def test_gradients_without_register_autograd_are_those_of_the_operators(torch):
    op = define(torch, gelu)
    leaves = [torch.randn(8, 4, requires_grad=True), torch.randn(4, 6, requires_grad=True)]
    ours = torch.autograd.grad(op(*leaves).square().sum(), leaves)
    theirs = torch.autograd.grad(gelu(*leaves).square().sum(), leaves)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(ours, theirs))
    assert instructions(torch, lambda: op(*leaves)) == 1
    first = torch.autograd.grad(op(*leaves).sum(), leaves, create_graph=True)
    assert torch.autograd.grad(first[0].sum(), leaves[1])[0].shape == (4, 6)


def test_register_autograd_replaces_the_gradients(torch):
    op = define(torch, lambda x: x.exp().log(), "(Tensor x) -> Tensor")

    def save(ctx, inputs, output):
        ctx.save_for_backward(output)

    op.register_autograd(lambda ctx, g: g * 10 + 0 * ctx.saved_tensors[0], setup_context=save)
    x = torch.randn(3, requires_grad=True)
    op(x).sum().backward()
    assert x.grad.tolist() == [10, 10, 10] and instructions(torch, lambda: op(x)) == 3  # also its record and a view


def test_several_results_and_lists(torch):
    op = define(torch, lambda xs, n: [x * n for x in xs], "(Tensor[] xs, int n) -> Tensor[]")
    xs = [torch.ones(2), torch.ones(3)]
    assert [r.tolist() for r in op(xs, 3)] == [[3, 3], [3, 3, 3]] and instructions(torch, lambda: op(xs, 3)) == 1
    two = define(torch, lambda x: (x + 1, x.sum()), "(Tensor x) -> (Tensor, Tensor)")
    a, b = two(torch.ones(2))
    assert a.tolist() == [2, 2] and b.item() == 2


def test_an_argument_that_is_written(torch):
    def write(x, y):
        x.add_(y).mul_(2)

    op = define(torch, write, "(Tensor(a!) x, Tensor y) -> ()", mutates_args=("x",))
    x, y = torch.ones(3), torch.ones(3)
    assert op(x, y) is None and op(x, y) is None
    assert x.tolist() == [10, 10, 10] and instructions(torch, lambda: op(x, y)) == 1


def test_global_tensors_are_read_at_every_call(torch):
    state = {"scale": torch.tensor(2.0)}
    op = define(torch, lambda x: x * state["scale"], "(Tensor x) -> Tensor")
    x = torch.ones(2)
    assert op(x).tolist() == [2, 2]
    state["scale"].fill_(5)
    assert op(x).tolist() == [5, 5]


def test_a_function_that_reads_values_is_refused(torch):
    op = define(torch, lambda x: x * x.sum().item(), "(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError) as caught:
        op(torch.ones(3))
    assert any("compile=True" in note and op._qualname in note for note in caught.value.__notes__)
    op = define(torch, lambda x: x.nonzero(), "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError):
        op(torch.ones(3))


def test_inside_torch_compile_and_other_programs(torch):
    op = define(torch, gelu)
    x, w = torch.randn(8, 4), torch.randn(4, 6)

    namespace = op._namespace

    @torch.compile(fullgraph=True)
    def model(x, w):
        return op(x, w).sum(1) * 2

    with torch.no_grad():
        assert torch.allclose(model(x, w), gelu(x, w).sum(1) * 2, atol=1e-5) and instructions(torch, lambda: model(x, w)) == 1
    called = torch.compile(lambda x: getattr(torch.ops, namespace).op(x, w) + torch.ops.aten.sin(x[:, :1]), fullgraph=True)
    with torch.no_grad():
        assert torch.allclose(called(x), gelu(x, w) + x[:, :1].sin(), atol=1e-5) and instructions(torch, lambda: called(x)) == 1
    program = torch.compiler.trace(lambda x, w: op(x, w) + 1, x, w)
    assert torch.allclose(program(x, w), gelu(x, w) + 1) and program.instructions > 5


def test_under_vmap_autocast_and_on_meta(torch):
    op = define(torch, gelu)
    x, w = torch.randn(5, 8, 4), torch.randn(4, 6)
    assert torch.allclose(torch.vmap(op, in_dims=(0, None))(x, w), gelu(x, w), atol=1e-5)
    with torch.autocast("cpu", torch.bfloat16):
        assert op(x, w).dtype is gelu(x, w).dtype
    assert op(x.to("meta"), w.to("meta")).shape == (5, 8, 6) and kernel(op).programs() == []


def test_random_numbers_are_drawn_at_every_call(torch):
    op = define(torch, lambda x: x + torch.rand_like(x), "(Tensor x) -> Tensor")
    x = torch.zeros(4)
    torch.manual_seed(3)
    a, b = op(x), op(x)
    torch.manual_seed(3)
    assert torch.equal(a, torch.rand(4)) and torch.equal(b, torch.rand(4))


def test_device_types(torch):
    op = define(torch, lambda x: x + 1, "(Tensor x) -> Tensor", device_types="cpu")
    assert op(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="META|Meta"):
        op(torch.ones(2, device="meta"))


def test_other_custom_operators_are_called_by_compiled_functions(torch):
    calls = []

    def function(x):
        calls.append(1)
        return x + 1

    op = torch.library.custom_op(f"compiled{next(_numbers)}::plain", function, mutates_args=(), schema="(Tensor x) -> Tensor")
    compiled = torch.compile(lambda x: op(x) * 2)
    assert [compiled(torch.ones(1)).item() for _ in range(3)] == [4, 4, 4] and len(calls) == 3


def test_gradients_in_compiled_functions(torch):
    op = define(torch, gelu)
    x, w = torch.randn(8, 4, requires_grad=True), torch.randn(4, 6, requires_grad=True)
    compiled = torch.compile(lambda x, w: op(x, w).sum(), fullgraph=True)
    ours = torch.autograd.grad(compiled(x, w), (x, w))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(ours, torch.autograd.grad(gelu(x, w).sum(), (x, w))))


@pytest.mark.skipif(IN_PROCESS, reason="ends the session")
def test_another_session_and_a_replaced_global_tensor(torch):
    state = {"scale": torch.tensor(2.0)}
    op = define(torch, lambda x: x * state["scale"], "(Tensor x) -> Tensor")
    assert op(torch.ones(2)).tolist() == [2, 2]
    state["scale"].data = torch.tensor(3.0)
    assert op(torch.ones(2)).tolist() == [3, 3]
    address = torch.connection().address
    torch.disconnect()
    torch.connect(address)
    state["scale"] = torch.tensor(4.0)
    assert op(torch.ones(2)).tolist() == [4, 4] and instructions(torch, lambda: op(torch.ones(2))) == 2


def test_threads(torch):
    op = define(torch, gelu)
    x, w = torch.randn(8, 4), torch.randn(4, 6)
    expected, wrong = [gelu(x, w, float(i)) for i in range(5)], []

    def run():
        wrong.extend(i for i in range(20) if not torch.allclose(op(x, w, float(i % 5)), expected[i % 5], atol=1e-6))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_variables_outside_of_the_function_are_part_of_the_signature(torch):
    factor, settings, tensor = 2.0, {"shift": [1]}, torch.tensor(1.0)
    model = torch.nn.Dropout(1.0)

    def scaled(x):
        return x * factor

    op = define(torch, lambda x: scaled(model(x + 0)) * tensor + settings["shift"][0], "(Tensor x) -> Tensor")
    x = torch.ones(2)
    assert op(x).tolist() == [1, 1]
    model.eval()
    assert op(x).tolist() == [3, 3]
    factor = 3.0
    assert op(x).tolist() == [4, 4]
    settings["shift"][0] = 5
    assert op(x).tolist() == [8, 8]
    tensor = torch.tensor(2.0)
    assert op(x).tolist() == [11, 11]
    factor = -0.0
    assert op(x).tolist() == [5, 5]
    factor = 3.0
    assert op(x).tolist() == [11, 11] and len(kernel(op).programs()) == 6 and instructions(torch, lambda: op(x)) == 1


FACTOR = 2.0


def test_globals_and_the_default_dtype_are_part_of_the_signature(torch, monkeypatch):
    op = define(torch, lambda x: [torch.full((1,), FACTOR) * y for y in [x]][0], "(Tensor x) -> Tensor")
    x = torch.ones(1)
    assert op(x).item() == 2
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    assert op(x).item() == 7
    torch.set_default_dtype(torch.float64)
    try:
        assert op(x).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert op(x).dtype is torch.float32


def test_results_that_are_arguments_are_refused(torch):
    for function in (lambda x: x, lambda x: [x + 1, x], lambda x: [(x + 1)] * 2):
        op = define(torch, function, "(Tensor x) -> Tensor[]")
        with pytest.raises(RuntimeError, match="must not also be an input or another output"):
            op(torch.ones(2))

    def write(x):
        return x.mul_(2)

    op = define(torch, write, "(Tensor(a!) x) -> Tensor", mutates_args=("x",))
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="must not also be an input"):
        op(x)
    assert x.tolist() == [1, 1]


def test_one_tensor_as_two_arguments_one_of_which_is_written(torch):
    def write(x, y):
        x.add_(1)
        x.mul_(y)
        return x + y

    op = define(torch, write, "(Tensor(a!) x, Tensor y) -> Tensor", mutates_args=("x",))
    op(torch.ones(3), torch.ones(3))
    for views in (lambda t: (t, t), lambda t: (t[:-1], t[1:]), lambda t: (t[::2], t[::2])):
        ours, theirs = torch.arange(6.0), torch.arange(6.0)
        assert torch.equal(op(*views(ours)), write(*views(theirs))) and torch.equal(ours, theirs)


def test_a_generator_is_refused(torch):
    generator = torch.Generator().manual_seed(1)
    op = define(torch, lambda x: x + torch.rand(2, generator=generator), "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="Generator"):
        op(torch.zeros(2))
    assert torch.equal(torch.rand(2, generator=generator), torch.rand(2, generator=torch.Generator().manual_seed(1)))


def test_second_gradients(torch):
    op = define(torch, lambda x, w: (x @ w).tanh() ** 3, "(Tensor x, Tensor w) -> Tensor")
    x, w = torch.randn(3, 4), torch.randn(4, 2)
    found = []
    for function in (op, op._init_fn):
        leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]
        first = torch.autograd.grad(function(*leaves).sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves, create_graph=True)
        found.append([*first, *second, *torch.autograd.grad(second[0].sum(), leaves)])
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(*found))
