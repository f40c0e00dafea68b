"""create_selective_checkpoint_contexts: gradients are those without a checkpoint, and chosen results are not computed again."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest

from tests.conftest import IN_PROCESS, client_environment


@pytest.fixture
def selective(torch):
    """Calls a function under a checkpoint with a policy."""
    from teletensor.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    def run(policy, function, *args, **options):
        contexts = partial(create_selective_checkpoint_contexts, policy)
        return checkpoint(function, *args, use_reentrant=False, context_fn=contexts, **options)

    return run


@pytest.fixture
def recomputed(torch, selective):
    """The gradient of the sum of a function's squares, and that after a write to `.data` that only recomputations read."""

    def gradients(policy, function, x):
        result = []
        for value in (None, 0.25):
            y = selective(policy, function, x)
            before = x.detach().clone()
            if value is not None:
                x.data.fill_(value)
            result.append(torch.autograd.grad(y.square().sum(), x)[0].tolist())
            x.data.copy_(before)
        return result

    return gradients


def functions(torch):
    F = torch.nn.functional  # noqa: N806 - as in programs
    weight = torch.linspace(-1, 1, 16).reshape(4, 4)
    return {
        "products": lambda x: torch.sigmoid(torch.matmul(torch.matmul(x, weight), weight)) * x,
        "linear": lambda x: F.gelu(F.linear(x, weight, weight[0])).exp(),
        "attention": lambda x: F.scaled_dot_product_attention(x.sin(), x, x.cos()).sin(),
        "norm": lambda x: F.layer_norm(x.exp(), (4,)).softmax(-1).sin(),
        "convolution": lambda x: F.conv1d(x.sin(), weight.reshape(2, 4, 2).repeat(1, 1, 1)[:, :3]).tanh(),
        "sums": lambda x: ((x.sin() + 1).cumsum(0) * x).sin(),
        "in place": lambda x: F.linear(x, weight).relu_().sin().add_(1).cos(),
        "several results": lambda x: torch.stack(x.sin().unbind(0)).sort(-1).values.sin() * x.exp().max(0).values,
        "random": lambda x: F.dropout(x.sin(), 0.5).sin() * torch.rand_like(x) * F.dropout(x.exp(), 0.3),
    }


