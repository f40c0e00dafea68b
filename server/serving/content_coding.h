// Content codings of HTTP bodies below /v2: gzip and deflate (RFC 9110, 8.4.1).
//
// Bodies are untrusted: what they expand to is limited, and charged before memory is allocated for it. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tt::server {

enum class ContentCoding : uint8_t { kIdentity, kGzip, kDeflate, kUnknown };

// The value of Content-Encoding; several codings are kUnknown.
ContentCoding parse_coding(absl::string_view value);
// The coding of a response that Accept-Encoding prefers: kIdentity unless it names gzip or deflate, with a larger
// weight than identity if it names that. "*" names none.
ContentCoding accepted_coding(absl::string_view value);
// "gzip", "deflate"; empty for others.
absl::string_view coding_name(ContentCoding coding);

// Returns what was compressed; `parts` are its bytes in order. `charge` reserves the memory of a larger result, to
// which the smaller one is copied, and fails if there is none. INVALID_ARGUMENT if the bytes are damaged or incomplete,
// or others follow them; OUT_OF_RANGE if the result is larger than `max_bytes`.
absl::StatusOr<std::string> decompressed(ContentCoding coding, absl::Span<const absl::string_view> parts,
                                         uint64_t max_bytes, absl::FunctionRef<absl::Status(uint64_t bytes)> charge);
// The largest number of bytes that compressed() returns for `bytes`.
uint64_t compressed_bound(uint64_t bytes);
// Requires kGzip or kDeflate. Empty if memory is exhausted.
std::string compressed(ContentCoding coding, absl::string_view bytes);

}  // namespace tt::server
