"""Expressions over nested tensors. record.py records PyTorch's results for them; test_rows.py compares."""

from __future__ import annotations

SETUP = """
F, nn = torch.nn.functional, torch.nn
def ramp(*size, step=0.37, start=-1.1):
    n = 1
    for s in size:
        n *= s
    return torch.sin(torch.arange(n, dtype=torch.float32) * step + start).reshape(size)
def jagged(*lengths, rest=(3,), step=0.37, grad=False):
    total = sum(lengths)
    offsets = torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)])
    values = ramp(total, *rest, step=step).requires_grad_(grad)
    return torch.nested.nested_tensor_from_jagged(values, offsets, min_seqlen=min(lengths), max_seqlen=max(lengths))
ids = torch.nested.nested_tensor([[1, 2], [3, 4, 5]], layout=torch.jagged)
def leaf_grad(make, *leaves):
    make(*leaves).sin().sum().backward()
    return [t.grad for t in leaves]
def grads(function, *inputs):
    inputs = [t.detach().requires_grad_() for t in inputs]
    result = function(*inputs)
    total = (result.values() if result.is_nested else result).sin().sum()
    return list(torch.autograd.grad(total, inputs))
x = jagged(2, 0, 4)
def like(values):
    return torch.nested.nested_tensor_from_jagged(values, x.offsets(), min_seqlen=0, max_seqlen=4)
y = like(ramp(6, 3, step=0.21))
other = jagged(3, 1, 2)
wide = like(ramp(6, 2, 4))
q = like(ramp(6, 2, 4, step=0.3)).transpose(1, 2)
k = torch.nested.nested_tensor_from_jagged(ramp(7, 2, 4, step=0.7), torch.tensor([0, 3, 4, 7])).transpose(1, 2)
v = torch.nested.nested_tensor_from_jagged(ramp(7, 2, 4, step=0.5), k.offsets()).transpose(1, 2)
holes = torch.nested.nested_tensor_from_jagged(ramp(8, 3), torch.tensor([0, 3, 5, 8]), torch.tensor([2, 2, 1]))
whole = like(torch.arange(6) - 2)
s = torch.nested.nested_tensor([ramp(2, 3), ramp(4, 3, step=0.2)])
s2 = torch.nested.nested_tensor([ramp(2, 3, step=0.9), ramp(4, 3, step=0.8)])
ragged2 = torch.nested.nested_tensor([ramp(2, 3), ramp(1, 4)])
"""

