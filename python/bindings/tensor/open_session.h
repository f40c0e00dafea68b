// open_session: the session of current_session() (mode.h), without opening one.
#pragma once

#include "client/session/session.h"

namespace tt::python {

// Null if none is open. Requires the GIL.
const client::Session* open_session();

}  // namespace tt::python
