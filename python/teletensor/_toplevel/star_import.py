"""The names that `from teletensor import *` gives: PyTorch's, and the functions that PyTorch does not have."""

from __future__ import annotations

from collections.abc import Iterable

# Names of torch that star imports do not give there, and names of this package that are not given: `open` is also Python's.
_LEFT_OUT = frozenset(
    """
    BFloat16Storage BFloat16Tensor ComplexDoubleStorage ComplexFloatStorage HalfStorage HalfTensor Storage StorageBase Variable annotations
    broadcast_shapes channels_last channels_last_3d cholesky contiguous_format eig from_dlpack get_approximate_basis jagged
    legacy_contiguous_format lstsq lu matrix_rank native_dropout_backward pca_lowrank per_channel_affine
    per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine per_tensor_symmetric preserve_format qr quantized_gru
    quantized_lstm segment_reduce set_default_dtype set_grad_enabled solve sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr
    strided sum_to_size svd_lowrank symeig torch unique while_loop
    models open persist publish published serve session_info set_trace_context trace_context unpublish
    """.split()
)


def star_names(names: Iterable[str], modules: Iterable[str]) -> list[str]:
    """The public ones of the package's names, without those that PyTorch leaves out, and without its modules."""
    left_out = _LEFT_OUT.union(modules) - {"export"}  # a function, too
    return sorted(name for name in names if not name.startswith("_") and name not in left_out)
