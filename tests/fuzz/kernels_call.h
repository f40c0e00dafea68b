// Calls of random operators on small CPU tensors, through the Dispatcher, with gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tt::fuzz {

// Runs some operators on tensors of every dtype and layout, drawn from the bytes, in a session's context of their own,
// then the backward pass of what they gave. The contract of the engine: results as inferred or tt::Error, in bounded
// time and memory. Returns the empty string, or the call and how it broke that.
std::string call_kernels(const uint8_t* data, size_t size);

}  // namespace tt::fuzz
