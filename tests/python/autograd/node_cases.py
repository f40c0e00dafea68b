"""Uses of the nodes of graphs whose results are numbers and texts, run with both libraries: see record_nodes.py."""

from __future__ import annotations

from types import ModuleType
from typing import Any

# Expressions of the leaves `a` and `b` (sizes [2, 2], values above 0), and the index `i`, that have a gradient.
EXPRESSIONS = [
    "a + b",
    "a - b",
    "a * b",
    "a * b.detach()",
    "a * 2",
    "a / b",
    "a / 2",
    "2 - a",
    "2 / a",
    "a ** 2",
    "a ** b",
    "a @ b",
    "torch.mm(a, b)",
    "a.mv(b[0])",
    "torch.bmm(a[None], b[None])",
    "torch.addmm(a, a, b)",
    "torch.nn.functional.linear(a, b)",
    "a.sum()",
    "a.sum(1)",
    "a.mean()",
    "a.mean(0, keepdim=True)",
    "a.prod()",
    "a.cumsum(0)",
    "a.cumprod(1)",
    "a.max(1)[0]",
    "a.max()",
    "a.amax(1)",
    "a.min(0)[0]",
    "a.median(1)[0]",
    "a.sort(1)[0]",
    "a.topk(1)[0]",
    "a.std()",
    "a.var(0)",
    "a.norm()",
    "torch.linalg.vector_norm(a)",
    "a.logsumexp(1)",
    "a.softmax(1)",
    "a.log_softmax(1)",
    "a.exp()",
    "a.log()",
    "a.sqrt()",
    "a.rsqrt()",
    "a.sin()",
    "a.cos()",
    "a.tanh()",
    "a.sigmoid()",
    "a.abs()",
    "a.neg()",
    "a.reciprocal()",
    "a.square()",
    "a.erf()",
    "a.relu()",
    "torch.nn.functional.gelu(a)",
    "torch.nn.functional.silu(a)",
    "torch.nn.functional.elu(a)",
    "torch.nn.functional.leaky_relu(a)",
    "torch.nn.functional.softplus(a)",
    "torch.nn.functional.hardtanh(a)",
    "torch.nn.functional.logsigmoid(a)",
    "a.clamp(0, 1)",
    "a.clamp(min=1)",
    "torch.where(a > 1, a, b)",
    "torch.maximum(a, b)",
    "torch.atan2(a, b)",
    "a.lerp(b, 0.5)",
    "torch.addcmul(a, a, b)",
    "torch.addcdiv(a, a, b)",
    "a.view(4)",
    "a.reshape(4)",
    "a.t()",
    "a.permute(1, 0)",
    "a.transpose(0, 1)",
    "a.expand(3, 2, 2)",
    "a.unsqueeze(0)",
    "a[None].squeeze(0)",
    "a.select(0, 1)",
    "a[0]",
    "a.narrow(0, 0, 1)",
    "a[0:1]",
    "a.split(1)[0]",
    "a.chunk(2)[1]",
    "a.unbind()[1]",
    "torch.cat([a, b])",
    "torch.stack([a, b])",
    "a.repeat(2, 1)",
    "a.flip(0)",
    "a.roll(1, 0)",
    "a.tril()",
    "a.triu(1)",
    "a.diagonal()",
    "a.trace()",
    "a.gather(0, i)",
    "a.scatter(0, i, b[:1])",
    "a.scatter_add(0, i, b[:1])",
    "a.index_select(0, i[0])",
    "a[i[0]]",
    "a[:, i[0]]",
    "a.masked_fill(a > 1, 0.0)",
    "torch.nn.functional.mse_loss(a, b)",
    "torch.nn.functional.l1_loss(a, b)",
    "torch.nn.functional.nll_loss(a, i[0])",
    "torch.nn.functional.cross_entropy(a, i[0])",
    "torch.nn.functional.layer_norm(a, (2,))",
    "torch.nn.functional.embedding(i, a)",
    "torch.det(a)",
    "torch.inverse(a)",
    "torch.linalg.solve(a, b)",
    "torch.linalg.cholesky(a @ a.t() + torch.eye(2))",
    "torch.nn.functional.conv1d(a[None], b[None])",
    "torch.nn.functional.avg_pool1d(a[None], 2)",
    "torch.nn.functional.max_pool1d(a[None], 2)",
    "torch.nn.functional.pad(a, (1, 1))",
    "a.to(torch.float64)",
    "a.clone()",
    "torch.einsum('ij,jk->ik', a, b)",
    "torch.dot(a[0], b[0])",
    "torch.outer(a[0], b[0])",
    "torch.cross(torch.cat([a, a[:, :1]], 1), torch.cat([b, b[:, :1]], 1), dim=1)",
]


