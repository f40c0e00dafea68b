"""Names that libraries use: versions, FloatFunctional, functions that were removed."""

import importlib

from .rows import values_of

VERSIONS = """
V("2.15.0+cpu") > "2.9", V("2.15.0+cpu") >= (2, 15), V("2.15.0+cpu") == "2.15.0", V("2.15.0+cpu") < "2.15.1"
V("2.15.0") == "2.15.0", V("2.15.0") == (2, 15), V("2.1.0a1") < "2.1.0", V("2.1.0rc2") > "2.1.0b3"
V("2.1.0") > "parrot", V("2.1.0") == "parrot", V("1.10.0") > "1.9.1", V("2.1.0.dev20230101") < "2.1.0a0", V("2.0.0+cu118") > "2.0.0"
str(V("2.1.0")), hash(V("2.1.0")) == hash("2.1.0"), V("2.1.0").split("."), isinstance(V("2.1"), str)
torch.symeig(x)
torch.solve(x, x)
torch.lstsq(x, x)
torch.eig(x)
f.add(x, y), f.mul(x, y), f.add_scalar(x, 2.0), f.mul_scalar(x, 3.0), f.cat([x, y], 1), f.add_relu(x, y), f.matmul(x, y)
f(x)
seen(f.add_scalar(x, 1)), seen(f.mul(x, y))
"""


def case_library_names(torch):
    q = importlib.import_module(f"{torch.__name__}.ao.nn.quantized")
    version = importlib.import_module(f"{torch.__name__}.torch_version").TorchVersion
    f, results = q.FloatFunctional(), []
    f.activation_post_process.register_forward_hook(lambda module, args, result: results.append(result.sum().item()))
    x = torch.arange(4.0).reshape(2, 2) - 1
    names = {"V": version, "f": f, "x": x, "y": torch.cos(x), "seen": lambda value: (value, len(results))}
    return values_of(torch, VERSIONS, **names)
