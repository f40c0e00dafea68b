"""Python imports this module at its start, in the program and in each process that it starts: prepares `torch`."""

import preparation

preparation.prepare()
