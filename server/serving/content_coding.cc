#include "server/serving/content_coding.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tt::server {
namespace {

constexpr int kWindowBits = 15, kGzipBits = 16;  // added to the window's, they choose gzip's header instead of zlib's
constexpr uint64_t kFirstBytes = uint64_t{64} << 10;
constexpr uint64_t kPart = uint64_t{1} << 30;  // zlib counts in 32 bits

int window_bits(ContentCoding coding) { return coding == ContentCoding::kGzip ? kWindowBits + kGzipBits : kWindowBits; }

Bytef* bytes_of(const char* text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text)); }

}  // namespace

ContentCoding parse_coding(absl::string_view value) {
  if (value.empty() || absl::EqualsIgnoreCase(value, "identity")) return ContentCoding::kIdentity;
  if (absl::EqualsIgnoreCase(value, "gzip") || absl::EqualsIgnoreCase(value, "x-gzip")) return ContentCoding::kGzip;
  return absl::EqualsIgnoreCase(value, "deflate") ? ContentCoding::kDeflate : ContentCoding::kUnknown;
}

ContentCoding accepted_coding(absl::string_view value) {
  ContentCoding best = ContentCoding::kIdentity;
  double best_weight = 0, identity_weight = 0;
  for (const absl::string_view each : absl::StrSplit(value, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(each, ';');
    const absl::string_view name = absl::StripAsciiWhitespace(parts[0]);
    const ContentCoding coding = parse_coding(name);
    if (name.empty() || coding == ContentCoding::kUnknown) continue;
    double weight = 1;
    for (size_t i = 1; i < parts.size(); ++i) {
      const absl::string_view parameter = absl::StripAsciiWhitespace(parts[i]);
      if (absl::StartsWithIgnoreCase(parameter, "q=") && !absl::SimpleAtod(parameter.substr(2), &weight)) weight = 0;
    }
    if (coding == ContentCoding::kIdentity) {
      identity_weight = weight;
    } else if (weight > best_weight) {
      best = coding;
      best_weight = weight;
    }
  }
  return best_weight > identity_weight ? best : ContentCoding::kIdentity;
}

absl::string_view coding_name(ContentCoding coding) {
  return coding == ContentCoding::kGzip ? "gzip" : coding == ContentCoding::kDeflate ? "deflate" : "";
}

absl::StatusOr<std::string> decompressed(ContentCoding coding, absl::Span<const absl::string_view> parts,
                                         uint64_t max_bytes, absl::FunctionRef<absl::Status(uint64_t bytes)> charge) {
  z_stream stream{};
  if (inflateInit2(&stream, window_bits(coding)) != Z_OK) return absl::ResourceExhaustedError("memory is exhausted");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  const auto invalid = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("[v2] expected a body compressed with ", coding_name(coding), ", got ", what));
  };
  std::string result;
  uint64_t size = 0;
  const auto next_part = [&] {
    while (!parts.empty() && parts.front().empty()) parts.remove_prefix(1);
    return parts.empty() ? absl::string_view() : parts.front();
  };
  absl::string_view bytes = next_part();
  while (true) {
    if (size == result.size()) {
      if (size > max_bytes) {
        return absl::OutOfRangeError(
            absl::StrCat("[v2] expected a body of at most ", max_bytes, " bytes once it is decompressed"));
      }
      // One more than permitted, which shows that there is more.
      const uint64_t room = std::min(std::max(kFirstBytes, 2 * size), max_bytes + 1);
      if (absl::Status status = charge(room); !status.ok()) return status;
      result.resize(room);
    }
    stream.next_in = bytes_of(bytes.data());
    stream.avail_in = static_cast<uInt>(std::min<uint64_t>(bytes.size(), kPart));
    stream.next_out = bytes_of(result.data() + size);
    stream.avail_out = static_cast<uInt>(std::min<uint64_t>(result.size() - size, kPart));
    const uint64_t in = stream.avail_in, out = stream.avail_out;
    const int status = inflate(&stream, Z_NO_FLUSH);
    bytes.remove_prefix(in - stream.avail_in);
    if (bytes.empty() && !parts.empty()) {
      parts.remove_prefix(1);
      bytes = next_part();
    }
    size += out - stream.avail_out;
    if (status == Z_STREAM_END) break;
    if (status != Z_OK && status != Z_BUF_ERROR) return invalid("damaged bytes");
    if (in == stream.avail_in && out == stream.avail_out) return invalid("an incomplete one");
  }
  if (!bytes.empty()) return invalid("further bytes after its end");
  if (size > max_bytes) {
    return absl::OutOfRangeError(
        absl::StrCat("[v2] expected a body of at most ", max_bytes, " bytes once it is decompressed"));
  }
  result.resize(size);
  return result;
}

uint64_t compressed_bound(uint64_t bytes) {
  constexpr uint64_t kHeader = 64;
  return bytes + bytes / 1000 + kHeader;
}

std::string compressed(ContentCoding coding, absl::string_view bytes) {
  z_stream stream{};
  constexpr int kMemory = 8;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_bits(coding), kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  uint64_t size = 0, taken = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_in = bytes_of(bytes.data() + taken);
    stream.avail_in = static_cast<uInt>(std::min<uint64_t>(bytes.size() - taken, kPart));
    stream.next_out = bytes_of(result.data() + size);
    stream.avail_out = static_cast<uInt>(std::min<uint64_t>(result.size() - size, kPart));
    const uint64_t in = stream.avail_in, out = stream.avail_out;
    status = deflate(&stream, taken + in == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    taken += in - stream.avail_in;
    size += out - stream.avail_out;
  }
  result.resize(status == Z_STREAM_END ? size : 0);
  return result;
}

}  // namespace tt::server
