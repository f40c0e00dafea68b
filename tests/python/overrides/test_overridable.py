"""Every overridable function reaches __torch_function__ of a foreign argument; the list of functions is PyTorch's."""

import inspect
import json
import pathlib

import pytest

RECORDED = json.loads(pathlib.Path(__file__).with_name("overridable.json").read_text())["names"]
# Recorded names that exist here and are not overridable, with the reason.
NOT_OVERRIDABLE = {
    "torch.autocast": "a class",
    "torch.Tensor.__cuda_array_interface__.__get__": "raises AttributeError for every tensor",
}


def handle(calls):
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append(func)
        return "handled"

    return {"__torch_function__": classmethod(__torch_function__)}


def required(signature):
    """The numbers of positional arguments and the keyword arguments without a default."""
    parameters = signature.parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return max(len(positional), 1 if variadic or not positional else 0), [
        p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty
    ]


def test_every_overridable_function_reaches_the_handler(torch):
    from teletensor import overrides

    assert torch.nn.functional.has_torch_function is overrides.has_torch_function  # found there, and not overridable
    calls, failed = [], []
    foreign = type("Foreign", (), handle(calls))()
    mine = torch.ones(2, 2).as_subclass(type("Mine", (torch.Tensor,), handle(calls)))
    methods = set(overrides.get_overridable_functions()[torch.Tensor])
    for function, stand_in in overrides.get_testing_overrides().items():
        name = overrides.resolve_name(function)
        count, keywords = required(inspect.signature(stand_in))
        first = mine if function in methods or name.endswith("__get__") else foreign
        arguments = [first] + [foreign] * (count - 1)
        calls.clear()
        try:
            function(*arguments, **{k: foreign for k in keywords})
        except Exception as error:  # a handled call may fail for its result, such as bool("handled")
            if not calls:
                failed.append((name, repr(error)))
                continue
        if not calls:
            failed.append((name, "no call of the handler"))
    assert not failed, f"{len(failed)}: {failed}"


def test_functions_are_those_of_pytorch(torch):
    from teletensor import overrides

    ours = overrides.get_testing_overrides()
    missing = []
    for place, names in RECORDED.items():
        for name in names:
            full = f"{place}.{name}"
            try:
                value = eval(full, {"torch": torch})
            except (AttributeError, NotImplementedError):
                continue  # a name that does not exist here: tests/python/names
            if value not in ours and full not in NOT_OVERRIDABLE:
                missing.append(full)
    assert not missing


@pytest.mark.parametrize("name", ["torch.add", "torch.Tensor.add", "torch.Tensor.shape.__get__", "torch.nn.functional.relu",
                                  "torch.linalg.norm", "torch.Tensor.data.__get__", "torch.nn.init.uniform_"])  # fmt: skip
def test_resolve_name(torch, name):
    from teletensor import overrides

    function = eval(name, {"torch": torch})
    assert overrides.resolve_name(function) == name
    assert overrides.is_tensor_method_or_property(function) == (".Tensor." in name)
