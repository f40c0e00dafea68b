"""Functions of the module torch that are imported at their first use, and Tensor's methods that describe tensors."""

import warnings

from .rows import values_of


def operands(torch):
    """Named tensors for the rows."""
    x = torch.arange(12.0).reshape(3, 4) / 4 - 1
    return {
        "x": x, "y": torch.cos(x), "t": torch.tensor([1.0, -1.0, 1.0]), "i": torch.tensor([0, 2, 0]),
        "batch": torch.sin(torch.arange(24.0)).reshape(2, 3, 4), "F": torch.nn.functional,
    }  # fmt: skip


ROWS = """
torch.binary_cross_entropy_with_logits(x, y.abs(), None, None, 0)
torch.binary_cross_entropy_with_logits(x, y.abs(), reduction=2)
torch.cosine_embedding_loss(x, y, t, 0.5, 1)
torch.hinge_embedding_loss(y, x.sign(), 0.5, 1)
torch.kl_div(x, y, 2, log_target=True)
torch.margin_ranking_loss(x[:, 0], y[:, 0], t, 0.1, 0)
torch.poisson_nll_loss(x, y.abs(), True, False, 1e-8, 1)
torch.ctc_loss(torch.log_softmax(batch, 2), torch.tensor([[1, 2], [3, 1], [2, 2]]), [2, 2, 2], [1, 2, 1], 0, 1)
torch.affine_grid_generator(torch.ones(1, 2, 3), [1, 1, 2, 2], True)
torch.convolution(batch, torch.ones(2, 3, 2), None, [1], [1], [2], False, [0], 1)
torch.convolution(batch, torch.ones(3, 2, 2), torch.ones(2), [2], [0], [1], True, [1], 1)
torch.convolution(x, torch.ones(2, 3, 2), None, [1], [1], [2], False, [0], 1)
torch.embedding_renorm_(x.clone(), i, 1.0, 2.0)
torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.2, 0.5]), torch.tensor([0, 2, 1], dtype=torch.int32), 0, 0, 7)
torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.2]), torch.tensor([0, 2], dtype=torch.int32), 0, 0, 7)
torch.frobenius_norm(x, [0, 1])
torch.frobenius_norm(x, [1], True)
torch.nuclear_norm(x)
torch.nuclear_norm(batch, [0, 2], True)
torch.norm_except_dim(batch, 2, 1)
torch.norm_except_dim(batch, 2, -1)
torch.norm_except_dim(batch, 1, 0)
torch.max_pool1d_with_indices(batch, 2, 1)
torch.max_pool1d_with_indices(batch, 2)
torch.native_channel_shuffle(batch.repeat(1, 2, 1).unsqueeze(-1), 2).shape
torch.slice_inverse(torch.arange(6.0)[1:3], torch.zeros(6), 0, 1, 3)
torch.view_as_complex_copy(x.reshape(3, 2, 2)).shape
torch.view_as_real_copy(torch.complex(x, y))
torch.feature_alpha_dropout(batch, 0.5, False)
torch.dropout_(x.clone(), 1.0, True)
torch.alpha_dropout_(x.clone(), 0.0, True)
torch.celu_(x.clone(), 0.5)
torch.selu_(x.clone())
torch.threshold_(x.clone(), 0.1, 3.0)
torch.rrelu_(x.clone())
torch.acosh_(x.clone().abs() + 1)
torch.addmv_(torch.ones(3), x, torch.ones(4))
torch.clip_(x.clone(), 0, 1)
torch.nan_to_num_(x.clone() / 0)
torch.index_put_(x.clone(), (i,), torch.tensor(9.0))
torch.gcd_(torch.tensor([12, 18]), torch.tensor([8, 27]))
torch.ldexp_(x.clone(), i[0] + 2)
torch.frombuffer(bytearray(range(16)), dtype=torch.int16, count=3, offset=2)
torch.frombuffer(bytearray(range(16)), dtype=torch.uint8, offset=12)
torch.frombuffer(bytearray(range(16)), dtype=torch.int32, offset=3)
torch.frombuffer(bytearray(range(16)), dtype=torch.int32, count=5)
torch.frombuffer(bytearray(), dtype=torch.int32)
torch.frombuffer(3, dtype=torch.int32)
torch.frombuffer(bytearray(8), dtype=torch.int32, offset=8)
torch.is_nonzero(torch.tensor([3])), torch.is_nonzero(torch.tensor([False]))
torch.is_nonzero(x)
torch.is_same_size(x, y), torch.is_same_size(x, t), x.is_same_size(batch)
torch.is_signed(x), torch.is_signed(x.to(torch.uint8)), i.is_signed()
torch.is_inference(x), x.is_inference(), torch.is_distributed(x), x.is_distributed(), torch.get_device(x)
torch.typename(x), torch.typename(3), torch.typename(torch.nn.Linear), torch.typename(torch.float32), torch.typename(len)
torch.get_device_module("cpu").__name__.rpartition(".")[2]
torch.get_device_module(3)
torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
torch.cond(False, torch.sin, torch.cos, (x,))
torch.while_loop(lambda a, b: a < 5, lambda a, b: (a + 1, b * 2), (torch.tensor(0), torch.tensor(1.0)))
torch.sym_int(3.7), torch.sym_float(2), torch.sym_not(0), torch.sym_sqrt(4), torch.sym_sum(1, 2), torch.sym_sum([3, 4])
torch.sym_max(1, 2.0), torch.sym_min(1, 2), torch.sym_max(1, 1.0), torch.sym_ite(True, 1, 2), torch.sym_fresh_size(3)
torch.sym_ite(True, 1, 2.0)
torch.sym_constrain_range(3, min=1, max=2)
torch.sym_constrain_range(3, min=1, max=4)
torch.sym_constrain_range_for_size(3, max=2)
torch.Tag.core.name, torch.Tag.core.value, torch.Tag.view_copy.value, isinstance(3, torch.SymInt)
isinstance(torch.strided, torch.layout), isinstance(torch.channels_last, torch.memory_format), repr(torch.strided), x.layout
torch.is_warn_always_enabled(), torch.set_warn_always(True), torch.is_warn_always_enabled(), torch.set_warn_always(False)
torch.is_anomaly_enabled(), torch.set_anomaly_enabled(True, False), torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
torch.set_anomaly_enabled(False, True), torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
torch.set_deterministic_debug_mode("later")
torch.set_deterministic_debug_mode(3)
torch.set_deterministic_debug_mode(1), torch.get_deterministic_debug_mode()
torch.set_deterministic_debug_mode("default"), torch.get_deterministic_debug_mode()
torch.set_num_interop_threads(0)
torch.autocast_increment_nesting(), torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
torch.autocast_decrement_nesting(), torch.clear_autocast_cache(), torch.is_autocast_cache_enabled()
torch.set_autocast_enabled("cpu", True), torch.is_autocast_enabled("cpu"), (x @ y.T).dtype, torch.set_autocast_enabled("cpu", False)
torch.set_autocast_dtype("cpu", torch.float16), torch.get_autocast_dtype("cpu"), torch.set_autocast_dtype("cpu", torch.bfloat16)
torch.set_autocast_cache_enabled(False), torch.is_autocast_cache_enabled(), torch.set_autocast_cache_enabled(True)
torch.newaxis, torch.has_lapack, torch.random.thread_safe_generator()
x.dense_dim(), x.sparse_dim(), x.dim_order(), x.T.dim_order(), batch.transpose(0, 1).dim_order()
i.dequantize()
torch.dequantize(i)
torch.spmm(x, y.T), torch.dsmm(x, y.T)
x.coalesce()
x.indices()
x.crow_indices()
x.int_repr()
x.is_cpu, x.is_meta, x.is_mps, x.is_nested, x.is_sparse_csr, x.is_mkldnn, torch.ones(2, device="meta").is_meta, x.name
x.storage_type().__name__, i.storage_type().__name__
x.volatile, x.grad_dtype, x.retains_grad
x.eig()
x.solve(y)
x.hardshrink(), x.hardshrink(0.1)
x.resize_as(y.reshape(4, 3))
x.clone().map2_(y, t[:1], lambda a, b, c: a * b + c)
x.unsafe_split_with_sizes([1, 2])
torch.zeros(3, 4).module_load(x), torch.zeros(3, 4).module_load(x, assign=True)
torch.Future, torch.GradScaler.__name__, torch.Stream.__name__
"""


