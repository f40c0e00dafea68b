// Status of each library that was loaded or failed to load, for Backend::libraries(). Thread-safe.
#pragma once

#include <vector>

#include "engine/device/backend.h"

namespace tt::cuda {

// Replaces an earlier note with the same name.
void note_library(LibraryInfo library);

// Sorted by name.
std::vector<LibraryInfo> noted_libraries();

}  // namespace tt::cuda
