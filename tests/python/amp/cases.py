"""Calls of every operator in PyTorch's autocast lists, and of functions that PyTorch composes of them.

A call is an expression over `torch`, `F` and `T(sizes...)`, which creates a tensor of random numbers between 0.1 and 0.9.
Every call is made with tensors of float32 ("float"), of the lower precision ("lower"), and of both in turn ("mixed").
"""

from __future__ import annotations

from typing import Any

# Operators in a list of PyTorch: the name there, without the namespace aten, and a call.
LISTED = {
    "conv1d": "F.conv1d(T(1, 2, 5), T(3, 2, 2), T(3))",
    "conv1d.padding": "F.conv1d(T(1, 2, 5), T(3, 2, 2), T(3), padding='same')",
    "conv2d": "F.conv2d(T(1, 2, 5, 5), T(3, 2, 2, 2), T(3))",
    "conv2d.padding": "F.conv2d(T(1, 2, 5, 5), T(3, 2, 2, 2), T(3), padding='same')",
    "conv3d": "F.conv3d(T(1, 2, 4, 4, 4), T(3, 2, 2, 2, 2), T(3))",
    "conv3d.padding": "F.conv3d(T(1, 2, 4, 4, 4), T(3, 2, 2, 2, 2), T(3), padding='same')",
    "conv_tbc": "torch.conv_tbc(T(5, 1, 2), T(2, 2, 3), T(3))",
    "conv_transpose1d": "F.conv_transpose1d(T(1, 2, 5), T(2, 3, 2), T(3))",
    "conv_transpose2d.input": "F.conv_transpose2d(T(1, 2, 5, 5), T(2, 3, 2, 2), T(3))",
    "conv_transpose3d.input": "F.conv_transpose3d(T(1, 2, 4, 4, 4), T(2, 3, 2, 2, 2), T(3))",
    "prelu": "F.prelu(T(2, 3), T(3))",
    "addmm": "torch.addmm(T(2, 2), T(2, 3), T(3, 2))",
    "addmv": "torch.addmv(T(2), T(2, 3), T(3))",
    "addr": "torch.addr(T(2, 3), T(2), T(3))",
    "matmul": "torch.matmul(T(2, 3), T(3, 2))",
    "einsum": "torch.einsum('ij,jk->ik', T(2, 3), T(3, 2))",
    "mm": "torch.mm(T(2, 3), T(3, 2))",
    "mv": "torch.mv(T(2, 3), T(3))",
    "linalg_vecdot": "torch.linalg.vecdot(T(2, 3), T(2, 3))",
    "linear": "F.linear(T(2, 3), T(4, 3), T(4))",
    "addbmm": "torch.addbmm(T(2, 2), T(2, 2, 3), T(2, 3, 2))",
    "baddbmm": "torch.baddbmm(T(2, 2, 2), T(2, 2, 3), T(2, 3, 2))",
    "bmm": "torch.bmm(T(2, 2, 3), T(2, 3, 2))",
    "chain_matmul": "torch.chain_matmul(T(2, 3), T(3, 2), T(2, 3))",
    "linalg_multi_dot": "torch.linalg.multi_dot([T(2, 3), T(3, 2), T(2, 3)])",
    "lstm_cell": "torch.lstm_cell(T(1, 2), [T(1, 3), T(1, 3)], T(12, 2), T(12, 3), T(12), T(12))",
    "gru_cell": "torch.gru_cell(T(1, 2), T(1, 3), T(9, 2), T(9, 3), T(9), T(9))",
    "rnn_tanh_cell": "torch.rnn_tanh_cell(T(1, 2), T(1, 3), T(3, 2), T(3, 3), T(3), T(3))",
    "rnn_relu_cell": "torch.rnn_relu_cell(T(1, 2), T(1, 3), T(3, 2), T(3, 3), T(3), T(3))",
    "scaled_dot_product_attention": "F.scaled_dot_product_attention(T(1, 2, 3, 4), T(1, 2, 3, 4), T(1, 2, 3, 4))",
    **{
        f: f"torch.{f}(T(3))"
        for f in (
            "acos",
            "asin",
            "cosh",
            "erfinv",
            "exp",
            "expm1",
            "log",
            "log10",
            "log2",
            "log1p",
            "reciprocal",
            "rsqrt",
            "sinh",
            "tan",
        )
    },
    "pow.Tensor_Scalar": "torch.pow(T(3), 2)",
    "pow.Tensor_Tensor": "torch.pow(T(3), T(3))",
    "pow.Scalar": "torch.pow(2, T(3))",
    "softplus": "F.softplus(T(3))",
    "layer_norm": "F.layer_norm(T(2, 3), (3,), T(3), T(3))",
    "rms_norm": "F.rms_norm(T(2, 3), (3,), T(3))",
    "group_norm": "F.group_norm(T(2, 4, 3), 2, T(4), T(4))",
    "frobenius_norm.dim": "torch.norm(T(2, 3), 'fro', dim=(0, 1))",
    "nuclear_norm": "torch.norm(T(3, 3), 'nuc')",
    "cosine_similarity": "F.cosine_similarity(T(2, 3), T(2, 3))",
    "poisson_nll_loss": "F.poisson_nll_loss(T(3), T(3))",
    "cosine_embedding_loss": "F.cosine_embedding_loss(T(2, 3), T(2, 3), T(2).round() * 2 - 1)",
    "nll_loss": "F.nll_loss(T(2, 3), torch.tensor([0, 2], device=device))",
    "nll_loss2d": "F.nll_loss(T(2, 3, 2, 2), torch.zeros(2, 2, 2, dtype=torch.int64, device=device))",
    "cross_entropy_loss": "F.cross_entropy(T(2, 3), torch.tensor([0, 2], device=device))",
    "hinge_embedding_loss": "F.hinge_embedding_loss(T(3), T(3).round() * 2 - 1)",
    "kl_div": "F.kl_div(T(2, 3), T(2, 3), reduction='sum')",
    "l1_loss": "F.l1_loss(T(3), T(3))",
    "smooth_l1_loss": "F.smooth_l1_loss(T(3), T(3))",
    "huber_loss": "F.huber_loss(T(3), T(3))",
    "mse_loss": "F.mse_loss(T(3), T(3))",
    "margin_ranking_loss": "F.margin_ranking_loss(T(3), T(3), T(3).round() * 2 - 1)",
    "multilabel_margin_loss": "F.multilabel_margin_loss(T(1, 3), torch.tensor([[0, -1, 1]], device=device))",
    "soft_margin_loss": "F.soft_margin_loss(T(3), T(3).round() * 2 - 1)",
    "triplet_margin_loss": "F.triplet_margin_loss(T(2, 3), T(2, 3), T(2, 3))",
    "multi_margin_loss": "F.multi_margin_loss(T(2, 3), torch.tensor([0, 2], device=device))",
    "binary_cross_entropy": "F.binary_cross_entropy(T(3), T(3))",
    "binary_cross_entropy_with_logits": "F.binary_cross_entropy_with_logits(T(3), T(3))",
    "ctc_loss.Tensor": (
        "F.ctc_loss(T(5, 1, 3).log(), torch.tensor([[1, 2]], device=device), torch.tensor([5], device=device), "
        "torch.tensor([2], device=device))"
    ),
    "dist": "torch.dist(T(3), T(3))",
    "pdist": "F.pdist(T(3, 2))",
    "cdist": "torch.cdist(T(2, 3), T(2, 3))",
    "renorm": "torch.renorm(T(2, 3), 2, 0, 1.0)",
    "logsumexp": "torch.logsumexp(T(2, 3), 1)",
    "upsample_nearest1d": "F.interpolate(T(1, 2, 4), scale_factor=2)",
    "_upsample_nearest_exact2d": "F.interpolate(T(1, 2, 4, 4), scale_factor=2, mode='nearest-exact')",
    "upsample_nearest2d": "F.interpolate(T(1, 2, 4, 4), scale_factor=2)",
    "upsample_nearest3d": "F.interpolate(T(1, 2, 4, 4, 4), scale_factor=2)",
    "upsample_linear1d": "F.interpolate(T(1, 2, 4), scale_factor=2, mode='linear')",
    "upsample_bilinear2d": "F.interpolate(T(1, 2, 4, 4), scale_factor=2, mode='bilinear')",
    "_upsample_bilinear2d_aa": "F.interpolate(T(1, 2, 4, 4), size=2, mode='bilinear', antialias=True)",
    "upsample_trilinear3d": "F.interpolate(T(1, 2, 4, 4, 4), scale_factor=2, mode='trilinear')",
    "upsample_bicubic2d": "F.interpolate(T(1, 2, 4, 4), scale_factor=2, mode='bicubic')",
    "prod": "torch.prod(T(3))",
    "prod.dim_int": "torch.prod(T(2, 3), 1)",
    "softmax.int": "torch.softmax(T(2, 3), 1)",
    "softmax.int, dtype": "torch.softmax(T(2, 3), 1, dtype=torch.float64)",
    "log_softmax.int": "torch.log_softmax(T(2, 3), 1)",
    "cumprod": "torch.cumprod(T(3), 0)",
    "cumsum": "torch.cumsum(T(3), 0)",
    "linalg_vector_norm": "torch.linalg.vector_norm(T(3))",
    "linalg_matrix_norm": "torch.linalg.matrix_norm(T(2, 3))",
    "linalg_matrix_norm.str_ord": "torch.linalg.matrix_norm(T(3, 3), 'nuc')",
    "sum": "torch.sum(T(3))",
    "sum.dim_IntList": "torch.sum(T(2, 3), 1)",
    "norm.Scalar": "torch.norm(T(3), 2)",
    "norm.ScalarOpt_dim": "torch.norm(T(2, 3), 2, dim=1)",
    "addcdiv": "torch.addcdiv(T(3), T(3), T(3))",
    "addcmul": "torch.addcmul(T(3), T(3), T(3))",
    "atan2": "torch.atan2(T(3), T(3))",
    "bilinear": "F.bilinear(T(2, 3), T(2, 4), T(5, 3, 4), T(5))",
    "cross": "torch.cross(T(2, 3), T(2, 3), dim=1)",
    "dot": "torch.dot(T(3), T(3))",
    "vdot": "torch.vdot(T(3), T(3))",
    "grid_sampler": "F.grid_sample(T(1, 2, 4, 4), T(1, 3, 3, 2), align_corners=False)",
    "index_put": "torch.index_put(T(3), (torch.tensor([0], device=device),), T(1))",
    "tensordot": "torch.tensordot(T(2, 3), T(3, 2), 1)",
    "scatter_add": "torch.scatter_add(T(3), 0, torch.tensor([0, 1], device=device), T(2))",
    "cat": "torch.cat([T(2), T(3)])",
    "stack": "torch.stack([T(2), T(2)])",
    "index_copy": "torch.index_copy(T(3), 0, torch.tensor([1], device=device), T(1))",
    "polar": "torch.polar(T(3), T(3))",
    "view_as_complex": "torch.view_as_complex(T(3, 2))",
    "trace": "torch.trace(T(3, 3))",
    "quantile": "torch.quantile(T(3), T())",
    "quantile.scalar": "torch.quantile(T(3), 0.5)",
    "nanquantile.scalar": "torch.nanquantile(T(3), 0.5)",
    "avg_pool3d": "F.avg_pool3d(T(1, 2, 4, 4, 4), 2)",
    "max_pool3d": "F.max_pool3d(T(1, 2, 4, 4, 4), 2)",
    "adaptive_avg_pool3d": "F.adaptive_avg_pool3d(T(1, 2, 4, 4, 4), 2)",
    "adaptive_max_pool3d": "F.adaptive_max_pool3d(T(1, 2, 4, 4, 4), 2)",
    "fractional_max_pool2d": "F.fractional_max_pool2d(T(1, 2, 6, 6), 2, output_size=3, _random_samples=T(1, 2, 2))",
    "max_unpool2d": "F.max_unpool2d(T(1, 1, 1, 1), torch.zeros(1, 1, 1, 1, dtype=torch.int64, device=device), 2)",
    "max_unpool3d": "F.max_unpool3d(T(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1, dtype=torch.int64, device=device), 2)",
    "reflection_pad1d": "F.pad(T(1, 2, 4), (1, 1), mode='reflect')",
    "reflection_pad2d": "F.pad(T(1, 2, 4, 4), (1, 1, 1, 1), mode='reflect')",
    "replication_pad1d": "F.pad(T(1, 2, 4), (1, 1), mode='replicate')",
    "replication_pad2d": "F.pad(T(1, 2, 4, 4), (1, 1, 1, 1), mode='replicate')",
    "replication_pad3d": "F.pad(T(1, 2, 4, 4, 4), (1, 1, 1, 1, 1, 1), mode='replicate')",
    "fake_quantize_per_tensor_affine": "torch.fake_quantize_per_tensor_affine(T(3), 0.1, 0, 0, 255)",
    **{
        f: f"torch.fft.{f[4:]}(T(4))" for f in ("fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_hfft", "fft_ihfft")
    },
    **{
        f: f"torch.fft.{f[4:]}(T(4, 4))"
        for f in (
            "fft_fft2",
            "fft_ifft2",
            "fft_fftn",
            "fft_ifftn",
            "fft_rfft2",
            "fft_irfft2",
            "fft_rfftn",
            "fft_irfftn",
        )
    },
    "stft": "torch.stft(T(16), 8, return_complex=True, window=torch.ones(8, device=device))",
    "linalg_cholesky": "torch.linalg.cholesky(T(3, 3) * 0.1 + torch.eye(3, device=device))",
    "linalg_cholesky_ex": "torch.linalg.cholesky_ex(T(3, 3) * 0.1 + torch.eye(3, device=device))",
    "cholesky_inverse": "torch.cholesky_inverse(T(3, 3))",
    "cholesky_solve": "torch.cholesky_solve(T(3, 2), T(3, 3))",
    "linalg_inv": "torch.linalg.inv(T(3, 3) + torch.eye(3, device=device))",
    "inverse": "torch.inverse(T(3, 3))",
    "pinverse": "torch.pinverse(T(3, 3))",
    "linalg_svd": "torch.linalg.svd(T(3, 3))",
    "svd": "torch.svd(T(3, 3))",
    "linalg_svdvals": "torch.linalg.svdvals(T(3, 3))",
    "linalg_eig": "torch.linalg.eig(T(3, 3))",
    "linalg_eigvals": "torch.linalg.eigvals(T(3, 3))",
    "linalg_eigh": "torch.linalg.eigh(T(3, 3))",
    "linalg_eigvalsh": "torch.linalg.eigvalsh(T(3, 3))",
    "linalg_qr": "torch.linalg.qr(T(3, 3))",
    "geqrf": "torch.geqrf(T(3, 3))",
    "linalg_householder_product": "torch.linalg.householder_product(T(3, 3), T(3))",
    "ormqr": "torch.ormqr(T(3, 3), T(3), T(3, 3))",
    "linalg_solve": "torch.linalg.solve(T(3, 3), T(3, 2))",
    "linalg_lstsq": "torch.linalg.lstsq(T(3, 3), T(3, 2))[0]",
    "linalg_tensorinv": "torch.linalg.tensorinv(T(4, 2, 2), 1)",
    "linalg_tensorsolve": "torch.linalg.tensorsolve(T(2, 2, 4), T(2, 2))",
    "linalg_matrix_rank": "torch.linalg.matrix_rank(T(3, 3))",
    "linalg_cond": "torch.linalg.cond(T(3, 3))",
    "triangular_solve": "torch.triangular_solve(T(3, 2), T(3, 3))",
    "lu_solve": "torch.lu_solve(T(3, 2), T(3, 3), torch.tensor([1, 2, 3], dtype=torch.int32, device=device))",
    "_lu_with_info": "torch.linalg.lu_factor(T(3, 3))",
}

