// What became of each library that something needed, for whoever asks the backend. Thread-safe.
#pragma once

#include <vector>

#include "engine/device/backend.h"

namespace tt::cuda {

// Instead of what was noted of the same name before.
void note_library(LibraryInfo library);

// By name.
std::vector<LibraryInfo> noted_libraries();

}  // namespace tt::cuda
