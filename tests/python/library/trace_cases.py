"""Graphs of torch.jit._get_trace_graph: nodes, types of values and scopes, as tools that count operations read them."""

import math

from tests.python.names.record import error


def _scoped(torch, model):
    """Adds hooks that push each module's name as a scope, as fvcore does."""
    for name, module in model.named_modules():

        def push(module, inputs, name=name):
            torch._C._get_tracing_state().push_scope(name)

        def pop(module, inputs, outputs):
            torch._C._get_tracing_state().pop_scope()

        module.register_forward_pre_hook(push)
        module.register_forward_hook(pop)
    return model


def _traced(torch, model, *args):
    return torch.jit._get_trace_graph(_scoped(torch, model), args)


def _sizes(values):
    return [v.type().sizes() if v.isCompleteTensor() else None for v in values]


def _operators(graph):
    """The operators with the sizes of their arguments and results, without constants and lists."""
    nodes = [node for node in graph.nodes() if not node.kind().startswith("prim::")]
    return [[n.kind(), n.scopeName(), _sizes(n.inputs()), _sizes(n.outputs())] for n in nodes]


def _products(graph):
    """Multiplications of convolutions and linear layers by innermost scope, as fvcore counts them."""
    found = {}
    for node in graph.nodes():
        shapes = _sizes(node.inputs())
        if node.kind() == "aten::_convolution":
            transposed = list(node.inputs())[6].toIValue()
            space = (shapes[0] if transposed else node.output().type().sizes())[2:]
            number = shapes[0][0] * math.prod(shapes[1]) * math.prod(space)
        elif node.kind() == "aten::linear":
            number = math.prod(shapes[0]) * shapes[1][0]
        else:
            continue
        name = node.scopeName().rpartition("/")[2]
        found[name] = found.get(name, 0) + number
    return found


def _convolutions(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=4), nn.GELU(),
        nn.ConvTranspose2d(8, 4, 2, stride=2), nn.GroupNorm(2, 4), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5),
        nn.Sigmoid(), nn.Softmax(-1),
    )  # fmt: skip


def case_convolutions(torch):
    graph, result = _traced(torch, _convolutions(torch).eval(), torch.ones(2, 3, 16, 16))
    convolutions = [n for n in graph.nodes() if n.kind() == "aten::_convolution"]
    constants = [[v.toIValue() for v in n.inputs() if v.node().kind() == "prim::Constant"] for n in convolutions]
    lists = [[[e.toIValue() for e in v.node().inputs()] for v in n.inputs() if v.type().kind() == "ListType"] for n in convolutions]
    return [_operators(graph), _products(graph), constants, lists, [v.type().sizes() for v in graph.inputs()], list(result.shape)]


def case_normalization(torch):
    found = []
    for training in (True, False):
        norm = torch.nn.BatchNorm1d(4)
        graph, _ = _traced(torch, norm.train(training), torch.ones(3, 4))
        node = graph.findNode("aten::batch_norm")
        found.append([[v.type().kind(), v.toIValue() if v.type().kind() != "TensorType" else v.type().sizes()] for v in node.inputs()])
    graph, _ = _traced(torch, torch.nn.LayerNorm(4), torch.ones(3, 4))
    return [*found, _operators(graph), [v.toIValue() for v in graph.findNode("aten::layer_norm").inputs() if not v.isCompleteTensor()]]


def case_transformer(torch):
    found = []
    for layer, count in (
        (torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0), 1), (torch.nn.TransformerDecoderLayer(16, 4, 32, dropout=0.0), 2),
        (torch.nn.MultiheadAttention(16, 4), 3),
    ):  # fmt: skip
        graph, _ = _traced(torch, layer, *[torch.ones(5, 2, 16)] * count)
        kinds = {n.kind() for n in graph.nodes()} & {"aten::linear", "aten::layer_norm", "aten::scaled_dot_product_attention", "aten::add"}
        found.append([_products(graph), sorted(kinds)])
    return found