POLICIES = {
    "all": lambda ctx, op, *args, **kwargs: True,
    "none": lambda ctx, op, *args, **kwargs: False,
    "every other": lambda counts: lambda ctx, op, *args, **kwargs: counts.append(0) or len(counts) % 2 == 0,
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "name", ["products", "linear", "attention", "norm", "convolution", "sums", "in place", "several results", "random"]
)
def test_gradients_are_those_of_the_function(torch, selective, name, policy):
    function = functions(torch)[name]
    policy = POLICIES[policy]([]) if policy == "every other" else POLICIES[policy]

    def gradients(run):
        torch.manual_seed(0)
        x = torch.linspace(-2, 2, 24).reshape(2, 3, 4).requires_grad_()
        result = run(x)
        after = torch.rand(2)
        (first,) = torch.autograd.grad(result.square().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        return [t.tolist() for t in (result, after, first, second, torch.rand(2))]

    assert gradients(lambda x: selective(policy, function, x)) == gradients(function)


@pytest.mark.parametrize("name", ["linear", "matmul", "bmm", "exp", "sum", "attention", "flash", "conv1d", "norm"])
def test_chosen_operators_run_once(torch, recomputed, name):
    aten, F = torch.ops.aten, torch.nn.functional  # noqa: N806 - as in programs
    weight = torch.linspace(-1, 1, 16).reshape(4, 4)
    operator, function = {
        "linear": (aten.linear.default, lambda x: F.linear(x, weight)),
        "matmul": (aten.mm.default, lambda x: x[0] @ weight),
        "bmm": (aten.bmm.default, lambda x: x @ x.mT),
        "exp": (aten.exp.default, lambda x: x.exp()),
        "sum": (aten.sum.dim_IntList, lambda x: x.sum(1)),
        "attention": (aten._scaled_dot_product_flash_attention_for_cpu.default, lambda x: F.scaled_dot_product_attention(x, x, x)),
        "flash": (aten._scaled_dot_product_flash_attention.default, lambda x: F.scaled_dot_product_attention(x, x, x)),
        "conv1d": (aten.convolution.default, lambda x: F.conv1d(x, weight[None, :3])),
        "norm": (aten.native_layer_norm.default, lambda x: F.layer_norm(x, (4,), weight[0])),
    }[name]
    x = torch.linspace(-1, 2, 24).reshape(2, 3, 4).requires_grad_()
    kept, kept_after = recomputed([operator], lambda x: function(x).sin(), x)  # the gradient of sin reads the result
    none, none_after = recomputed([], lambda x: function(x).sin(), x)
    assert kept == none
    assert kept_after != none_after


def test_policies_see_products_and_arguments(torch, selective):
    from teletensor.utils.checkpoint import CheckpointPolicy

    seen = []

    def policy(ctx, op, *args, **kwargs):
        assert not ctx.is_recompute
        seen.append((str(op), [tuple(a.shape) for a in args if isinstance(a, torch.Tensor)]))
        return CheckpointPolicy.MUST_SAVE if "mm" in str(op) else CheckpointPolicy.MUST_RECOMPUTE

    x = torch.randn(2, 3, 4, requires_grad=True)
    selective(policy, torch.nn.Linear(4, 5), x).sum().backward()
    assert seen == [("aten.linear.default", [(2, 3, 4), (5, 4), (5,)]), ("aten.addmm.default", [(5,), (6, 4), (4, 5)])]
    del seen[:]
    selective(policy, lambda x: x @ x.mT, x).sum().backward()
    assert [op for op, _ in seen if "transpose" not in op] == ["aten.matmul.default", "aten.bmm.default"]


KEEPING = """
import json, sys
from functools import partial

import teletensor as torch
from teletensor import _C
from teletensor.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

torch.connect(sys.argv[1])
SIZE = 1 << 20
admin = _C.Admin(sys.argv[1])
contexts = partial(create_selective_checkpoint_contexts, [torch.ops.aten.exp.default])

def function(x):
    for _ in range(4):
        x = x.exp().sin().cos()
    return x

def tensors():
    torch.synchronize()
    return round(sum(int(d["memory"]["allocated"]) for d in json.loads(admin.status())["devices"]) / (4 * SIZE))

x = torch.zeros(SIZE, requires_grad=True)
for _ in range(3):  # a graph that is dropped keeps nothing
    checkpoint(function, x, use_reentrant=False, context_fn=contexts)
    y = checkpoint(function, x, use_reentrant=False, context_fn=contexts)
    counts = [tensors()]
    torch.autograd.grad(y.sum(), [x], retain_graph=True)
    counts.append(tensors())
    torch.autograd.grad(y.sum(), [x])
    counts.append(tensors())
    del y
    print(*counts, tensors())
"""


CONVERTING = """
import json, sys
from functools import partial

import teletensor as torch
from teletensor import _C
from teletensor.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

torch.connect(sys.argv[1])
SIZE = 512
admin = _C.Admin(sys.argv[1])
contexts = partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
x, w = (torch.zeros(SIZE, SIZE, requires_grad=True) for _ in range(2))

def tensors():
    torch.synchronize()
    return sum(int(d["memory"]["allocated"]) for d in json.loads(admin.status())["devices"]) // (2 * SIZE * SIZE)

before = tensors()
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = checkpoint(lambda x: torch.nn.functional.linear(x, w).sin(), x, use_reentrant=False, context_fn=contexts)
print(tensors() - before)
"""


@pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")
def test_conversions_by_autocast_are_not_kept(daemon):
    found = subprocess.run(
        [sys.executable, "-c", CONVERTING, daemon.address], env=client_environment(), capture_output=True, text=True, timeout=120
    )
    assert found.stdout.split() == ["2"], found.stderr  # the product, and the function's result, in bfloat16


@pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")
def test_results_are_freed_with_the_pass(daemon):
    found = subprocess.run(
        [sys.executable, "-c", KEEPING, daemon.address], env=client_environment(), capture_output=True, text=True, timeout=120
    )
    # x, the result and four results of exp; after the pass without retain_graph only the first two
    assert found.stdout.splitlines() == ["6 6 2 1"] * 3, found.stderr


def test_passes_with_retain_graph(torch, selective):
    x = torch.randn(4, requires_grad=True)
    result = selective([torch.ops.aten.exp.default], lambda x: x.sin().exp().sin(), x)
    first, second = (torch.autograd.grad(result.sum(), x, retain_graph=True)[0].tolist() for _ in range(2))
    assert first == second
    torch.autograd.grad(result.sum(), x)
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(result.sum(), x)


def test_results_that_were_changed_are_computed_again(torch, selective):
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    result = selective([torch.ops.aten.mul.Tensor], lambda x: (x.sin() * 3).mul_(2).sin(), x)
    result.sum().backward()
    y = x.detach().requires_grad_()
    (y.sin() * 3).mul(2).sin().sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


@pytest.mark.parametrize("outer", ["none", "add", "exp", "all"])
@pytest.mark.parametrize("inner", ["no policy", "reentrant", "none", "add", "exp", "all"])
def test_nested_checkpoints(torch, selective, outer, inner):
    from teletensor.utils.checkpoint import checkpoint

    aten = torch.ops.aten
    policies = {"none": [], "add": [aten.add.Tensor], "exp": [aten.exp.default], "all": POLICIES["all"]}
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    block = lambda x: (x.sin() + x).exp() + x  # noqa: E731

    def run_inner(x):
        if inner in policies:
            return selective(policies[inner], block, x)
        return checkpoint(block, x, use_reentrant=inner == "reentrant")

    def gradient(run):
        return torch.autograd.grad(run(x).sum(), x)[0].tolist()

    expected = gradient(lambda x: block(block(x)).exp() + x)
    assert gradient(lambda x: selective(policies[outer], lambda x: run_inner(block(x)).exp() + x, x)) == expected
    assert gradient(lambda x: checkpoint(lambda x: run_inner(block(x)).exp() + x, x, use_reentrant=False)) == expected


RANDOM = ["rand", "dropout", "native_dropout", "rand_like", "topk", "function", "custom"]


@pytest.mark.parametrize("preserve", [False, True])
@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_that_are_saved(torch, selective, name, preserve):
    """The gradient is that of the values that the first run has drawn, also of those after the saved ones if the state is kept."""
    aten = torch.ops.aten

    class Draws(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = (torch.rand(x.shape) > 0.5).to(x.dtype)
            ctx.save_for_backward(mask)
            return x * mask

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    @torch.library.custom_op("selective_test::draw", mutates_args=(), schema="(Tensor x) -> Tensor")
    def custom_draw(x):
        return (torch.rand(x.shape) > 0.5).to(x.dtype)

    draw, saved = {
        "rand": (lambda x: x * (torch.rand(100) > 0.5), [aten.rand.default]),
        "dropout": (lambda x: torch.nn.functional.dropout(x * 1, 0.5), [aten.native_dropout.default]),
        "native_dropout": (lambda x: torch.native_dropout(x * 1, 0.5, True)[0], [aten.native_dropout.default]),
        "rand_like": (lambda x: x * (torch.rand_like(x) > 0.5), [aten.rand_like.default]),
        "topk": (lambda x: x * torch.zeros(100).index_fill(0, torch.rand(100).topk(30)[1], 1.0), None),
        "function": (Draws.apply, [aten.rand.default]),
        "custom": (lambda x: x * custom_draw(x.detach()), [torch.ops.selective_test.draw.default]),
    }[name]
    x = torch.ones(100, requires_grad=True)
    policy = POLICIES["all"] if saved is None else saved

    def function(x):
        first = draw(x)
        return first, (torch.nn.functional.dropout(x, 0.5) if preserve else x)

    first, second = selective(policy, function, x, preserve_rng_state=preserve)
    (first.square() + second.square() * 3).sum().backward()
    assert 0 < int((first != 0).sum()) < 100
    assert x.grad.tolist() == (2 * first * first + 6 * second * second).tolist()  # both are multiples of x, which is 1


def test_results_without_a_gradient(torch, selective):
    """They are kept by the client."""
    scale, x = torch.ones(3), torch.ones(3, requires_grad=True)

    def function(x):
        s = scale * 2
        with torch.no_grad():
            t = scale * 3
            scale.mul_(3)
        return x.sin() * s * t

    y = selective([torch.ops.aten.mul.Tensor], function, x)
    for _ in range(2):
        assert torch.autograd.grad(y.sum(), x, retain_graph=True)[0].tolist() == (x.cos() * 6).tolist()


@pytest.mark.parametrize("allows", [False, True])
def test_results_without_a_gradient_that_were_changed(torch, allows):
    from teletensor.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    scale, x, made = torch.ones(3), torch.ones(3, requires_grad=True), []

    def function(x):
        made.append(scale * 2)
        return x.sin() * made[0]

    contexts = partial(create_selective_checkpoint_contexts, POLICIES["all"], allow_cache_entry_mutation=allows)
    y = checkpoint(function, x, use_reentrant=False, context_fn=contexts).exp()
    made[0].mul_(5)
    if allows:
        y.sum().backward()
        assert x.grad.tolist() != (x.cos() * 2 * (x.sin() * 2).exp()).tolist()
    else:
        with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
            y.sum().backward()


def test_custom_operators_run_once(torch, selective):
    calls = []

    @torch.library.custom_op("selective_test::scaled", mutates_args=(), schema="(Tensor x) -> Tensor")
    def scaled(x):
        calls.append(1)
        return x.exp() * len(calls)

    scaled.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0], setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output)
    )
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    function = lambda x: scaled(x.sin()).sin()  # noqa: E731
    selective([torch.ops.selective_test.scaled.default], function, x).sum().backward()
    assert len(calls) == 1
    torch.testing.assert_close(x.grad, x.sin().exp().cos() * x.sin().exp() * x.cos())
    selective([], function, x).sum().backward()
    assert len(calls) == 3


