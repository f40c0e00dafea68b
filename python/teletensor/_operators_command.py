"""``teletensor operators``: the operator table, for programs that speak the wire protocol without the client library."""

from __future__ import annotations

import argparse
import json
from typing import Any

from . import _C
from ._version import __version__


def table() -> dict[str, Any]:
    """The operators of this version with their ids and parameters, the numbers of dtypes, and the digest as 16 digits.

    A digest has 64 bits, more than numbers of JSON can have.
    """
    found = _C.operator_table()
    return {"version": __version__, **found, "schema_digest": f"{found['schema_digest']:016x}"}


def _text(operator: dict[str, Any]) -> str:
    """An operator in one line, as "100 add(Tensor input, Tensor other, Scalar alpha=1)"."""
    parameters = []
    for parameter in operator["parameters"]:
        kind = parameter["type"] + ("?" if parameter.get("optional") else "")
        default = f"={parameter['default']}" if "default" in parameter else ""
        parameters.append(f"{kind} {parameter['name']}{default}")
    results = "list" if operator["results"] < 0 else operator["results"]
    return f"{operator['id']:5d} {operator['name']}({', '.join(parameters)}) -> {results}"


def run(args: argparse.Namespace) -> int:
    """Prints the table; returns the exit status."""
    found = table()
    if args.json:
        print(json.dumps(found, indent=1, default=str))
        return 0
    for operator in found["operators"]:
        print(_text(operator))
    return 0


def add_parser(commands) -> None:
    """Adds the command to those of ``teletensor``."""
    parser = commands.add_parser(
        "operators", help="ids and parameters of this version's operators, for clients in other languages; needs no engine"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
