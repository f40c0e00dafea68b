"""Configurations, their mappings, and questions about them."""

import re

from .record import ao, error


def described(value):
    """A partial constructor as its class and arguments."""
    parts = getattr(value, "p", None)
    if parts is None:
        return getattr(value, "__name__", str(value))
    return [
        parts.func.__name__,
        {k: described(v) if callable(v) else str(v) for k, v in sorted(parts.keywords.items())},
    ]


def pair(qconfig):
    """A QConfig as text."""
    return None if qconfig is None else [described(qconfig.activation), described(qconfig.weight)]


def case_qconfigs(torch):
    module = ao(torch, "quantization.qconfig")
    return {
        name: pair(getattr(module, name))
        for name in sorted(module.__all__)
        if name.endswith(("qconfig", "qconfig_4bit", "_v2")) and not name.startswith("get")
    }


def case_defaults_of_backends(torch):
    q, found = ao(torch, "quantization"), {}
    for backend in ("fbgemm", "x86", "qnnpack", "onednn"):
        found[backend] = [
            pair(q.get_default_qconfig(backend)),
            *(pair(q.get_default_qat_qconfig(backend, v)) for v in (0, 1)),
        ]
    found["errors"] = [
        error(q.get_default_qconfig, "none").partition(":")[0],
        error(q.get_default_qconfig, "x86", 3).partition(":")[0],
        error(q.get_default_qat_qconfig, "x86", 3).partition(":")[0],
    ]
    return found


def named(kind):
    """An operator's type as text."""
    if isinstance(kind, tuple):
        return [named(k) for k in kind]
    return kind if isinstance(kind, str) else getattr(kind, "__name__", re.sub("<|>", "", str(kind)))


def case_mappings(torch):
    q, found = ao(torch, "quantization"), {}
    module = ao(torch, "quantization.qconfig_mapping")
    for backend in ("x86", "qnnpack"):
        for make in (q.get_default_qconfig_mapping, q.get_default_qat_qconfig_mapping):
            mapping = make(backend)
            rows = [[named(k), pair(v)] for k, v in mapping.object_type_qconfigs.items()]
            found[f"{backend} {make.__name__}"] = [pair(mapping.global_qconfig), rows]
    for make in (module._get_symmetric_qnnpack_qconfig_mapping, module._get_symmetric_qnnpack_qat_qconfig_mapping):
        mapping = make()
        found[make.__name__] = [
            pair(mapping.global_qconfig),
            [[named(k), pair(v)] for k, v in mapping.object_type_qconfigs.items()],
        ]
    return found


def case_mapping_methods(torch):
    q = ao(torch, "quantization")
    mapping = (
        q.QConfigMapping()
        .set_global(q.default_qconfig)
        .set_object_type(torch.nn.Linear, None)
        .set_module_name_regex("a.*", None)
    )
    mapping.set_module_name("b.c", q.default_dynamic_qconfig).set_module_name_object_type_order(
        "d", torch.nn.Linear, 1, None
    )
    again = q.QConfigMapping.from_dict(mapping.to_dict())
    keys = [
        list(getattr(again, name))
        for name in (
            "object_type_qconfigs",
            "module_name_regex_qconfigs",
            "module_name_qconfigs",
            "module_name_object_type_order_qconfigs",
        )
    ]
    return [[named(k) for k in row] for row in keys] + [
        pair(again.global_qconfig),
        len(repr(again).splitlines()),
        list(mapping.to_dict()),
    ]


def case_equality(torch):
    q = ao(torch, "quantization")
    same = q.get_default_qat_qconfig("x86")
    pairs = (
        (same, q.get_default_qat_qconfig("x86")),
        (same, q.get_default_qat_qconfig("qnnpack")),
        (q.default_qconfig, None),
        (None, None),
        (q.default_qconfig, q.default_dynamic_qconfig),
        (q.default_qconfig, q.QConfig(*q.default_qconfig)),
        (q.QConfig(int, float), q.QConfig(int, float)),
    )
    return [q.qconfig_equals(a, b) for a, b in pairs] + [error(q.QConfig, torch.nn.Identity(), None).partition(":")[0]]


def case_questions(torch):
    q, utils = ao(torch, "quantization"), ao(torch, "quantization.utils")
    names = (
        "activation_dtype",
        "weight_dtype",
        "activation_is_statically_quantized",
        "activation_is_dynamically_quantized",
        "activation_is_int8_quantized",
        "activation_is_int32_quantized",
        "weight_is_quantized",
        "weight_is_statically_quantized",
        "op_is_int8_dynamically_quantized",
        "get_qconfig_dtypes",
        "get_quant_type",
    )
    configs = (
        q.default_qconfig,
        q.default_dynamic_qconfig,
        q.float16_static_qconfig,
        q.float16_dynamic_qconfig,
        q.float_qparams_weight_only_qconfig,
        q.default_qat_qconfig,
    )
    rows = [[str(getattr(utils, name)(c)) for name in names] for c in configs]
    rows.append(
        [error(utils.get_quant_type, q.QConfig(q.PlaceholderObserver, q.PlaceholderObserver)).partition(":")[0]]
    )
    for make in (
        q.MinMaxObserver,
        q.default_per_channel_weight_observer,
        q.PlaceholderObserver,
        q.default_float_qparams_observer,
    ):
        observer = make()
        observer(torch.tensor([[1.0, 2.0], [-3.0, 0.5]]))
        rows.append({k: str(v) if k in ("dtype", "qscheme") else v for k, v in utils.get_qparam_dict(observer).items()})
    return rows


def case_tables_of_modules(torch):
    q = ao(torch, "quantization")
    tables = {}
    for name in (
        "get_default_static_quant_module_mappings",
        "get_default_static_quant_reference_module_mappings",
        "get_embedding_static_quant_module_mappings",
        "get_default_qat_module_mappings",
        "get_embedding_qat_module_mappings",
        "get_default_dynamic_quant_module_mappings",
    ):
        tables[name] = sorted([named(k), named(v)] for k, v in getattr(q, name)().items())
    tables["propagated"] = sorted(named(k) for k in q.get_default_qconfig_propagation_list())
    tables["compared"] = sorted(named(k) for k in q.get_default_compare_output_module_list())
    tables["one"] = [
        named(q.get_static_quant_module_class(torch.nn.Linear)),
        named(q.get_dynamic_quant_module_class(torch.nn.LSTM)),
    ]
    tables["errors"] = [
        error(f, int).partition(":")[0] for f in (q.get_static_quant_module_class, q.get_quantized_operator)
    ]
    tables["operators"] = sorted(named(k) for k in q.get_default_float_to_quantized_operator_mappings())
    return tables


def case_propagation(torch):
    q, nn = ao(torch, "quantization"), torch.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU()), nn.LSTM(2, 2))
    net[1].qconfig = None
    q.propagate_qconfig_(net, {nn.LSTM: q.default_dynamic_qconfig, "": q.default_qconfig})
    return {name: pair(getattr(m, "qconfig", "none")) for name, m in net.named_modules()}


def case_example_inputs(torch):
    utils, nn = ao(torch, "quantization.utils"), torch.nn
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))
    return {
        name: [list(a.shape) for a in args]
        for name, args in utils.get_fqn_to_example_inputs(net, (torch.ones(4, 2),)).items()
    }