@pytest.mark.parametrize("policy", ["all", "none"])
def test_compiled_custom_operators(torch, selective, policy):
    """The calls of their Programs are recorded, as those of the function."""

    @torch.library.custom_op("selective_test::compiled", mutates_args=(), schema="(Tensor x) -> Tensor", compile=True)
    def compiled(x):
        return (x.sin() + 1).exp()

    x = torch.tensor([0.5, 1.0], requires_grad=True)
    selective(POLICIES[policy], lambda x: compiled(x.cos()).sin(), x).sum().backward()
    y = x.detach().requires_grad_()
    compiled(y.cos()).sin().sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_a_parameter_that_changes_between_passes(torch, selective):
    w, x = torch.eye(2).requires_grad_(), torch.ones(2, 2, requires_grad=True)
    y = selective([torch.ops.aten.mm.default], lambda x: (x @ w).sin() @ w.exp(), x).sum()
    y.backward(retain_graph=True)
    with torch.no_grad():
        w.mul_(0.5)
    with pytest.raises(RuntimeError, match="a parameter of a function under a selective checkpoint"):
        y.backward()


def test_calls_that_differ(torch, selective):
    calls = []

    def function(x):
        calls.append(0)
        return x.sin().exp() if len(calls) == 1 else x.cos().exp()

    result = selective([torch.ops.aten.exp.default], function, torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="aten.cos.default invocation index 0 encountered during backward"):
        result.sum().backward()


