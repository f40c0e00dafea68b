"""Names of the module torch that are imported at their first use, and its settings and objects that few programs use."""

# Operators of which there are torch._foreach_* and _foreach_*_.
FOREACH_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
)
FOREACH_BINARY = "add clamp_max clamp_min div maximum minimum mul pow sub"


def _foreach_names() -> str:
    both = [f"_foreach_{name}{end}" for name in f"{FOREACH_UNARY} {FOREACH_BINARY} addcdiv addcmul lerp".split() for end in ("", "_")]
    return " ".join([*both, *(f"_foreach_{name}" for name in ("clone", "copy_", "max", "mm", "norm", "powsum", "zero_"))])


# Names of the module torch, by the module that defines them.
NAMES = {
    "_event": "Event Stream",
    "_storage": "UntypedStorage",
    "testing._file_check": "FileCheck",
    "amp._settings": "autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype "
    "get_autocast_ipu_dtype get_autocast_xla_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype "
    "set_autocast_xla_enabled "
    "is_autocast_cache_enabled is_autocast_ipu_enabled is_autocast_xla_enabled set_autocast_cache_enabled set_autocast_cpu_dtype "
    "set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype",
    "_ops.batch_norm": "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats "
    "batch_norm_gather_stats_with_counts batch_norm_update_stats",
    "_toplevel.buffers": "from_file frombuffer",
    "_ops.assertions": "_assert _assert_async _check _check_index _check_is_size _check_not_implemented _check_tensor_all "
    "_check_tensor_all_with _check_type _check_value _check_with",
    "_higher_order_ops.control": "cond while_loop",
    "_toplevel.default_generator": "AcceleratorError default_generator",
    "_ops.foreach": _foreach_names(),
    "nn._aten_losses": "binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div "
    "margin_ranking_loss poisson_nll_loss",
    "nn._aten_layers": "wait affine_grid_generator convolution embedding_renorm_ "
    "frobenius_norm max_pool1d_with_indices native_channel_shuffle nuclear_norm "
    "slice_inverse view_as_complex_copy view_as_real_copy celu_ selu_ threshold_",
    "nn._torch_layers": "adaptive_max_pool1d alpha_dropout alpha_dropout_ batch_norm dropout dropout_ embedding feature_alpha_dropout "
    "feature_alpha_dropout_ feature_dropout feature_dropout_ group_norm instance_norm layer_norm max_pool1d max_pool2d max_pool3d "
    "rrelu rrelu_ triplet_margin_loss",
    "nn._aten_private": "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _log_softmax "
    "_sample_dirichlet _shape_as_tensor _softmax _softmax_backward_data _standard_gamma _unique2 _weight_norm",
    "_toplevel.published": "open publish published unpublish",
    "_plugin_devices": "_register_device_module=register_device_module",
    "_ops.tensor_queries": "get_device get_device_module is_distributed is_inference is_nonzero is_same_size is_signed typename",
    "nn._torch_recurrent": "gru lstm lstm_cell rnn_relu rnn_tanh",
    "_toplevel.settings": "get_deterministic_debug_mode get_num_interop_threads init_num_threads "
    "is_warn_always_enabled set_deterministic_debug_mode set_flush_denormal "
    "set_num_interop_threads set_warn_always",
    "_toplevel.persistence": "persist",
    "_toplevel.session_information": "session_info",
    "_toplevel.trace_context": "set_trace_context trace_context",
    "_toplevel.symbols": "SymBool SymFloat SymInt Tag sym_constrain_range sym_constrain_range_for_size sym_float sym_fresh_size "
    "sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum",
    "_ops.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    "linalg._lobpcg": "lobpcg",
    "linalg._lowrank": "get_approximate_basis pca_lowrank svd_lowrank",
    "linalg._removed": "eig lstsq matrix_rank solve symeig",
    "_quantized.fake": "_fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine "
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fused_moving_avg_obs_fq_helper fused_moving_avg_obs_fake_quant",
    "_quantized.functions": "_choose_qparams_per_tensor _convert_weight_to_int4pack _convert_weight_to_int4pack_for_cpu _int_mm "
    "_weight_int4pack_mm _weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros _weight_int8pack_mm "
    "choose_qparams_optimized quantized_batch_norm quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d",
    "_quantized.operators.recurrent_layers": "quantized_gru quantized_lstm",
    "_quantized.create": "_empty_affine_quantized _empty_per_channel_affine_quantized _make_per_channel_quantized_tensor "
    "_make_per_tensor_quantized_tensor dequantize empty_quantized int_repr q_per_channel_axis q_per_channel_scales "
    "q_per_channel_zero_points q_scale q_zero_point quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic",
    "_quantized.fbgemm": "fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
    "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix "
    "quantized_gru_cell quantized_lstm_cell quantized_rnn_relu_cell quantized_rnn_tanh_cell",
    "_sparse.functions": "_sparse_coo_tensor_unsafe _validate_sparse_compressed_tensor_args _validate_sparse_coo_tensor_args "
    "ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy native_norm resize_as_sparse_ row_indices_copy "
    "saddmm smm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm "
    "sspaddmm values_copy",
    "_quantized_names": "chalf complex32 qint32 qint8 qscheme quint2x4 quint4x2 quint8 per_channel_affine per_channel_affine_float_qparams "
    "per_channel_symmetric per_tensor_affine per_tensor_symmetric",
    "_absent_dtypes": "bcomplex32 bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu",
    "_toplevel.absent_kernels": "is_vulkan_available miopen_batch_norm miopen_convolution miopen_convolution_add_relu "
    "miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn",
    "nn._aten_embedding_bag": "embedding_bag mkldnn_convolution",
    "utils.throughput_benchmark": "BenchmarkConfig BenchmarkExecutionStats ThroughputBenchmark",
    "_small_integers": "int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7",
    "_C": "DisableTorchFunction DisableTorchFunctionSubclass",
    "autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    "amp": "GradScaler autocast",
    "futures": "Future",
    "_nested.private": "_nested_get_lengths _nested_get_offsets _nested_get_ragged_idx _nested_get_values _nested_tensor_from_mask "
    "_nested_tensor_from_mask_left_aligned",
    "_layouts": "jagged sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr",
    "jit": "CompilationUnit ScriptFunction ScriptModule fork",
    "jit._graph": "Graph Node Use Value",
    "jit._graph_types": "AnyType BoolType ComplexType DeviceObjType FloatType IntType ListType NoneType StringType TensorType "
    "TupleType Type",
    "_tracing_state": "TracingState",
    "random": "thread_safe_generator",
    "serialization": "load save",
    "serialization._file_reader": "PyTorchFileReader",
    "storage": "StorageBase TypedStorage DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage IntStorage ShortStorage "
    "CharStorage ByteStorage BoolStorage ComplexDoubleStorage ComplexFloatStorage",
    "func": "vmap",
    "compiler._compile": "compile",
    "serving": "models serve",
    "functional": "split",
    "nn.functional": "adaptive_avg_pool1d avg_pool1d conv1d conv2d conv3d",
}
