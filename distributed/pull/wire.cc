#include "distributed/pull/wire.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tt::distributed {
namespace {

constexpr uint8_t kDataTag = (v1::PullReply::kDataFieldNumber << 3) | 2;
constexpr size_t kMaxPrefixBytes = 11;  // tag and size

// Decodes the prefix of `data`. Returns its number of bytes, or 0 if the message is not a PullReply with `data` only.
size_t parse_prefix(absl::Span<const uint8_t> bytes, uint64_t message_bytes) {
  if (bytes.empty() || bytes[0] != kDataTag) return 0;
  uint64_t size = 0;
  for (size_t i = 1; i < bytes.size(); ++i) {
    size |= static_cast<uint64_t>(bytes[i] & 0x7f) << (7 * (i - 1));
    if ((bytes[i] & 0x80) == 0) return size == message_bytes - i - 1 ? i + 1 : 0;
  }
  return 0;
}

}  // namespace

grpc::ByteBuffer data_reply(std::shared_ptr<const void> owner, absl::Span<const char> bytes) {
  std::string prefix(1, static_cast<char>(kDataTag));
  uint64_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) prefix.push_back(static_cast<char>((size & 0x7f) | 0x80));
  prefix.push_back(static_cast<char>(size));
  using Owner = std::shared_ptr<const void>;
  auto* held = new Owner(std::move(owner));
  const grpc::Slice slices[] = {
      grpc::Slice(prefix),
      grpc::Slice(
          const_cast<char*>(bytes.data()), bytes.size(), [](void* o) { delete static_cast<Owner*>(o); }, held),
  };
  return grpc::ByteBuffer(slices, 2);
}

int64_t read_data(const grpc::ByteBuffer& reply, absl::Span<char> into) {
  std::vector<grpc::Slice> slices;
  if (!reply.Dump(&slices).ok()) return -1;
  std::vector<uint8_t> start;
  for (const grpc::Slice& slice : slices) {
    const size_t wanted = std::min(kMaxPrefixBytes - start.size(), slice.size());
    start.insert(start.end(), slice.begin(), slice.begin() + wanted);
  }
  size_t skipped = parse_prefix(start, reply.Length());
  if (skipped == 0) return -1;
  const size_t size = reply.Length() - skipped;
  if (size > into.size()) return static_cast<int64_t>(size);
  char* to = into.data();
  for (const grpc::Slice& slice : slices) {
    const size_t skip = std::min(skipped, slice.size());
    skipped -= skip;
    if (skip == slice.size()) continue;
    std::memcpy(to, slice.begin() + skip, slice.size() - skip);
    to += slice.size() - skip;
  }
  return static_cast<int64_t>(size);
}

}  // namespace tt::distributed