def case_functions(torch):
    F = torch.nn.functional  # noqa: N806

    def f(x, y):
        z = F.pad(x @ y.t() + 1, (1, 2))
        first, last = torch.cat([z, z], 1).chunk(2, 1)
        largest, _ = torch.max(first * last, 1)
        products = [torch.einsum("ij,kj->ik", x, y), torch.addmm(z[:, :3], x, x.t())]
        return [*products, largest.to(torch.float64), F.embedding(y.argmax(1), x), F.one_hot(x.argmax(1), 4)]

    graph, result = torch.jit._get_trace_graph(f, (torch.ones(3, 4), torch.ones(5, 4)))
    wanted = [n for n in _operators(graph) if n[0] not in ("aten::slice", "aten::t", "aten::transpose", "aten::permute")]
    unpacked = graph.findNode("prim::ListUnpack")
    outputs = graph.return_node().inputsAt(0)
    return [
        wanted, [str(v.type()) for v in unpacked.inputs()], _sizes(unpacked.outputs()), outputs.node().kind(), outputs.type().kind(),
        _sizes(outputs.node().inputs()), len(result), graph.findNode("aten::einsum").inputsAt(0).toIValue(),
        graph.findNode("aten::to").inputsAt(1).toIValue(), len(graph.findAllNodes("prim::ListConstruct")) > 1,
    ]  # fmt: skip


def case_types(torch):
    def f(x):
        return torch.cat([x, x]).to(torch.int64)

    graph, _ = torch.jit._get_trace_graph(f, (torch.ones(2, 3).t(),))
    (x,) = graph.inputs()
    kind = x.type()
    values = [v for node in graph.nodes() for v in node.outputs()]
    single = [torch.TensorType.get(), torch.IntType.get(), torch.ListType(torch.IntType.get()), torch.ListType(torch.TensorType.get())]
    return [
        kind.sizes(), kind.strides(), kind.dim(), str(kind.dtype()).partition(".")[2], kind.scalarType(), str(kind.device()),
        kind.requires_grad(), str(kind), kind.str(), [v.type().str() for v in values], [str(v.type()) for v in values],
        [v.type().kind() for v in values], [t.kind() for t in single], [t.str() for t in single], [str(t) for t in single],
        single[0].sizes(), single[0].dtype(), x.isCompleteTensor(), x.toIValue(), x.node().kind(), graph.return_node().kind(),
        [u.user.kind() for u in x.uses()], [u.offset for u in x.uses()],
    ]  # fmt: skip


def case_in_place(torch):
    def f(x):
        y = x + 1
        y.mul_(2)
        y.relu_()
        return y

    found = []
    for outplace in (False, True):
        graph, _ = torch.jit._get_trace_graph(f, (torch.ones(3),), _force_outplace=outplace)
        nodes = [n for n in graph.nodes() if not n.kind().startswith("prim::")]
        chained = all(later.inputsAt(0).node().kind() == n.kind() for n, later in zip(nodes, nodes[1:]))
        (output,) = graph.outputs()
        found.append([[n.kind() for n in nodes], chained, output.node().kind()])
    return found


def case_constants(torch):
    table = torch.arange(3.0)
    graph, _ = torch.jit._get_trace_graph(lambda x: torch.nn.functional.gelu(x + table, approximate="tanh"), (torch.ones(3),))
    constants = {v.type().kind(): v for n in graph.findAllNodes("prim::Constant") for v in n.outputs()}
    return [
        sorted(constants), constants["TensorType"].toIValue(), constants["StringType"].node().s("value"),
        constants["IntType"].node().i("value"), constants["StringType"].node().kindOf("value"),
        constants["TensorType"].node().t("value"), constants["IntType"].node().attributeNames(),
    ]  # fmt: skip


def case_state(torch):
    seen = []

    class Module(torch.nn.Module):
        def forward(self, x):
            seen.append([torch.jit.is_tracing(), torch._C._get_tracing_state() is not None])
            return x * 2

    graph, result, inputs = torch.jit._get_trace_graph(Module(), torch.ones(2), return_inputs=True)
    return [
        seen, torch.jit.is_tracing(), torch._C._get_tracing_state(), result, len(inputs), isinstance(graph, torch._C.Graph),
        [n.scopeName() for n in graph.nodes()],
    ]  # fmt: skip


def case_errors(torch):
    weight = torch.ones(3, requires_grad=True)
    trace = torch.jit._get_trace_graph
    return [
        error(trace, lambda x: x, (object(),)).partition(":")[0], error(trace, lambda x: 3, (torch.ones(1),)).partition(":")[0],
        error(trace, lambda x: x * weight, (torch.ones(3),)).partition("\n")[0], torch.jit.is_tracing(),
    ]  # fmt: skip
