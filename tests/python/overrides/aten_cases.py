"""Calls of torch.ops.aten, whose values record.py records from PyTorch."""

# x: 2x3, y: 2x3, m: 3x3, i: indices, b: 2x2x3
CASES = """
add.Tensor(x, y, alpha=2); add.Scalar(x, 2, 3); add(x, y); add_.Tensor(x, y); add.out(x, y, out=x * 1); sub.Tensor(x, y)
rsub.Scalar(x, 2); mul.Tensor(x, y); div.Tensor_mode(x, y, rounding_mode="floor"); pow.Tensor_Scalar(x, 2); pow.Scalar(2, x)
remainder.Scalar(x, 2); eq.Scalar(x, 1); lt.Tensor(x, y); where.self(x > 1, x, y); clamp(x, 1, 3); clamp.Tensor(x, y, None)
sum.default(x); sum.dim_IntList(x, [1], True); mean.dim(x, [0]); var.correction(x, [1], correction=0); std.dim(x, [0], True)
max.default(x); max.dim(x, 1); argmax.default(x, 1); amax(x, [1]); any.dim(x > 2, 0); cumsum(x, 1); prod.dim_int(x, 0)
norm.ScalarOpt_dim(x, 2, [1]); linalg_vector_norm(x, 2, [1]); logsumexp(x, [1]); topk(x, 2); sort.default(x, 1, True)
mm(x, m); addmm(x, x, m, beta=2, alpha=3); bmm(b, b.transpose(1, 2)); matmul(x, m); dot(x[0], y[0]); linear(x, m); t(x)
transpose.int(x, 0, 1); permute(x, [1, 0]); view(x, [3, 2]); _unsafe_view(x, [6]); reshape(x, [-1]); expand(x[:1], [2, 3])
squeeze.dim(x[:1], 0); unsqueeze(x, 1); select.int(x, 1, 2); slice.Tensor(x, 1, 0, 3, 2); split.Tensor(x, 1); unbind.int(x)
cat([x, y], 1); stack([x, y]); index.Tensor(x, [None, i]); index_select(x, 1, i); gather(x, 1, i.expand(2, 2)); flip(x, [1])
index_put_(x, [i], y[:2]); scatter.value(x, 1, i.expand(2, 2), 9.0); masked_fill.Scalar(x, x > 2, 0); tril(m); diagonal(m)
constant_pad_nd(x, [1, 1], 2.5); pad(x, [1, 1]); repeat(x, [2, 1]); roll(x, [1], [1]); copy_(x, y); fill_.Scalar(x, 3); zero_(x)
_to_copy(x, dtype=torch.int64); clone(x); detach(x); alias(x); zeros_like(x); full([2], 3.0); arange.start_step(1, 7, 2)
ones([2], dtype=torch.float64); empty.memory_format([2]) * 0; scalar_tensor(3); eye(2); relu(x - 2); sigmoid(x); tanh(x)
gelu(x, approximate="tanh"); silu(x); leaky_relu(x - 2, 0.1); elu(x - 2); hardtanh(x, 0, 1); softplus(x); glu(b, 1); erf(x)
_softmax(x, 1, False); _log_softmax(x, 1, False); softmax.int(x, 1); native_layer_norm(x, [3], None, None, 1e-5)[0]
mse_loss(x, y); l1_loss(x, y, 2); smooth_l1_loss(x, y, 0); huber_loss(x, y, 1, 0.5); nll_loss(x, i, None, 2)
cross_entropy_loss(x, i, None, 2, -100, 0.1); binary_cross_entropy_with_logits(x, y, None, None, 1); embedding(m, i)
tensordot(x, y, [1], [1]); einsum("ij,kj->ik", [x, y]); block_diag([x, y]); broadcast_tensors([x, x[:1]])[1]
fft_fft(x).real; linalg_inv(m); special_erfinv(x / 10); linalg_det(m); unique_dim(x, 0)[0]; _foreach_add([x, y], 1)
max_pool2d_with_indices(b, [2, 2], [1, 1]); _adaptive_avg_pool2d(b, [1, 1]); upsample_nearest2d(b[None], [4, 6])
_scaled_dot_product_flash_attention_for_cpu(b[None], b[None], b[None], 0.0, True, attn_mask=None)[0]
_native_batch_norm_legit_no_training(b, m[0, :2], m[1, :2], m[0, :2], m[1, :2], 0.1, 1e-5)
convolution(b, torch.ones(1, 2, 2), None, [1], [0], [1], False, [0], 1); native_group_norm(b, None, None, 2, 2, 3, 1, 1e-5)[0]
"""


def rows() -> list[str]:
    """The calls, each an expression."""
    return [row.strip() for row in CASES.replace("\n", ";").split(";") if row.strip()]


def evaluate(torch, row: str):
    """The value of a call."""
    x = torch.arange(6.0).reshape(2, 3)
    m = torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    names = {"x": x, "y": x.flip(1) / 2 + 0.25, "m": m, "i": torch.tensor([0, 1]), "b": torch.stack([x, x + 1]), "torch": torch}
    return eval(f"torch.ops.aten.{row}", names)
