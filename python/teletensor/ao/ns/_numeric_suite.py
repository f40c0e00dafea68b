"""Comparison of a float model with the model that eager quantization made of it, module by module.

``compare_weights`` pairs their weights, ``compare_model_outputs`` the values of corresponding modules, and
``compare_model_stub`` those of a quantized module and the float module that receives the same input. Values stay in the
engine; reading them waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ... import nn
from ..._C import Tensor
from ..nn import quantized as nnq
from ..nn.quantized import dynamic as nnqd
from ..quantization import QConfig, prepare
from ..quantization.quantization_mappings import get_default_compare_output_module_list

__all__ = [
    "NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST", "Logger", "OutputLogger", "Shadow", "ShadowLogger", "compare_model_outputs",
    "compare_model_stub", "compare_weights", "get_logger_dict", "get_matching_activations", "prepare_model_outputs",
    "prepare_model_with_stubs",
]  # fmt: skip

# Modules with modules of their own whose results are recorded too.
NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST = {nnqd.Linear, nnq.Linear, nnqd.LSTM, nn.LSTM}


def _parents(key: str, levels: int) -> str:
    """The name of the module `levels` above an entry of a state, without dots, as PyTorch compares them."""
    return "".join(key.split(".")[:-levels])


def _find_match(names: Iterable[str], key: str, postfix: str) -> str | None:
    """The first of the names with the same module as `key`, or whose module is one level deeper. None if `key` does not end
    with the postfix, or no name matches."""
    if key.split(".")[-1] != postfix:
        return None
    names = list(names)
    wanted = [_parents(key, 1)]
    if postfix == "_packed_params" and _parents(key, 2):
        wanted.append(_parents(key, 2))
    for module in wanted:
        for name in names:
            if module in (_parents(name, 1), _parents(name, 2)):
                return name
    return None


def compare_weights(float_dict: dict[str, Any], quantized_dict: dict[str, Any]) -> dict[str, dict[str, Tensor]]:
    """The weights of two models, ``{"float": ..., "quantized": ...}`` by their names in the quantized model.

    Args:
        float_dict, quantized_dict: ``state_dict()`` of the models.
    """
    found: dict[str, dict[str, Tensor]] = {}
    for key, value in quantized_dict.items():
        for postfix in ("weight", "_packed_params"):
            name = _find_match(float_dict, key, postfix)
            if name is not None:
                found[key] = {"float": float_dict[name], "quantized": value if postfix == "weight" else value[0]}
                break
    return found


class Logger(nn.Module):
    """A module that records values in ``stats``."""

    def __init__(self) -> None:
        super().__init__()
        from ... import quint8

        self.stats: dict[str, list] = {}
        self.dtype = quint8

    def forward(self, x: Any) -> Any:
        """Does nothing."""


class ShadowLogger(Logger):
    """Records the results of a quantized module and of its shadow in ``stats["quantized"]`` and ``stats["float"]``."""

    def __init__(self) -> None:
        super().__init__()
        self.stats["float"], self.stats["quantized"] = [], []

    def forward(self, x: Any, y: Any) -> None:  # type: ignore[override]
        """Of results with several entries, the first is recorded, as in PyTorch."""
        x, y = (v[0] if len(v) > 1 else v for v in (x, y))
        self.stats["quantized"].append(x.detach())
        self.stats["float"].append(y.detach())


class OutputLogger(Logger):
    """Records the results of a module in ``stats["tensor_val"]``."""

    def __init__(self) -> None:
        super().__init__()
        self.stats["tensor_val"] = []

    def forward(self, x: Any) -> Any:
        """Records x and returns it."""
        self.stats["tensor_val"].append(x)
        return x


def _lists(value: Any) -> Any:
    return [_lists(v) for v in value] if type(value) is tuple else value


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return value.dequantize() if isinstance(value, Tensor) and value.is_quantized else value


class Shadow(nn.Module):
    """A quantized module and the float module that receives the same inputs; returns the results of the former.

    Args:
        q_module: the quantized module.
        float_module: its shadow.
        logger_cls: the class of a logger, which is called with both results.
    """

    def __init__(self, q_module: nn.Module, float_module: nn.Module, logger_cls: Callable) -> None:
        super().__init__()
        self.orig_module, self.shadow_module = q_module, float_module
        self.dequant = nnq.DeQuantize()
        self.logger = logger_cls()

    def _both(self, name: str, *arguments: Any) -> Any:
        arguments = _lists(arguments)
        result = getattr(self.orig_module, name)(*arguments)
        self.logger(result, getattr(self.shadow_module, name)(*_numbers(arguments)))
        return result

    def forward(self, *x: Any) -> Any:
        """The quantized module's result."""
        return self._both("__call__", *x)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """add() of QFunctional."""
        return self._both("add", x, y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """add_scalar() of QFunctional."""
        return self._both("add_scalar", x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """mul() of QFunctional."""
        return self._both("mul", x, y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """mul_scalar() of QFunctional."""
        return self._both("mul_scalar", x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """cat() of QFunctional."""
        return self._both("cat", list(x), dim)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """add_relu() of QFunctional."""
        return self._both("add_relu", x, y)


def get_logger_dict(mod: nn.Module, prefix: str = "") -> dict[str, dict]:
    """The stats of the loggers in a model, by the names of the modules that they belong to and ``.stats``."""
    found: dict[str, dict] = {}
    logger = next((child for child in mod.children() if isinstance(child, Logger)), None)
    if logger is not None:
        found[f"{prefix}.stats" if prefix else "stats"] = logger.stats
    for name, child in mod.named_children():
        found.update(get_logger_dict(child, f"{prefix}.{name}" if prefix else name))
    return found


def _has_same_types(a: nn.Module, b: nn.Module) -> bool:
    return [type(m) for m in a.modules()] == [type(m) for m in b.modules()]


def prepare_model_with_stubs(
    float_module: nn.Module, q_module: nn.Module, module_swap_list: set[type], logger_cls: Callable
) -> None:
    """Replaces modules of a quantized model by Shadow modules, where the float module's class is in ``module_swap_list``."""
    floats = dict(float_module.named_children())
    shadows = {}
    for name, module in q_module.named_children():
        if name not in floats:
            continue
        if type(floats[name]) not in module_swap_list:
            prepare_model_with_stubs(floats[name], module, module_swap_list, logger_cls)
        elif not _has_same_types(module, floats[name]):
            shadows[name] = Shadow(module, floats[name], logger_cls)
    q_module._modules.update(shadows)


def compare_model_stub(
    float_model: nn.Module, q_model: nn.Module, module_swap_list: set[type], *data: Any, logger_cls: Callable = ShadowLogger
) -> dict[str, dict]:
    """Runs the quantized model with Shadow modules; returns the stats of their loggers. Changes the quantized model."""
    prepare_model_with_stubs(float_model, q_model, module_swap_list, logger_cls)
    q_model(*data)
    return get_logger_dict(q_model)


def get_matching_activations(float_module: nn.Module, q_module: nn.Module) -> dict[str, dict[str, Any]]:
    """The recorded values of corresponding modules, ``{"float": [...], "quantized": [...]}`` by name."""
    floats, found = get_logger_dict(float_module), {}
    for key, stats in get_logger_dict(q_module).items():
        name = _find_match(sorted(floats, reverse=True), key, "stats") if stats["tensor_val"] else None
        if name is not None:
            found[key] = {"float": floats[name]["tensor_val"], "quantized": stats["tensor_val"]}
    return found


def prepare_model_outputs(
    float_module: nn.Module, q_module: nn.Module, logger_cls: Callable = OutputLogger, allow_list: set[type] | None = None
) -> None:
    """Attaches loggers to the modules of both models whose classes are in ``allow_list``."""
    allowed = get_default_compare_output_module_list() if allow_list is None else allow_list
    for module, inner in ((float_module, None), (q_module, NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST)):
        module.qconfig = QConfig(activation=logger_cls, weight=None)
        prepare(module, inplace=True, allow_list=allowed, observer_non_leaf_module_list=inner, prepare_custom_config_dict={})


def compare_model_outputs(
    float_model: nn.Module, q_model: nn.Module, *data: Any, logger_cls: Callable = OutputLogger,
    allow_list: set[type] | None = None,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Runs both models with loggers; returns the values of corresponding modules. Changes both models."""
    prepare_model_outputs(float_model, q_model, logger_cls, allow_list)
    float_model(*data)
    q_model(*data)
    return get_matching_activations(float_model, q_model)