ROWS = [line for line in """
torch.nested.nested_tensor([ramp(2, 3), ramp(4, 3)], layout=torch.jagged)
torch.nested.nested_tensor([[1, 2], [3]], layout=torch.jagged)
torch.nested.nested_tensor([[1.5, 2], [3.0]], layout=torch.jagged, dtype=torch.float64).dtype
torch.nested.nested_tensor([ramp(3, 2), ramp(3, 4)], layout=torch.jagged)
torch.nested.nested_tensor([ramp(3, 2), ramp(3, 4)], layout=torch.jagged)._ragged_idx
torch.nested.nested_tensor([ramp(2, 3), ramp(4, 2)], layout=torch.jagged)
torch.nested.nested_tensor([], layout=torch.jagged)
torch.nested.nested_tensor([ramp(2), ramp(2, 3)], layout=torch.jagged)
torch.nested.nested_tensor([torch.tensor(1.0)], layout=torch.jagged)
torch.nested.nested_tensor([ramp(2), ramp(2).double()], layout=torch.jagged)
torch.nested.nested_tensor([ramp(2, 3), ramp(4, 3)], layout=torch.sparse_coo)
torch.nested.nested_tensor(ramp(2, 3, 2), layout=torch.jagged)
torch.nested.nested_tensor(ramp(2, 3, 2), layout=torch.jagged, dtype=torch.float64, requires_grad=True).requires_grad
torch.nested.nested_tensor(ramp(2, 3, 2).numpy(), layout=torch.jagged)
torch.nested.nested_tensor(x, layout=torch.jagged)
torch.nested.nested_tensor(s, layout=torch.jagged)
torch.nested.nested_tensor(ramp(2, 3, 2))
torch.nested.nested_tensor(torch.tensor(1.0), layout=torch.jagged)
torch.nested.nested_tensor(3, layout=torch.jagged)
x + ramp(3, 4, 3)
ramp(3, 4, 3) - x
x * ramp(3, 4, 3).double()
torch.maximum(ramp(3, 4, 3), x)
x < ramp(3, 4, 3)
jagged(2, 0, 4).mul_(ramp(3, 4, 3))
x.detach() + x.to_padded_tensor(0.0)
x + ramp(3, 3, 3)
x + ramp(2, 4, 3)
x + ramp(1, 4, 3)
jagged(2, 3) + ramp(2, 3, 3)
wide.transpose(1, 2) + ramp(3, 2, 4, 4)
torch.nested.narrow(ramp(3, 4, 2), 0, 1, 2)
torch.nested.narrow(ramp(3, 4, 2), 1, 0, torch.tensor([1, 2, 3], dtype=torch.int32), layout=torch.jagged)
s.to_padded_tensor(-1.0, (3, 5, 3))
s.to_padded_tensor(-1.0, (1, 5, 3))
torch.zeros_like(x, layout=torch.strided)
torch.ones_like(s, layout=torch.strided)
torch.testing.assert_close(x, x.clone())
torch.testing.assert_close(x, x + 1)
torch.testing.assert_close(x, ramp(3, 4, 3))
torch.nested.nested_tensor([ramp(1, 3), ramp(4, 3)]).squeeze(1)
torch.nested.nested_tensor([ramp(1, 3), ramp(1, 2)]).squeeze(1)
torch.is_same_size(s, s2)
torch.is_same_size(s, ragged2)
torch.nested.as_nested_tensor(ramp(2, 3, 2), layout=torch.jagged)
torch.nested.as_nested_tensor([ramp(2, 3), ramp(1, 3)])
torch.nested.as_nested_tensor(ramp(2, 3, 2))
torch.nested.as_nested_tensor(ramp(3))
torch.nested.as_nested_tensor(3)
torch.nested.as_nested_tensor(x, layout=torch.jagged) is x
torch.nested.as_nested_tensor(x)
torch.nested.nested_tensor_from_jagged(ramp(6, 3), lengths=torch.tensor([1, 2, 3]))
torch.nested.nested_tensor_from_jagged(ramp(6, 3))
torch.nested.nested_tensor_from_jagged(ramp(6, 3), torch.tensor([0, 3, 6]), jagged_dim=0)
torch.nested.nested_tensor_from_jagged(ramp(2, 6), torch.tensor([0, 3, 6]), jagged_dim=2)
torch.nested.nested_tensor_from_jagged(ramp(2, 6), torch.tensor([0, 3, 6]), jagged_dim=2).shape[1]
torch.nested.nested_tensor_from_jagged(ramp(0, 2), torch.tensor([0]))
torch.nested.nested_tensor_from_jagged(ramp(0, 2), torch.tensor([0])).sin().sum()
torch.nested.narrow(ramp(3, 5, 2), 1, torch.tensor([0, 1, 2]), torch.tensor([3, 2, 1]), layout=torch.jagged)
torch.nested.narrow(ramp(3, 5, 2), 1, 1, torch.tensor([3, 2, 1]), layout=torch.jagged)
torch.nested.narrow(ramp(3, 5, 2), 1, 0, 5, layout=torch.jagged)
torch.nested.narrow(ramp(3, 5, 2), 2, 0, 1, layout=torch.jagged)
torch.nested.narrow(ramp(3, 5, 2), 1, "a", 1, layout=torch.jagged)
torch.nested.masked_select(ramp(3, 4), ramp(3, 4) > 0)
torch.nested.masked_select(ramp(3, 4), torch.tensor([True, False, True, True]))
torch.nested.to_padded_tensor(x, 0.5)
x.to_padded_tensor(-1.0)
x.to_padded_tensor(0.0, output_size=(3, 6, 3))
x.to_padded_tensor(0.0, output_size=(3, 3, 3))
whole.to_padded_tensor(7)
wide.transpose(1, 2).to_padded_tensor(2.0)
grads(lambda t: t.to_padded_tensor(0.5), x)
x.is_nested, x.dim(), x.layout == torch.jagged, len(x.unbind()), x.numel(), x.dtype, x.is_contiguous()
x.size(0), x.size(2), x.size(1) == x.shape[1], x.size(1) == y.size(1), x.size(1) == other.size(1), x.shape == y.shape
x.size(1) >= 2, x.size(1) == 4, x.size(1) * 2 == 2 * y.size(1), x.shape[1] != x.shape[1]
x.size(1) > 5
x.size(3)
x.offsets(), x.lengths(), x.values()
holes, holes.lengths(), holes.is_contiguous(), holes.numel()
holes.contiguous().offsets()
holes.sin()
holes.unbind()[2]
x + y
x + other
x + 1
2 - x
x * ramp(3)
x * ramp(1, 1, 3)
x * ramp(1, 3)
x * ramp(3, 1, 3)
ramp(3, 1, 3) * x
x * ramp(3, 1, 1)
x * ramp(3, 2, 3)
x * ramp(2, 1, 3)
x * ramp(1, 3, 1, 3)
wide * ramp(3, 1, 2, 4)
wide * ramp(3, 1, 1, 4)
wide + ramp(2, 4)
wide + ramp(2, 1)
grads(lambda t, d: t * d, x, ramp(3, 1, 3))
grads(lambda t, d: t * d, x, ramp(3))
grads(lambda a, b: a / (b + 2), x, y)
-x, abs(x), x ** 2, x.exp(), x.sigmoid(), F.gelu(x), F.relu(x), F.silu(x), torch.tanh(x)
x > 0
x == y
x > y
torch.where(x > 0, x, y)
torch.where(x > 0, x, 0.0)
torch.logical_not(x > 0)
x.masked_fill(x > 0, 3.0)
torch.maximum(x, y)
torch.clamp(x, -0.5, 0.5)
torch.lerp(x, y, 0.5)
x.to(torch.float64)
x.half().dtype, x.double().values().dtype, x.to("cpu") is x, x.bool().dtype
x.clone(), x.detach().requires_grad
torch.zeros_like(x), torch.ones_like(x, dtype=torch.int64), torch.full_like(x, 2.5)
torch.randn_like(x).shape == x.shape, torch.rand_like(x).dtype
F.dropout(x, 0.5, training=False)
F.dropout(x, 0.5).shape == x.shape
x.clone().add_(1)
x.clone().mul_(y)
x.clone().zero_()
x.clone().fill_(3)
x.clone().sin_()
x.clone().copy_(y)
x.clone().copy_(other)
x.sum(), x.mean(), x.max(), x.min(), (x > 0).any(), (x > 5).all()
x.sum(dim=1)
x.sum(dim=1, keepdim=True)
x.sum(dim=2)
x.sum(dim=-1, keepdim=True)
x.sum(dim=(0, 1))
x.sum(dim=(0, 1), keepdim=True)
x.sum(dim=(0, 1, 2))
x.sum(dim=0)
x.sum(dim=(1, 2))
x.sum(dim=1, dtype=torch.float64)
whole.sum(dim=1)
jagged(2, 1, 4).mean(dim=1)
x.mean(dim=2)
x.mean(dim=(0, 1))
jagged(2, 1, 4).amax(dim=1)
jagged(2, 1, 4).amin(dim=1, keepdim=True)
x.amax(dim=1)
x.amin(dim=2)
jagged(2, 1, 4).max(dim=1)
jagged(2, 1, 4).argmax(dim=1)
x.max(dim=2)
x.argmin(dim=-1)
jagged(2, 1, 4).prod(dim=1)
x.prod(dim=2)
(x > 0).any(dim=1)
(x > 0).all(dim=1)
(x > 0).any(dim=2)
wide.sum(dim=1)
wide.sum(dim=2)
wide.transpose(1, 2).sum(dim=2)
wide.transpose(1, 2).sum(dim=1)
wide.transpose(1, 2).sum(dim=3)
grads(lambda t: t.amax(dim=1), jagged(2, 1, 4))
F.softmax(x, dim=2)
F.softmax(x, dim=1)
F.softmax(x, dim=0)
F.log_softmax(x, dim=-1)
torch.softmax(wide, dim=1)
F.linear(x, ramp(5, 3), ramp(5))
F.linear(wide, ramp(2, 4))
grads(lambda t, w, b: F.linear(t, w, b), x, ramp(5, 3), ramp(5))
x @ ramp(3, 4)
torch.matmul(x, ramp(3, 3, 2))
torch.bmm(x, ramp(3, 3, 2))
torch.matmul(ramp(2, 3), x.transpose(1, 2))
torch.matmul(x.transpose(1, 2), y)
torch.matmul(x, y)
torch.matmul(wide, torch.nested.nested_tensor_from_jagged(ramp(6, 4, 2), x.offsets()))
grads(lambda a, b: torch.bmm(a, b), x, ramp(3, 3, 2))
grads(lambda a, b: torch.matmul(a.transpose(1, 2), b), x, y)
F.layer_norm(x, (3,), ramp(3), ramp(3))
F.layer_norm(wide, (2, 4))
F.rms_norm(x, (3,), ramp(3))
F.rms_norm(wide, (2, 4), eps=1e-5)
grads(lambda t, w: F.layer_norm(t, (3,), w), x, ramp(3))
F.layer_norm(jagged(2, 1, 4), (jagged(2, 1, 4).size(1), 3))
(lambda t: F.layer_norm(t, (t.size(1), 3)))(jagged(2, 1, 4))
(lambda t: F.layer_norm(t, (t.size(1), 2, 4)))(wide)
grads(lambda t, w: F.rms_norm(t, (3,), w, 1e-5), x, ramp(3))
F.embedding(torch.nested.nested_tensor([[1, 2], [0]], layout=torch.jagged), ramp(4, 3))
x.transpose(1, 2)
x.transpose(1, 2).shape[1]
x.transpose(0, 1)
x.transpose(0, 2)
x.permute(0, 2, 1)
x.permute(1, 0, 2)
wide.transpose(1, 3)
wide.transpose(2, 3)
wide.transpose(1, 2).transpose(1, 2)
x.unsqueeze(1), x.unsqueeze(2), x.unsqueeze(-1)
x.unsqueeze(0)
x.unsqueeze(2).squeeze(2)
x.unsqueeze(-1).squeeze(-1)
x.squeeze(0)
x.squeeze(1)
wide.flatten(2)
wide.flatten(2, 3)
wide.flatten(1)
x.unflatten(-1, (3, 1))
x.unflatten(2, (1, -1))
x.unflatten(1, (1, -1))
wide.view(3, -1, 8)
wide.view(3, wide.size(1), 4, 2)
wide.reshape(3, -1, 2, 2, 2)
wide.view(3, 6, 8)
wide.view(6, -1)
wide.chunk(2, -1)
wide.chunk(3, dim=-1)
x.chunk(2)
x.chunk(2, dim=1)
wide.split(1, dim=2)
wide.split([1, 3], dim=3)
wide.split([1, 3], dim=1)
wide.narrow(3, 1, 2)
wide.narrow(1, 0, 2)
torch.cat([x, y], dim=-1)
torch.cat([x, x], dim=2)
torch.cat([x, y], dim=1)
torch.cat([x, ramp(1, 1, 1)], dim=2)
torch.stack([x, y], dim=2)
torch.stack([x, y], dim=-1)
torch.stack([x, other], dim=2)
torch.stack([x, y], dim=0)
x.select(0, 2)
x[0], x[-1], x[1]
x[3]
x[2, 1], x[2][0]
x[..., 0]
x[..., None]
x[:, 1:]
x[1:]
wide.select(2, 1)
wide.select(1, 0)
x.unbind()
x.unbind(1)
wide.transpose(1, 2).unbind()
x.expand(3, x.size(1), 3) is not None
x.unsqueeze(2).expand(3, x.size(1), 4, 3)
torch.masked_select(ids, ids > 2)
F.scaled_dot_product_attention(q, q, q)
F.scaled_dot_product_attention(q, k, v)
F.scaled_dot_product_attention(q, k, v, scale=0.3)
grads(lambda a, b, c: F.scaled_dot_product_attention(a, b, c), q, k, v)
F.scaled_dot_product_attention(q, ramp(3, 2, 4, 4), ramp(3, 2, 4, 4))
torch.nested.nested_tensor_from_jagged(ramp(3, 2), torch.tensor([0, 1, 3]), jagged_dim=1).requires_grad_().is_leaf
(lambda t: (t.sin().sum().backward(), t.grad)[1])(jagged(2, 3).detach().requires_grad_())
leaf_grad(lambda v: torch.nested.nested_tensor_from_jagged(v, torch.tensor([0, 1, 3])), ramp(3, 2).requires_grad_())
leaf_grad(lambda *t: torch.nested.as_nested_tensor(list(t), layout=torch.jagged), ramp(3, 2).requires_grad_(), ramp(1, 2).requires_grad_())
(lambda t: (t.backward(torch.ones_like(t)), t.grad)[1])(jagged(2, 3).detach().requires_grad_())
torch.fft.fft(x)
torch.tril(x)
s.is_nested, s.layout == torch.strided, s.dim(), s.size(0), s.size(2), s.numel()
F.relu(s), F.gelu(s), s.tanh()
s.size(1)
s.size()
s
ragged2
ragged2.sin()
torch.nested.to_padded_tensor(ragged2, 0.5)
ragged2.to_padded_tensor(0.5, output_size=(2, 3, 5))
ragged2.to_padded_tensor(0.5, output_size=(2, 1, 5))
ragged2._nested_tensor_size(), ragged2._nested_tensor_strides(), ragged2._nested_tensor_storage_offsets()
s + s2
s * 2
s + ragged2
s.unbind()
s[0], s[1]
s.select(0, 1)
F.linear(s, ramp(5, 3), ramp(5))
grads(lambda t, w, b: F.linear(t, w, b), s, ramp(5, 3), ramp(5))
torch.matmul(s, s2.transpose(1, 2))
torch.bmm(s, s2.transpose(1, 2))
F.softmax(s, dim=-1)
F.softmax(s, dim=1)
F.softmax(s, dim=0)
F.layer_norm(s, (3,), ramp(3), ramp(3))
s.transpose(1, 2)
s.transpose(0, 1)
s.sum(dim=-1, keepdim=True)
s.sum(dim=-1)
s.sum(dim=1, keepdim=True)
s.chunk(3, dim=-1)
s.unsqueeze(1)
s.reshape(2, -1, 3, 1)
s.view(2, -1, 1, 3)
s.clone(), s.detach(), s.to(torch.float64).dtype
s.clone().mul_(2)
s.masked_fill(s > 0, 2.0)
torch.cat([s, s2], dim=0)
torch.zeros_like(s), torch.ones_like(s)
F.dropout(s, 0.5, training=False)
F.scaled_dot_product_attention(*(torch.nested.nested_tensor([ramp(2, 2, 4, step=t), ramp(2, 3, 4, step=t)]) for t in (0.3, 0.5, 0.7)))
torch._nested_tensor_from_mask(ramp(2, 3, 2), torch.tensor([[True, True, False], [True, False, False]]))
torch._nested_tensor_from_mask(ramp(2, 3, 2), torch.tensor([[True, False, True], [True, False, False]]))
torch._nested_tensor_from_mask_left_aligned(ramp(2, 3, 2), torch.tensor([[True, False, True], [True, False, False]]))
""".strip().splitlines() if not line.startswith("#")]  # fmt: skip


