"""Calls of other libraries' programs: resampling of bytes, bytes as booleans, devices of others, private names."""

import importlib

from .rows import values_of

SIZES = ("8, 8", "3, 17", "5, 5", "16, 13")


def _bytes(torch, *size):
    count = 1
    for n in size:
        count *= n
    values = (torch.arange(count) * 2654435761 // 65536) % 256
    return values.to(torch.uint8).reshape(size)


def case_byte_images(torch):
    images = {"square": _bytes(torch, 2, 3, 5, 5), "wide": _bytes(torch, 1, 5, 1, 9), "tall": _bytes(torch, 1, 3, 33, 20)}
    call = "F.interpolate({name}, {to}, mode={mode!r}, align_corners={aligned}, antialias={antialias})"
    rows = [
        call.format(name=name, to=to, mode=mode, aligned=aligned, antialias=antialias)
        for name in images
        for to in (*(f"({size})" for size in SIZES), "None, 1.7", "None, (0.6, 0.5)")
        for mode in ("bilinear", "bicubic")
        for aligned in (False, True)
        for antialias in (False, True)
    ]
    rows += [
        "F.interpolate(square, (0, 2), mode='bilinear')",
        "F.interpolate(square.float(), (2, 0), mode='bilinear', antialias=True)",
        "F.interpolate(square[0], 4, mode='linear')",
        "F.interpolate(square, None, (0.6, 0.5), 'bilinear', recompute_scale_factor=True)",
        "F.interpolate(square, (3, 4), mode='nearest')",
    ]

    def summary(image):
        """The dtype, the sizes and a number that changes with any element."""
        places = torch.arange(image.numel()) * 40503 % 65521
        return [str(image.dtype)[-5:], list(image.shape), (image.flatten() * places).sum().item()]

    rows = [f"summary({row})" for row in rows]
    return values_of(torch, "\n".join(rows), summary=summary, F=torch.nn.functional, **images)


BOOLEANS = """
b
b.sum()
~b
b & b.flip(0)
b ^ b.flip(0)
b == True
torch.where(b, 1, 2)
b.float() * 2
b.int()
b.sort().values
b.unique()
torch.arange(6)[b]
b.nonzero()
b.cumsum(0)
torch.zeros(6).masked_fill(b, 3.0)
torch.equal(b, torch.tensor([False, True, True, True, False, True]))
b.max()
b.view(torch.uint8)
torch.tensor([1, 256]).view(torch.bool)
torch.tensor(1.5).view(torch.bool)
torch.ones(3, dtype=torch.uint8).view(torch.bool).logical_not_().view(torch.uint8)
"""


def case_bytes_as_booleans(torch):
    return values_of(torch, BOOLEANS, b=torch.tensor([0, 1, 2, 255, 0, 7], dtype=torch.uint8).view(torch.bool))


DEVICES = """
torch.device("mps")
[torch.is_autocast_enabled("mps"), torch.get_autocast_dtype("xpu"), torch.amp.is_autocast_available("mps")]
torch.autocast("mps", enabled=False).__enter__() is None
repr(torch.complex32), torch.chalf.itemsize, torch.complex32.is_complex, torch.zeros(1).dtype == torch.complex32
torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))._unbroadcasted_scale_tril
[n.args[1:] != () for n in torch.fx.symbolic_trace(lambda a, b: torch.functional.einsum("ij,jk->ik", (a, b))).graph.nodes]
len(list(torch.fx.symbolic_trace(lambda a, b: torch.einsum("ij,jk->ik", [a, b])).graph.nodes)[2].args)
[repr(torch.device("cpu:1")), torch.device("cpu", 3).index, torch.device("cpu:0") == torch.device("cpu", 0)]
torch.device("cpu:0") == torch.device("cpu")
[str(torch.zeros(1, device=place).device) for place in ("cpu:0", "cpu:5", torch.device("cpu:1"))]
torch.zeros(1, device="cpu:x")
len({torch.device("cpu"), torch.device("cpu:0"), torch.device("cpu:1"), torch.device("cuda:1")})
torch.device("mps:1")
torch.device("xpu", 2)
repr(torch.device("hpu", index=3))
[torch.device("mps").type, torch.device("mps").index, torch.device("xla:1").type, torch.device("xla:1").index]
torch.device(torch.device("mps"))
torch.device("mps") == torch.device("mps")
torch.device("mps") == torch.device("mps:0")
torch.device("mps") != torch.device("cpu")
torch.ones(1).device == torch.device("privateuseone")
len({torch.device(name) for name in ("cpu", "meta", "ipu", "xpu", "ipu", "mps", "mps:0", "mps:1", "mps")})
torch.device("mps:x")
torch.device("nowhere")
torch.ones(1).to("mps")
torch.ones(1).to(torch.device("xla"))
torch.nn.Linear(1, 1).to("mps")
torch.Generator("mps")
torch.ones(1).is_mps
"""


def case_devices_of_others(torch):
    return values_of(torch, DEVICES)


PRIVATE = """
module("nn.modules.module")._EXTRA_STATE_KEY_SUFFIX
module("nn.modules.transformer")._get_activation_fn("gelu")(x)
module("nn.modules.transformer")._get_activation_fn("tanh")
module("_tensor_str")._str_intern(x)
module("_tensor_str")._str_intern(x, tensor_contents="...")
printed(x)
str(x)
torch.ByteTensor(torch.ByteStorage._from_buffer(b"abc"))
torch.autograd._profiler_enabled()
torch._C.Generator is torch.Generator
torch._C._LinAlgError is torch.linalg.LinAlgError
torch._C._cuda_clearCublasWorkspaces()
[module("_utils")._get_device_index(d, allow_cpu=True) for d in (3, "cuda:2", "cpu", torch.device("cuda", 1))]
module("_utils")._get_device_index("cpu")
module("_utils")._get_device_index("cuda")
module("_utils")._get_device_index(None)
isinstance(torch.distributions.ExpTransform().inv, module("distributions.transforms")._InverseTransform)
optimizer._default_to_fused_or_foreach([x, x.double()], False)
optimizer._default_to_fused_or_foreach([x, x.double()], False, True)
optimizer._default_to_fused_or_foreach([x, x.int()], False, True)
optimizer._default_to_fused_or_foreach([x], True, True)
optimizer._get_capturable_supported_devices()
optimizer._get_capturable_supported_devices(False)
sorted((str(k), v) for k, v in group([[x, x.double(), x + 1], [x * 2, None, x]], True).items())
sorted((str(k), v) for k, v in group([[x, x.double()]]).items())
"""


def case_private_names(torch):
    def module(name):
        return importlib.import_module(f"{torch.__name__}.{name}")

    def printed(x):
        with module("_tensor_str").printoptions(precision=1, sci_mode=False):
            return str(x)

    optimizer = module("optim.optimizer")
    group = optimizer.Optimizer._group_tensors_by_device_and_dtype
    x = torch.tensor([3.14159, -0.5])
    return values_of(torch, PRIVATE, module=module, printed=printed, optimizer=optimizer, group=group, x=x)


def case_steps_with_gradients(torch):
    optimizer = importlib.import_module(f"{torch.__name__}.optim.optimizer")

    class Descent(torch.optim.Optimizer):
        @optimizer._use_grad_for_differentiable
        def step(self):
            return torch.is_grad_enabled()

    weight = torch.ones(1, requires_grad=True)
    return [Descent([weight], {"differentiable": flag}).step() for flag in (False, True)]


def case_associative_scan(torch):
    scan = importlib.import_module(f"{torch.__name__}._higher_order_ops.associative_scan").associative_scan
    rows = []
    for count, dim, reverse, mode in SCANS:
        x = torch.sin(torch.arange(6.0 * count)).reshape(3, 2, count).movedim(2, dim).clone().requires_grad_()
        decay = torch.cos(x.detach())

        def combine(a, b):
            return {"x": b["decay"] * a["x"] + b["x"], "decay": a["decay"] * b["decay"]}

        result = scan(combine, {"x": x, "decay": decay}, dim, reverse, mode)
        (result["x"] * torch.arange(1.0, result["x"].numel() + 1).reshape(result["x"].shape)).sum().backward()
        rows.append([result["x"], result["decay"], x.grad])
    options = {"scan": scan, "add": torch.add, "a": torch.ones(2, 3)}
    return [*rows, values_of(torch, ASSOCIATIVE, **options)]


SCANS = ((1, 0, False, "pointwise"), (2, 1, True, "generic"), (7, -1, True, "pointwise"), (8, 1, False, "generic"))
ASSOCIATIVE = """
scan(add, a, 0)
scan(add, torch.arange(5), 0, combine_mode="generic")
scan(add, torch.zeros(0, 2), 0)
scan(3, a, 0)
scan(add, a, 0, combine_mode="other")
"""