# Functions in no list: PyTorch composes them of others, or leaves the dtype unchanged.
COMPOSED = {
    "add": "T(3) + T(3)",
    "mean": "torch.mean(T(3))",
    "relu": "F.relu(T(3))",
    "gelu": "F.gelu(T(3))",
    "batch_norm": "F.batch_norm(T(4, 3), None, None, T(3), T(3), True)",
    "sqrt": "torch.sqrt(T(3))",
    "inner": "torch.inner(T(2, 3), T(2, 3))",
    "inner of vectors": "torch.inner(T(3), T(3))",
    "tensordot of vectors": "torch.tensordot(T(3), T(3), 1)",
    "tensordot of all": "torch.tensordot(T(2, 3), T(2, 3), 2)",
    "gru with a state": "torch.nn.GRU(3, 2).to(T(1).device)(T(1, 1, 3), T(1, 1, 2))[0]",
    "outer": "torch.outer(T(2), T(3))",
    "kron": "torch.kron(T(2, 2), T(2, 2))",
    "vstack": "torch.vstack([T(2), T(2)])",
    "hstack": "torch.hstack([T(2), T(2)])",
    "index_add": "torch.index_add(T(3), 0, torch.tensor([0], device=device), T(1))",
    "scatter": "torch.scatter(T(3), 0, torch.tensor([0, 1], device=device), T(2))",
    "lerp": "torch.lerp(T(3), T(3), 0.5)",
    "avg_pool2d": "F.avg_pool2d(T(1, 2, 4, 4), 2)",
    "constant_pad": "F.pad(T(1, 2, 4), (1, 1))",
    "circular_pad": "F.pad(T(1, 2, 4), (1, 1), mode='circular')",
    "reflection_pad3d": "F.pad(T(1, 2, 4, 4, 4), (1, 1, 1, 1, 1, 1), mode='reflect')",
    "unfold": "F.unfold(T(1, 2, 4, 4), 2)",
    "matrix_power": "torch.matrix_power(T(3, 3), 2)",
    "linalg_norm": "torch.linalg.norm(T(3))",
    "embedding": "F.embedding(torch.tensor([0, 1], device=device), T(3, 2))",
    "glu": "F.glu(T(2, 4))",
    "double": "torch.mm(T(2, 3).double(), T(3, 2).double())",
    "integer": "torch.sum(torch.ones(3, dtype=torch.int64, device=device))",
    "instance_norm": "F.instance_norm(T(2, 3, 4))",
    "local_response_norm": "F.local_response_norm(T(1, 4, 3), 2)",
    "normalize": "F.normalize(T(2, 3))",
    "pairwise_distance": "F.pairwise_distance(T(2, 3), T(2, 3))",
    "gaussian_nll_loss": "F.gaussian_nll_loss(T(3), T(3), T(3))",
    "multilabel_soft_margin_loss": "F.multilabel_soft_margin_loss(T(2, 3), T(2, 3))",
    "cross_entropy with weights": "F.cross_entropy(T(2, 3), torch.tensor([0, 2], device=device), T(3))",
    "cross_entropy of probabilities": "F.cross_entropy(T(2, 3), T(2, 3))",
    "softmin": "F.softmin(T(2, 3), 1)",
    "gumbel_softmax": "F.gumbel_softmax(T(2, 3))",
    "lstm": "torch.lstm(T(2, 1, 3), (T(1, 1, 4), T(1, 1, 4)), [T(16, 3), T(16, 4), T(16), T(16)], True, 1, 0.0, False, False, False)",
    "gru": "torch.gru(T(2, 1, 3), T(1, 1, 4), [T(12, 3), T(12, 4), T(12), T(12)], True, 1, 0.0, False, False, False)",
    "rnn_tanh": "torch.rnn_tanh(T(2, 1, 3), T(1, 1, 4), [T(4, 3), T(4, 4), T(4), T(4)], True, 1, 0.0, False, False, False)",
}

CASES = {**LISTED, **COMPOSED}
VARIANTS = ("float", "lower", "mixed")


def dtypes(torch: Any, call: str, device: str, lower: Any, variant: str) -> list[str] | str:
    """The dtypes of a call's results in an autocast region, or the type of the error that it raises."""
    made = 0

    def tensor(*sizes: int) -> Any:
        nonlocal made
        made += 1
        is_lower = variant == "lower" or (variant == "mixed" and made % 2 == 1)
        return (torch.rand(sizes, device=device) * 0.8 + 0.1).to(lower if is_lower else torch.float32)

    names = {"torch": torch, "F": torch.nn.functional, "T": tensor, "device": device}
    # The arguments are created in the region, by operators in no list.
    try:
        result = eval(call, names)
    except Exception as error:  # noqa: BLE001 - any error is a result
        return type(error).__name__
    results = [result] if isinstance(result, torch.Tensor) else list(result)
    return [str(r.dtype).rpartition(".")[2] for r in results]