# Rows that PyTorch cannot compute, or of which its gradient is that of another function, with the tensors that they are.
MORE = {
    "torch.addcmul(x, x, y)": "[a + a * b for a, b in zip(x.unbind(), y.unbind())]",
    "torch.nested.narrow(ramp(3, 5, 2), 1, 1, 3)": "[t[1:4] for t in ramp(3, 5, 2)]",
    "x[:, :, 1:]": "[t[:, 1:] for t in x.unbind()]",
    "x[:, :, 1]": "[t[:, 1] for t in x.unbind()]",
    "wide[:, :, 1, 2:]": "[t[:, 1, 2:] for t in wide.unbind()]",
    "ramp(3).expand_as(x)": "[ramp(3).expand(len(t), 3) for t in x.unbind()]",
    "x.cumsum(2)": "[t.cumsum(1) for t in x.unbind()]",
    "x.std(dim=2)": "[t.std(1) for t in x.unbind()]",
    "holes.sum(dim=1)": "[t.sum(0) for t in holes.unbind()]",
    "holes.amax(dim=1)": "[t.amax(0) for t in holes.unbind()]",
    "holes.to_padded_tensor(2.0)": "[torch.cat([t, torch.full((2 - len(t), 3), 2.0)]) for t in holes.unbind()]",
    "F.softmax(holes, dim=1)": "[t.softmax(0) for t in holes.unbind()]",
    "holes * ramp(3, 1, 3)": "[t * d for t, d in zip(holes.unbind(), ramp(3, 1, 3))]",
    "F.log_softmax(x, dim=1)": "[t.log_softmax(0) for t in x.unbind()]",
    "F.softmax(wide.transpose(1, 2), dim=2)": "[t.transpose(0, 1).softmax(1) for t in wide.unbind()]",
    "F.scaled_dot_product_attention(q, q, q, is_causal=True)":
        "[F.scaled_dot_product_attention(t, t, t, is_causal=True) for t in q.unbind()]",
    "grads(lambda a: F.scaled_dot_product_attention(a, a, a, is_causal=True), q)[0]":
        "[grads(lambda a: F.scaled_dot_product_attention(a, a, a, is_causal=True), t)[0] for t in q.unbind()]",
    "grads(lambda t: t.sum(dim=1), x)[0]": "[grads(lambda a: a.sum(0), t)[0] for t in x.unbind()]",
    "grads(lambda t: t.mean(dim=1), jagged(2, 1, 4))[0]": "[grads(lambda a: a.mean(0), t)[0] for t in jagged(2, 1, 4).unbind()]",
    "grads(lambda t: t.prod(dim=1), jagged(2, 1, 3))[0]": "[grads(lambda a: a.prod(0), t)[0] for t in jagged(2, 1, 3).unbind()]",
    "grads(lambda t: t.sum(dim=2), x)[0]": "[grads(lambda a: a.sum(1), t)[0] for t in x.unbind()]",
    "grads(lambda t: F.softmax(t, dim=1), x)[0]": "[grads(lambda a: a.softmax(0), t)[0] for t in x.unbind()]",
    "grads(lambda t: F.log_softmax(t, dim=1), x)[0]": "[grads(lambda a: a.log_softmax(0), t)[0] for t in x.unbind()]",
    "grads(lambda t: F.softmax(t, dim=2), x)[0]": "[grads(lambda a: a.softmax(1), t)[0] for t in x.unbind()]",
    "grads(lambda t: t.amin(dim=1), jagged(2, 1, 4))[0]": "[grads(lambda a: a.amin(0), t)[0] for t in jagged(2, 1, 4).unbind()]",
    "-s": "[-t for t in s.unbind()]",
    "s.exp()": "[t.exp() for t in s.unbind()]",
    "torch.matmul(s, ramp(3, 2))": "[t @ ramp(3, 2) for t in s.unbind()]",
    "s * ramp(3)": "[t * ramp(3) for t in s.unbind()]",
    "torch.nested.narrow(ramp(3, 4, 2), 1, 1, 2)": "list(ramp(3, 4, 2)[:, 1:3])",
    "torch.nested.narrow(ramp(3, 4, 2), 2, 0, 1)": "list(ramp(3, 4, 2)[:, :, :1])",
}  # fmt: skip


def encoded(torch, value):
    """A result as what JSON can store; nested tensors as their constituents."""
    if isinstance(value, torch.Tensor) and value.is_nested:
        kind = "jagged" if value.layout == torch.jagged else "nested"
        return [kind, [encoded(torch, t) for t in value.detach().unbind()]]
    if isinstance(value, torch.Tensor):
        numbers = value.detach().double() if value.dtype.is_floating_point else value.detach()
        return [str(value.dtype).removeprefix("torch."), list(value.shape), numbers.reshape(-1).tolist()]
    if isinstance(value, (list, tuple)):
        return [encoded(torch, v) for v in value]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def results(torch, rows=ROWS) -> dict:
    """The result of each expression, or the name of the exception that it raises."""
    namespace = {"torch": torch}
    exec(SETUP, namespace)
    found = {}
    for row in rows:
        try:
            found[row] = encoded(torch, eval(row, namespace))
        except Exception as error:
            found[row] = type(error).__name__
    return found
