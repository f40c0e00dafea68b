"""torch.autograd.graph, torch.utils.checkpoint, torch.hub and other small modules."""

import importlib
import tempfile
from pathlib import Path

from .record import error


def case_multi_grad_hooks(torch):
    graph, rows, firsts = torch.autograd.graph, [], []
    a, b, c = (torch.full((2,), float(i), requires_grad=True) for i in (1, 2, 3))
    every = graph.register_multi_grad_hook((a, b, c), lambda grads: rows.append(["all", *[g if g is None else g.clone() for g in grads]]))
    first = graph.register_multi_grad_hook((a, b), lambda grad: firsts.append(grad.clone()), mode="any")
    (a * b).sum().backward()
    (a * b * c).sum().backward()
    (b * b).sum().backward()
    (torch.ones(2, requires_grad=True) * 2).sum().backward()
    every.remove()
    (c * c * a).sum().backward()
    first.remove()
    (a * b * c).sum().backward()
    with graph.register_multi_grad_hook((a,), lambda grads: rows.append("with")):
        a.sum().backward()
    a.sum().backward()
    return [
        *rows,
        firsts,
        error(graph.register_multi_grad_hook, (a,), print, mode="some"),
        error(graph.register_multi_grad_hook, (torch.ones(1),), print),
    ]


def case_versions_and_callbacks(torch):
    graph, rows = torch.autograd.graph, []
    x, scalar = torch.ones(2, 2, requires_grad=True), torch.tensor(1.0)
    y = x * 2
    z = (y * y).sum()
    before = [y._version, scalar._version]
    graph.increment_version(y)
    graph.increment_version([scalar])
    rows += [y._version - before[0], scalar._version - before[1], y, error(lambda: (z.backward(), x.grad.tolist())).partition(":")[0]]
    order = []
    w = x * 3
    w.register_hook(lambda g: (order.append("hook"), graph.queue_callback(lambda: order.append("end")))[0])
    x.register_hook(lambda g: order.append("leaf"))
    w.sum().backward()
    return [
        *rows,
        order,
        error(graph.get_gradient_edge, scalar),
        error(graph.region_activation_memory_budget, 2.0),
        error(graph.region_activation_memory_budget, "a"),
        error(graph.region_activation_memory_budget, 0.5),
    ]


def case_checkpoint_names(torch):
    checkpoint = torch.utils.checkpoint
    x, seen = torch.tensor([0.5, -1.0], requires_grad=True), []

    def function(x):
        seen.append(1)
        return (x.sin() * 2).sum()

    with checkpoint.set_checkpoint_early_stop(False), checkpoint.set_checkpoint_debug_enabled(None):
        checkpoint.checkpoint(function, x, use_reentrant=False, context_fn=checkpoint.noop_context_fn).backward()
    checkpoint.DefaultDeviceType.set_device_type("xpu")
    device_type = checkpoint.DefaultDeviceType.get_device_type()
    checkpoint.DefaultDeviceType.set_device_type("cuda")
    policies = {p.name: p.value for p in checkpoint.CheckpointPolicy}
    return [
        x.grad,
        len(seen),
        policies,
        issubclass(checkpoint.CheckpointError, RuntimeError),
        device_type,
    ]


def case_hub(torch):
    hub = importlib.import_module(f"{torch.__name__}.hub")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "hubconf.py").write_text(
            "from hub_part import scale\n\n"
            "def model(a, b=2):\n    'The doc.'\n    return scale(a, b)\n\ndef _hidden():\n    pass\n\nvalue = 3\n"
        )
        Path(folder, "hub_part.py").write_text("def scale(a, b):\n    return a * b\n")
        rows = [
            hub.load(folder, "model", 4, source="local"),
            hub.load(folder, "model", 4, b=5, source="local", trust_repo=True),
            error(hub.load, folder, "value", source="local"),
            error(hub.load, folder, "x", source="elsewhere"),
            error(hub.load, folder, 3, source="local"),
        ]
        Path(folder, "hubconf.py").write_text("dependencies = ['no_such_module_here']\n")
        rows.append(error(hub.load, folder, "model", source="local"))
    before = hub.get_dir()
    hub.set_dir("/nowhere/hub")
    rows.append(hub.get_dir())
    hub.set_dir(before)
    return rows


