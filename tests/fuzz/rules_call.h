// One call of a random operator's rules, as the client and the Dispatcher make it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tt::fuzz {

// Draws an operator and its arguments from the bytes, checks and infers. The contract of the rules: a result or
// tt::Error, in bounded time, and every result can exist. Returns the empty string, or the call and how it broke that.
std::string call_rules(const uint8_t* data, size_t size);

}  // namespace tt::fuzz
