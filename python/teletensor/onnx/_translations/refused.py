"""Operators without a translation, and why."""

from __future__ import annotations

from .._registry import refuse

refuse("aten.resize_.default aten.resize.default aten.set_.source_Tensor",
       "ONNX has no storage that could be resized; PyTorch's exporter has no translation either")  # fmt: skip
refuse("""
    aten._adaptive_avg_pool2d_backward.default aten.avg_pool2d_backward.default aten.convolution_backward.default
    aten.embedding_dense_backward.default aten.max_pool2d_with_indices_backward.default aten.native_group_norm_backward.default
    aten.native_layer_norm_backward.default
    """, "computes a gradient, which torch.export does not record; PyTorch's exporter has no translation either")  # fmt: skip
refuse("""
    aten.linalg_svd.default aten._linalg_svd.default aten.linalg_qr.default aten.linalg_eigh.default aten._linalg_eigh.default
    aten.linalg_eig.default aten.linalg_cholesky_ex.default aten.cholesky.default aten.linalg_inv_ex.default aten.inverse.default
    aten.linalg_solve_ex.default aten.linalg_lu.default aten.linalg_lu_factor_ex.default aten.linalg_lstsq.default
    aten.linalg_matrix_exp.default aten.triangular_solve.default aten.linalg_solve_triangular.default
    """, "ONNX has no decompositions of matrices")  # fmt: skip
refuse("""
    aten.digamma.default aten.lgamma.default aten.polygamma.default aten.igamma.default aten.igammac.default aten.erfinv.default
    aten.special_i0.default aten.special_i1.default aten.special_zeta.default aten.i0.default
    """, "ONNX has no such function")  # fmt: skip
refuse("aten.histc.default", "ONNX has no such operator")
refuse("aten.ctc_loss.IntList aten.ctc_loss.Tensor aten._ctc_loss.default", "ONNX has no such loss")
