// Calls random operators on small CPU tensors, through the Dispatcher, with gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tt::fuzz {

// Runs some operators on tensors of every dtype and layout, all drawn from the bytes, in a new session, then the
// backward pass of their results. The engine must return results as inferred or throw tt::Error, in bounded time and
// memory. Returns an empty string, or the call and its fault.
std::string call_kernels(const uint8_t* data, size_t size);

}  // namespace tt::fuzz
