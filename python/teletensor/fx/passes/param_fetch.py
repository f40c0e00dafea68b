"""The attributes of modules that other backends need to implement them."""

from __future__ import annotations

from typing import Any, Callable

from ... import nn
from .._names import typename
from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """The attribute for a name in any version of the module: the name itself."""
    return name


# For each type: the version, the attributes, and the function that finds their names in a version.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (
        1, ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"], default_matching,
    ),
    nn.BatchNorm2d: (2, ["weight", "bias", "running_mean", "running_var", "eps"], default_matching),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (1, ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"], default_matching),
    nn.ReLU: (1, ["inplace"], default_matching),
}  # fmt: skip


def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Any]:
    """The attributes of a module in module_fetch_book, and the name of its type.

    Raises:
        RuntimeError: the type is not in module_fetch_book, or its version is newer.
    """
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{typename(mod)} is not in the module_fetch_book yet, please add it to the module_fetch_book")
    version, names, matching = module_fetch_book[type(mod)]
    found = getattr(mod, "_version", 1)
    if version < found:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {typename(mod)} version {found}, please upgrade the module_fetch_book"
        )
    return {"name": typename(mod), **{name: getattr(mod, matching(name, found)) for name in names}}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Sets `attrs_for_lowering` of all nodes that call submodules."""
    submodules = dict(fx_module.named_modules())
    for node in fx_module.graph.find_nodes(op="call_module"):
        if isinstance(submodules[node.target], GraphModule):
            lift_lowering_attrs_to_nodes(submodules[node.target])
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(submodules[node.target])
