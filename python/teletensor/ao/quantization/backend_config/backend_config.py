"""BackendConfig: patterns of operators, and for each how it is observed and with which dtypes it is quantized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .._patterns import Pattern

__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType"]


class ObservationType(Enum):
    """Which observers an operator's results have."""

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclass
class DTypeWithConstraints:
    """A dtype, and limits of the integers, scales and zero points with which a backend computes."""

    dtype: Any = None
    quant_min_lower_bound: float | None = None
    quant_max_upper_bound: float | None = None
    scale_min_lower_bound: float | None = None
    scale_max_upper_bound: float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None


def _constrained(dtype: Any) -> DTypeWithConstraints:
    return dtype if isinstance(dtype, DTypeWithConstraints) else DTypeWithConstraints(dtype)


@dataclass(init=False)
class DTypeConfig:
    """The dtypes of an operator's input, result, weight and bias."""

    input_dtype_with_constraints: DTypeWithConstraints
    output_dtype_with_constraints: DTypeWithConstraints
    weight_dtype_with_constraints: DTypeWithConstraints
    bias_dtype: Any
    is_dynamic: bool | None

    def __init__(
        self, input_dtype: Any = None, output_dtype: Any = None, weight_dtype: Any = None, bias_dtype: Any = None,
        is_dynamic: bool | None = None,
    ):  # fmt: skip
        self.input_dtype_with_constraints = _constrained(input_dtype)
        self.output_dtype_with_constraints = _constrained(output_dtype)
        self.weight_dtype_with_constraints = _constrained(weight_dtype)
        self.bias_dtype, self.is_dynamic = bias_dtype, is_dynamic

    @property
    def input_dtype(self) -> Any:
        """The dtype of the input."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self) -> Any:
        """The dtype of the result."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self) -> Any:
        """The dtype of the weight."""
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict: dict[str, Any]) -> DTypeConfig:
        """The configuration of its dict."""
        names = ("input_dtype", "output_dtype", "weight_dtype", "bias_dtype", "is_dynamic")
        for name in names[:3]:
            if isinstance(dtype_config_dict.get(name), (str, int, dict)):
                raise ValueError(f"Expected {name} to be a torch.dtype or DTypeWithConstraints")
        return cls(*(dtype_config_dict.get(name) for name in names))

    def to_dict(self) -> dict[str, Any]:
        """The values that are given."""
        found: dict[str, Any] = {}
        for name in ("input_dtype", "output_dtype", "weight_dtype"):
            if getattr(self, name) is not None:
                found[name] = getattr(self, name + "_with_constraints")
        return found | {n: getattr(self, n) for n in ("bias_dtype", "is_dynamic") if getattr(self, n) is not None}


# The keys of BackendPatternConfig's dict, with its attributes.
_KEYS = {
    "root_module": "root_module", "qat_module": "qat_module", "reference_quantized_module_for_root": "reference_quantized_module",
    "fused_module": "fused_module", "fuser_method": "fuser_method", "root_node_getter": "_root_node_getter",
    "extra_inputs_getter": "_extra_inputs_getter",
}  # fmt: skip
_TABLES = {
    "num_tensor_args_to_observation_type": "_num_tensor_args_to_observation_type", "input_type_to_index": "_input_type_to_index",
}  # fmt: skip


