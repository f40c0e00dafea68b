// TraceContext: the position of a piece of work in a distributed trace, as W3C's header traceparent encodes it.
//
// A client chooses the text, so every part of it is checked. Values; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tt::server {

struct TraceContext {
  std::array<char, 16> trace{};  // not all zero
  std::array<char, 8> span{};    // not all zero
  bool sampled = false;          // the caller records its spans
};

// Parses "00-<32 hexadecimal digits>-<16>-<2>", or what a later version of the standard writes. Empty if the text is
// not a valid traceparent; the standard requires to ignore such a text.
std::optional<TraceContext> parse_traceparent(absl::string_view text);
// Returns a new trace's context or, with a parent, that of a new span in the parent's trace. Makes a system call. Empty
// if the system has no random numbers.
std::optional<TraceContext> new_span_context(const std::optional<TraceContext>& parent);

}  // namespace tt::server
