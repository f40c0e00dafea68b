"""A client without an engine names the ways to one, and works with none of its libraries missing."""

import teletensor as torch

try:
    torch.ones(1)
except ConnectionError as error:
    assert "pip install teletensor[engine]" in str(error), error
    print("no engine:", error)
else:
    raise SystemExit("an engine was started, from nowhere")
