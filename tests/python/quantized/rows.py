"""Expressions of quantized tensors and operators, one per line. record.py stores PyTorch's values.

Names: x, y, v (float32), q, r (quint8), s (qint8), p, e, few (a scale per channel), i (qint8, 4 dimensions), u (quint8, 4
dimensions), unit (packed weights of the identity), Q and D (torch.ops.quantized and quantized_decomposed), F.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

_TENSORS = """
torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
torch.quantize_per_tensor(x * 1e4, 0.1, -3, torch.qint8)
torch.quantize_per_tensor(x, 1e-9, 3, torch.qint32)
torch.quantize_per_tensor(x, torch.tensor(0.1), torch.tensor(3), torch.quint8)
torch.quantize_per_tensor([x, y], torch.tensor([0.1, 0.2]), torch.tensor([3, 4]), torch.quint8)
torch.quantize_per_tensor(torch.tensor([float("nan"), float("inf"), float("-inf"), 2.5, 3.5]), 1.0, 1, torch.quint8)
torch.quantize_per_tensor(x, 0.1, 300, torch.quint8)
torch.quantize_per_tensor(x.double(), 0.1, 3, torch.quint8)
torch.quantize_per_tensor(x, 0.1, 3, torch.float32)
torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3]), 0, torch.qint8)
torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([1, 2, 3, 4]), -1, torch.quint8)
torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1.5, 2.0, 3.0]), 0, torch.quint8)
torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([1, 2]), 0, torch.qint8)
torch.quantize_per_tensor_dynamic(x, torch.quint8, False)
torch.quantize_per_tensor_dynamic(x, torch.qint8, True)
torch.quantize_per_tensor_dynamic(x * 1e-6, torch.quint8, False)
torch.quantize_per_tensor_dynamic(x + 9, torch.qint8, False)
torch._make_per_tensor_quantized_tensor(torch.tensor([1, 2], dtype=torch.uint8), 0.1, 3)
torch._make_per_channel_quantized_tensor(torch.tensor([[1, 2]], dtype=torch.int8), torch.tensor([0.1]), torch.tensor([0]), 0)
torch._make_per_tensor_quantized_tensor(torch.tensor([1, 2]), 0.1, 3)
torch._empty_affine_quantized([2, 3], scale=0.1, zero_point=1, dtype=torch.quint8).shape
torch.empty_quantized([2], q).q_scale()
[torch.int_repr(q), torch.q_scale(q), torch.q_zero_point(q), q.qscheme(), q.is_quantized, q.dtype, q.type(), q.element_size()]
[torch.q_per_channel_scales(p), torch.q_per_channel_zero_points(p), torch.q_per_channel_axis(p), p.qscheme()]
[q.dequantize(), s.dequantize(), p.dequantize(), e.dequantize(), torch.dequantize(q), torch.dequantize([q, s])]
torch._choose_qparams_per_tensor(x, False)
torch._choose_qparams_per_tensor(x, True)
str(q)
str(p)
str(s[:0])
[p[0:2], p[1:2], p[:, 1:3]]
[p.narrow(0, 1, 2), p.narrow(1, 1, 2), p.split(2), p.split(1), p.split([1, 2], 0), p.chunk(2, 1), p.tensor_split(2, 0)]
[p.unbind(0), list(p)]
[p[0:2].dequantize(), p.split(2)[1].dequantize(), p.chunk(2, 1)[1].dequantize()]
[torch.testing.assert_close(q, q.clone()), torch.testing.assert_close(p, p.clone())]
torch.testing.assert_close(q, q.clone().fill_(1.0))
torch.testing.assert_close(p, p.clone().fill_(1.0))
torch.testing.assert_close(q, q.dequantize())
p.q_scale()
q.q_per_channel_axis()
x.q_scale()
x.int_repr()
q.tolist()
q.numpy()
q.float()
q.item()
q[0, 0].item()
float(q[0, 0])
q.clone()
q.detach()
q.contiguous()
q.view(4, 3)
q.reshape(-1)
q.permute(1, 0)
q.transpose(0, 1)
q.t()
q[0]
q[:, 1:3]
q[1, ::2]
q[[0, 2]]
q[q.int_repr() > 100]
q.flatten()
q.squeeze()
q.unsqueeze(0)
q.expand(2, 3, 4)
q.repeat(2, 1)
q.split(2)
q.chunk(2)
q.unbind()
q.flip(0)
q.diagonal()
q.unfold(0, 2, 1)
q.index_select(0, torch.tensor([2, 0]))
q.masked_fill(q.int_repr() > 100, 0.35)
torch.cat([q, q])
torch.cat([q, r])
torch.stack([q, q])
torch.hstack([q, q])
torch.cat([q, s])
q.clone().fill_(0.35)
q.clone().copy_(x * 0.3)
q.clone().copy_(r)
q.clone().copy_(s)
q.clone().index_put_((torch.tensor([0]),), x[0] * 0.2)
x.clone().copy_(q)
torch.full_like(q, 0.35)
torch.zeros_like(q)
torch.empty_like(q).q_scale()
[q == q, q != r, q < r, q <= r, q > r, q >= r, q > 0]
[torch.equal(q, q), torch.equal(q, r)]
torch.allclose(q, q)
q.relu()
torch.relu_(q.clone())
F.relu6(q)
q.clamp(-0.2, 0.4)
q.clamp(min=-0.2)
F.hardtanh(q)
F.leaky_relu(q)
F.hardsigmoid(q)
F.hardsigmoid(s)
F.gelu(q)
F.threshold(q, 0.1, 0.0)
q.sigmoid()
s.sigmoid()
q.tanh()
s.tanh()
q.mean()
q.mean(1)
u.mean((2, 3))
q.std(1)
q.max()
q.min()
q.max(1)
q.min(0)
q.sort()
q.sort(descending=True)
q.topk(2)
q.msort()
[torch.rot90(q), torch.rot90(q, 2), torch.rot90(s, -1)]
torch.rot90(p)
[torch.diag(q), torch.diag(q, 1), torch.diag(q, -1), s.diag()]
torch.diag(q[0])
[torch.fill(q, 1.0), torch.fill(s, -2)]
torch.fill(p, 1.0)
[F.interpolate(i, size=(2, 1), mode="area"), F.interpolate(u, size=(1, 2), mode="area"), F.interpolate(u[0], size=2, mode="area")]
F.interpolate(p.reshape(1, 3, 4), size=2, mode="area")
F.max_pool1d(q, 2)
F.max_pool2d(u, 2, padding=1)
F.avg_pool2d(u, 2)
F.adaptive_avg_pool2d(u, 1)
F.adaptive_avg_pool2d(u, (2, 3))
F.interpolate(u, scale_factor=2)
F.interpolate(u, size=(3, 5), mode="bilinear")
F.pixel_shuffle(u, 2)
F.pixel_unshuffle(u, 2)
F.channel_shuffle(u, 2)
F.pad(q, (1, 1))
F.dropout(q, 0.5, False)
p[1]
p.clone()
p.view(3, 4)
p.unsqueeze(0).q_per_channel_axis()
p.t()
p.relu()
p == p
torch.cat([p, p])
q + q
q - q
q.sum()
q.abs()
q.sqrt()
q.argmax(1)
q.cumsum(0)
q.median()
q.gather(1, torch.zeros(3, 1, dtype=torch.int64))
q.roll(1, 0)
q @ q.t()
torch.where(q > 0, q, q)
F.softmax(q, 1)
F.silu(q)
F.elu(q)
F.hardswish(q)
F.linear(q, q)
F.layer_norm(q, (4,))
isinstance(torch.quint8, torch.dtype), isinstance(q.dtype, torch.dtype)
torch.ones_like(q)
torch.equal(q, q.dequantize()), torch.equal(q, q.clone())
torch.sigmoid(torch._make_per_tensor_quantized_tensor(torch.tensor([-100, 0, 100], dtype=torch.int32), 1.0, 0))
torch.tanh(torch._make_per_tensor_quantized_tensor(torch.tensor([-100, 0, 100], dtype=torch.int32), 1.0, 0))
F.avg_pool2d(torch._make_per_tensor_quantized_tensor(u.int_repr(), 0.01, 7), 2)
F.avg_pool2d(torch._make_per_tensor_quantized_tensor(u.int_repr(), 0.01, 7).contiguous(memory_format=torch.channels_last), 2)
F.avg_pool2d(torch._make_per_tensor_quantized_tensor(u.int_repr(), 0.01, 7), 2, padding=1)
F.avg_pool2d(torch._make_per_tensor_quantized_tensor(u.int_repr()[:, :1], 0.01, 7), 2)
F.adaptive_avg_pool2d(torch._make_per_tensor_quantized_tensor(u.int_repr(), 0.01, 7), 2)
F.avg_pool3d(torch._make_per_tensor_quantized_tensor(u.int_repr().unsqueeze(0), 0.01, 7), 2)
F.adaptive_avg_pool3d(torch._make_per_tensor_quantized_tensor(u.int_repr().unsqueeze(0), 0.01, 7), 2)
torch._make_per_tensor_quantized_tensor(u.int_repr(), 0.01, 7).mean((-1, -2))
Q.conv2d(u, Q.conv2d_prepack(i, None, [1, 1], [1, 1], [1, 1], 1), 0.1, 7).stride()
F.avg_pool2d(Q.conv2d(u, Q.conv2d_prepack(i, None, [1, 1], [1, 1], [1, 1], 1), 0.1, 7), 2)
Q.conv1d(u[0], Q.conv1d_prepack(i[:, :, 0], None, [1], [1], [1], 1), 0.1, 7).stride()
Q.linear_dynamic(torch.tensor([[-3.5, 124.0, 0.25, 0.75, 1.25]]), unit, False)
Q.linear_dynamic(torch.tensor([[-4.0, 123.5, 0.25, 0.75, 1.25]]), unit, False)
Q.linear_dynamic(torch.tensor([[float("nan"), 1.0, 2.0, 3.0, 4.0]]), unit, False)
torch.quantize_per_tensor_dynamic(torch.tensor([float("nan"), 1.0]), torch.quint8, False)
torch.quantize_per_tensor_dynamic(torch.tensor([float("inf"), 1.0]), torch.quint8, False)
Q.embedding_bag_2bit_unpack(Q.embedding_bag_2bit_prepack(x[:1], False, 200, 0.16))
torch.choose_qparams_optimized(y.reshape(-1), 12, 50, 0.5, 4)
torch.choose_qparams_optimized(x.reshape(-1), 10, 200, 0.16, 2)
torch.choose_qparams_optimized(x.reshape(-1), 13, 200, 0.16, 2)
"""
_DECOMPOSED = """
D.quantize_per_tensor(x, 0.07, 5, -128, 127, torch.int8)
D.quantize_per_tensor.default(x.bfloat16(), 0.07, 5, 0, 255, torch.uint8)
D.quantize_per_tensor.tensor(x, torch.tensor([0.07]), torch.tensor([5]), -128, 127, torch.int8)
D.quantize_per_tensor.tensor2(x, torch.tensor([0.07]), torch.tensor([5]), torch.tensor(-8), torch.tensor(7), torch.int8)
D.quantize_per_tensor(x, 0.0007, 5, -(2**31), 2**31 - 1, torch.int32)
D.quantize_per_tensor(x, 0.0007, 5, -32768, 32767, torch.int16)
D.quantize_per_tensor(x, 0.07, 5, -129, 127, torch.int8)
D.quantize_per_tensor(x.double(), 0.07, 5, -128, 127, torch.int8)
D.dequantize_per_tensor(s.int_repr(), 0.07, 5, -128, 127, torch.int8)
D.dequantize_per_tensor(s.int_repr(), 0.07, 5, -128, 127, torch.int8, out_dtype=torch.bfloat16)
D.dequantize_per_tensor(s.int_repr(), 0.07, 5, -128, 127, torch.uint8)
D.dequantize_per_tensor.tensor(s.int_repr(), torch.tensor([0.07]), torch.tensor([5]), -128, 127, torch.int8)
D.choose_qparams(x, -128, 127, 2.0**-23, torch.int8)
D.choose_qparams_symmetric(x, -128, 127, 2.0**-23, torch.int8)
D.choose_qparams.tensor(x + 9, 0, 255, 2.0**-23, torch.uint8)
D.choose_qparams_symmetric.tensor(x, 0, 255, 2.0**-23, torch.uint8)
D.quantize_per_channel(x, v, torch.arange(3), 0, -128, 127, torch.int8)
D.quantize_per_channel(x, v.double(), torch.arange(3), 0, -8, 7, torch.int8)
D.quantize_per_channel(x.t(), v, torch.arange(3), 1, -8, 7, torch.int8)
D.dequantize_per_channel(s.int_repr(), v, torch.arange(3), 0, -128, 127, torch.int8)
D.dequantize_per_channel(s.int_repr(), v, None, 0, -128, 127, torch.int8)
D.dequantize_per_channel(s.int_repr(), v.double(), torch.arange(3), 0, -128, 127, torch.int8)
D.fake_quant_per_channel(x, v, torch.arange(3), 0, -8, 7)
D.choose_qparams_per_token(x, torch.int8)
D.choose_qparams_per_token_asymmetric(x, torch.int8)
D.quantize_per_token(x, *D.choose_qparams_per_token_asymmetric(x, torch.int8), -128, 127, torch.int8)
D.dequantize_per_token(s.int_repr(), *D.choose_qparams_per_token_asymmetric(x, torch.int8), -128, 127, torch.int8, torch.float32)
D.quantize_per_channel_group(x, torch.rand(3, 2) * 0 + 0.1, torch.zeros(3, 2), -8, 7, torch.int8, 2)
D.dequantize_per_channel_group(s.int_repr(), torch.rand(3, 2) * 0 + 0.1, torch.zeros(3, 2), -8, 7, torch.int8, 2, torch.float32)
"""
_OPERATORS = """
Q.add(q, r, 0.07, 50)
Q.add_relu(q, r, 0.07, 50)
Q.add(q, s, 0.07, 50)
Q.mul(q, r, 0.03, 50)
Q.mul_relu(q, r, 0.03, 50)
Q.add(q, 0.25)
Q.add_scalar(q, 0.25)
Q.add_scalar(q, -20.0)
Q.add_scalar(q, 20.0)
Q.add_scalar_relu(q, -0.5)
Q.mul_scalar(q, 0.5)
Q.mul_scalar(q, -2.0)
Q.mul_scalar(q, 0.0)
Q.mul_scalar_relu(q, -2.0)
Q.add_out(q, r, out=q.clone())
Q.cat([q, r], 0, 0.05, 30)
Q.cat([q, r], 1, None, None)
Q.cat_relu([q, r], 0, 0.05, 30)
Q.matmul(q, r.t(), 0.3, 100)
Q.linear(q, Q.linear_prepack(s, v), 0.3, 100)
Q.linear(q, Q.linear_prepack(p, v), 0.3, 100)
Q.linear_relu(q, Q.linear_prepack(p, None), 0.3, 100)
Q.linear(big, Q.linear_prepack(wide, None), 0.9, 128)
Q.linear_dynamic(x, Q.linear_prepack(s, v), False)
Q.linear_dynamic(x, Q.linear_prepack(p, v), True)
Q.linear_relu_dynamic(x, Q.linear_prepack(p, v), False)
Q.linear_dynamic_fp16(x, Q.linear_prepack_fp16(y, v))
Q.linear_with_input_q_dq_qweight_dq_output_fp32(x, 0.1, 100, Q.linear_prepack(p, v))
Q.linear_unpack(Q.linear_prepack(p, v))
Q.linear_prepack(q, v)
Q.conv2d(u, Q.conv2d_prepack(i, v4, [1, 1], [1, 1], [1, 1], 1), 0.3, 100)
Q.conv2d_relu(u, Q.conv2d_prepack(i, v4, [2, 1], [1, 0], [1, 1], 1), 0.3, 100)
Q.conv2d(u, Q.conv2d_prepack(i[:, :1], v4, [1, 1], [1, 1], [1, 1], 4), 0.3, 100)
Q.conv2d(u, Q.conv2d_prepack(i[:, :2], None, [1, 1], [1, 1], [2, 2], 2), 0.3, 100)
Q.conv2d(u, Q.conv2d_prepack(i4, v4, [1, 1], [1, 1], [1, 1], 1), 0.3, 100)
Q.conv1d(u[0], Q.conv1d_prepack(i[:, :, 0], v4, [1], [1], [1], 1), 0.3, 100)
Q.conv3d(u.unsqueeze(2), Q.conv3d_prepack(i.unsqueeze(2), v4, [1, 1, 1], [0, 1, 1], [1, 1, 1], 1), 0.3, 100)
Q.conv2d_dynamic(u.dequantize(), Q.conv2d_prepack(i, v4, [1, 1], [1, 1], [1, 1], 1), False)
Q.conv_transpose2d(u, Q.conv_transpose2d_prepack(i, v4, [2, 2], [1, 1], [1, 1], [1, 1], 1), 0.3, 100)
Q.conv2d_unpack(Q.conv2d_prepack(i, v4, [1, 1], [1, 1], [1, 1], 1))
Q.conv2d_stride(Q.conv2d_prepack(i, v4, [2, 1], [1, 1], [1, 1], 1))
Q.batch_norm2d(u, v4, v4, v4, v4 * v4, 1e-5, 0.1, 100)
Q.batch_norm2d_relu(u, v4, v4, v4, v4 * v4, 1e-5, 0.1, 100)
Q.layer_norm(q, [4], None, None, 1e-5, 0.02, 100)
Q.group_norm(u, 2, v4, v4, 1e-5, 0.05, 100)
Q.instance_norm(u, v4, v4, 1e-5, 0.05, 100)
Q.leaky_relu(q, 0.2, False, 0.05, 60)
Q.hardswish(q, 0.05, 60)
Q.elu(q, 0.05, 60, 1.5, 1.0, 1.0)
Q.celu(q, 0.05, 60, 1.5)
Q.sigmoid(q, 0.004, 0)
Q.softmax(q, 1, 0.004, 0)
Q.threshold(q, 0.1, 0.5)
Q.relu6(q, False)
Q.clamp(q, -0.1, 0.3)
Q.max_pool1d(q, [2], [1], [0], [1], False)
Q.max_pool2d(u, [2, 2], [2, 2], [1, 1], [1, 1], False)
torch.quantized_max_pool1d(q, 2)
torch.quantized_max_pool2d(u, (2, 2))
torch.quantized_batch_norm(u, v4, v4, v4, v4 * v4, 1e-5, 0.1, 100)
Q.embedding_byte(Q.embedding_bag_prepack(e), torch.tensor([2, 0, 2]), False)
Q.embedding_bag_byte(Q.embedding_bag_prepack(e), torch.tensor([2, 0, 2]), torch.tensor([0, 1]))
Q.embedding_bag_byte_prepack(x)
Q.embedding_bag_byte_unpack(Q.embedding_bag_byte_prepack(x))
Q.embedding_bag_byte_rowwise_offsets(Q.embedding_bag_byte_prepack(x), torch.tensor([2, 0, 2]), torch.tensor([0, 1]))
Q.embedding_bag_4bit_prepack(x)
Q.embedding_bag_4bit_unpack(Q.embedding_bag_4bit_prepack(x))
Q.embedding_bag_2bit_prepack(x)
Q.embedding_bag_4bit_rowwise_offsets(Q.embedding_bag_4bit_prepack(x), torch.tensor([2, 0, 2]), torch.tensor([0, 1]))
torch.quantize_per_tensor(x, 0.1, 3, torch.quint4x2)
torch.quantize_per_tensor(x[:, :3].reshape(-1)[:5], 0.1, 3, torch.quint4x2)
torch.quantize_per_tensor(x, 0.5, 1, torch.quint2x4)
torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 2, 3]), 0, torch.quint4x2)
[few, few.dequantize(), few.dtype, few.type(), few.element_size(), few.nbytes, few.qscheme()]
str(few)
few == few
few.view(3, 4)
few.fill_(1)
few.copy_(x)
torch.cat([few, few])
few.t()
Q.embedding_4bit(Q.embedding_bag_prepack(few), torch.tensor([2, 0, 2]), False)
Q.embedding_bag_4bit(Q.embedding_bag_prepack(few), torch.tensor([2, 0, 2]), torch.tensor([0, 1]))
Q.embedding_bag_4bit(Q.embedding_bag_prepack(few), torch.tensor([2, 0, 2]), torch.tensor([0, 1]), per_sample_weights=torch.ones(3) / 2)
Q.quantized_lstm_cell_dynamic(x, [x, y], *cells(4), v16, v16)
Q.quantized_gru_cell_dynamic(x, y, *cells(3), v16, v16)
Q.quantized_rnn_tanh_cell_dynamic(x, y, *cells(1), v16, v16)
torch._int_mm(s.int_repr(), s.int_repr().t())
torch._int_mm(wide.int_repr(), wide.int_repr().t())
torch._int_mm(x, y.t())
torch._weight_int8pack_mm(x, s.int_repr(), v)
"""
_FAKE = """
torch.fake_quantize_per_tensor_affine(x, 0.13, 2, -8, 7)
torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.13), torch.tensor(2, dtype=torch.int32), -8, 7)
torch.fake_quantize_per_channel_affine(x, v, torch.arange(3, dtype=torch.int32), 0, -8, 7)
torch.fake_quantize_per_channel_affine(x, v, torch.tensor([0.5, 1.0, 2.0]), 0, -8, 7)
torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, *qparams, torch.tensor([1]), -8, 7)
torch._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, *qparams, torch.tensor([0]), -8, 7)
learned(torch._fake_quantize_learnable_per_tensor_affine, torch.tensor([0.13]), torch.tensor([1.2]))
learned(torch._fake_quantize_learnable_per_channel_affine, v.clone(), torch.tensor([0.2, 1.0, 9.0]), 0)
observed(1, 1, False, False)
observed(1, 0, False, True)
observed(0, 1, False, False)
observed(1, 1, True, True)
"""

# The layers of torch.ops.onednn.
_ONEDNN = r"""
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'none', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'none', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'relu', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'relu', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'leaky_relu', [0.1], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'leaky_relu', [0.1], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'tanh', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'tanh', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'hardtanh', [-1.0, 1.0], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'hardtanh', [-1.0, 1.0], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'hardswish', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'hardswish', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'swish', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'swish', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'gelu', [], 'none')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'gelu', [], 'none')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'gelu', [], 'tanh')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'gelu', [], 'tanh')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, 'sigmoid', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 100, torch.uint8, 'sigmoid', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 10, torch.int8, 'none', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 0.05, 10, None, 'none', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.bfloat16, 'none', [], '')
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb, 2.0, 0, torch.float32, 'none', [], '')
O.qlinear_prepack(x, None)
O.qlinear_pointwise(xu.view(torch.int8), 0.1, 3, lw, ws[:1], wz[:1], None, 1.0, 0, torch.float32, "none", [], "")
O.qlinear_pointwise(xu.reshape(2, 2, 8), 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, "none", [], "")
O.qlinear_pointwise(xu[0], 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, "none", [], "")
O.qlinear_pointwise(xu[:, :7], 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, "none", [], "")
O.qlinear_pointwise(xu.float(), 0.1, 3, lw, ws, wz, lb, 1.0, 0, torch.float32, "none", [], "")
O.qlinear_pointwise(xu, 0.1, 3, lw, ws, wz, lb[:2], 1.0, 0, torch.float32, "none", [], "")
O.qlinear_pointwise(xu, 0.1, 3, lw8, ws, wz, lb, 1.0, 0, torch.float32, "none", [], "")
O.qlinear_pointwise.tensor(xu, torch.tensor(0.1), torch.tensor(3), lw, ws, wz, lb, 1.0, 0, torch.float32, "relu", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lo.clone(), lb, 1.0, 0, torch.float32, 1.0, 0, "sum", 1.0, "relu", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lo.clone(), lb, 1.0, 0, torch.float32, 1.0, 0, "add", 1.0, "none", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lo[:1], lb, 1.0, 0, torch.float32, 1.0, 0, "add", 1.0, "none", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lo.clone(), lb, 0.05, 90, torch.uint8, 1.0, 0, "add", 1.0, "relu", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lu.clone(), lb, 0.05, 90, torch.uint8, 0.1, 80, "sum", 1.0, "relu", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lu.clone(), lb, 0.05, 90, torch.uint8, 0.1, 80, "add", 1.0, "relu", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lo.clone(), lb, 0.05, 90, torch.uint8, 1.0, 0, "sum", 1.0, "none", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lo, lb, 1.0, 0, torch.float32, 1.0, 0, "add", 0.5, "none", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, None, lb, 1.0, 0, torch.float32, 1.0, 0, "add", 1.0, "none", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lo, lb, 1.0, 0, torch.float32, 1.0, 0, "mul", 1.0, "none", [], "")
O.qlinear_pointwise.binary(xu, 0.1, 3, lw, ws, wz, lo, lb, 1.0, 0, torch.float32, 0.5, 0, "add", 1.0, "none", [], "")
[O.qlinear_pointwise.binary_tensor(xu, torch.tensor(0.1), torch.tensor(3), lw, ws, wz, lo, lb, 1.0, 0, torch.float32, 1.0, 0, "sum", 1.0, "none", [], ""), lo]
O.qlinear_pointwise(x8, 0.5, 0, lw8, ws, wz, lb, 1.0, 0, torch.float32, "relu", [], "")
O.qlinear_pointwise(x8, 0.5, 0, lw8, ws, wz, lb, 0.5, 0, torch.float8_e4m3fn, "none", [], "").float()
O.qlinear_pointwise(x8, 0.5, 0, lw8, ws, wz, lb, 0.5, 0, None, "relu", [], "").float()
O.qlinear_pointwise(x8, 0.5, 0, lw8, ws, wz, lb, 0.0001, 0, torch.float8_e4m3fn, "none", [], "").float()
O.qlinear_pointwise(x8, 0.5, 0, lw, ws, wz, lb, 1.0, 0, torch.float32, "relu", [], "")
O.qlinear_pointwise(x8.to(torch.float8_e5m2), 0.5, 0, lw8, ws, wz, lb, 1.0, 0, torch.float32, "relu", [], "")
O.qlinear_prepack(x8.to(torch.float8_e5m2), None)
O.qlinear_pointwise.binary(x8, 0.5, 0, lw8, ws, wz, (lo * 3).to(torch.float8_e4m3fn), lb, 0.5, 0, torch.float8_e4m3fn, 0.2, 0, "sum", 1.0, "relu", [], "").float()
O.qconv_pointwise(cu, 0.1, 3, O.qconv_prepack(cw, cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1), cs, cz, cb, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, "none", [], "")
O.qconv_pointwise(cu, 0.1, 3, O.qconv_prepack(cw, cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1), cs, cz, cb, [1, 1], [1, 1], [1, 1], 1, 0.05, 7, torch.uint8, "relu", [], None)
O.qconv_pointwise(cu, 0.1, 3, O.qconv_prepack(cw, cs, 0.1, 3, [2, 1], [0, 1], [1, 2], 1), cs, cz, cb, [2, 1], [0, 1], [1, 2], 1, 0.05, 7, torch.int8, "hardtanh", [-0.5, 0.5], "")
O.qconv_pointwise(cu, 0.1, 3, O.qconv_prepack(cw[:, :1].contiguous(), cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 4), cs, cz, cb, [1, 1], [1, 1], [1, 1], 4, 1.0, 0, torch.float32, "swish", [], "")
O.qconv2d_pointwise(cu, 0.1, 3, O.qconv_prepack(cw, cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1), cs, cz, None, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.bfloat16, "hardswish", [], "").shape
O.qconv2d_pointwise.tensor(cu, torch.tensor(0.1), torch.tensor(3), O.qconv_prepack(cw, cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1), cs, cz, cb, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, "relu", [], "")
O.qconv_pointwise(cu, 0.1, 3, O.qconv_prepack(cw, cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1), cs, cz, cb, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, "gelu", [], "")
O.qconv1d_pointwise(cu[:, :, 0], 0.1, 3, O.qconv_prepack(cw[:, :, 0].contiguous(), cs, 0.1, 3, [1], [1], [1], 1), cs, cz, cb, [1], [1], [1], 1, 1.0, 0, torch.float32, "relu", [], "")
O.qconv3d_pointwise(cu.unsqueeze(2), 0.1, 3, O.qconv_prepack(cw.unsqueeze(2), cs, 0.1, 3, [1] * 3, [0, 1, 1], [1] * 3, 1), cs, cz, cb, [1] * 3, [0, 1, 1], [1] * 3, 1, 1.0, 0, torch.float32, "none", [], "")
O.qconv2d_pointwise.binary(cu, 0.1, 3, O.qconv_prepack(cw, cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1), cs, cz, co(torch.uint8), cb, [1, 1], [1, 1], [1, 1], 1, 0.05, 7, torch.uint8, 0.1, 4, "sum", 1.0, "relu", [], "")
O.qconv2d_pointwise.binary(cu, 0.1, 3, O.qconv_prepack(cw, cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1), cs, cz, co(torch.float32), cb, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, 1.0, 0, "sum", None, "none", [], "")
O.qconv2d_pointwise.binary(cu, 0.1, 3, O.qconv_prepack(cw, cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1), cs, cz, co(torch.float32), cb, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, 1.0, 0, "add", 1.0, "none", [], "")
O.qconv_prepack(cw.float(), cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1)
O.qconv_prepack(c8.to(torch.float8_e5m2), cs, 0.1, 3, [1, 1], [1, 1], [1, 1], 1)
O.qconv_pointwise(c8, 0.5, 0, O.qconv_prepack(cw8, cs, 0.5, 0, [1, 1], [1, 1], [1, 1], 1), cs, cz, cb, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, "relu", [], "")
O.qconv_pointwise(c8, 0.5, 0, O.qconv_prepack(cw8, cs, 0.5, 0, [1, 1], [1, 1], [1, 1], 1), cs, cz, None, [2, 2], [0, 1], [1, 1], 1, 1.0, 0, torch.bfloat16, "none", [], "").shape
O.linear_dynamic_fp16(x, O.linear_prepack_fp16(y, None), torch.ones(3))
O.linear_relu_dynamic_fp16(x, O.linear_prepack_fp16(y, [3, 4]), None)
O.qadd(xs, 0.1, 3, xs.flip(0), 0.2, 5, 0.3, 7, torch.uint8)
O.qadd(xs, 0.1, 3, xs.flip(0), 0.2, 5, 1.0, 0, torch.float32)
O.qadd_relu(xs, 0.1, 130, xs.flip(0), 0.2, 5, 0.3, 7, torch.uint8)
O.qmul(xs, 0.1, 3, xs.flip(0), 0.2, 5, 0.3, 7, torch.uint8)
O.qmul(xs, 0.1, 3, xs.flip(0), 0.2, 5, 0.3, 7, torch.float32)
O.qadd(xu, 0.1, 3, xu[:1], 0.2, 5, 0.3, 7, torch.uint8)
O.qadd(xu.view(torch.int8), 0.1, 3, xu, 0.2, 5, 0.3, 7, torch.uint8)
O.qbatch_norm2d(cu.clamp(max=127), 0.1, 3, torch.ones(4), cs[:4], cs[:4], cs[:4] * 9, 1e-5, 0.3, 7, torch.uint8)
O.qbatch_norm2d(cu.clamp(max=127), 0.1, 3, torch.ones(4), cs[:4], cs[:4], cs[:4] * 9, 1e-5, 1.0, 0, torch.float32)
O.qbatch_norm2d(cu.clamp(max=127), 0.1, 3, torch.ones(4), cs[:4], cs[:4], cs[:4] * 9, 1e-5, 0.3, 7, torch.int8)
"""  # noqa: E501
_INTERPOLATED = """
F.interpolate(u, scale_factor=2, mode="nearest")
F.interpolate(u, scale_factor=2, mode="nearest-exact")
F.interpolate(u, size=3, mode="nearest")
F.interpolate(u, size=3, mode="nearest-exact")
F.interpolate(u, size=[7, 5], mode="nearest")
F.interpolate(u, size=[7, 5], mode="nearest-exact")
F.interpolate(u, scale_factor=1.5, mode="nearest")
F.interpolate(u, scale_factor=1.5, mode="nearest-exact")
F.interpolate(u, scale_factor=[2.0, 0.7], mode="nearest")
F.interpolate(u, scale_factor=[2.0, 0.7], mode="nearest-exact")
F.interpolate(u.unsqueeze(2), scale_factor=2, mode="nearest")
F.interpolate(u.contiguous(memory_format=torch.channels_last), scale_factor=2, mode="nearest")
F.interpolate(u, scale_factor=2, mode="bilinear")
torch.ao.nn.quantized.functional.interpolate(u, scale_factor=2)
torch.ao.nn.quantized.functional.upsample_nearest(u, [6, 6])
torch.ops.aten.upsample_nearest2d(u, [6, 7])
F.interpolate(i, scale_factor=2, mode="nearest")
F.interpolate(i, scale_factor=2, mode="nearest-exact")
F.interpolate(i, size=3, mode="nearest")
F.interpolate(i, size=3, mode="nearest-exact")
F.interpolate(i, size=[7, 5], mode="nearest")
F.interpolate(i, size=[7, 5], mode="nearest-exact")
F.interpolate(i, scale_factor=1.5, mode="nearest")
F.interpolate(i, scale_factor=1.5, mode="nearest-exact")
F.interpolate(i, scale_factor=[2.0, 0.7], mode="nearest")
F.interpolate(i, scale_factor=[2.0, 0.7], mode="nearest-exact")
F.interpolate(i.unsqueeze(2), scale_factor=2, mode="nearest")
F.interpolate(i.contiguous(memory_format=torch.channels_last), scale_factor=2, mode="nearest")
F.interpolate(i, scale_factor=2, mode="bilinear")
torch.ao.nn.quantized.functional.interpolate(i, scale_factor=2)
torch.ao.nn.quantized.functional.upsample_nearest(i, [6, 6])
torch.ops.aten.upsample_nearest2d(i, [6, 7])
F.interpolate(g, scale_factor=2, mode="nearest")
F.interpolate(g, scale_factor=2, mode="nearest-exact")
F.interpolate(g, size=3, mode="nearest")
F.interpolate(g, size=3, mode="nearest-exact")
F.interpolate(g, size=[7, 5], mode="nearest")
F.interpolate(g, size=[7, 5], mode="nearest-exact")
F.interpolate(g, scale_factor=1.5, mode="nearest")
F.interpolate(g, scale_factor=1.5, mode="nearest-exact")
F.interpolate(g, scale_factor=[2.0, 0.7], mode="nearest")
F.interpolate(g, scale_factor=[2.0, 0.7], mode="nearest-exact")
F.interpolate(g.unsqueeze(2), scale_factor=2, mode="nearest")
F.interpolate(g.contiguous(memory_format=torch.channels_last), scale_factor=2, mode="nearest")
torch.ao.nn.quantized.functional.interpolate(g, scale_factor=2)
torch.ao.nn.quantized.functional.upsample_nearest(g, [6, 6])
torch.ops.aten.upsample_nearest2d(g, [6, 7])
"""


def rows() -> list[str]:
    """All rows."""
    text = _TENSORS + _DECOMPOSED + _OPERATORS + _FAKE + _ONEDNN + _INTERPOLATED
    return [line for line in text.splitlines() if line]


def names(torch: ModuleType) -> dict[str, Any]:
    """What the rows refer to."""

    def pseudo(*size: int, step: int = 7919) -> Any:
        count = 1
        for n in size:
            count *= n
        return ((torch.arange(count) * step % 1009).to(torch.float32) / 504.5 - 1).reshape(size)

    x, y = pseudo(3, 4) * 1.7, pseudo(3, 4, step=131)
    v = torch.tensor([0.05, 0.11, 0.07])
    channel = (torch.tensor([0.01, 0.02, 0.015]), torch.tensor([0, 0, 0]), 0)
    fours = torch.quantize_per_tensor(pseudo(4, 4, 3, 3, step=77), 0.01, 0, torch.qint8)

    def cells(gates: int) -> tuple[Any, Any]:
        make = torch.ops.quantized.linear_prepack
        first, second = pseudo(4 * gates, 4, step=53), pseudo(4 * gates, 4, step=59)
        return tuple(make(torch.quantize_per_tensor(w, 0.01, 0, torch.qint8), w[:, 0].contiguous()) for w in (first, second))

    def learned(function: Any, scale: Any, zero_point: Any, *axis: int) -> list:
        a, b, c = (t.clone().requires_grad_() for t in (x, scale, zero_point))
        result = function(a, b, c, *axis, -8, 7, 0.5)
        (result * y).sum().backward()
        return [result, a.grad, b.grad, c.grad]

    def observed(observer: int, fake: int, rows: bool, symmetric: bool) -> list:
        count = 3 if rows else 1
        low, high = torch.full((count,), float("inf")), torch.full((count,), float("-inf"))
        scale, point = torch.ones(count), torch.zeros(count, dtype=torch.int32)
        switches = torch.tensor([observer]), torch.tensor([fake])
        states, results = (low, high, scale, point), []
        for i in range(2):
            a = (x * (1 + i)).requires_grad_()
            r = torch.fused_moving_avg_obs_fake_quant(a, *switches, *states, 0.1, -8, 7, 0, rows, symmetric)
            (r * y).sum().backward()
            results += [r, a.grad, *(t.clone() for t in states)]
        return results

    def bytes_of(values: Any) -> Any:
        return (values * 40).round().to(torch.int8)

    def accumulated(dtype: Any) -> Any:
        made = ((pseudo(2, 4, 4, 4, step=311) + 1) * 90).to(dtype)
        return made.contiguous(memory_format=torch.channels_last)

    def layers() -> dict[str, Any]:
        x, w, c, cw = pseudo(4, 8, step=61) * 2, pseudo(6, 8, step=67) * 2, pseudo(2, 4, 4, 4, step=71), pseudo(4, 4, 3, 3, step=73) * 2
        small = torch.float8_e4m3fn
        return {
            "O": torch.ops.onednn, "xu": bytes_of(x).view(torch.uint8), "xs": bytes_of(x).clamp(min=0).view(torch.uint8),
            "x8": x.to(small), "lw": torch.ops.onednn.qlinear_prepack(bytes_of(w), None),
            "lw8": torch.ops.onednn.qlinear_prepack(w.to(small), None),
            "ws": torch.arange(6) * 0.001 + 0.01, "wz": torch.zeros(6, dtype=torch.int32), "lb": pseudo(6, step=83) * 3,
            "lo": pseudo(4, 6, step=89) * 2, "lu": bytes_of(pseudo(4, 6, step=97) * 3).view(torch.uint8),
            "cu": bytes_of(c).view(torch.uint8), "cw": bytes_of(cw), "c8": c.to(small), "cw8": cw.to(small), "co": accumulated,
            "cs": torch.arange(4) * 0.0005 + 0.001, "cz": torch.zeros(4, dtype=torch.int32), "cb": pseudo(4, step=101),
        }  # fmt: skip

    return layers() | {
        "g": torch.quantize_per_tensor(pseudo(2, 4, 4, 4, step=99), 0.001, -7, torch.qint32),
        "torch": torch, "F": torch.nn.functional, "Q": torch.ops.quantized, "D": torch.ops.quantized_decomposed, "x": x, "y": y, "v": v,
        "v4": torch.tensor([0.5, 1.5, -0.7, 0.9]), "v16": torch.zeros(16), "cells": cells, "learned": learned, "observed": observed,
        "q": torch.quantize_per_tensor(x, 0.02, 120, torch.quint8), "r": torch.quantize_per_tensor(y, 0.01, 90, torch.quint8),
        "s": torch.quantize_per_tensor(y, 0.01, 0, torch.qint8), "p": torch.quantize_per_channel(y, *channel, torch.qint8),
        "e": torch.quantize_per_channel(x, v, torch.tensor([3.0, 20.5, 30.0]), 0, torch.quint8), "i": fours,
        "i4": torch.quantize_per_channel(fours.dequantize(), torch.tensor([0.01, 0.02, 0.03, 0.04]), torch.zeros(4).long(), 0, torch.qint8),
        "few": torch.quantize_per_channel(x, v / 9, torch.tensor([3.0, 0.5, 7.25]), 0, torch.quint4x2),
        "u": torch.quantize_per_tensor(pseudo(2, 4, 4, 4), 0.01, 110, torch.quint8),
        "big": torch.quantize_per_tensor(pseudo(5, 200, step=977), 0.01, 120, torch.quint8),
        "wide": torch.quantize_per_tensor(pseudo(19, 200, step=433), 0.01, 0, torch.qint8),
        "unit": torch.ops.quantized.linear_prepack(
            torch._make_per_tensor_quantized_tensor((torch.eye(5) * 64).to(torch.int8), 1 / 64, 0), None
        ),
        "qparams": (torch.tensor([0.13]), torch.tensor([2], dtype=torch.int32)),
    }  # fmt: skip
