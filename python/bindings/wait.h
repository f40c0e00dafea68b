// Hooks for the client's waits: Python's signals and the interpreter's lock.
#pragma once

namespace tt::python {

// Installs the client's wait hooks. Must be called once, with the GIL held, when the module is imported.
void init_waits();

}  // namespace tt::python
