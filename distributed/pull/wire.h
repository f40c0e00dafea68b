// Messages of Pull.Pull with a tensor's bytes, which are written from the tensor's memory and read into it: serialized
// by generated code, they would be copied twice.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "distributed/store/wire.h"
#include "teletensor/v1/pull.pb.h"

namespace tt::distributed {

inline constexpr char kPullMethod[] = "/teletensor.v1.Pull/Pull";
inline constexpr size_t kDataBytes = size_t{1} << 20;  // of one PullReply
inline constexpr size_t kMaxReplyBytes = kDataBytes + 1024;
inline constexpr size_t kMaxErrorBytes = size_t{32} << 10;  // longer messages of errors are cut

// Returns a serialized PullReply with `bytes` as `data`. The buffer keeps `owner`, which owns the bytes.
grpc::ByteBuffer data_reply(std::shared_ptr<const void> owner, absl::Span<const char> bytes);

// If the message is a PullReply with `data`, copies the data to `into` and returns its size, or a larger number than
// into.size() if the data do not fit. Returns -1 for other messages, valid or not.
int64_t read_data(const grpc::ByteBuffer& reply, absl::Span<char> into);

}  // namespace tt::distributed
