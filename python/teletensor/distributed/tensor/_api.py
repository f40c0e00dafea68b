"""Functions that create DTensors, and distribute_module."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import _C
from ..._layouts import require_strided
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ..device_mesh import DeviceMesh
from ._copies import copies
from ._dtensor import DTensor, _mesh_or_default
from ._redistribute import equalized, redistribute_locals
from ._spec import Spec, check_placements, local_box
from ._state import make
from .placement_types import Placement, Replicate


def distribute_tensor(
    tensor: _C.Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:  # fmt: skip
    """Returns a DTensor with the values of a tensor. All ranks of the mesh must call it. Does not wait.

    Args:
        tensor: the whole tensor; in a controller, a tensor of one of the engines, from which its bytes move to the others.
        device_mesh: the mesh; by default that of the default group, or of all engines.
        placements: one per dimension of the mesh; by default Replicate.
        src_data_rank: the rank, in the mesh's order, whose values are used; with None each rank uses its own tensor, which
            must be equal.

    Raises:
        RuntimeError: the tensor is not a leaf, or is a DTensor with another mesh or other placements.
    """
    require_strided("distribute_tensor", tensor)
    mesh = _mesh_or_default(device_mesh)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}.")
        if tensor.placements != check_placements("distribute_tensor", mesh, placements, tensor.dim()):
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {placements}. do you "
                "want to call `redistribute` instead?"
            )
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    target = check_placements("distribute_tensor", mesh, placements, tensor.dim())
    if src_data_rank is None and len(mesh._members()) == 1:
        locals_ = [tensor.detach()]
    else:
        locals_ = copies(tensor, mesh, src_data_rank or 0)
    whole = Spec(mesh, [Replicate()] * mesh.ndim)
    placed = [t.detach() for t in redistribute_locals(locals_, whole, tensor.shape, target)]
    placed = [t.clone() if t is tensor or src_data_rank is None else t for t in placed]
    for local in placed:
        local.requires_grad = tensor.requires_grad
    return make(placed, Spec(mesh, target), tensor.shape)


def _replicate_parameters(module: Module, mesh: DeviceMesh) -> None:
    for name, parameter in module._parameters.items():
        if parameter is not None and not isinstance(parameter, DTensor):
            placed = distribute_tensor(parameter.detach(), mesh)
            module.register_parameter(name, Parameter(placed, parameter.requires_grad))
    for name, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer.detach(), mesh)


def distribute_module(
    module: Module, device_mesh: DeviceMesh | None = None, partition_fn: Callable | None = None,
    input_fn: Callable | None = None, output_fn: Callable | None = None,
) -> Module:  # fmt: skip
    """Makes the parameters and buffers of a module DTensors, in place, and returns the module.

    Args:
        partition_fn: ``(name, submodule, mesh)``, called for each submodule, replaces parameters by DTensors. Parameters
            that it leaves are replicated.
        input_fn: ``(module, inputs, mesh)``, called before forward; its result replaces the inputs.
        output_fn: ``(module, outputs, mesh)``, called after forward; its result replaces the outputs.
    """
    mesh = _mesh_or_default(device_mesh)
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, mesh)
        _replicate_parameters(submodule, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, mesh))
    return module


def _created(op: str, function: Callable, size, dtype, requires_grad: bool, device_mesh, placements, layout, draws: bool) -> DTensor:
    size = list(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else list(size)
    if layout not in (None, "torch.strided") and str(layout) != "torch.strided":
        raise RuntimeError(f"layout={layout} not supported!")
    mesh = _mesh_or_default(device_mesh)
    target = Spec(mesh, check_placements(op, mesh, placements, len(size)))
    device = None if mesh.device_type == "cpu" else mesh.device_type
    locals_ = []
    for member in mesh._members():
        with member.session():
            own = size if draws else local_box(target, size, member)[1]
            locals_.append(function(own, dtype=dtype, device=device))
    if draws:
        locals_ = equalized(mesh, locals_)
        locals_ = redistribute_locals(locals_, Spec(mesh, [Replicate()] * mesh.ndim), size, target.placements)
    for local in locals_:
        local.requires_grad = requires_grad
    return make(locals_, target, size)


def _factory(name: str, function: Callable, doc: str, draws: bool = False) -> Callable:
    def create(*size, requires_grad: bool = False, dtype=None, layout=None, device_mesh=None, placements=None) -> DTensor:
        return _created(name, function, size, dtype, requires_grad, device_mesh, placements, layout, draws)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = doc
    return create


zeros = _factory("zeros", _C.torch.zeros, "Returns a DTensor of zeros.")
ones = _factory("ones", _C.torch.ones, "Returns a DTensor of ones.")
empty = _factory("empty", _C.torch.empty, "Returns a DTensor with uninitialized values.")
rand = _factory("rand", _C.torch.rand, "Returns a DTensor of uniform random numbers, which do not depend on the placement.", True)
randn = _factory("randn", _C.torch.randn, "Returns a DTensor of normal random numbers, which do not depend on the placement.", True)


def full(
    size, fill_value, *, dtype=None, layout=None, requires_grad: bool = False, device_mesh=None, placements=None
) -> DTensor:
    """Returns a DTensor filled with a number."""
    return _created(
        "full", lambda own, dtype, device: _C.torch.full(own, fill_value, dtype=dtype, device=device), [size], dtype,
        requires_grad, device_mesh, placements, layout, False,
    )  # fmt: skip


def linspace(
    start, end, steps: int, *, dtype=None, layout=None, requires_grad: bool = False, device_mesh=None, placements=None
) -> DTensor:
    """Returns a DTensor of evenly spaced numbers from start to end."""
    return _created(
        "linspace", lambda own, dtype, device: _C.torch.linspace(start, end, steps, dtype=dtype, device=device), [steps], dtype,
        requires_grad, device_mesh, placements, layout, True,
    )  # fmt: skip


def logspace(
    start, end, steps: int, base: float = 10.0, *, dtype=None, layout=None, requires_grad: bool = False, device_mesh=None,
    placements=None,
) -> DTensor:  # fmt: skip
    """Returns a DTensor of numbers base**x, with x evenly spaced from start to end."""
    return _created(
        "logspace", lambda own, dtype, device: _C.torch.logspace(start, end, steps, base, dtype=dtype, device=device), [steps],
        dtype, requires_grad, device_mesh, placements, layout, True,
    )  # fmt: skip


__all__ = [
    "distribute_module", "distribute_tensor", "empty", "full", "linspace", "logspace", "ones", "rand", "randn", "zeros",
]  # fmt: skip