def test_contexts_belong_to_one_checkpoint(torch):
    from teletensor.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    contexts = create_selective_checkpoint_contexts([torch.ops.aten.exp.default])
    x = torch.ones(2, requires_grad=True)
    checkpoint(torch.exp, x, use_reentrant=False, context_fn=lambda: contexts)
    with pytest.raises(RuntimeError, match="expected new contexts for each checkpoint"):
        checkpoint(torch.exp, x, use_reentrant=False, context_fn=lambda: contexts)


def test_arguments(torch, selective):
    from teletensor.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="policy_fn_or_list must be either a function or a list of ops"):
        create_selective_checkpoint_contexts(3)
    with pytest.raises(ValueError, match=r"Expected op in `op_list` to be an OpOverload.*aten.mm.default"):
        create_selective_checkpoint_contexts([torch.ops.aten.mm])
    with pytest.raises(ValueError, match="Expected op in `op_list`"):
        create_selective_checkpoint_contexts(["mm"])
    with pytest.raises(TypeError, match="expected the policy to return a CheckpointPolicy or a bool, got int"):
        selective(lambda *args, **kwargs: 1, torch.exp, x)
    with pytest.raises(NotImplementedError, match="MUST_CPU_OFFLOAD"):
        selective(lambda *args, **kwargs: CheckpointPolicy.MUST_CPU_OFFLOAD, torch.exp, x)
    with pytest.raises(NotImplementedError, match="op_output"):
        selective(lambda ctx, *args, **kwargs: ctx.op_output is None, torch.exp, x)
