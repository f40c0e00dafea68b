// The libraries of simulated devices: functions of this process with the signatures of the real ones, for code that
// opens libraries by libraries/loader.h.
//
// They compute when the stream executes the work and reject the arguments that the real libraries reject.
// TELETENSOR_SIMULATED_WITHOUT lists libraries that cannot be opened, as in "cufft,cusolver", so that our own kernels
// are used instead, or as in "cupti".
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tt::cuda {

using LibraryFunctions = std::map<std::string_view, void*>;

// `function` must have the type of the real function: entry<decltype(&cufftCreate)>(&create).
template <typename Function>
void* entry(Function function) {
  return reinterpret_cast<void*>(function);
}

bool is_hidden_library(const std::string& name);      // whether TELETENSOR_SIMULATED_WITHOUT lists it
bool has_simulated_library(const std::string& name);  // "cufft"

const LibraryFunctions& simulated_cufft();
const LibraryFunctions& simulated_cupti();
const LibraryFunctions& simulated_cusolver();

}  // namespace tt::cuda
