"""Calls of torch.ops.aten, whose values record.py records from PyTorch."""

# x: 2x3, y: 2x3, m: 3x3, i: indices, b: 2x2x3
CASES = """
add.Tensor(x, y, alpha=2); add.Scalar(x, 2, 3); add(x, y); add_.Tensor(x, y); add.out(x, y, out=x * 1); sub.Tensor(x, y)
rsub.Scalar(x, 2); mul.Tensor(x, y); div.Tensor_mode(x, y, rounding_mode="floor"); pow.Tensor_Scalar(x, 2); pow.Scalar(2, x)
remainder.Scalar(x, 2); eq.Scalar(x, 1); lt.Tensor(x, y); where.self(x > 1, x, y); clamp(x, 1, 3); clamp.Tensor(x, y, None)
sum.default(x); sum.dim_IntList(x, [1], True); mean.dim(x, [0]); var.correction(x, [1], correction=0); std.dim(x, [0], True)
max.default(x); max.dim(x, 1); argmax.default(x, 1); amax(x, [1]); any.dim(x > 2, 0); cumsum(x, 1); prod.dim_int(x, 0)
norm.ScalarOpt_dim(x, 2, [1]); linalg_vector_norm(x, 2, [1]); logsumexp(x, [1]); topk(x, 2); sort.default(x, 1, True); mm(x, m)
addmm(x, x, m, beta=2, alpha=3); bmm(b, b.transpose(1, 2)); matmul(x, m); dot(x[0], y[0]); linear(x, m); t(x); transpose.int(x, 0, 1)
permute(x, [1, 0]); view(x, [3, 2]); _unsafe_view(x, [6]); reshape(x, [-1]); expand(x[:1], [2, 3]); squeeze.dim(x[:1], 0); unsqueeze(x, 1)
select.int(x, 1, 2); slice.Tensor(x, 1, 0, 3, 2); split.Tensor(x, 1); unbind.int(x); cat([x, y], 1); stack([x, y])
index.Tensor(x, [None, i]); index_select(x, 1, i); gather(x, 1, i.expand(2, 2)); flip(x, [1]); index_put_(x, [i], y[:2])
scatter.value(x, 1, i.expand(2, 2), 9.0); masked_fill.Scalar(x, x > 2, 0); tril(m); diagonal(m); constant_pad_nd(x, [1, 1], 2.5)
pad(x, [1, 1]); repeat(x, [2, 1]); roll(x, [1], [1]); copy_(x, y); fill_.Scalar(x, 3); zero_(x); _to_copy(x, dtype=torch.int64); clone(x)
detach(x); alias(x); zeros_like(x); full([2], 3.0); arange.start_step(1, 7, 2); ones([2], dtype=torch.float64)
empty.memory_format([2]) * 0; scalar_tensor(3); eye(2); relu(x - 2); sigmoid(x); tanh(x); gelu(x, approximate="tanh"); silu(x)
leaky_relu(x - 2, 0.1); elu(x - 2); hardtanh(x, 0, 1); softplus(x); glu(b, 1); erf(x); _softmax(x, 1, False); _log_softmax(x, 1, False)
softmax.int(x, 1); native_layer_norm(x, [3], None, None, 1e-5)[0]; mse_loss(x, y); l1_loss(x, y, 2); smooth_l1_loss(x, y, 0)
huber_loss(x, y, 1, 0.5); nll_loss(x, i, None, 2); cross_entropy_loss(x, i, None, 2, -100, 0.1)
binary_cross_entropy_with_logits(x, y, None, None, 1); embedding(m, i); tensordot(x, y, [1], [1]); einsum("ij,kj->ik", [x, y])
block_diag([x, y]); broadcast_tensors([x, x[:1]])[1]; fft_fft(x).real; linalg_inv(m); special_erfinv(x / 10); linalg_det(m)
unique_dim(x, 0)[0]; _foreach_add([x, y], 1); max_pool2d_with_indices(b, [2, 2], [1, 1]); _adaptive_avg_pool2d(b, [1, 1])
upsample_nearest2d(b[None], [4, 6]); _scaled_dot_product_flash_attention_for_cpu(b[None], b[None], b[None], 0.0, True, attn_mask=None)[0]
_native_batch_norm_legit_no_training(b, m[0, :2], m[1, :2], m[0, :2], m[1, :2], 0.1, 1e-5)
upsample_bilinear2d(b[None], [4, 6], True, 2.0, 2.0); upsample_nearest1d.vec(b, None, [2.0]); upsample_bicubic2d(b[None], [3, 4], False)
nll_loss_forward(x, i, m[0], 1, -100); nll_loss_forward(x, i, None, 0, 1)[0]; nll_loss_forward(x, i, None, 2, 1); zero(x)
nll_loss2d_forward(b[None], i.expand(1, 2, 2)[:, :, :2].repeat(1, 1, 2)[:, :, :3], None, 1, -100); _safe_softmax(x - 1 / (x > 2), 1)
_fused_rms_norm(x, [3], m[0], 1e-5); _trilinear(x, m, y, [1], [0], [1], [2]); _prelu_kernel(x - 2, m[:1])
_prelu_kernel_backward(y, x - 2, m[:1]); _unsafe_index.Tensor(x, [None, i]); _unsafe_index_put(x, [i], y[:2])
_weight_norm_interface(x, y[:, :1] * 1); _cdist_forward(x, y, 2.0, None); _pdist_forward(x); copy(x, y[0]); _cast_Long(y)
_stack([x, y], 1); _embedding_bag(m, i, i)[0]; _embedding_bag(m, i, i, False, 1)[2]
_native_batch_norm_legit.no_stats(b, None, None, True, 0.1, 1e-5)
_native_batch_norm_legit(b, m[0, :2], None, m[1, :2] * 1, m[2, :2] * 1, True, 0.1, 1e-5)
max_pool3d_with_indices(b[None], [1, 2, 2], [1, 1, 1]); reflection_pad1d(x, [1, 2]); reflection_pad2d(b, [1, 1, 1, 0])
replication_pad1d(x, [2, 1]); replication_pad2d(b, [1, 0, 2, 1]); replication_pad3d(b[None], [1, 0, 0, 1, 1, 0])
reflection_pad3d(b[None], [1, 1, 0, 1, 1, 0]); _pad_circular(b, [1, 1]); _pad_enum(b, [1, 1], 3, 2.0)
_convolution(b, torch.ones(1, 2, 2), None, [1], [0], [1], False, [0], 1, False, False, False, False); is_leaf(x); mT(x)
_convolution_mode(b, torch.ones(1, 2, 2), None, [1], "same", [1], 1); elu_(x - 2); elu(x - 2, 1.5, 2.0, 0.5); gelu_(x); hardswish_(x)
silu_(x); hardsigmoid_(x); hardtanh_(x, 0, 2); leaky_relu_(x - 2, 0.2); mish_(x); relu6_(x * 2); log_sigmoid_forward(x)[0]; matrix_H(x)
max_unpool2d(b[:, :1, :2], i.expand(2, 1, 2), [2, 3])
max_unpool3d(b[None, :1, :1], i[:1].expand(1, 1, 1, 3) + torch.arange(3), [1, 2, 3], [1, 1, 1], [0, 0, 0]); multi_margin_loss(x, i)
multilabel_margin_loss(x, i.new_zeros(2, 3) - 1, 2); nll_loss2d(b[None], i.new_zeros(1, 2, 3)); _reshape_copy(x, [3, 2])
thnn_conv2d(b[None], torch.ones(1, 2, 2, 2), [2, 2]); slow_conv3d(b[None, None], torch.ones(1, 1, 1, 2, 2), [1, 2, 2])
_is_all_true(x > 2); _is_any_true(x > 2); nonzero_numpy(x); pad_sequence([x, x[:1]], True); flatten_dense_tensors([x, y])
unflatten_dense_tensors(x.view(-1), [x[0], y[0]]); linalg_ldl_factor(m)[0]; linalg_ldl_solve(*torch.linalg.ldl_factor(m), m)
_scaled_dot_product_attention_math(b[None], b[None], b[None], is_causal=True); _dim_arange(x, 1); _foreach_zero([x, y])
_foreach_copy([x, y], [y, x]); _index_put_impl_(x, [i], y[:2], True); _linalg_det(m)[0]; _linalg_eigh(m)[0]; _linalg_eigh(m, "L", False)
_linalg_slogdet(m); _linalg_svd(m, False, False)[1]; _linalg_solve_ex(m, m)
_int_mm(i.expand(32, 2).to(torch.int8), i.expand(8, 2).t().to(torch.int8)); data(x); retains_grad(x); output_nr(x); _version(x)
nll_loss_forward.output(x, i, None, 1, -100, output=x * 1, total_weight=x * 1); gelu_backward(y, x)
gelu_backward(y, x, approximate="tanh"); gelu_backward(self=x, grad_output=y); glu_backward(b[..., :2], torch.cat([b, b], 2)[..., :4], 2)
elu_backward(y, 1.5, 2.0, 0.5, False, x - 2); elu_backward(y, 1.5, 2.0, 0.5, True, x - 2); leaky_relu_backward(y, x - 2, 0.2, False)
hardsigmoid_backward(y, x - 2); hardswish_backward(y, x - 2); hardtanh_backward(y, x, 0.0, 3.0)
log_sigmoid_backward(y, x, x.abs().neg().exp()); logit_backward(y, x / 10, 0.2); mish_backward(y, x); silu_backward(y, x)
sigmoid_backward(y, x / 6); tanh_backward(y, x / 6); softplus_backward(y, x, 2.0, 3.0); threshold_backward(y, x, 2)
softshrink_backward(y, x, 2.0); hardshrink_backward(y, x, 2.0); mse_loss_backward(y, x, y, 0); mse_loss_backward(y[0, 0], x, y, 1)
smooth_l1_loss_backward(y[0, 0], x, y, 2, 0.5); huber_loss_backward(y[0, 0], x, y, 1, 0.5); soft_margin_loss_backward(y, x, y - 1, 0)
binary_cross_entropy_backward(y, x / 6 + 0.01, y / 6); nll_loss_backward(y[0, 0], x, i, m[0], 1, -100, y[0, 1])
nll_loss_backward(y[:, 0] * 1, x, i, None, 0, 1, y[0, 1])
nll_loss2d_backward(y[0, 0], b[None], i.new_zeros(1, 2, 3), None, 2, -100, y[0, 1]); _log_softmax_backward_data(y, x, 1, torch.float32)
_adaptive_avg_pool2d_backward(b[:, :1, :1], b); _adaptive_avg_pool3d_backward(b[None, :, :1, :1], b[None])
_adaptive_avg_pool3d(b[None], [1, 1, 1]); avg_pool2d_backward(b[:, :1, :2], b, [2, 2], [1, 1], [0, 0], False, True, None)
avg_pool3d_backward(b[None, :1, :1, :2], b[None], [2, 2, 2], [1, 1, 1], [0, 0, 0], False, True, 3)
max_pool2d_with_indices_backward(b[:, :1, :2], b, [2, 2], [1, 1], [0, 0], [1, 1], False, i.expand(2, 1, 2))
convolution_backward(b[:, :1, :2], b, torch.ones(1, 2, 2), [1], [1], [0], [1], False, [0], 1, [True, True, True])
embedding_dense_backward(x, i, 4, 1, False); embedding_dense_backward(x, i * 0, 4, -1, True)
embedding_backward(x, i, 4, -1, False, False)
native_layer_norm_backward(y, x, [3], *torch.native_layer_norm(x, [3], m[0], m[1], 1e-5)[1:], m[0], m[1], [True, True, True])
native_layer_norm_backward(y, x, [3], *torch.native_layer_norm(x, [3], None, None, 1e-5)[1:], None, None, [True, False, False])[0]
native_group_norm_backward(b, b + 1, m[:2, :1], m[:2, 1:2], m[0, :2], 2, 2, 3, 1, [True, True, True])
native_batch_norm_backward(b, b * b, m[0, :2], m[1, :2], m[2, :2] + 1, m[0, :2], m[1, :2], True, 1e-5, [True, True, True])
native_batch_norm_backward(b, b * b, m[0, :2], m[1, :2], m[2, :2] + 1, None, None, False, 1e-5, [True, True, True])
reflection_pad1d_backward(torch.cat([x, y], 1)[:, :5], x, [1, 1]); replication_pad1d_backward(torch.cat([x, y], 1)[:, :5], x, [1, 1])
replication_pad2d_backward(torch.cat([b, b], 2)[:, :, :5], b, [1, 1, 0, 0])
reflection_pad2d_backward(torch.cat([b, b], 2)[:, :, :5], b, [1, 1, 0, 0]); select_backward(x, [2, 2, 3], 1, 1)
slice_backward(x, [2, 7], 1, 0, 6, 2); diagonal_backward(x[0], [3, 3], 0, 0, 1); unfold_backward(b, [2, 4], 1, 3, 1)
index_select_backward(x, [2, 5], 1, torch.tensor([0, 4, 0])); gather_backward(x, b[0], 1, i.expand(3, 2).t() * 2, False)
trace_backward(x[0, 1], [2, 3]); masked_select_backward(x.view(-1), x, x >= 0)
value_selecting_reduction_backward(x[0], 0, torch.tensor([0, 1, 0]), [2, 3], False)
upsample_nearest2d_backward(torch.ones(1, 2, 4, 6), [4, 6], [1, 2, 2, 3])
upsample_bilinear2d_backward(torch.ones(1, 2, 4, 6), [4, 6], [1, 2, 2, 3], False); silu_backward.grad_input(y, x, grad_input=x * 1)
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
