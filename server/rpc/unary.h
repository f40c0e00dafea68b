// unary: handlers for methods with one request, run as soon as a call's metadata has arrived.
//
// gRPC's own handlers for such methods read the request of any peer before they run. These handlers check the metadata,
// claim a slot in a quota, and only then read the request, within a size and time limit. The wire protocol is the same.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/call_admission.h"

namespace tt::server {

// Maximum size of a request that contains no tensor bytes.
inline constexpr size_t kMaxRequestBytes = size_t{64} << 10;

// Limits of one request.
struct RequestLimits {
  size_t bytes = kMaxRequestBytes;
  std::chrono::milliseconds timeout = CallAdmission::kRequestTimeout;  // until it has arrived
  bool authenticates = true;  // whether an accepted call shows that its peer has a token
};

// Reads the request of an admitted call with a stream of replies.
template <typename Request, typename Stream>
absl::Status read_request(CallAdmission& admission, grpc::ServerContext& context, Stream* stream, Request* request) {
  CallAdmission::Deadline deadline(admission, context.c_call());
  if (!stream->Read(request)) return absl::InvalidArgumentError("the call ended before its request");
  if (request->ByteSizeLong() <= kMaxRequestBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("expected a request of at most ", kMaxRequestBytes, " bytes, got ", request->ByteSizeLong()));
}

// Parses a request. A message takes up to some fifty times its size in memory, so limit the size before.
template <typename Request>
absl::Status parse_request(grpc::ByteBuffer* bytes, Request* request) {
  if (grpc::SerializationTraits<Request>::Deserialize(bytes, request).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError("the request is malformed");
}

// Returns a handler for Service::MarkMethodStreamed, which takes ownership. `check` accepts or refuses the call by its
// metadata, before and after the request is read. `run` parses the request and computes the reply.
template <typename Reply>
grpc::internal::MethodHandler* unary_handler_of_bytes(
    CallAdmission& admission, CallAdmission::Kind kind, std::function<absl::Status(const grpc::ServerContext&)> check,
    std::function<grpc::Status(grpc::ServerContext*, grpc::ByteBuffer*, Reply*)> run,
    const RequestLimits& limits = {}) {
  using Stream = grpc::ServerUnaryStreamer<grpc::ByteBuffer, Reply>;
  return new grpc::internal::StreamedUnaryHandler<grpc::ByteBuffer, Reply>(
      [&admission, kind, limits, check = std::move(check), run = std::move(run)](grpc::ServerContext* context,
                                                                                 Stream* stream) {
        if (absl::Status status = check(*context); !status.ok()) return admission.refuse(*context, status);
        absl::StatusOr<CallAdmission::Slot> slot =
            limits.authenticates ? admission.admit(kind, *context) : admission.admit(kind, address_of(context->peer()));
        if (!slot.ok()) return admission.refuse(*context, slot.status());
        grpc::ByteBuffer request;
        absl::Status status;
        {
          CallAdmission::Deadline deadline(admission, context->c_call(), limits.timeout);
          if (!stream->Read(&request)) status = absl::InvalidArgumentError("the call ended before its request");
        }
        if (status.ok() && request.Length() > limits.bytes) {
          status = absl::ResourceExhaustedError(
              absl::StrCat("expected a request of at most ", limits.bytes, " bytes, got ", request.Length()));
        }
        if (status.ok()) status = check(*context);  // rights may have ended while the request was awaited
        if (!status.ok()) return admission.refuse(*context, status);
        Reply reply;
        grpc::Status result = run(context, &request, &reply);
        // Sent together with the status: one packet, one system call, and one wake-up of the client.
        if (result.ok()) stream->Write(reply, grpc::WriteOptions().set_last_message());
        return result;
      });
}

// The same with a parsed request.
template <typename Request, typename Reply>
grpc::internal::MethodHandler* unary_handler(
    CallAdmission& admission, CallAdmission::Kind kind, std::function<absl::Status(const grpc::ServerContext&)> check,
    std::function<grpc::Status(grpc::ServerContext*, const Request*, Reply*)> run, const RequestLimits& limits = {}) {
  return unary_handler_of_bytes<Reply>(
      admission, kind, std::move(check),
      [&admission, run = std::move(run)](grpc::ServerContext* context, grpc::ByteBuffer* bytes, Reply* reply) {
        Request request;
        const absl::Status parsed = parse_request(bytes, &request);
        if (!parsed.ok()) return admission.refuse(*context, parsed);
        return run(context, &request, reply);
      },
      limits);
}

}  // namespace tt::server
