"""``python -m teletensor.launch``: the same as ``teletensor launch``."""

import sys

from . import main

sys.exit(main())