class BackendPatternConfig:
    """How a backend quantizes a pattern: a module's class, a function, a method's name, or a tuple of those in order."""

    def __init__(self, pattern: Pattern | None = None):
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs: list[DTypeConfig] = []
        self.root_module: Any = None
        self.qat_module: Any = None
        self.reference_quantized_module: Any = None
        self.fused_module: Any = None
        self.fuser_method: Callable | None = None
        self._root_node_getter: Callable | None = None
        self._extra_inputs_getter: Callable | None = None
        self._num_tensor_args_to_observation_type: dict[int, ObservationType] = {}
        self._input_type_to_index: dict[str, int] = {}
        self._pattern_complex_format: Pattern | None = None

    def __repr__(self) -> str:
        return f"BackendPatternConfig({ {k: v for k, v in self.__dict__.items() if v is not None and v != [] and v != {} } })"

    def _set(self, **values: Any) -> BackendPatternConfig:
        self.__dict__.update(values)
        return self

    def set_pattern(self, pattern: Pattern) -> BackendPatternConfig:
        """Sets the pattern."""
        if self._pattern_complex_format is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        return self._set(pattern=pattern)

    def set_observation_type(self, observation_type: ObservationType) -> BackendPatternConfig:
        """Sets which observers the results have."""
        return self._set(observation_type=observation_type)

    def add_dtype_config(self, dtype_config: DTypeConfig) -> BackendPatternConfig:
        """Adds dtypes with which the backend computes the pattern."""
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs: list[DTypeConfig]) -> BackendPatternConfig:
        """Sets the dtypes with which the backend computes the pattern."""
        return self._set(dtype_configs=dtype_configs)

    def set_root_module(self, root_module: type) -> BackendPatternConfig:
        """Sets the class of the module with the weight."""
        return self._set(root_module=root_module)

    def set_qat_module(self, qat_module: type) -> BackendPatternConfig:
        """Sets the class for quantization-aware training."""
        return self._set(qat_module=qat_module)

    def set_reference_quantized_module(self, reference_quantized_module: type) -> BackendPatternConfig:
        """Sets the class that computes with the dequantized weight."""
        return self._set(reference_quantized_module=reference_quantized_module)

    def set_fused_module(self, fused_module: type) -> BackendPatternConfig:
        """Sets the class of the fused pattern."""
        return self._set(fused_module=fused_module)

    def set_fuser_method(self, fuser_method: Callable) -> BackendPatternConfig:
        """Sets the function (is_qat, module, ...) that fuses the pattern."""
        return self._set(fuser_method=fuser_method)

    def _set_root_node_getter(self, root_node_getter: Callable) -> BackendPatternConfig:
        return self._set(_root_node_getter=root_node_getter)

    def _set_extra_inputs_getter(self, extra_inputs_getter: Callable) -> BackendPatternConfig:
        return self._set(_extra_inputs_getter=extra_inputs_getter)

    def _set_num_tensor_args_to_observation_type(self, table: dict[int, ObservationType]) -> BackendPatternConfig:
        return self._set(_num_tensor_args_to_observation_type=table)

    def _set_input_type_to_index(self, input_type_to_index: dict[str, int]) -> BackendPatternConfig:
        return self._set(_input_type_to_index=input_type_to_index)

    def _set_pattern_complex_format(self, pattern: Pattern) -> BackendPatternConfig:
        if self.pattern is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        return self._set(_pattern_complex_format=pattern)

    @classmethod
    def from_dict(cls, backend_pattern_config_dict: dict[str, Any]) -> BackendPatternConfig:
        """The configuration of its dict."""
        d, made = backend_pattern_config_dict, cls()
        if "pattern" in d:
            made.set_pattern(d["pattern"])
        if "observation_type" in d:
            made.set_observation_type(d["observation_type"])
        for found in d.get("dtype_configs", []):
            if not isinstance(found, (DTypeConfig, dict)):
                raise ValueError(f"Expected a list of DTypeConfigs, got {type(found).__name__}")
            made.add_dtype_config(found if isinstance(found, DTypeConfig) else DTypeConfig.from_dict(found))
        made._set(**{attribute: d.get(key) for key, attribute in _KEYS.items()})
        made._set(**{attribute: d.get(key, {}) for key, attribute in _TABLES.items()})
        if "pattern_complex_format" in d:
            made._set_pattern_complex_format(d["pattern_complex_format"])
        return made

    def to_dict(self) -> dict[str, Any]:
        """The values that are given."""
        found: dict[str, Any] = {
            "observation_type": self.observation_type, "dtype_configs": [c.to_dict() for c in self.dtype_configs],
        }  # fmt: skip
        for key, attribute in {"pattern": "pattern", **_KEYS, **_TABLES, "pattern_complex_format": "_pattern_complex_format"}.items():
            value = getattr(self, attribute)
            if value is not None and value != {}:
                found[key] = value
        return found


class BackendConfig:
    """The patterns that a backend quantizes. The last configuration of a pattern decides."""

    def __init__(self, name: str = ""):
        self.name = name
        self._pattern_complex_format_to_config: dict[Pattern, BackendPatternConfig] = {}

    def __repr__(self) -> str:
        return f"BackendConfig({self.__dict__})"

    def set_name(self, name: str) -> BackendConfig:
        """Sets the name."""
        self.name = name
        return self

    def set_backend_pattern_config(self, config: BackendPatternConfig) -> BackendConfig:
        """Sets the configuration of a pattern."""
        self._pattern_complex_format_to_config[_reversed(config)] = config
        return self

    def set_backend_pattern_configs(self, configs: list[BackendPatternConfig]) -> BackendConfig:
        """Sets the configurations of patterns."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self) -> list[BackendPatternConfig]:
        """The configurations."""
        return list(self._pattern_complex_format_to_config.values())

    @classmethod
    def from_dict(cls, backend_config_dict: dict[str, Any]) -> BackendConfig:
        """The configuration of its dict."""
        made = cls(backend_config_dict.get("name", ""))
        for found in backend_config_dict.get("configs", []):
            if not isinstance(found, (BackendPatternConfig, dict)):
                raise ValueError("Expected backend_config_dict['configs'] to be a dictionary")
            made.set_backend_pattern_config(found if isinstance(found, BackendPatternConfig) else BackendPatternConfig.from_dict(found))
        return made

    def to_dict(self) -> dict[str, Any]:
        """The name and the configurations as dicts."""
        return {"name": self.name, "configs": [c.to_dict() for c in self.configs]}


def _reversed(config: BackendPatternConfig) -> Pattern:
    """The pattern with the last operator first, in nested pairs."""
    if config._pattern_complex_format is not None:
        return config._pattern_complex_format
    if config.pattern is None:
        raise ValueError("Either 'pattern' or 'pattern_complex_format' must be specified")
    if not isinstance(config.pattern, tuple):
        return config.pattern
    if len(config.pattern) not in (2, 3):
        raise ValueError(f"Expected a tuple with 2 or 3 elements, got: {config.pattern}")
    first, second, *third = config.pattern
    return (third[0], (second, first)) if third else (second, first)