def leaves(torch: ModuleType) -> dict[str, Any]:
    a = torch.tensor([[1.5, 0.5], [0.25, 2.0]], requires_grad=True)
    b = torch.tensor([[2.0, 1.0], [0.5, 3.0]], requires_grad=True)
    return {"torch": torch, "a": a, "b": b, "i": torch.tensor([[0, 1]])}


def plain(torch: ModuleType, value: Any) -> Any:
    """A value as lists, numbers and text."""
    if isinstance(value, torch.Tensor):
        return ["tensor", str(value.dtype), plain(torch, value.tolist())]
    if isinstance(value, (list, tuple)):
        return [plain(torch, v) for v in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return float(f"{value:.4g}") if isinstance(value, (int, float)) else str(value)


def second_backward(torch: ModuleType, expression: str) -> bool:
    """Whether a second backward pass through the expression raises."""
    names = leaves(torch)
    result = eval(expression, names)
    result.backward(torch.ones_like(result))
    try:
        result.backward(torch.ones_like(result))
    except RuntimeError as e:
        assert "Trying to backward through the graph a second time" in str(e)
        return True
    twice = {n: names[n].grad for n in ("a", "b") if names[n].grad is not None}
    for name in twice:
        names[name].grad = None
    eval(expression, names).backward(torch.ones_like(result))
    assert all(torch.allclose(names[n].grad * 2, grad, equal_nan=True) for n, grad in twice.items()), expression
    return False


def saved(torch: ModuleType, expression: str) -> dict[str, Any]:
    """The saved values of the expression's node."""
    node = (result := eval(expression, leaves(torch))).grad_fn
    found = {name: plain(torch, getattr(node, name)) for name in dir(node) if name.startswith("_saved_")}
    assert result is not None
    return found


def error(call: Any) -> str:
    try:
        call()
    except (RuntimeError, AttributeError, TypeError) as e:
        return f"{type(e).__name__}: {str(e).splitlines()[0]}"
    return "no error"


def case_saved_values(torch):
    """Identity, histories and errors of saved values."""
    names = leaves(torch)
    a, b = names["a"], names["b"]
    y = a * b
    z = y.exp()
    w = z * y
    found = [
        torch.equal(y.grad_fn._saved_self, a),
        torch.equal(y.grad_fn._saved_other, b),
        z.grad_fn._saved_result is z,
    ]
    found += [z.grad_fn._saved_result.grad_fn == z.grad_fn, w.grad_fn._saved_other.grad_fn == y.grad_fn]
    found += [w.grad_fn._saved_self.requires_grad, torch.equal(w.grad_fn._saved_self, z)]
    inner = w.grad_fn.next_functions[0][0]
    found += [inner.name(), torch.equal(inner._saved_result, z), type(inner._raw_saved_result).__name__]
    (grad,) = torch.autograd.grad(w.grad_fn._saved_self.sum(), a, retain_graph=True)
    unsaved = a * b.detach()
    found += [grad, unsaved.grad_fn._saved_self, error(lambda: type(inner._raw_saved_result)())]
    w.sum().backward()
    found += [
        error(lambda: inner._saved_result),
        error(lambda: y.grad_fn._saved_self),
        error(lambda: y.grad_fn._saved_absent)[:69],
    ]
    found += [error(lambda: y.grad_fn.absent), error(lambda: y.grad_fn.next_functions[0][0]._saved_self)]
    s = a.sum(1)
    s.sum().backward()
    found += [s.grad_fn._saved_dim, s.grad_fn._saved_keepdim]
    c = a * 1
    c.mul_(b)
    d = c * 3
    c.mul_(2)
    found += [error(lambda: torch.equal(d.grad_fn._saved_other, c)), c.grad_fn.name()]
    e = (a * 1).mul_(b)
    found += [torch.equal(e.grad_fn._saved_self, a), torch.equal(e.grad_fn._saved_other, b)]
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach() * 10, lambda t: t / 10):
        p = a * b
    found += [p.grad_fn._saved_self, p.grad_fn._saved_other]
    return found


def observed(torch, rows, name, replace=None):
    """A hook of a node that writes what it receives to rows."""

    def hook(*gradients):
        rows.append([name, *[plain(torch, list(group)) for group in gradients]])
        return None if replace is None else replace(*gradients)

    return hook


