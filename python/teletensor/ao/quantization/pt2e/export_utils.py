"""Training and evaluation modes of exported models: batch norms and dropouts are the operators that depend on them."""

from __future__ import annotations

import types
from typing import Any

from ....fx import GraphModule
from ....nn import Module
from ..quantizer._operators import BATCH_NORM, is_call, operators

__all__ = ["model_is_exported"]

_TRAINING = "_exported_training"
_FLAGS = dict.fromkeys(operators("dropout.default dropout_.default"), 2)  # the position of the argument "train"
_FLAGS |= dict.fromkeys(BATCH_NORM, 5)


def model_is_exported(m: Module) -> bool:
    """Whether a module was made by torch.export: its nodes have fake values."""
    return isinstance(m, GraphModule) and any("val" in n.meta for n in m.graph.nodes)


def _set_mode(model: GraphModule, training: bool) -> GraphModule:
    if getattr(model, _TRAINING, None) is training:
        return model
    for node in model.graph.nodes:
        if is_call(node, tuple(_FLAGS)):
            position = _FLAGS[node.target]
            node.args = (*node.args[:position], training, *node.args[position + 1 :])
    setattr(model, _TRAINING, training)
    model.recompile()
    return model


def _move_exported_model_to_eval(model: GraphModule) -> GraphModule:
    """Makes the batch norms and dropouts of an exported model those of evaluation. Returns the model."""
    return _set_mode(model, False)


def _move_exported_model_to_train(model: GraphModule) -> GraphModule:
    """Makes the batch norms and dropouts of an exported model those of training. Returns the model."""
    return _set_mode(model, True)


def _allow_exported_model_train_eval(model: GraphModule) -> GraphModule:
    """Lets ``model.train()`` and ``model.eval()`` change the batch norms and dropouts of an exported model. Returns the model."""

    def train(self: GraphModule, mode: bool = True) -> GraphModule:
        return _set_mode(self, bool(mode))

    def evaluate(self: GraphModule) -> GraphModule:
        return _set_mode(self, False)

    model.train, model.eval = types.MethodType(train, model), types.MethodType(evaluate, model)
    return model


def disallow_train_eval(model: GraphModule) -> GraphModule:
    """Makes ``model.train()`` and ``model.eval()`` raise NotImplementedError, which names the functions to use. Returns the model."""

    def refuse(name: str) -> Any:
        def method(_self: GraphModule, _mode: bool = True) -> Any:
            raise NotImplementedError(
                f"Calling {name}() is not supported for exported models. Please call `move_exported_model_to_{name}` or "
                "`allow_exported_model_train_eval` of torch.ao.quantization instead."
            )

        return method

    model.train, model.eval = types.MethodType(refuse("train"), model), types.MethodType(refuse("eval"), model)
    return model
