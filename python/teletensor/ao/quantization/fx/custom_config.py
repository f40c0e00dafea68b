"""Settings of users for graphs: modules that are not traced, arguments that are quantized already, attributes to keep."""

from __future__ import annotations

from typing import Any

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig"]


class _CustomConfig:
    """The common part: attributes that the new model gets from the old one."""

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({ {k: v for k, v in self.__dict__.items() if v} })"

    def set_preserved_attributes(self, attributes: list[str]) -> Any:
        """Sets the names of attributes that the new model gets from the old one."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def _from(cls, table: dict[str, Any], names: dict[str, str]) -> Any:
        unknown = sorted(set(table) - set(names))
        if unknown:
            raise NotImplementedError(f"[{cls.__name__}] expected the keys {', '.join(names)}, got {', '.join(unknown)}")
        made = cls()
        for key, attribute in names.items():
            if key in table:
                setattr(made, attribute, table[key])
        return made


class FuseCustomConfig(_CustomConfig):
    """Settings of fuse_fx."""

    @classmethod
    def from_dict(cls, fuse_custom_config_dict: dict[str, Any]) -> FuseCustomConfig:
        """The settings of a dict."""
        return cls._from(fuse_custom_config_dict, {"preserved_attributes": "preserved_attributes"})


class ConvertCustomConfig(_CustomConfig):
    """Settings of convert_fx."""

    def set_observed_to_quantized_mapping(self, observed_class: type, quantized_class: type, quant_type: Any = None) -> Any:
        """Raises NotImplementedError: graphs have no custom modules."""
        got = (observed_class, quantized_class, quant_type)
        raise NotImplementedError(f"[ConvertCustomConfig] custom modules are not quantized, got {got}")

    @classmethod
    def from_dict(cls, convert_custom_config_dict: dict[str, Any]) -> ConvertCustomConfig:
        """The settings of a dict."""
        return cls._from(convert_custom_config_dict, {"preserved_attributes": "preserved_attributes"})


class PrepareCustomConfig(_CustomConfig):
    """Settings of prepare_fx and prepare_qat_fx."""

    def __init__(self) -> None:
        super().__init__()
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Sets the names of modules whose forward is not traced."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[type]) -> PrepareCustomConfig:
        """Sets the classes of modules whose forward is not traced."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_float_to_observed_mapping(self, float_class: type, observed_class: type, quant_type: Any = None) -> Any:
        """Raises NotImplementedError: graphs have no custom modules; eager mode has."""
        raise NotImplementedError(f"[PrepareCustomConfig] custom modules are not observed, got {float_class, observed_class, quant_type}")

    def set_standalone_module_name(
        self, module_name: str, qconfig_mapping: Any, example_inputs: tuple, prepare_custom_config: Any, backend_config: Any
    ) -> Any:
        """Raises NotImplementedError: modules are not prepared by themselves."""
        settings = (qconfig_mapping, example_inputs, prepare_custom_config, backend_config)
        raise NotImplementedError(f"[PrepareCustomConfig] standalone modules are not prepared, got {module_name!r} with {settings}")

    def set_standalone_module_class(
        self, module_class: type, qconfig_mapping: Any, example_inputs: tuple, prepare_custom_config: Any, backend_config: Any
    ) -> Any:
        """Raises NotImplementedError: modules are not prepared by themselves."""
        settings = (qconfig_mapping, example_inputs, prepare_custom_config, backend_config)
        raise NotImplementedError(f"[PrepareCustomConfig] standalone modules are not prepared, got {module_class} with {settings}")

    def set_input_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Sets which arguments of the converted model are quantized tensors."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Sets which results of the converted model are quantized tensors."""
        self.output_quantized_indexes = indexes
        return self

    @classmethod
    def from_dict(cls, prepare_custom_config_dict: dict[str, Any]) -> PrepareCustomConfig:
        """The settings of a dict."""
        names = {
            "non_traceable_module_name": "non_traceable_module_names", "non_traceable_module_class": "non_traceable_module_classes",
            "input_quantized_idxs": "input_quantized_indexes", "output_quantized_idxs": "output_quantized_indexes",
            "preserved_attributes": "preserved_attributes",
        }  # fmt: skip
        return cls._from(prepare_custom_config_dict, names)
