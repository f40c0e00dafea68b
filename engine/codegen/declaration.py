"""Loads and checks operator declarations, and derives the properties that emitters use."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from .signature import DeclarationError, Param, Signature, parse_signature

FIELDS = {
    "op", "id", "sig", "doc", "python", "aliases", "dtype", "compute", "shape", "device", "body",
    "composite", "kernel", "out_variant", "out", "grad", "dynamic", "random", "inplace", "ref", "samples", "errors", "view",
    "tolerance", "dtypes", "complex", "holomorphic", "overload_of", "double_backward", "checked_inputs", "checked_outputs",
    "float8", "autocast", "aten", "older_orders", "waits", "session",
}  # fmt: skip
WAITS = (True, "checked_by")
IMPLEMENTATIONS = ("body", "composite", "kernel", "view")
OUT_VARIANTS = ("overwriting", "updating", "temporary")
SESSION_USES = ("none", "generator", "state")
OUT_RULES = ("cast", "exact", "typed")
AUTOCAST_POLICIES = ("none", "lower", "float32", "float32_to_lower", "float32_result", "widest", "refused")


@dataclass
class Operator:
    name: str
    id: int
    signature: Signature
    doc: str
    entry: dict  # the YAML entry
    source: str  # "pointwise.yaml"
    python: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)

    @property
    def params(self) -> list[Param]:
        return self.signature.params

    @property
    def is_pointwise(self) -> bool:
        return "body" in self.entry

    @property
    def is_view(self) -> bool:
        return bool(self.entry.get("view"))

    @property
    def is_composite(self) -> bool:
        return "composite" in self.entry

    @property
    def is_dynamic(self) -> bool:
        return bool(self.entry.get("dynamic"))

    @property
    def is_random(self) -> bool:
        return bool(self.entry.get("random"))

    @property
    def session(self) -> str:
        """What it does besides its results and writes: by default nothing if it has any, else it changes the session."""
        has_effect = self.signature.num_outputs != 0 or any(param.written for param in self.params)
        return self.entry.get("session", "none" if has_effect else "state")

    @property
    def out(self) -> str:
        """The treatment of an `out=` tensor of another dtype."""
        return self.entry.get("out", "cast")

    @property
    def autocast(self) -> tuple[str, str]:
        """The policies on CPUs and on GPUs."""
        given = self.entry.get("autocast", "none")
        return tuple(given) if isinstance(given, list) else (given, given)

    @property
    def kernel(self) -> str | None:
        return self.entry.get("kernel")

    @property
    def gradients(self) -> dict[str, str]:
        """Maps parameters to formulas. Empty for `none`, `custom` and composites."""
        grad = self.entry.get("grad", "none")
        return grad if isinstance(grad, dict) and "custom" not in grad else {}

    @staticmethod
    def gradient_keys(key: str) -> list[str]:
        """Returns the parameters of one formula: `input`, or `input, weight` for a list of gradients."""
        return [name.strip() for name in key.split(",")]

    @property
    def custom_gradient(self) -> str | None:
        grad = self.entry.get("grad", "none")
        return grad.get("custom") if isinstance(grad, dict) else None

    @property
    def differentiable_params(self) -> set[str]:
        if self.custom_gradient or self.is_composite:
            grad = self.entry.get("grad")
            if grad == "none" or isinstance(grad, list):
                return set() if grad == "none" else set(grad)
            return {p.name for p in self.params if p.is_tensor or p.is_tensor_list}
        return {name for key in self.gradients for name in self.gradient_keys(key)}

    @property
    def dtype_rules(self) -> list[str]:
        rule = self.entry.get("dtype", [])
        return rule if isinstance(rule, list) else [rule]

    @property
    def shape_rules(self) -> list[str]:
        rule = self.entry.get("shape", [])
        return rule if isinstance(rule, list) else [rule]

    @property
    def constant(self) -> str:
        """The name of the operator's id constant, such as `kLogSoftmax`."""
        return "k" + "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def has_inplace(self) -> bool:
        """Whether Python has a method `name_`."""
        default = self.is_pointwise and self.dtype_rules != ["boolean()"]
        return bool(self.entry.get("inplace", default)) and "Tensor" in self.python

    @property
    def is_inplace_only(self) -> bool:
        """Whether Python has only the method `name_`."""
        return self.entry.get("inplace") == "only"


