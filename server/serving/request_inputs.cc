#include "server/serving/request_inputs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "server/serving/byte_strings.h"
#include "server/serving/datatype.h"

namespace tt::server {
namespace {

// Of a tensor in a request; products of sizes then fit into 63 bits with any dtype.
constexpr int64_t kMaxElements = int64_t{1} << 48;

// Bytes of a request's strings as rows, unless the client has sent a quarter of them: every row is as wide as the
// longest one, so that a few bytes could otherwise take any amount of memory and time.
constexpr uint64_t kMaxStringRows = uint64_t{16} << 20;

}  // namespace

std::string sizes_text(const ModelPort& port) {
  std::vector<std::string> dims;
  dims.reserve(port.dims.size());
  for (const ModelPort::Dim& dim : port.dims) dims.push_back(absl::StrCat(dim.size));
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

absl::Status check_input(const ModelPort& port, const InferInput& input, NamedSizes* named) {
  if (input.dtype != port.dtype) {
    return invalid_request("expected the datatype ", datatype_name(port.dtype), " for input '", port.name, "', got ",
                           datatype_name(input.dtype));
  }
  const std::string got = to_string(SizesView(input.sizes));
  if (input.sizes.size() != port.dims.size()) {
    return invalid_request("expected the shape ", sizes_text(port), " for input '", port.name, "', got ", got);
  }
  int64_t elements = 1;
  for (size_t i = 0; i < port.dims.size(); ++i) {
    const ModelPort::Dim& dim = port.dims[i];
    const int64_t size = input.sizes[i];
    if (size < 0) {
      return invalid_request("expected sizes of 0 or more for input '", port.name, "', got ", got);
    }
    if (dim.size != kDynamic && size != dim.size) {
      return invalid_request("expected the shape ", sizes_text(port), " for input '", port.name, "', got ", got);
    }
    if (size < dim.min || size > dim.max) {
      return invalid_request("expected a size of ", dim.min, " to ", dim.max, " in dimension ", i, " of input '",
                             port.name, "', got ", size);
    }
    if (dim.size == kDynamic && !dim.name.empty()) {
      const auto [known, is_new] = named->try_emplace(dim.name, size);
      if (!is_new && known->second != size) {
        return invalid_request("expected the size ", known->second, " ('", dim.name, "') in dimension ", i,
                               " of input '", port.name, "', as in another input, got ", size);
      }
    }
    if (size > kMaxElements || elements > kMaxElements / std::max<int64_t>(size, 1)) {
      return invalid_request("expected at most ", kMaxElements, " elements of input '", port.name, "', got ", got);
    }
    elements *= std::max<int64_t>(size, 1);
  }
  if (std::find(input.sizes.begin(), input.sizes.end(), 0) != input.sizes.end()) elements = 0;
  const uint64_t bytes = static_cast<uint64_t>(elements) * item_size(input.dtype);
  if (!input.is_strings && bytes != input.bytes.size()) {
    return invalid_request("expected ", bytes, " bytes for input '", port.name, "' of the shape ", got, ", got ",
                           input.bytes.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<InferInput> with_width(const ModelPort& port, const InferInput& input) {
  if (!input.is_strings) {
    return invalid_request("expected the datatype ", kBytesDatatype, " for input '", port.name, "', got ",
                           datatype_name(input.dtype));
  }
  uint64_t count = 1;
  for (const int64_t size : input.sizes) {
    const uint64_t most = input.bytes.size();  // each string has some
    if (size < 0 || (size != 0 && static_cast<uint64_t>(size) > most / std::max<uint64_t>(count, 1))) {
      return invalid_request("expected a string per element of input '", port.name, "' of the shape ",
                             to_string(SizesView(input.sizes)), ", got ", input.bytes.size(), " bytes");
    }
    count *= static_cast<uint64_t>(size);
  }
  const absl::StatusOr<uint64_t> longest = longest_string(input.bytes, count);
  if (!longest.ok()) return longest.status();
  const ModelPort::Dim& last = port.dims.back();
  const auto needed = static_cast<int64_t>(*longest);
  const int64_t most = last.size != kDynamic ? last.size : last.max;
  if (needed > most) {
    return invalid_request("expected strings of at most ", most, " bytes for input '", port.name, "', got ", needed);
  }
  const int64_t width = last.size != kDynamic ? last.size : std::max({needed, last.min, int64_t{1}});
  const uint64_t room = std::max<uint64_t>(kMaxStringRows, 4 * input.bytes.size());
  if (count > room / std::max<uint64_t>(static_cast<uint64_t>(width), 1)) {
    return invalid_request("expected at most ", room, " bytes of strings for input '", port.name,
                           "', each as long as the ", "longest one, got ", count, " of ", width,
                           " bytes; send fewer, or those of similar lengths");
  }
  InferInput widened = input;
  widened.sizes.push_back(width);
  return widened;
}

}  // namespace tt::server