def case_rows(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = values_of(torch, ROWS.replace("torch.Future,", "torch.Future.__name__,"), **operands(torch))
    rows.pop("torch.is_same_size(x, y), torch.is_same_size(x, t), x.is_same_size(batch)")
    return rows


def recurrent(torch, name, packed):
    """Results and gradients of two bidirectional layers."""
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    data = torch.sin(torch.arange(24.0)).reshape(4, 2, 3) if not packed else torch.sin(torch.arange(18.0)).reshape(6, 3)
    params, entering = [], 3
    for _layer in range(2):
        for _direction in range(2):
            shapes = ((gates * 2, entering), (gates * 2, 2), (gates * 2,), (gates * 2,))
            for shape in shapes:
                count = len(params) + torch.arange(1.0, 1 + shape[0] * (shape[1] if len(shape) > 1 else 1))
                params.append((torch.cos(count) / 2).reshape(shape).requires_grad_())
        entering = 4
    state = torch.ones(4, 2, 2) / 3
    hx = (state, state / 2) if name == "lstm" else state
    options = (True, 2, 0.0, False, True)
    function = getattr(torch, name)
    results = function(data, torch.tensor([2, 2, 1, 1]), hx, params, *options) if packed else function(data, hx, params, *options, False)
    sum(r.sum() for r in results).backward()
    return [*results, params[0].grad, params[9].grad]


def case_recurrent(torch):
    return {f"{n} {p}": recurrent(torch, n, p) for n in ("lstm", "gru", "rnn_tanh", "rnn_relu") for p in (False, True)}


def case_lobpcg(torch):
    """Eigenvalues, and vectors up to their signs; PyTorch iterates, so it computes what linalg.eigh does here."""
    a = torch.sin(torch.arange(81.0, dtype=torch.float64) ** 1.5).reshape(9, 9)
    a, b = a + a.T, torch.eye(9, dtype=torch.float64) + torch.diag(torch.arange(9.0, dtype=torch.float64))
    rows = []
    for options in ({"k": 3}, {"k": 2, "largest": False}, {"k": 2, "B": b}, {"X": torch.ones(9, 1, dtype=torch.float64)}, {"k": 4}):
        try:
            if torch.__name__ == "torch" and options.get("k") != 4:
                half = torch.diag(torch.diag(b).rsqrt()) if "B" in options else torch.eye(9, dtype=torch.float64)
                values, vectors = torch.linalg.eigh(half @ a @ half)
                order = slice(None) if options.get("largest") is False else slice(None, None, -1)
                values, vectors = (torch.tensor(t.numpy()[..., order].copy()) for t in (values, half @ vectors))
                values, vectors = values[: options.get("k", 1)], vectors[:, : options.get("k", 1)]
            else:
                values, vectors = torch.lobpcg(a, **options)
            rows.append([values, vectors.abs()])
        except Exception as e:  # noqa: BLE001 - any error is a result
            rows.append(type(e).__name__)
    return rows


def case_gradients(torch):
    rows = []
    x = torch.tensor([[-3.0, 0.1, 2.0], [0.5, 0.7, 9.0]], requires_grad=True)
    torch.fake_quantize_per_channel_affine(
        x, torch.tensor([0.5, 0.25]), torch.tensor([1, 2], dtype=torch.int32), 0, 0, 7
    ).sum().backward()
    rows.append(x.grad)
    y = x.detach().requires_grad_()
    seen = []
    handle = y.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    (y * 2).sum().backward()
    (y * y).sum().backward()
    handle.remove()
    (y * y).sum().backward()
    z = y * 2
    before = z.retains_grad
    z.retain_grad()
    return [*rows, *seen, y.grad, before, z.retains_grad]


def case_batch_norm(torch):
    input = torch.sin(torch.arange(24.0)).reshape(2, 3, 4)
    running = torch.zeros(3), torch.ones(3)
    return [*torch.batch_norm_update_stats(input, *running, 0.1), *running]


def case_named_results(torch):
    """Results with names, and how they are printed."""
    x = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    results = {
        "max": x.max(1), "sort": x.sort(dim=0, stable=True), "mode": x.mode(0), "aminmax": torch.aminmax(x), "var_mean": torch.var_mean(x),
        "frexp": torch.frexp(x), "histogram": torch.histogram(x, 2), "histogramdd": torch.histogramdd(x, [1, 1]),
        "triangular_solve": torch.triangular_solve(x, x), "eigvals": torch.linalg.eigh(x)[:1], "inv_ex": torch.linalg.inv_ex(x),
        "slogdet": torch.linalg.slogdet(x), "cholesky_ex": torch.linalg.cholesky_ex(x), "lu_factor": torch.linalg.lu_factor(x),
        "old slogdet": torch.slogdet(x), "geqrf": torch.geqrf(x), "lu_unpack": torch.lu_unpack(*torch.linalg.lu_factor(x)),
        "out": torch.histogram(x, 2, out=(torch.ones(2), torch.ones(3))),
        "linalg out": torch.linalg.slogdet(x, out=(x[0, 0].clone(), x.sum())),
    }  # fmt: skip
    fields = [
        results["frexp"].mantissa, results["frexp"].exponent, results["histogram"].hist, results["histogramdd"].bin_edges[0],
        torch.svd(x).S, torch.svd(x, compute_uv=False).V, results["triangular_solve"].solution,
        results["out"].hist, results["linalg out"].sign, results["geqrf"].tau,
    ]  # fmt: skip
    return {name: repr(result) for name, result in results.items()} | {"fields": fields}
