"""torch.backends.mkldnn: settings without effect. The engine uses oneDNN, with full precision."""

import sys
from types import ModuleType

from ._flags import temporary_settings
from ._precision import Part, of_module

enabled = True
deterministic = False
allow_tf32 = True
matmul, conv, rnn = Part("mkldnn.matmul"), Part("mkldnn.conv"), Part("mkldnn.rnn")


class _Settings(ModuleType):
    """The module, with a setting that is read and written by functions."""

    fp32_precision = of_module("mkldnn", "The precision that is allowed; CPUs always use full precision.")


sys.modules[__name__].__class__ = _Settings

flags = temporary_settings(__name__, ("enabled", "deterministic", "allow_tf32", "fp32_precision"))


def is_available() -> bool:
    """Whether the library is available to the client: always False."""
    return False
