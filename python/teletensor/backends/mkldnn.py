"""torch.backends.mkldnn: settings without effect. The engine uses oneDNN."""

from ._flags import temporary_settings

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"

flags = temporary_settings(__name__, ("enabled", "deterministic", "allow_tf32", "fp32_precision"))


def is_available() -> bool:
    """Whether the library is available to the client: always False."""
    return False
