"""Programs whose keys in key_averages() are compared with PyTorch's (keys.json, written by record_keys.py)."""

from __future__ import annotations


def _step(torch, model, x, y):
    """A training step, after another one that creates the gradients and the optimizer's state."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x).reshape(-1, 5), y)
        loss.backward()
        optimizer.step()
        loss.item()

    step()
    return step


def case_encoder_layer(torch):
    nn = torch.nn
    model = nn.Sequential(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), nn.Linear(16, 5))
    return _step(torch, model, torch.randn(2, 6, 16), torch.randint(0, 5, (12,)))


def case_perceptron(torch):
    nn = torch.nn
    first, second = nn.Linear(8, 16), nn.Linear(16, 4)
    norm = nn.LayerNorm(16)
    x = torch.randn(3, 8)

    def step():
        hidden = norm(first(x).relu() + 1)
        second(hidden).softmax(-1).sum().backward()

    step()
    return step


def case_functions(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * x * x * 3

    x = torch.randn(4, 4, requires_grad=True)

    def step():
        y = Cube.apply(x)
        y = (y @ x).add_(1).t().unsqueeze(0)
        y -= 2
        torch.einsum("bij,bjk->bik", y, y).mean().backward()

    step()
    return step


def case_no_bias(torch):
    weight, x = torch.randn(4, 4, requires_grad=True), torch.randn(2, 4)

    def step():
        product = torch.nn.functional.linear(x, weight)
        (product.sum(1) @ (weight @ x[0])[:2]).backward()

    step()
    return step


CASES = {name.removeprefix("case_"): case for name, case in dict(globals()).items() if name.startswith("case_")}


# Functions of (4, 4), (4, 4), (4,), (2, 4, 4) and (1, 3, 8, 8), each with the node of its gradient.
NODES = {
    "sum": lambda t, x, w, b, m, i: x.sum(),
    "sum of rows": lambda t, x, w, b, m, i: x.sum(0),
    "mean": lambda t, x, w, b, m, i: x.mean(),
    "mean of rows": lambda t, x, w, b, m, i: x.mean(0),
    "prod of rows": lambda t, x, w, b, m, i: x.prod(0),
    "max of rows": lambda t, x, w, b, m, i: x.max(0)[0],
    "maximum": lambda t, x, w, b, m, i: t.maximum(x, w),
    "pow": lambda t, x, w, b, m, i: x**2,
    "pow of a tensor": lambda t, x, w, b, m, i: x**w,
    "product": lambda t, x, w, b, m, i: x @ w,
    "mm": lambda t, x, w, b, m, i: t.mm(x, w),
    "bmm": lambda t, x, w, b, m, i: t.bmm(m, m),
    "mv": lambda t, x, w, b, m, i: x @ b,
    "dot": lambda t, x, w, b, m, i: b @ b,
    "linear": lambda t, x, w, b, m, i: t.nn.functional.linear(t.ones(2, 4), t.ones(4, 4), b),
    "reshape": lambda t, x, w, b, m, i: x.reshape(16),
    "flatten": lambda t, x, w, b, m, i: m.flatten(),
    "t": lambda t, x, w, b, m, i: x.t(),
    "mT": lambda t, x, w, b, m, i: m.mT,
    "permute": lambda t, x, w, b, m, i: x.permute(1, 0),
    "squeeze": lambda t, x, w, b, m, i: x[None].squeeze(),
    "squeeze of one": lambda t, x, w, b, m, i: x[None].squeeze(0),
    "select": lambda t, x, w, b, m, i: x[0],
    "slice": lambda t, x, w, b, m, i: x[1:],
    "index": lambda t, x, w, b, m, i: x[[0, 1]],
    "mask": lambda t, x, w, b, m, i: x[x > -1],
    "expand": lambda t, x, w, b, m, i: b.expand(4, 4),
    "cat": lambda t, x, w, b, m, i: t.cat([x, w]),
    "stack": lambda t, x, w, b, m, i: t.stack([x, w]),
    "split": lambda t, x, w, b, m, i: x.split(2)[0],
    "chunk": lambda t, x, w, b, m, i: x.chunk(2)[0],
    "unbind": lambda t, x, w, b, m, i: x.unbind()[0],
    "double": lambda t, x, w, b, m, i: x.double(),
    "clone": lambda t, x, w, b, m, i: x.clone(),
    "layer_norm": lambda t, x, w, b, m, i: t.nn.functional.layer_norm(x, (4,), b, b),
    "group_norm": lambda t, x, w, b, m, i: t.nn.functional.group_norm(i, 3),
    "batch_norm": lambda t, x, w, b, m, i: t.nn.functional.batch_norm(i, None, None, training=True),
    "conv2d": lambda t, x, w, b, m, i: t.nn.functional.conv2d(i, t.ones(2, 3, 3, 3)),
    "conv_transpose2d": lambda t, x, w, b, m, i: t.nn.functional.conv_transpose2d(i, t.ones(3, 2, 3, 3)),
    "max_pool2d": lambda t, x, w, b, m, i: t.nn.functional.max_pool2d(i, 2),
    "avg_pool2d": lambda t, x, w, b, m, i: t.nn.functional.avg_pool2d(i, 2),
    "adaptive_avg_pool2d": lambda t, x, w, b, m, i: t.nn.functional.adaptive_avg_pool2d(i, 2),
    "softmax": lambda t, x, w, b, m, i: x.softmax(0),
    "log_softmax": lambda t, x, w, b, m, i: x.log_softmax(0),
    "nll_loss": lambda t, x, w, b, m, i: t.nn.functional.nll_loss(x, t.tensor([0, 1, 2, 3])),
    "embedding": lambda t, x, w, b, m, i: t.nn.functional.embedding(t.tensor([1]), w),
    "gelu": lambda t, x, w, b, m, i: t.nn.functional.gelu(x),
    "silu": lambda t, x, w, b, m, i: t.nn.functional.silu(x),
    "where": lambda t, x, w, b, m, i: t.where(x > 0, x, w),
    "masked_fill": lambda t, x, w, b, m, i: x.masked_fill(x > 0.5, 0.0),
    "gather": lambda t, x, w, b, m, i: x.gather(0, t.tensor([[0]])),
    "var": lambda t, x, w, b, m, i: x.var(),
    "std": lambda t, x, w, b, m, i: x.std(),
    "norm": lambda t, x, w, b, m, i: x.norm(),
    "div": lambda t, x, w, b, m, i: x / w,
    "exp": lambda t, x, w, b, m, i: x.exp(),
    "cumsum": lambda t, x, w, b, m, i: x.cumsum(0),
    "pad": lambda t, x, w, b, m, i: t.nn.functional.pad(x, (1, 1)),
    "sort": lambda t, x, w, b, m, i: x.sort()[0],
    "topk": lambda t, x, w, b, m, i: x.topk(2)[0],
    "logsumexp": lambda t, x, w, b, m, i: x.logsumexp(0),
    "repeat": lambda t, x, w, b, m, i: x.repeat(2, 2),
    "tril": lambda t, x, w, b, m, i: x.tril(),
}


def nodes(torch, function) -> list[str]:
    """The names of the nodes that a backward pass runs."""
    sizes = ((4, 4), (4, 4), (4,), (2, 4, 4), (1, 3, 8, 8))
    result = function(torch, *(torch.rand(*size, requires_grad=True) for size in sizes))
    gradient = torch.ones_like(result)
    profiler = torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
        result.backward(gradient)
    keys = {row.key for row in prof.key_averages()}
    prefix = "autograd::engine::evaluate_function: "
    return sorted(key.removeprefix(prefix) for key in keys if key.startswith(prefix))


def counts(torch, case) -> dict[str, int]:
    """The number of events by key."""
    torch.manual_seed(0)
    step = case(torch)
    profiler = torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
        step()
    return {row.key: row.count for row in prof.key_averages()}
