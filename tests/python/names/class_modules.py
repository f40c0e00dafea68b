"""The modules that PyTorch 2.15's public classes name as theirs, written to class_modules.json, for test_class_modules.py:

.venv-peers/bin/python -m tests.python.names.class_modules NAMES

NAMES: a file with a line `module|name` per public name.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("class_modules.json")


def attribute(module: str, name: str) -> Any:
    """The attribute of a module, which may be an attribute of its package only; None if there is none."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        package, _, last = module.rpartition(".")
        found = attribute(package, last) if package else None
    try:
        return getattr(found, name, None)
    except ImportError:  # of a library that is not installed
        return None


def public_classes(names: Path) -> dict[str, str]:
    """By the public path of a class: the module that the class names, and its name there."""
    found = {}
    for line in names.read_text().splitlines():
        module, _, name = line.partition("|")
        kind = attribute(module, name) if name and not line.startswith("#") else None
        if isinstance(kind, type) and kind.__module__.partition(".")[0] == "torch":
            found[f"{module}.{name}"] = f"{kind.__module__}:{kind.__qualname__}"
    return found


if __name__ == "__main__":
    rows = sorted(public_classes(Path(sys.argv[1])).items())
    TABLE.write_text("{\n" + ",\n".join(f"{json.dumps(path)}: {json.dumps(name)}" for path, name in rows) + "\n}\n")
