"""Values of moved arguments (moved.yaml), by parameter name, else by type or default."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from ..signatures.compare import Parameter

_TABLE = yaml.safe_load(Path(__file__).with_name("moved.yaml").read_text())


@cache
def moved(parameter: Parameter) -> tuple[str, ...]:
    """Expressions of values other than the default; empty if the parameter is never moved or its values are unknown."""
    if parameter.star or parameter.name in _TABLE["never"]:
        return ()
    found = _TABLE["by_name"].get(parameter.name)
    if found is None:
        kinds = [k for k in ("bool", "int", "float", "Number") if k in parameter.types]
        if not kinds and parameter.default in ("True", "False"):
            kinds = ["bool"]
        elif not kinds and parameter.default is not None and parameter.default.lstrip("-").replace(".", "", 1).replace("e-", "").isdigit():
            kinds = ["float" if "." in parameter.default or "e" in parameter.default else "int"]
        found = _TABLE["by_type"][kinds[0]] if kinds else ()
    return tuple(v for v in found if v != parameter.default)
