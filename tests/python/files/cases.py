"""Objects that PyTorch and teletensor both save, and a description of objects in which they are compared."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from typing import Any, Callable

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64",
    "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


def tensor_of(torch, dtype: str):
    values = torch.tensor([[0, 1, 0], [1, 1, 0]]) if dtype == "bool" else torch.tensor([[0, 1, 2], [3, 4, 100]])
    if dtype.startswith("complex"):
        return torch.complex(values.double(), values.double() - 1).to(getattr(torch, dtype))
    return (values.double() / 2 if "float" in dtype else values).to(getattr(torch, dtype))


def views(torch):
    base = torch.arange(24.0)
    m = base.reshape(4, 6)
    return {
        "base": base, "matrix": m, "transposed": m.t(), "row": m[1], "column": m[:, 2], "step": base[1::5],
        "expanded": m[:, :1].expand(4, 3),
        "again": base, "scalar": m[2, 3], "empty": base[5:5], "copy": m.clone(), "integers": torch.arange(3)[1:],
    }  # fmt: skip


def containers(torch):
    inner = [1, torch.ones(2)]
    return {
        "numbers": [0, -1, 255, 256, 65536, -(2**31), 2**31, 2**62, 2**63, -(2**80), 1.5, -0.0, math.inf, True, False, None],
        "texts": ["", "text", "käse \u20ac \U0001f600", "x" * 300, b"\x00\xff bytes", bytearray(b"array")],
        "nested": {"a": [(1, (2, [3, {"b": ()}])), {4: "four", (5, 6): "pair", None: 0, 2.5: 1}]},
        "shared": [inner, inner], "set": {1}, "complex": complex(1, -2), "ordered": OrderedDict(z=1, a=torch.zeros(1)),
        "counter": Counter("aab"), "size": torch.Size([2, 3]), "dtype": [torch.float16, torch.int64, torch.complex64, torch.float8_e5m2],
        "device": [torch.device("cpu"), torch.device("cuda:1"), torch.device("meta")], "tuple": (torch.ones(1),), "": {},
    }  # fmt: skip


def parameters(torch):
    weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    with_attribute = torch.ones(2)
    with_attribute.note = "kept"
    parameter_with_attribute = torch.nn.Parameter(torch.zeros(1))
    parameter_with_attribute.scale = 3
    return {
        "weight": weight, "frozen": torch.nn.Parameter(torch.ones(1), requires_grad=False), "leaf": torch.ones(2, requires_grad=True),
        "view": weight.data[0], "tied": weight, "with_attribute": with_attribute, "parameter_with_attribute": parameter_with_attribute,
    }  # fmt: skip


def model(torch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2, bias=False))
    for i, p in enumerate(net.parameters()):
        p.data = torch.linspace(-1, 1, p.numel()).reshape(p.shape) * (i + 1)
    return net


def trained(torch, optimizer: str, **options):
    """The state of a model, its optimizer and a schedule after two steps."""
    net = model(torch)
    opt = getattr(torch.optim, optimizer)(net.parameters(), **options)
    schedule = torch.optim.lr_scheduler.StepLR(opt, 1, gamma=0.5)
    x = torch.linspace(-1, 1, 12).reshape(4, 3)
    for _ in range(2):
        opt.zero_grad()
        net(x).square().mean().backward()
        opt.step()
        schedule.step()
    return {"model": net.state_dict(), "optimizer": opt.state_dict(), "schedule": schedule.state_dict(), "epoch": 2}


CASES: dict[str, Callable[[Any], Any]] = {
    "dtypes": lambda torch: {dtype: tensor_of(torch, dtype) for dtype in DTYPES},
    "views": views,
    "containers": containers,
    "parameters": parameters,
    "adamw": lambda torch: trained(torch, "AdamW", lr=0.1, amsgrad=True),
    "sgd": lambda torch: trained(torch, "SGD", lr=0.1, momentum=0.9),
    "tensor": lambda torch: torch.arange(3.0),
    "number": lambda torch: 5,
    "meta": lambda torch: {"w": torch.ones(2, 3, device="meta"), "t": torch.ones(2, 3, device="meta").t()},
}
# PyTorch writes these, but cannot read its own files; it can read teletensor's.
ODD = {"odd_view": lambda torch: {"f": torch.arange(10, dtype=torch.uint8)[4:8].view(torch.float32)}}
# Not in the format before PyTorch 1.6, whose reader fails for dtypes without a storage class.
LEGACY = ("views", "containers", "parameters", "adamw", "tensor", "number", "meta")


def describe(torch, value: Any, storages: dict | None = None) -> Any:
    """The value as JSON: for tensors everything that a file keeps, with the storages numbered in order."""
    storages = {} if storages is None else storages

    def of(inner):
        return describe(torch, inner, storages)

    if isinstance(value, torch.Tensor):
        return _describe_tensor(torch, value, storages)
    if isinstance(value, dict):
        pairs = [[of(k), of(v)] for k, v in value.items()]
        attributes = getattr(value, "__dict__", None)
        return {type(value).__name__: pairs, **({"attributes": of(attributes)} if attributes else {})}
    if isinstance(value, (list, tuple, set, frozenset)):
        return {type(value).__name__: [of(v) for v in value]}
    if isinstance(value, (torch.dtype, torch.device)):
        return {type(value).__name__: str(value).replace("teletensor", "torch")}
    if isinstance(value, (float, complex, bytes, bytearray)) or (isinstance(value, int) and abs(value) > 2**60):
        return {type(value).__name__: repr(value)}
    assert value is None or isinstance(value, (bool, int, str)), type(value)
    return value


def _describe_tensor(torch, t, storages: dict):
    storage = t.untyped_storage()
    key = storage if torch.__name__ == "teletensor" else storage._cdata
    number = storages.setdefault(key, (len(storages), storage))[0] if t.device.type != "meta" else None
    facts = {
        "type": type(t).__name__, "dtype": str(t.dtype), "shape": list(t.shape), "stride": list(t.stride()), "offset": t.storage_offset(),
        "grad": t.requires_grad, "leaf": t.is_leaf, "device": str(t.device), "storage": number,
        "bytes": None if number is None else storage.nbytes(),
        "attributes": {k: v for k, v in vars(t).items() if k in ("note", "scale")},
    }  # fmt: skip
    if number is not None:
        plain = t.detach().resolve_conj().resolve_neg()
        plain = torch.view_as_real(plain.to(torch.complex128)) if plain.dtype.is_complex else plain
        plain = plain if plain.dtype in (torch.uint64, torch.int64, torch.bool) else plain.double()
        facts["values"] = plain.reshape(-1).tolist()
    return facts