def _check(entry: dict) -> None:
    unknown = set(entry) - FIELDS
    if unknown:
        raise DeclarationError(f"unknown field {sorted(unknown)[0]!r}")
    for needed in ("id", "sig", "doc", "samples"):
        if needed not in entry:
            raise DeclarationError(f"needs {needed!r}")
    if not str(entry["doc"]).strip():
        raise DeclarationError("doc is empty")
    given = [k for k in IMPLEMENTATIONS if k in entry]
    if len(given) != 1:
        raise DeclarationError(f"needs exactly one of {', '.join(IMPLEMENTATIONS)}, got {given or 'none'}")
    if "out_variant" in entry and ("kernel" not in entry or entry["out_variant"] not in OUT_VARIANTS):
        raise DeclarationError(
            f"'out_variant' requires 'kernel' and must be {' or '.join(OUT_VARIANTS)}, got {entry['out_variant']!r}"
        )
    if entry.get("session", "none") not in SESSION_USES:
        raise DeclarationError(f"'session' must be one of {', '.join(SESSION_USES)}, got {entry['session']!r}")
    if entry.get("out", "cast") not in OUT_RULES:
        raise DeclarationError(f"'out' must be one of {', '.join(OUT_RULES)}, got {entry['out']!r}")
    if entry.get("waits", True) not in WAITS:
        raise DeclarationError(f"'waits' must be true or checked_by, got {entry['waits']!r}")
    if "composite" not in entry and "grad" not in entry:
        raise DeclarationError("needs 'grad' (a map, none, or {custom: symbol})")
    if "ref" not in entry:
        raise DeclarationError("needs 'ref' (an expression, or 'none: reason')")


def _check_rules(op: Operator) -> None:
    outputs = op.signature.num_outputs
    if outputs > 0 and (len(op.dtype_rules) != outputs or (len(op.shape_rules) != outputs and not op.is_dynamic)):
        raise DeclarationError(
            f"has {outputs} results but {len(op.dtype_rules)} dtype and {len(op.shape_rules)} shape rules"
        )
    names = {p.name for p in op.params}
    if shared := names & set(op.signature.results):
        raise DeclarationError(f"results must have other names than parameters, got {', '.join(sorted(shared))}")
    if len(op.autocast) != 2 or not set(op.autocast) <= set(AUTOCAST_POLICIES):
        raise DeclarationError(
            f"'autocast' must be one of {', '.join(AUTOCAST_POLICIES)}, or a list of two for CPUs and GPUs, got {op.entry['autocast']!r}"
        )
    if op.out == "typed" and "dtype" not in names:
        raise DeclarationError("'out: typed' requires a parameter 'dtype'")
    for name in " ".join(op.entry.get("older_orders", ())).split():
        if name not in names:
            raise DeclarationError(f"lists {name!r} in 'older_orders', which is not a parameter")
    if isinstance(op.entry.get("grad"), list) and not op.is_composite:
        raise DeclarationError("only a composite may declare 'grad' as a list; write formulas")
    for param in (name for key in op.gradients for name in op.gradient_keys(key)):
        if param not in names:
            raise DeclarationError(f"declares a gradient for {param!r}, which is not a parameter")


def parse_entry(entry: dict, source: str) -> Operator:
    """Parses and checks one declaration. Raises DeclarationError that names the file and the operator."""
    name = entry.get("op", "?")
    try:
        if not re.match(r"^[a-z_][a-z0-9_]*$", str(name)):
            raise DeclarationError(f"invalid operator name: {name!r}")
        _check(entry)
        op = Operator(
            name, entry["id"], parse_signature(entry["sig"]), " ".join(str(entry["doc"]).split()), entry, source,
            python=entry.get("python", ["torch", "Tensor"]), aliases=entry.get("aliases", []),
        )  # fmt: skip
        _check_rules(op)
        return op
    except DeclarationError as e:
        raise DeclarationError(f"{source}: {name}: {e}") from None


def load(folder: Path) -> list[Operator]:
    """Returns all declarations of a folder, sorted by id. Raises DeclarationError, also for duplicate declarations."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    retired_file = folder / "retired.yaml"
    retired = {r["id"]: r["op"] for r in yaml.load(retired_file.read_text(), loader) or []} if retired_file.exists() else {}
    operators: list[Operator] = []
    for path in sorted(folder.glob("*.yaml")):
        if path != retired_file:
            operators += [parse_entry(e, path.name) for e in yaml.load(path.read_text(), loader) or []]
    ids, names = {}, {}
    for op in operators:
        if op.id in retired:
            raise DeclarationError(f"{op.source}: {op.name}: id {op.id} is retired; {retired[op.id]} used it")
        if other := ids.setdefault(op.id, op) is not op and ids[op.id]:
            raise DeclarationError(f"{op.source}: {op.name}: id {op.id} is already used by {other.name}")
        if names.setdefault(op.name, op) is not op:
            raise DeclarationError(f"{op.source}: {op.name} is declared twice")
    return sorted(operators, key=lambda op: op.id)
