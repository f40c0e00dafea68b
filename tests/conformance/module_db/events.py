"""Calls of hooks, recorded: lists of (hook's name, tensors that it received), for either package."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

Events = list[tuple[str, Any]]


def _tensors(torch, value: Any) -> list:
    """The tensors and Nones of a nested value, in order."""
    if isinstance(value, torch.Tensor):
        return [value.detach().clone()]
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return [value.data.detach().clone()]
    if isinstance(value, dict):
        return [t for v in value.values() for t in _tensors(torch, v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(torch, v)]
    return [None] if value is None else []


def forward(torch, module, args: tuple, kwargs: dict) -> Events:
    """Hooks of forward: their order, arguments and effects."""
    seen: Events = []

    def note(name):
        return lambda module, *rest: seen.append((name, _tensors(torch, rest)))

    def changing(module, args, result):
        seen.append(("changing", _tensors(torch, result)))
        return result * 2 if isinstance(result, torch.Tensor) and result.is_floating_point() else None

    handles = [
        module.register_forward_pre_hook(note("pre 1")),
        module.register_forward_pre_hook(note("pre 2"), with_kwargs=True),
        module.register_forward_pre_hook(note("pre 0"), prepend=True),
        module.register_forward_hook(note("after 1")),
        module.register_forward_hook(changing),
        module.register_forward_hook(note("after 2"), with_kwargs=True),
        module.register_forward_hook(note("after 0"), prepend=True, always_call=True),
    ]
    anywhere = torch.nn.modules.module

    def note_own(name):
        def hook(m, *rest):
            if m is module:
                seen.append((name, []))
        return hook  # fmt: skip

    handles.append(anywhere.register_module_forward_pre_hook(note_own("global pre")))
    handles.append(anywhere.register_module_forward_hook(note_own("global after")))
    result = module(*args, **kwargs)
    seen.append(("result", _tensors(torch, result)))
    for handle in handles:
        handle.remove()
    module(*args, **kwargs)
    return seen


def backward(torch, module, args: tuple, kwargs: dict) -> Events:
    """Hooks of backward: their order, arguments and effects."""
    seen: Events = []

    def note(name):
        return lambda module, *rest: seen.append((name, [_tensors(torch, part) for part in rest]))

    def doubled(module, grad_output):
        seen.append(("doubled", _tensors(torch, grad_output)))
        return tuple(None if g is None else g * 2 for g in grad_output)

    def tripled(module, grad_input, grad_output):
        seen.append(("tripled", _tensors(torch, grad_input)))
        return tuple(None if g is None else g * 3 for g in grad_input)

    handles = [
        module.register_full_backward_pre_hook(note("pre 1")),
        module.register_full_backward_pre_hook(doubled),
        module.register_full_backward_pre_hook(note("pre 0"), prepend=True),
        module.register_full_backward_hook(note("after 1")),
        module.register_full_backward_hook(tripled),
        module.register_full_backward_hook(note("after 0"), prepend=True),
    ]
    leaves = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.requires_grad]
    for t in leaves:
        if not t.is_leaf:
            t.retain_grad()
    result = module(*args, **kwargs)
    outs = [t for t in (result if isinstance(result, tuple) else [result]) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not outs:
        return seen
    sum((t.abs() if t.is_complex() else t).sum() for t in outs).backward()
    seen.append(("gradients", [t.grad for t in leaves]))
    seen.append(("parameters' gradients", [p.grad for p in module.parameters()]))
    for handle in handles:
        handle.remove()
    module(*args, **kwargs)
    return seen


def state(torch, module, args: tuple, kwargs: dict) -> Events:
    """Hooks of state_dict and load_state_dict."""
    seen: Events = []
    module._register_state_dict_hook(lambda m, d, prefix, meta: seen.append((f"private post {prefix}{sorted(d)}", [])))
    module.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((f"pre {prefix} {keep}", [])))

    def after(m, values, prefix, metadata):
        seen.append((f"post {prefix}{sorted(values)} {metadata.get('version')}", []))
        values["extra"] = 1

    module.register_state_dict_post_hook(after)
    found = module.state_dict(prefix="a.", keep_vars=True)
    seen.append((f"keys {list(found)} {sorted(found._metadata)}", []))

    def before(m, values, prefix, metadata, strict, missing, unexpected, messages):
        seen.append((f"load pre {prefix}{sorted(values)} {strict} {missing} {unexpected} {messages}", []))
        values.pop(f"{prefix}extra", None)

    module.register_load_state_dict_pre_hook(before)
    module._register_load_state_dict_pre_hook(lambda values, *rest: seen.append((f"private load pre {rest[0]}", [])))

    def loaded(m, keys):
        seen.append((f"load post {sorted(keys.missing_keys)} {sorted(keys.unexpected_keys)}", []))
        keys.missing_keys.clear()

    module.register_load_state_dict_post_hook(loaded)
    values = OrderedDict(module.state_dict())
    for name in list(values)[:1]:
        if name != "extra":
            del values[name]
    seen.append((str(module.load_state_dict(values)), []))
    return seen
