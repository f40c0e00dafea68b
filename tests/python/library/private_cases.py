"""Private functions of the module torch, and arguments and names that libraries use."""

from tests.python.names.record import error


def case_functions(torch):
    x, rows = torch.arange(12.0).reshape(3, 4).sin(), torch.tensor([0, 0, 1, 3, 3, 3])
    y, crow = x.softmax(1), torch._convert_indices_from_coo_to_csr(rows, 5)
    return [
        torch._weight_norm(x, torch.tensor([[1.0], [2.0], [3.0]]), 0),
        torch._weight_norm(x, torch.ones(1, 4), 1),
        torch._weight_norm(x, torch.tensor(2.0), -1),
        torch._shape_as_tensor(x),
        torch._softmax(x, 1, False),
        torch._log_softmax(x, 0, False),
        torch._softmax_backward_data(x, y, 1, torch.float32),
        *torch._unique2(torch.tensor([3, 1, 3, 2]), True, True, True),
        torch._unique2(torch.tensor([3, 1, 3]))[0],
        crow,
        torch._convert_indices_from_csr_to_coo(crow, rows),
        torch._convert_indices_from_csr_to_coo(crow, rows, out_int32=True, transpose=True),
    ]


def case_draws(torch):
    shares = torch._sample_dirichlet(torch.full((50, 3), 2.0))
    gamma = torch._standard_gamma(torch.full((1000,), 3.0))
    return [list(shares.shape), bool(((shares.sum(-1) - 1).abs() < 1e-5).all()), bool((gamma.mean() - 3).abs() < 0.4)]


def case_checks(torch):
    functions = (torch._check, torch._check_index, torch._check_value, torch._check_type, torch._check_not_implemented)
    yes, no = torch.tensor([True, True]), torch.tensor([True, False])
    return [
        [f(True) for f in functions],
        [error(f, False, lambda: "why") for f in functions],
        error(torch._check, 3).partition(":")[0],
        error(torch._check, False, "text"),
        error(torch._check_with, KeyError, False, lambda: 5),
        error(torch._check_is_size, -1, lambda: "size"),
        torch._check_tensor_all(yes),
        error(torch._check_tensor_all, no, lambda: "tensor"),
        error(torch._check_tensor_all, True).partition(":")[0],
        torch._assert_async(torch.tensor(1)),
        error(torch._assert_async, torch.tensor(0), "zero"),
    ]


def case_init_generators(torch):
    init, rows = torch.nn.init, []
    for name, *args in (
        ("uniform_",),
        ("normal_",),
        ("trunc_normal_",),
        ("xavier_uniform_",),
        ("xavier_normal_",),
        ("kaiming_uniform_",),
        ("kaiming_normal_",),
        ("orthogonal_",),
    ):
        first, second = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
        a, b, c = (getattr(init, name)(torch.empty(4, 5), *args, generator=g) for g in (first, second, first))
        rows.append([name, bool((a == b).all()), bool((a == c).all())])
    return rows


def case_small_names(torch):
    data, pytree, c = torch.utils.data, torch.utils._pytree, torch.backends

    class Own(data.Sampler[int]):
        pass

    with c.cudnn.flags(enabled=False, benchmark=True):
        inside = c.cudnn.benchmark
    return [
        issubclass(Own, data.Sampler),
        hasattr(data.DataLoader[int], "__origin__"),
        issubclass(data.BatchSampler, data.Sampler),
        issubclass(data.dataloader._MultiProcessingDataLoaderIter, data.dataloader._BaseDataLoaderIter),
        pytree._dict_flatten({"a": 1}),
        pytree._dict_unflatten([2], ["a"]),
        [str(k) for k, _ in pytree._dict_flatten_with_keys({"a": 1})[0]],
        torch.nn.attention.flex_attention._DEFAULT_SPARSE_BLOCK_SIZE,
        torch.hub.HASH_REGEX.search("x-0af9.pth").group(1),
        inside,
        c.cudnn.benchmark,
        c.mps.is_available(),
        c.mps.is_built(),
        c.opt_einsum.strategy in (None, "auto"),
        c.mha.get_fastpath_enabled(),
        c.cuda.matmul.allow_tf32,
        torch.onnx.symbolic_helper.parse_args("v")(lambda x: x)(1),
        torch.onnx.operators.shape_as_tensor(torch.ones(2, 3)),
        torch.onnx.operators.reshape_from_tensor_shape(torch.ones(2, 3), torch.tensor([3, 2])),
    ]


def case_dispatch_keys(torch):
    c = torch._C
    keys = c.DispatchKeySet(c.DispatchKey.AutocastCPU) | c.DispatchKeySet(c.DispatchKey.AutocastCUDA)
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        outside = str((x @ x).dtype)
        with c._ExcludeDispatchKeyGuard(keys):
            inside = str((x @ x).dtype)
    return [keys.has(c.DispatchKey.AutocastCPU), keys.has(c.DispatchKey.CPU), outside, inside]


def case_programs_need(torch):
    counted = torch.utils.flop_counter if hasattr(torch.utils, "flop_counter") else None
    return [
        str(torch.sparse_coo),
        str(torch.sparse_csr),
        isinstance(torch.sparse_csc, torch.layout),
        torch.version.hip,
        torch._tensor_str._tensor_str(torch.tensor([[1.5, 2.0]]), 4),
        torch._tensor_str._add_suffixes("x([1]", ["a=1", "b=" + "2" * 80], 2, False),
        torch._tensor_str.PRINT_OPTS.edgeitems,
        counted is None or hasattr(counted, "FlopCounterMode"),
    ]
