// How Python takes part in the client's waits: signals, the interpreter's lock.
#pragma once

namespace tt::python {

// Installs the client's wait hooks. With the GIL held, once, when the module is imported.
void init_waits();

}  // namespace tt::python
