// Conversions between the store's types and its messages on gRPC.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "teletensor/v1/store.grpc.pb.h"

namespace tt::distributed {

namespace v1 = ::teletensor::v1;

using RepeatedBytes = google::protobuf::RepeatedPtrField<std::string>;

// Moves the strings out of a message.
inline std::vector<std::string> take(RepeatedBytes* strings) {
  return {std::make_move_iterator(strings->begin()), std::make_move_iterator(strings->end())};
}

inline void assign(RepeatedBytes* strings, absl::Span<const std::string> values) {
  strings->Assign(values.begin(), values.end());
}

inline absl::Status from_grpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

inline grpc::Status to_grpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

// Parses and clears `buffer`. Returns false if the bytes are malformed.
template <typename Message>
bool deserialize(grpc::ByteBuffer* buffer, Message* message) {
  return grpc::SerializationTraits<Message>::Deserialize(buffer, message).ok();
}

// Replaces the contents of `buffer`.
template <typename Message>
void serialize(const Message& message, grpc::ByteBuffer* buffer) {
  bool own_buffer = false;
  buffer->Clear();
  grpc::SerializationTraits<Message>::Serialize(message, buffer, &own_buffer);
}

}  // namespace tt::distributed
