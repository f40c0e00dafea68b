// byte_strings: the protocol's tensors of the datatype BYTES, which models see as UINT8 with one more dimension.
//
// The engine has no strings. A string of a model's input is a row of bytes as wide as the dimension, with zeros after
// its end; of an output, the zeros at the end of a row do not belong to the string. Encoded, each string is its length
// (32 bits, little-endian) and its bytes, as Triton's clients write them. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tt::server {

inline constexpr absl::string_view kBytesDatatype = "BYTES";

void append_string(absl::string_view text, std::string* encoded);
// Returns the length of the longest of exactly `count` encoded strings. INVALID_ARGUMENT if there are not as many.
absl::StatusOr<uint64_t> longest_string(absl::Span<const char> encoded, uint64_t count);
// Writes strings that longest_string() has accepted as rows of `width` bytes, which is at least the longest one.
void decode_strings(absl::Span<const char> encoded, size_t width, char* to);
std::string encode_strings(absl::string_view rows, size_t width);
// The next of the encoded strings, which it removes. Requires that there is one.
absl::string_view take_string(absl::string_view* encoded);

}  // namespace tt::server
