// Status of each library that was loaded or failed to load, for Backend::libraries(). Thread-safe.
#pragma once

#include <vector>

#include "engine/device/backend.h"

namespace tt::cuda {

// Records the status of a library. Replaces an earlier status of a library with the same name.
void record_library_status(LibraryInfo library);

// Returns the recorded statuses, sorted by name.
std::vector<LibraryInfo> library_statuses();

}  // namespace tt::cuda
