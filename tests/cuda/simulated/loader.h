// The libraries of simulated devices: functions of this process with the signatures of the real ones, for what opens
// libraries by libraries/loader.h.
//
// They compute when the stream comes to them, and refuse what the real ones refuse. TELETENSOR_SIMULATED_WITHOUT names
// those that cannot be opened, "cufft,cusolver", so that our own kernels are used instead.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tt::cuda {

using LibraryFunctions = std::map<std::string_view, void*>;

// Requires a function of the type of the real one: entry<decltype(&cufftCreate)>(&create).
template <typename Function>
void* entry(Function function) {
  return reinterpret_cast<void*>(function);
}

bool has_simulated_library(const std::string& name);  // "cufft"

const LibraryFunctions& simulated_cufft();
const LibraryFunctions& simulated_cusolver();

}  // namespace tt::cuda
