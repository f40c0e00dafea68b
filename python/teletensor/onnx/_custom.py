"""Translations that the user gives: functions of this package's Builder, or of onnxscript's operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..fx.node import Node
from ._builder import Builder, Value
from ._registry import Untranslatable


def call(builder: Builder, function: Any, args: tuple, kwargs: dict[str, Any], node: Node) -> Any:
    """Calls a translation.

    A function whose first parameter is named "builder", or annotated as Builder, receives it before the call's arguments. Other
    functions receive the arguments only, and use onnxscript's operators, whose calls add nodes here.
    """
    if isinstance(function, (list, tuple)):  # several overloads: the first
        function = function[0]
    if _takes_builder(function):
        return function(builder, *args, **kwargs)
    evaluator = _evaluator(builder, node)
    if _is_script(function):
        return evaluator.inline(function, args, kwargs)
    from onnxscript.evaluator import default_as

    with default_as(evaluator):
        return function(*args, **kwargs)


def _takes_builder(function: Callable) -> bool:
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    return first is not None and (first.name == "builder" or first.annotation in (Builder, "Builder"))


def _is_script(function: Any) -> bool:
    return type(function).__name__ in ("OnnxFunction", "TracedOnnxFunction") and hasattr(function, "to_function_proto")


def _evaluator(builder: Builder, node: Node) -> Any:
    """An evaluator of onnxscript whose operators become nodes.

    Raises:
        ImportError: onnxscript is not installed.
    """
    try:
        from onnxscript.evaluator import Evaluator
    except ImportError as e:
        raise ImportError(
            "[onnx.export] a custom translation without a parameter named 'builder' is one of onnxscript: pip install onnxscript"
        ) from e

    class NodeEvaluator(Evaluator):
        """Adds a node for each operator that a function calls."""

        def eval(self, schema: Any, inputs: Sequence[Any], attributes: dict[str, Any]) -> Any:
            """Adds a node."""
            version = builder.opset if schema.domain in ("", "ai.onnx") else 1
            domain = "" if schema.domain in ("", "ai.onnx") else schema.domain
            builder.shared.domains.setdefault(domain, version)
            given = [_like(builder, v, inputs) for v in inputs]
            return builder.op(schema.name, *given, domain=domain, outputs=_outputs(schema, node), **attributes)

        def eval_function(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
            """Adds the function to the model, and a node that calls it."""
            return self.inline(function, args, kwargs)

        def inline(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
            """Adds a call of a function in onnxscript's language."""
            proto = function.to_function_proto()
            builder.shared.functions[proto.domain, proto.name] = proto
            builder.shared.domains.setdefault(proto.domain, 1)
            for needed in proto.opset_import:
                builder.shared.domains.setdefault(
                    "" if needed.domain in ("", "ai.onnx") else needed.domain, needed.version
                )
            names = [*proto.attribute, *(a.name for a in proto.attribute_proto)]
            inputs, attributes = list(args[: len(proto.input)]), dict(kwargs)
            attributes |= dict(zip(names, args[len(proto.input) :]))
            inputs += [attributes.pop(n) for n in proto.input[len(inputs) :] if n in attributes]
            if set(attributes) - set(names):
                raise Untranslatable(
                    f"the function {proto.name} has no attributes {sorted(set(attributes) - set(names))}"
                )
            given = [_like(builder, v, inputs) for v in inputs]
            dtype = (
                builder.dtype
                if not isinstance(builder.dtype, list) or len(builder.dtype) == len(proto.output)
                else None
            )
            return builder.op(
                proto.name, *given, domain=proto.domain, outputs=len(proto.output), dtype=dtype, **attributes
            )

    return NodeEvaluator()


def _like(builder: Builder, v: Any, inputs: Sequence[Any]) -> Any:
    """A number as a constant of the first tensor's dtype."""
    if v is None or isinstance(v, Value):
        return v
    first = next((i for i in inputs if isinstance(i, Value)), None)
    if isinstance(v, (int, float)) and not isinstance(v, bool) and first is not None and first.dtype is not None:
        if isinstance(v, float) == first.dtype.is_floating_point or first.dtype.is_floating_point:
            return builder.const(v, first.dtype)
    return builder.value(v)


def _outputs(schema: Any, node: Node) -> int:
    fixed = [o for o in schema.outputs if "Optional" not in str(o.option)]
    if any("Variadic" in str(o.option) for o in schema.outputs):
        val = node.meta.get("val")
        return len(val) if isinstance(val, (list, tuple)) else 1
    return max(len(fixed), 1)