def case_order_of_hooks(torch):
    """The order of tensor hooks, retained gradients, hooks before and after nodes; replaced gradients."""
    names = leaves(torch)
    a, b = names["a"], names["b"]
    y = a * b
    z = y * y
    w = z + a
    rows = []
    y.grad_fn.register_hook(observed(torch, rows, "after y 1"))
    y.grad_fn.register_prehook(observed(torch, rows, "before y 1", lambda g: (g[0] * 2,)))
    y.retain_grad()
    y.register_hook(lambda g: (rows.append(["tensor y", g.tolist()]), g + 1)[1])
    y.grad_fn.register_prehook(observed(torch, rows, "before y 2", lambda g: (g[0] + 1,)))
    y.grad_fn.register_hook(observed(torch, rows, "after y 2", lambda i, o: (i[0] * 3, None)))
    y.grad_fn.register_hook(observed(torch, rows, "after y 3"))
    z.grad_fn.register_hook(observed(torch, rows, "after z", lambda i, o: (i[0], i[1] * 0)))
    w.grad_fn.next_functions[0][0].register_prehook(observed(torch, rows, "before z by w"))
    leaf = y.grad_fn.next_functions[0][0]
    leaf.register_prehook(observed(torch, rows, "before leaf", lambda g: (g[0] + 1,)))
    a.register_hook(lambda g: rows.append(["tensor a", g.tolist()]))
    leaf.register_hook(observed(torch, rows, "after leaf"))
    w.sum().backward()
    return [rows, a.grad, b.grad, y.grad]


def case_hooks_are_removed(torch):
    names = leaves(torch)
    a, b = names["a"], names["b"]
    rows = []
    w = (a * b).exp() * 2
    node = w.grad_fn.next_functions[0][0].next_functions[0][0]
    first = node.register_hook(observed(torch, rows, "first"))
    second = node.register_hook(observed(torch, rows, "second"))
    before = node.register_prehook(observed(torch, rows, "before"))
    w.sum().backward(retain_graph=True)
    first.remove()
    before.remove()
    w.sum().backward(retain_graph=True)
    with second:
        pass
    w.sum().backward()
    return [[row[0] for row in rows], a.grad]


def case_hooks_of_operators(torch):
    """Hooks after nodes of many operators: what they receive, and gradients that they scale."""
    found = []
    for expression in EXPRESSIONS:
        names = leaves(torch)
        result = eval(expression, names)
        if expression in UNSUPPORTED_HOOKS:
            continue
        rows = []
        result.grad_fn.register_prehook(
            observed(torch, rows, "", lambda g: tuple(None if x is None else x * 2 for x in g))
        )
        result.grad_fn.register_hook(
            observed(torch, rows, "", lambda i, o: tuple(None if x is None else x + 1 for x in i))
        )
        result.backward(torch.ones_like(result) + 0.5)
        received = [row[1:] for row in rows]
        found.append([expression, received, [names[n].grad for n in ("a", "b")]])
    return found


# The engine records other nodes for these expressions than PyTorch, or composes them of nodes that share inputs.
UNSUPPORTED_HOOKS: tuple[str, ...] = ("torch.addmm(a, a, b)",)


def case_hooks_in_grad(torch):
    """Hooks run in grad(); with create_graph their operations are recorded."""
    names = leaves(torch)
    a, b = names["a"], names["b"]
    rows = []
    y = a * b
    y.grad_fn.register_hook(
        lambda i, o: (rows.append([x is None for x in i]), i[0] * a if i[0] is not None else None, i[1])[1:]
    )
    z = y.sum() + (b * 2).exp().sum()
    (grad,) = torch.autograd.grad(z, a, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), a, retain_graph=True)
    (other,) = torch.autograd.grad(z, b, retain_graph=True)
    return [rows, grad, second, other]


def case_hooks_of_functions(torch):
    """Hooks of the node of a custom Function."""

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, number, y):
            return x * number, y * number

        @staticmethod
        def backward(ctx, g, h):
            return g * 2, None, h * 2

    names = leaves(torch)
    a, b = names["a"], names["b"]
    rows = []
    x, y = Twice.apply(a, 2, b)
    x.grad_fn.register_prehook(observed(torch, rows, "before", lambda g: (g[0] + 1, g[1])))
    x.grad_fn.register_hook(observed(torch, rows, "after", lambda i, o: (i[0] * 10, *i[1:])))
    (x * 1 + y * 3).sum().backward()
    return [rows, a.grad, b.grad]


def case_wrong_replacements(torch):
    """The errors of hooks that return what cannot replace the gradients."""
    found = []
    for kind in ("register_hook", "register_prehook"):
        for value in (
            (),
            (1, 2),
            (None, 1),
            "a",
            lambda g: (g, g),
            lambda g: (g.double(), None),
            lambda g: (g[0], None),
        ):
            names = leaves(torch)
            y = names["a"] * names["b"].detach()
            hook = lambda *g, value=value: value(g[0][0]) if callable(value) else value  # noqa: E731
            getattr(y.grad_fn, kind)(hook)
            found.append(error(lambda y=y: y.sum().backward()))
    return found
