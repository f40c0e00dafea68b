// Calls the rules of a random operator, as the client and the Dispatcher do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tt::fuzz {

// Draws an operator and its arguments from the bytes, checks and infers. The rules must return valid results or throw
// tt::Error, in bounded time. Returns an empty string, or the call and its fault.
std::string call_rules(const uint8_t* data, size_t size);

}  // namespace tt::fuzz
