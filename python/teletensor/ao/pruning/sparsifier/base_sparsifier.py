"""torch.ao.pruning.sparsifier.base_sparsifier: the base class of sparsifiers."""

from __future__ import annotations

import abc
import copy
from collections import defaultdict
from typing import Any

from .... import _C
from ...._grad_mode import no_grad
from ....nn import Linear, Module
from ....nn.utils import parametrize
from .utils import FakeSparsity, get_arg_info_from_tensor_fqn, module_contains_param, module_to_fqn, swap_module

__all__ = ["BaseSparsifier"]
SUPPORTED_MODULES: set[type[Module]] = {Linear}
_NOT_SAVED = ("module", "module_fqn", "tensor_name")


class BaseSparsifier(abc.ABC):
    """Masks parameters of a model. Subclasses compute the masks in update_mask().

    Args:
        defaults: the arguments of update_mask() that a configuration does not have.
    """

    def __init__(self, defaults: dict[str, Any] | None = None) -> None:
        self.defaults: dict[str, Any] = defaults or {}
        self.state: dict[str, dict] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        self.enable_mask_update = True

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        groups = ""
        for i, group in enumerate(self.groups):
            values = "".join(f"\t    {key}: {group[key]}\n" for key in sorted(group) if key != "module")
            groups += f"\n\tGroup {i}\n\t    module: {group['module']}\n{values}"
        return f"{type(self).__name__} ({groups})"

    def state_dict(self) -> dict[str, Any]:
        """The masks by the names of the tensors, and the configurations."""
        groups = [{key: value for key, value in group.items() if key not in _NOT_SAVED} for group in self.groups]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Restores masks and configurations; the model is that of prepare().

        Raises:
            RuntimeError: ``strict``, and the model lacks a module.
        """
        groups, states = copy.deepcopy(state_dict["groups"]), {}
        for tensor_fqn, saved in state_dict["state"].items():
            info = get_arg_info_from_tensor_fqn(self.model, tensor_fqn)
            module, tensor_name = info["module"], info["tensor_name"]
            if module is None:
                if strict:
                    raise RuntimeError(f"Error loading {tensor_fqn} into the model")
                continue
            found = next((p for p in self._parametrizations(module, tensor_name) if isinstance(p, FakeSparsity)), None)
            if found is None:
                found = FakeSparsity(_C.torch.ones_like(getattr(module, tensor_name).detach()))
                parametrize.register_parametrization(module, tensor_name, found)
            states[tensor_fqn] = dict(saved)
            if saved.get("mask") is not None:
                found.mask = states[tensor_fqn]["mask"] = saved["mask"].clone()
            for group in groups:
                if group["tensor_fqn"] == tensor_fqn:
                    group.update(info)
        self.__setstate__({"state": defaultdict(dict, states), "groups": groups})

    @staticmethod
    def _parametrizations(module: Module, tensor_name: str) -> Any:
        if not parametrize.is_parametrized(module, tensor_name):
            return ()
        return module.parametrizations[tensor_name]

    def make_config_from_model(self, model: Module, SUPPORTED_MODULES: set[type[Module]] = SUPPORTED_MODULES) -> None:  # noqa: N803
        """Makes a configuration of the weights of all modules of the given classes."""
        self.config = []
        stack = [model]
        while stack:
            for child in stack.pop().children():
                if type(child) in SUPPORTED_MODULES:
                    self.config.append({"tensor_fqn": f"{module_to_fqn(model, child)}.weight"})
                else:
                    stack.append(child)

    def prepare(self, model: Module, config: list[dict[str, Any]] | None) -> None:
        """Adds masks to a model's parameters. Changes the model.

        Args:
            config: dicts with "tensor_fqn", the name of a parameter, and arguments of update_mask(). None: the weights of all
                linear layers.

        Raises:
            AssertionError: an element is no dict, has no name, or contradicts it.
        """
        self.model, self.config = model, config
        if self.config is None:
            self.make_config_from_model(model)
        for given in self.config:
            if not isinstance(given, dict):
                raise AssertionError(
                    "config elements should be dicts not modules i.e.:[{`tensor_fqn`: `foo.bar.weight`}, {`tensor_fqn`: ... }, ...]"
                )
            group = {**copy.deepcopy(self.defaults), **given}
            if (tensor_fqn := group.get("tensor_fqn")) is None:
                raise AssertionError("tensor_fqn is a required argument in the sparsity config")
            info = get_arg_info_from_tensor_fqn(model, tensor_fqn.removeprefix("."))
            for key, value in info.items():
                if key != "tensor_fqn" and key in group and group[key] is not value and group[key] != value:
                    raise AssertionError(f"Given both `{key}` and `tensor_fqn` in the config, it is expected them to agree!")
            group.update(info)
            self.groups.append(group)
        self._prepare()

    def _prepare(self, *_args: Any, **_kwargs: Any) -> None:
        for group in self.groups:
            module, tensor_name = group["module"], group["tensor_name"]
            kind = group.get("parametrization", FakeSparsity)
            mask = group.get("mask")
            if mask is None:
                mask = _C.torch.ones_like(getattr(module, tensor_name).detach())
            self.state[group["tensor_fqn"]]["mask"] = mask
            parametrize.register_parametrization(module, tensor_name, kind(mask))

    def squash_mask(
        self, params_to_keep: tuple[str, ...] | None = None, params_to_keep_per_layer: dict[str, tuple[str, ...]] | None = None,
        *_args: Any, **_kwargs: Any,
    ) -> None:  # fmt: skip
        """Multiplies the parameters by their masks, and removes the masks.

        Args:
            params_to_keep: names of arguments that each module keeps as its dict ``sparse_params``.
            params_to_keep_per_layer: the same by the names of modules.
        """
        for group in self.groups:
            module = group["module"]
            parametrize.remove_parametrizations(module, group["tensor_name"], leave_parametrized=True)
            names = [*(params_to_keep or ()), *((params_to_keep_per_layer or {}).get(group["module_fqn"]) or ())]
            if names:
                module.sparse_params = {name: group[name] for name in names}

    def convert(
        self, module: Module, mapping: dict[type[Module], type[Module]] | None = None, inplace: bool = False,
        parameterization: type[Module] = FakeSparsity,
    ) -> Module:  # fmt: skip
        """Replaces masked modules by those that the mapping's classes make of them by ``from_dense``.

        Raises:
            NotImplementedError: there is no mapping.
        """
        if mapping is None:
            raise NotImplementedError("Need to auto generate mapping ")
        module = module if inplace else copy.deepcopy(module)
        for name, child in list(module.named_children()):
            if module_contains_param(child, parameterization) and parametrize.type_before_parametrizations(child) in mapping:
                module._modules[name] = swap_module(child, mapping)
            else:
                module._modules[name] = self.convert(child, mapping, True, parameterization)
        return module

    def step(self, use_path: bool = True) -> None:  # noqa: ARG002 - PyTorch ignores it, too
        """Updates all masks."""
        if not self.enable_mask_update:
            return
        with no_grad():
            for group in self.groups:
                self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module: Module, tensor_name: str, **kwargs: Any) -> None:
        """Writes the mask of a parameter in place."""
