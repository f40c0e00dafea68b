#include "server/trace/trace_context.h"

#include <sys/random.h>

#include <algorithm>

namespace tt::server {
namespace {

constexpr size_t kTrace = 3, kSpan = 36, kFlags = 53, kLength = 55;  // positions, and the length of version 00

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;  // capitals are invalid
}

// Decodes `count` bytes; false if the text has anything but digits.
bool decode(absl::string_view text, size_t count, char* into) {
  for (size_t i = 0; i < count; ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    into[i] = static_cast<char>(high << 4 | low);
  }
  return true;
}

template <typename Bytes>
bool is_zero(const Bytes& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

}  // namespace

std::optional<TraceContext> parse_traceparent(absl::string_view text) {
  if (text.size() < kLength || text[kTrace - 1] != '-' || text[kSpan - 1] != '-' || text[kFlags - 1] != '-') return {};
  char version = 0, flags = 0;
  TraceContext context;
  if (!decode(text, 1, &version) || !decode(text.substr(kTrace), context.trace.size(), context.trace.data()) ||
      !decode(text.substr(kSpan), context.span.size(), context.span.data()) ||
      !decode(text.substr(kFlags), 1, &flags)) {
    return {};
  }
  // Later versions may append fields after another hyphen; ff is no version.
  if (version == '\xff' || (text.size() > kLength && (version == 0 || text[kLength] != '-'))) return {};
  if (is_zero(context.trace) || is_zero(context.span)) return {};
  context.sampled = (flags & 1) != 0;
  return context;
}

std::optional<TraceContext> new_span_context(const std::optional<TraceContext>& parent) {
  TraceContext context;
  if (parent) {
    context = *parent;
  } else if (getrandom(context.trace.data(), context.trace.size(), 0) != static_cast<ssize_t>(context.trace.size())) {
    return {};
  }
  if (getrandom(context.span.data(), context.span.size(), 0) != static_cast<ssize_t>(context.span.size())) return {};
  if (is_zero(context.trace) || is_zero(context.span)) return {};
  context.sampled = true;
  return context;
}

}  // namespace tt::server
