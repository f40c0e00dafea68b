// Opens shared libraries and finds functions in them, for Library. Uses the system's loader. The tests replace these
// functions by a loader of simulated libraries (tests/cuda/simulated/loader.cc). Thread-safe.
#pragma once

#include <string>

namespace tt::cuda {

// Opens a shared library, which stays open until the process ends. Returns null, and stores the reason in `why`, if it
// cannot be opened.
void* open_library(const std::string& file, std::string* why);
// Returns null if the library has no function of that name.
void* find_function(void* library, const char* name);

}  // namespace tt::cuda
