"""torch.utils.serialization: the settings of save and load."""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {

}
__getattr__, __dir__ = lazy_attributes(globals(), ("config",), _NAMES)

__all__ = ["config"]