def case_make_tensor(torch):
    make, rows = torch.testing.make_tensor, []
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.complex64,
    ):
        t = make(3, 40, dtype=dtype, device="cpu", exclude_zero=dtype is not torch.bool, noncontiguous=True)
        limits = t.abs().float() if dtype is not torch.bool else t.float()
        rows.append(
            [str(t.dtype), list(t.shape), t.is_contiguous(), bool((limits <= 13).all()), bool((t == 0).any()) and dtype is not torch.bool]
        )
    small = make((100,), dtype=torch.float32, device="cpu", low=2, high=3, requires_grad=True)
    whole = make([50], dtype=torch.int32, device="cpu", low=4, high=6)
    return [
        *rows,
        bool(((small >= 2) & (small < 3)).all()),
        small.requires_grad,
        sorted(set(whole.tolist())),
        list(make((), dtype=torch.float32, device="cpu").shape),
        error(make, 2, dtype=torch.float32, device="cpu", low=3, high=2),
        error(make, 2, dtype=torch.int32, device="cpu", requires_grad=True),
        error(make, 2, dtype=torch.uint8, device="cpu", low=-9, high=-3),
        error(make, 2, dtype=torch.float32, device="cpu", low=float("nan")),
    ]


def case_swap_tensors(torch):
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(3, 1), requires_grad=False)
    a.note = "first"
    (a * 3).sum().backward()
    same = [id(a), id(b)]
    torch.utils.swap_tensors(a, b)
    rows = [a, b, a.requires_grad, b.requires_grad, a.grad, b.grad, hasattr(a, "note"), b.note, [id(a), id(b)] == same]
    (b * 2).sum().backward()
    return [*rows, b.grad]


def case_modules(torch):
    cpu = importlib.import_module(f"{torch.__name__}.cpu")
    types = importlib.import_module(f"{torch.__name__}.types")
    rows = [cpu.is_available(), cpu.device_count(), cpu.current_device(), cpu.is_initialized(), cpu.synchronize(), cpu.Event().query()]
    stream = cpu.Stream()
    with cpu.stream(stream):
        rows.append(cpu.current_stream() is stream)
    return [*rows, cpu.current_stream() is stream, isinstance(1.5, types._Number)]


def case_gradient_edges(torch):
    edge_of = torch.autograd.graph.get_gradient_edge
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    z = (y * y).sum()
    rows = [*torch.autograd.grad(z, edge_of(y), retain_graph=True), *torch.autograd.grad([z], [edge_of(y), x], retain_graph=True)]
    torch.autograd.backward(edge_of(z), inputs=[x], retain_graph=True)
    y.grad_fn.metadata["name"] = 1
    rows += [x.grad, edge_of(y).node.name(), edge_of(y).output_nr, y.grad_fn.metadata, z.grad_fn.metadata, error(edge_of, torch.ones(1))]
    y.add_(1)
    return [*rows, y.grad_fn.name(), y.grad_fn.metadata, edge_of(x).node.name().rpartition("::")[2]]


def case_attention_settings(torch):
    cuda, f = torch.backends.cuda, torch.nn.functional
    x = torch.sin(torch.arange(24.0)).reshape(1, 1, 6, 4)
    names = ("flash", "mem_efficient", "math", "cudnn")
    rows = [[getattr(cuda, f"{n}_sdp_enabled")() for n in names]]
    for n in names[:2]:
        getattr(cuda, f"enable_{n}_sdp")(False)
    rows += [[getattr(cuda, f"{n}_sdp_enabled")() for n in names], f.scaled_dot_product_attention(x, x, x)]
    for n in names[:2]:
        getattr(cuda, f"enable_{n}_sdp")(True)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        rows.append([getattr(cuda, f"{n}_sdp_enabled")() for n in names])
    return [*rows, [getattr(cuda, f"{n}_sdp_enabled")() for n in names]]
