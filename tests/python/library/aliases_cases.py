"""Private functions of torch._C, and the modules torch.compiler, torch._dynamo and torch.jit."""

from tests.python.names.record import error

# Function of torch._C._nn, sizes of its tensors, and further arguments.
CALLS = [
    ("gelu", [(2, 3)], {"approximate": "tanh"}), ("elu", [(2, 3)], {"alpha": 2.0, "scale": 3.0, "input_scale": 0.5}),
    ("elu_", [(2, 3)], {}), ("hardtanh_", [(2, 3)], {"min_val": -0.5, "max_val": 0.25}), ("leaky_relu", [(3,)], {"negative_slope": 0.5}),
    ("silu_", [(3,)], {}), ("softplus", [(3,)], {"beta": 2.0}), ("log_sigmoid", [(3,)], {}), ("glu", [(2, 4)], {}),
    ("linear", [(2, 3), (4, 3), (4,)], {}), ("avg_pool2d", [(1, 2, 6, 6)], {"kernel_size": 2}),
    ("max_pool2d_with_indices", [(1, 1, 4, 4)], {"kernel_size": 2}), ("adaptive_max_pool2d", [(1, 1, 5, 4)], {"output_size": [2, 2]}),
    ("l1_loss", [(3,), (3,)], {"reduction": 2}), ("mse_loss", [(3,), (3,)], {"reduction": 0}), ("mse_loss", [(3,), (3,)], {}),
    ("huber_loss", [(3,), (3,)], {"reduction": 1, "delta": 0.5}), ("soft_margin_loss", [(3,), (3,)], {"reduction": 0}),
    ("scaled_dot_product_attention", [(1, 2, 3, 4)] * 3, {"is_causal": True}),
    ("reflection_pad1d", [(1, 2, 5)], {"padding": [2, 1]}), ("replication_pad2d", [(1, 1, 2, 3)], {"padding": [1, 2, 0, 1]}),
    ("upsample_nearest2d", [(1, 1, 2, 3)], {"output_size": [4, 5]}),
    ("upsample_nearest2d", [(1, 1, 2, 3)], {"output_size": None, "scale_factors": [2.0, 1.5]}),
    ("upsample_bilinear2d", [(1, 1, 2, 3)], {"output_size": [4, 5], "align_corners": True}),
    ("upsample_bilinear2d", [(1, 1, 4, 3)], {"output_size": [6, 5], "align_corners": False, "scales_h": 1.7, "scales_w": 1.9}),
    ("upsample_bicubic2d", [(1, 1, 4, 3)], {"output_size": [6, 5], "align_corners": False}),
    ("_upsample_bilinear2d_aa", [(1, 1, 6, 6)], {"output_size": [3, 2], "align_corners": False}),
    ("upsample_linear1d", [(1, 1, 3)], {"output_size": [5], "align_corners": False}),
    ("_upsample_nearest_exact1d", [(1, 1, 3)], {"output_size": [5]}),
    ("im2col", [(1, 1, 4, 4)], {"kernel_size": [2, 2], "dilation": [1, 1], "padding": [0, 1], "stride": [2, 1]}),
    ("col2im", [(1, 4, 9)], {"output_size": [4, 4], "kernel_size": [2, 2], "dilation": [1, 1], "padding": [0, 0], "stride": [1, 1]}),
]  # fmt: skip


def operands(torch, sizes):
    """Tensors of numbers between -1 and 1."""
    return [(torch.arange(_count(s), dtype=torch.float32) * (0.37 + i)).sin().reshape(s) for i, s in enumerate(sizes)]


def _count(size):
    result = 1
    for n in size:
        result *= n
    return result


def case_nn(torch):
    return [getattr(torch._C._nn, name)(*operands(torch, sizes), **options) for name, sizes, options in CALLS]


def case_positions(torch):
    nn = torch._C._nn
    (image,), (x, y) = operands(torch, [(1, 1, 3, 3)]), operands(torch, [(3,), (3,)])
    scores, classes = operands(torch, [(3, 4)])[0], torch.tensor([1, 0, 3])
    return [
        nn.upsample_nearest2d(image, [4, 4], None, None),
        nn.upsample_nearest2d(image, None, [2.0, 2.0]),
        nn.upsample_bilinear2d(image, [4, 4], True),
        nn.upsample_bilinear2d(image, None, False, [1.5, 1.5]),
        nn.cross_entropy_loss(scores, classes, None, 2, 3, 0.1),
        nn.nll_loss_nd(scores, classes, None, 1, 0),
        nn.smooth_l1_loss(x, y, 2, 0.5),
        nn.multi_margin_loss(scores, classes, 1, 0.5, None, 0),
        nn.flatten_dense_tensors([x, scores]),
        *nn.unflatten_dense_tensors(nn.flatten_dense_tensors([x, scores]), [x, scores]),
        error(nn.upsample_nearest2d, x, [2, 2]).partition(":")[0],
    ]


def case_parse_to(torch):
    parse = torch._C._nn._parse_to
    rows = [parse(torch.float16), parse("cpu"), parse(torch.device("cpu"), torch.float64, True), parse(torch.ones(1)), parse(3), parse()]
    return [*rows, parse(device="cpu"), parse(dtype=torch.int64), error(parse, "cpu", torch.float64, False, True), bool(error(parse, "no"))]


def case_families(torch):
    c, x = torch._C, torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    return [
        c._fft.fft_rfft(x).abs(), c._linalg.linalg_det(x), c._linalg.linalg_cholesky(x), c._special.special_erf(x),
        c._special.special_logsumexp(x, 1), c._get_tracing_state(), isinstance(torch.Tensor, c._TensorMeta),
        error(getattr, c, "no_such_name").partition(":")[0],
    ]  # fmt: skip


def case_compiler(torch):
    compiler, dynamo = torch.compiler, __import__(f"{torch.__name__}._dynamo", fromlist=["x"])

    def f(x):
        return x + 1

    with compiler.set_stance("force_eager"), dynamo.config.patch(verbose=True):
        inside = dynamo.config.verbose
    return [
        compiler.is_compiling(), compiler.is_dynamo_compiling(), compiler.is_exporting(), dynamo.is_compiling(), inside,
        dynamo.config.verbose, compiler.disable(f)(1), compiler.disable(recursive=False)(f)(1), compiler.allow_in_graph(f) is f,
        compiler.assume_constant_result(f)(1), compiler.set_stance("eager_on_recompile")(f)(1), compiler.get_default_backend(),
        compiler.save_cache_artifacts(), dynamo.disable()(f)(2), compiler.keep_tensor_guards_unsafe([]),
        dynamo.mark_static_address(torch.ones(1)), compiler.reset(),
    ]  # fmt: skip


def case_jit(torch):
    jit, internal = torch.jit, __import__(f"{torch.__name__}._jit_internal", fromlist=["x"])
    module = torch.nn.Linear(1, 1)

    class Scripted(jit.ScriptModule):
        pass

    choose = internal.boolean_dispatch("flag", 1, False, lambda x, flag=False: "true", lambda x, flag=False: "false", __name__, "choose")
    return [
        isinstance(module, jit.ScriptModule), isinstance(Scripted(), jit.ScriptModule), isinstance(len, jit.ScriptFunction),
        jit.Attribute(3, int).value, choose(1), choose(1, True), choose(1, flag=True), choose.__name__, jit.is_scripting(),
        issubclass(jit.TracerWarning, Warning),
        jit._script_if_tracing(lambda x: x)([1]), internal._copy_to_script_wrapper(lambda x: x + 1)(2),
    ]  # fmt: skip
