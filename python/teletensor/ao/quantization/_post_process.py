"""Which modules are observers, and the states of those in a model."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ...nn import Module
from ._affine import AffineQuantizedObserverBase
from ._fake_quantize import FakeQuantizeBase
from ._observer_base import ObserverBase


def _is_activation_post_process(module: Any) -> bool:
    """Whether a module observes or rounds activations."""
    return isinstance(module, (ObserverBase, FakeQuantizeBase, AffineQuantizedObserverBase))


def get_observer_state_dict(mod: Module) -> OrderedDict:
    """The states of the observers in a model, by their names."""
    state = mod.state_dict()
    found = OrderedDict((k, v) for k, v in state.items() if "activation_post_process" in k)
    found._metadata = state._metadata
    return found


def load_observer_state_dict(mod: Module, obs_dict: dict) -> None:
    """Loads the result of get_observer_state_dict. Raises an Exception for missing or unexpected names of observers."""
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            module._load_from_state_dict(obs_dict, name + ".", {}, False, missing, unexpected, [])
    for kind, names in (("Missing", missing), ("Unexpected", unexpected)):
        for name in names:
            if "observer" in name or "activation_post_process" in name:
                raise Exception(f"{kind} keys for observer {name} in state_dict")  # noqa: TRY002 - PyTorch's type
