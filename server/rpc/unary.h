// unary: handlers for methods with one request, run as soon as a call's metadata has arrived.
//
// gRPC's own handlers for such methods read the request of any peer before they run. These handlers check the metadata,
// claim a slot in a quota, and only then read the request, within a size and time limit. The thread of a call waits
// until its answer has been sent, which a peer that does not read delays: the call keeps its slot so long, and is
// cancelled after a time limit. The wire protocol is the same.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <optional>
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
  // Until a small answer has been sent; larger ones have more time (CallAdmission::time_to_send).
  std::chrono::milliseconds send_timeout = CallAdmission::kRequestTimeout;
};

// Reads the request of an admitted call with a stream of replies.
template <typename Request, typename Stream>
absl::Status read_request(CallAdmission& admission, grpc::ServerContext& context, CallAdmission::Slot* slot,
                          Stream* stream, Request* request) {
  bool arrived = false;
  {
    const CallAdmission::Deadline deadline(admission, context.c_call(), CallAdmission::Awaited::kRequest,
                                           CallAdmission::kRequestTimeout, slot);
    arrived = stream->Read(request);
  }
  if (!arrived || !slot->is_held()) return absl::InvalidArgumentError("the call ended before its request");
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

inline size_t bytes_of(const grpc::ByteBuffer& reply) { return reply.Length(); }
inline size_t bytes_of(const google::protobuf::Message& reply) { return reply.ByteSizeLong(); }

// The handler that unary_handler_of_bytes() returns.
template <typename Reply>
class UnaryHandler final : public grpc::internal::MethodHandler {
 public:
  using Check = std::function<absl::StatusOr<CallAdmission::Holder>(const grpc::ServerContext&)>;
  using Run = std::function<grpc::Status(grpc::ServerContext*, grpc::ByteBuffer*, Reply*)>;

  UnaryHandler(CallAdmission& admission, CallAdmission::Kind kind, Check check, Run run, const RequestLimits& limits)
      : admission_(admission), kind_(kind), check_(std::move(check)), run_(std::move(run)), limits_(limits) {}

  void RunHandler(const HandlerParameter& parameter) final {
    Call call;  // outlives gRPC's handler, which waits until the answer has been sent
    const auto run = [this, &call](grpc::ServerContext* context, Stream* stream) {
      return this->run(context, stream, &call);
    };
    grpc::internal::StreamedUnaryHandler<grpc::ByteBuffer, Reply>(run).RunHandler(parameter);
  }

 private:
  using Stream = grpc::ServerUnaryStreamer<grpc::ByteBuffer, Reply>;
  using Deadline = CallAdmission::Deadline;
  using Awaited = CallAdmission::Awaited;
  struct Call {
    std::optional<CallAdmission::Slot> slot;
    std::optional<CallAdmission::Deadline> sending;
  };

  grpc::Status run(grpc::ServerContext* context, Stream* stream, Call* call) {
    absl::StatusOr<CallAdmission::Holder> holder = check_(*context);
    if (!holder.ok()) return admission_.refuse(*context, holder.status());
    if (limits_.authenticates) admission_.authenticated(context->peer());
    absl::StatusOr<CallAdmission::Slot> slot = admission_.admit(kind_, *std::move(holder));
    if (!slot.ok()) return admission_.refuse(*context, slot.status());
    call->slot.emplace(*std::move(slot));
    grpc::ByteBuffer request;
    absl::Status status;
    {
      const Deadline deadline(admission_, context->c_call(), Awaited::kRequest, limits_.timeout, &*call->slot);
      if (!stream->Read(&request)) status = absl::InvalidArgumentError("the call ended before its request");
    }
    if (!call->slot->is_held()) status = absl::UnavailableError("the call gave way to another one; try again later");
    if (status.ok() && request.Length() > limits_.bytes) {
      status = absl::ResourceExhaustedError(
          absl::StrCat("expected a request of at most ", limits_.bytes, " bytes, got ", request.Length()));
    }
    if (status.ok()) status = check_(*context).status();  // rights may have ended while the request was awaited
    if (!status.ok()) return admission_.refuse(*context, status);
    Reply reply;
    grpc::Status result = run_(context, &request, &reply);
    // Sent together with the status: one packet, one system call, and one wake-up of the client.
    if (result.ok()) stream->Write(reply, grpc::WriteOptions().set_last_message());
    call->sending.emplace(admission_, context->c_call(), Awaited::kAnswer,
                          CallAdmission::time_to_send(limits_.send_timeout, bytes_of(reply)), &*call->slot);
    return result;
  }

  CallAdmission& admission_;
  const CallAdmission::Kind kind_;
  const Check check_;
  const Run run_;
  const RequestLimits limits_;
};

// Returns a handler for Service::MarkMethodStreamed, which takes ownership. `check` refuses the call or returns its
// holder, by its metadata, before and after the request is read. `run` parses the request and computes the reply.
template <typename Reply>
grpc::internal::MethodHandler* unary_handler_of_bytes(
    CallAdmission& admission, CallAdmission::Kind kind, typename UnaryHandler<Reply>::Check check,
    std::function<grpc::Status(grpc::ServerContext*, grpc::ByteBuffer*, Reply*)> run,
    const RequestLimits& limits = {}) {
  return new UnaryHandler<Reply>(admission, kind, std::move(check), std::move(run), limits);
}

// The same with a parsed request.
template <typename Request, typename Reply>
grpc::internal::MethodHandler* unary_handler(
    CallAdmission& admission, CallAdmission::Kind kind, typename UnaryHandler<Reply>::Check check,
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
