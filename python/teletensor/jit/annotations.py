"""torch.jit.annotations: types under TorchScript's names."""

from typing import Any, Dict, List, Optional, Tuple  # noqa: UP035 - TorchScript's names

__all__ = ["Any", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional", "Tuple"]

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = List  # noqa: UP006
