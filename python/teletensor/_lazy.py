"""Attributes of a module that are imported at their first use, so that importing the package stays fast."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Callable


def lazy_attributes(
    namespace: dict[str, Any], modules: Iterable[str] = (), names: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns the functions __getattr__ and __dir__ of a module.

    Args:
        namespace: the module's globals(), to which an attribute is added at its first use.
        modules: submodules, which are attributes too.
        names: by submodule, relative to the module's package ("nn.functional"): its attributes, separated by spaces.
            "new=old" gives an attribute another name.
    """
    package = namespace["__name__"]
    sources = {name: (f"{package}.{name}", "") for name in modules}
    for module, found in (names or {}).items():
        for name in found.split():
            alias, _, original = name.partition("=")
            sources[alias] = (f"{package}.{module}", original or alias)

    def get(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}: not implemented yet (docs/names.md)")
        path, attribute = sources[name]
        module = importlib.import_module(path)
        value = namespace[name] = getattr(module, attribute) if attribute else module
        return value

    def names_of() -> list[str]:
        return sorted({*namespace, *sources})

    return get, names_of
