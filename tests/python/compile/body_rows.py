"""Functions of two tensors that call functions through operators, transforms, autograd.Function, hooks and parametrizations.

body_rows.json contains the numbers of graphs and graph breaks with PyTorch 2.15; record it with

    PEER_PYTHON -m tests.conformance.compile_bodies > tests/python/compile/body_rows.json
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import teletensor as torch
from teletensor import nn
from teletensor.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from teletensor.utils.checkpoint import checkpoint

try:
    from teletensor._higher_order_ops import associative_scan, map, scan, while_loop  # noqa: A004
except ImportError:  # PyTorch's packages
    from teletensor._higher_order_ops.associative_scan import associative_scan
    from teletensor._higher_order_ops.map import map  # noqa: A004
    from teletensor._higher_order_ops.scan import scan
    from teletensor._higher_order_ops.while_loop import while_loop

ROWS: list = []
SCALE = 3.0
COUNTS = {"calls": 0}
LOG: list = []


def row(function):
    ROWS.append(function)
    return function


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g * ctx.k, None


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b=None):
        ctx.save_for_backward(x, w)
        ctx.has_bias = b is not None
        y = x @ w.t()
        return y if b is None else y + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g @ w if ctx.needs_input_grad[0] else None
        gw = g.t() @ x if ctx.needs_input_grad[1] else None
        return gx, gw, g.sum(0) if ctx.has_bias else None


class Two(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x / 2, x.sign()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx, g, _):
        return g.expand(ctx.shape) / 2


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return Exp.apply(x) * SCALE

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].exp() * SCALE


class Counting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        COUNTS["calls"] += 1
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@row
def function_of_one(x, y):
    return Square.apply(x, 3).relu() + y


@row
def function_that_saves_its_result(x, y):
    return Exp.apply(x * 0.5) * y


@row
def function_of_two(x, y):
    return Linear.apply(x, y).sum(1)


@row
def function_with_a_bias(x, y):
    return Linear.apply(x, y, y.sum(1)).tanh()


@row
def function_with_two_results(x, y):
    a, b = Two.apply(x)
    return a + b * y


@row
def function_that_is_differentiated_once(x, y):
    return Once.apply(x).sum() + y.sum()


@row
def function_straight_through(x, y):
    return (Straight.apply(x) * y).sum()


@row
def function_in_a_function(x, y):
    return Nested.apply(x) - y


@row
def function_that_counts(x, y):
    return Counting.apply(x) + y


@row
def function_twice(x, y):
    return Exp.apply(Exp.apply(x * 0.1)) + Square.apply(y, 2)


@row
def function_in_a_loop(x, y):
    for k in range(3):
        x = Square.apply(x, 0.5 + k)
    return x + y


@row
def function_through_an_alias(x, y):
    apply = Exp.apply
    return apply(x) + y


@row
def function_and_no_grad(x, y):
    with torch.no_grad():
        z = Square.apply(x, 2)
    return z + x * y


class Layer(nn.Module):
    def forward(self, x):
        return Exp.apply(x) + 1


LAYER = Layer()


@row
def function_in_a_module(x, y):
    return LAYER(x) * y


# -- control flow


@row
def cond_of_a_sum(x, y):
    return torch.cond(x.sum() > 0, lambda a, b: a + b, lambda a, b: a * b, (x, y))


@row
def cond_with_a_closure(x, y):
    z = x * 2
    return torch.cond(y.sum() > 100, lambda a: a + z, lambda a: a - z * y, (x,))


@row
def cond_with_tuples(x, y):
    a, b = torch.cond(x.mean() > 0, lambda a: (a.sin(), a + 1), lambda a: (a.cos(), a - 1), (x,))
    return a * b + y


@row
def cond_in_cond(x, y):
    def inner(a):
        return torch.cond(a.sum() > 1, lambda b: b * 2, lambda b: b * 3, (a,))

    return torch.cond(y.sum() > 0, inner, lambda a: a.tanh(), (x,))


@row
def cond_of_a_constant(x, y):
    return torch.cond(x.shape[0] > 2, lambda a: a + 1, lambda a: a - 1, (x,)) + y


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def large(self, x):
        return x / self.scale

    def small(self, x):
        return x * self.scale

    def forward(self, x):
        return torch.cond(x.abs().sum() > 5, self.large, self.small, (x,))


BRANCHES = Branches()


@row
def cond_in_a_module(x, y):
    return BRANCHES(x) + y


@row
def cond_without_operands(x, y):
    return torch.cond(x.sum() > 0, lambda: x + 1, lambda: y + 2)


@row
def loop_while(x, y):
    def test(i, z):
        return i < 3

    def body(i, z):
        return i + 1, z * 0.5 + y.detach()

    with torch.no_grad():
        return while_loop(test, body, (torch.tensor(0), x.detach()))[1]


@row
def loop_while_positive(x, y):
    with torch.no_grad():
        return while_loop(lambda z: z.sum() < 50, lambda z: (z + z.abs() + 1,), (x.detach(),))[0] + y


@row
def scan_of_sums(x, y):
    def add(carry, row):
        new = carry + row
        return new, new * 2

    last, all_ = scan(add, torch.zeros(4), x)
    return last.sum() + all_ * y


@row
def scan_reversed(x, y):
    last, all_ = scan(lambda c, r: (c * 0.5 + r, c.clone() if hasattr(c, "clone") else c), torch.ones(3), x, dim=1, reverse=True)
    return all_ + y


@row
def scan_with_weights(x, y):
    w = y[0]
    last, all_ = scan(lambda c, r: ((c * w + r).tanh(), (c + r).sin()), torch.zeros(4), x)
    return last + all_


@row
def map_of_rows(x, y):
    return map(lambda r, w: (r * w.sum()).sin(), x, y)


@row
def associative_sums(x, y):
    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="pointwise") * y


@row
def checkpoint_of_a_function(x, y):
    return checkpoint(lambda a: (a @ y.t()).relu(), x, use_reentrant=False).sum()


@row
def checkpoint_of_a_module(x, y):
    return checkpoint(LAYER, x, use_reentrant=False) + y


# -- torch.func


def loss(x, y):
    return (x.sin() * y).sum()


@row
def func_grad(x, y):
    return grad(loss)(x, y)


@row
def func_grad_of_second(x, y):
    return grad(loss, argnums=1)(x, y) + x


@row
def func_grad_of_both(x, y):
    a, b = grad(loss, argnums=(0, 1))(x, y)
    return a + b


@row
def func_grad_and_value(x, y):
    g, v = grad_and_value(loss)(x, y)
    return g * v


@row
def func_grad_with_aux(x, y):
    def f(a):
        z = a * y
        return z.sum(), z

    g, z = grad(f, has_aux=True)(x)
    return g + z


@row
def func_grad_of_grad(x, y):
    return grad(lambda a: grad(lambda b: b**3)(a))(x[0, 0]) + y


@row
def func_vmap(x, y):
    return vmap(torch.dot)(x, y)


@row
def func_vmap_of_a_lambda(x, y):
    return vmap(lambda a, b: a * b.sum() + 1)(x, y)


@row
def func_vmap_with_dims(x, y):
    return vmap(lambda a, b: a @ b, in_dims=(1, None), out_dims=0)(x, y)


@row
def func_vmap_out_dims(x, y):
    return vmap(lambda a: a * 2, out_dims=1)(x).t() + y


@row
def func_vmap_of_grad(x, y):
    return vmap(grad(lambda a, b: (a * b).sin().sum()))(x, y)


@row
def func_vmap_closure(x, y):
    return vmap(lambda a: a * y)(x).sum(0)


@row
def func_vmap_of_vmap(x, y):
    return vmap(lambda a: vmap(lambda b: b * 2 + 1)(a))(x) + y


@row
def func_jvp(x, y):
    out, tangent = jvp(lambda a: a.sin() * a, (x,), (y,))
    return out + tangent


@row
def func_vjp(x, y):
    out, pull = vjp(lambda a: a.sin(), x)
    return pull(y)[0] + out


@row
def func_jacrev(x, y):
    return jacrev(lambda a: a.sin().sum(0))(x).sum(0) + y


@row
def func_jacfwd(x, y):
    return jacfwd(lambda a: a.exp().sum(0))(x).sum(0) + y


@row
def func_hessian(x, y):
    return hessian(lambda a: (a**3).sum())(x[0]) @ y.t()


@row
def func_of_dicts(x, y):
    g = grad(lambda p: (p["a"] * p["b"]).sum())({"a": x, "b": y})
    return g["a"] - g["b"]


PER_SAMPLE = vmap(grad(loss))


@row
def func_made_outside(x, y):
    return PER_SAMPLE(x, y)


@row
def func_of_partial(x, y):
    return grad(functools.partial(loss, y=y))(x)


# -- functional_call and parametrizations


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 5), nn.Linear(5, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Norm(nn.Module):
    def forward(self, w):
        return w / w.norm()


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).t()


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x)


def make_tensors():
    """Makes the modules, for the session of the test."""
    global NET, NORMED, SYMMETRIC, SPECTRAL, WEIGHTED, HOOKED, PRE_HOOKED, BACKWARD_HOOKED, BATCH_NORM, DICT_HOOKED
    torch.manual_seed(1)
    NET = Net()
    NORMED, SYMMETRIC, WEIGHTED = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    nn.utils.parametrize.register_parametrization(NORMED, "weight", Norm())
    nn.utils.parametrize.register_parametrization(SYMMETRIC, "weight", Symmetric())
    nn.utils.parametrize.register_parametrization(SYMMETRIC, "weight", Norm())
    nn.utils.parametrizations.weight_norm(WEIGHTED)
    SPECTRAL = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)).eval()
    HOOKED, PRE_HOOKED, BACKWARD_HOOKED, DICT_HOOKED = Hooked(), Hooked(), Hooked(), Hooked()
    HOOKED.inner.register_forward_hook(lambda m, args, out: out * 2)
    PRE_HOOKED.inner.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    BACKWARD_HOOKED.inner.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
    DICT_HOOKED.inner.register_forward_hook(_log_shape)
    BATCH_NORM = nn.BatchNorm1d(4)


def _log_shape(module, args, out):
    COUNTS["calls"] = COUNTS["calls"] + out.shape[0]


make_tensors()


@row
def functional(x, y):
    return functional_call(NET, {"first.weight": y.t()[:, :].repeat(2, 2)[:5, :4] * 0.1}, (x,))


@row
def functional_with_all(x, y):
    params = dict(NET.named_parameters())
    return functional_call(NET, params, (x,)) + y


@row
def functional_and_grad(x, y):
    params = {k: v.detach() for k, v in NET.named_parameters()}

    def f(p):
        return (functional_call(NET, p, (x,)) - y).square().mean()

    return grad(f)(params)["first.weight"].sum() + x.sum()


@row
def functional_per_sample(x, y):
    params = {k: v.detach() for k, v in NET.named_parameters()}

    def f(p, a, b):
        return (functional_call(NET, p, (a,)) - b).square().mean()

    return vmap(grad(f), in_dims=(None, 0, 0))(params, x, y)["second.bias"]


@row
def parametrized(x, y):
    return NORMED(x) + y


@row
def parametrized_twice(x, y):
    return SYMMETRIC(x) * y


@row
def parametrized_weight(x, y):
    return x @ NORMED.weight + y


@row
def weight_norm(x, y):
    return WEIGHTED(x) + y


@row
def spectral_norm(x, y):
    return SPECTRAL(x) + y


@row
def parametrized_and_cached(x, y):
    with nn.utils.parametrize.cached():
        return NORMED(x) + NORMED(y)


# -- hooks


@row
def forward_hook(x, y):
    return HOOKED(x) + y


@row
def forward_pre_hook(x, y):
    return PRE_HOOKED(x) + y


@row
def backward_hook(x, y):
    return BACKWARD_HOOKED(x) + y


@row
def forward_hook_that_counts(x, y):
    return DICT_HOOKED(x) + y


@row
def tensor_hook(x, y):
    z = x * 2
    if z.requires_grad:
        z.register_hook(lambda g: g * 3)
    return z + y


@row
def tensor_hook_with_a_closure(x, y):
    z = x.sin()
    if z.requires_grad:
        z.register_hook(lambda g: g + y)
    return z * y


def _double(g):
    return g * 2


@row
def tensor_hook_of_a_global(x, y):
    z = x.cos()
    if z.requires_grad:
        z.register_hook(_double)
    return z + y


def _count(g):
    COUNTS["calls"] += 1


@row
def tensor_hook_that_counts(x, y):
    z = x.exp()
    if z.requires_grad:
        z.register_hook(_count)
    return z + y


@row
def tensor_hook_of_an_argument(x, y):
    if x.requires_grad:
        handle = x.register_hook(lambda g: g * 5)
        z = x * y
        handle.remove()
        return z
    return x * y


class Pair(NamedTuple):
    a: object
    b: object


@row
def func_of_named_tuples(x, y):
    g = grad(lambda p: (p.a * p.b).sum())(Pair(x, y))
    return g.a + g.b


@row
def batch_norm_in_grad(x, y):
    return grad(lambda a: nn.functional.layer_norm(a, (4,)).square().sum())(x) + y


@row
def jacobian_of_a_module(x, y):
    return jacrev(NET)(x[0]) @ y.t()


@row
def dual_numbers(x, y):
    import teletensor.autograd.forward_ad as fwAD  # noqa: N812

    with fwAD.dual_level():
        return fwAD.unpack_dual(fwAD.make_dual(x, y).sin()).tangent


@row
def saved_tensors_hooks(x, y):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        return (x * y).sin()


@row
def save_on_cpu(x, y):
    with torch.autograd.graph.save_on_cpu():
        return (x * y).sin()


@row
def gradients_inside(x, y):
    z = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((z.sin() * y.detach()).sum(), z)
    return g + x


@row
def linalg_vmap(x, y):
    return vmap(lambda a: torch.linalg.norm(a - y, dim=1))(x)
