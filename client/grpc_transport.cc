#include "client/grpc_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/grpc_call.h"

namespace tt::client {
namespace {

constexpr size_t kChunkBytes = size_t{2} << 20;  // streams are fastest between 1 and 4 MiB
constexpr auto kConnectPatience = std::chrono::seconds(10);
// Where a call has broken off, the next one's are smaller, so that some get through a link that breaks often.
constexpr size_t kMinChunkBytes = size_t{64} << 10;
// A session that goes on must be there at once: its callers are told within a second that it is not.
constexpr auto kResumePatience = std::chrono::milliseconds(800);

std::shared_ptr<grpc::Channel> new_channel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // sessions do not share a connection, or its failures
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);          // an engine is reached directly
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);             // the link knows what may be sent again
  // A host that vanishes says nothing: a caller who waits learns of it in half a minute.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // however long the engine computes
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

size_t chunk_bytes(const TransferProgress& progress) {
  return std::max(kMinChunkBytes, kChunkBytes >> std::min(progress.failures, 8));
}

// How much of a transfer that goes on the engine has, by the call's initial metadata; 0 where it does not say.
size_t received(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerInitialMetadata();
  auto found = metadata.find("teletensor-received");
  size_t bytes = 0;
  const bool valid = found != metadata.end() &&
                     absl::SimpleAtoi(absl::string_view(found->second.data(), found->second.size()), &bytes);
  return valid ? bytes : 0;
}

absl::Status check_size(size_t got, size_t expected) {
  if (got == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("expected ", expected, " bytes, got ", got));
}

}  // namespace

GrpcTransport::GrpcTransport(Address address, std::string token, bool shared_memory,
                             std::unique_ptr<PrivateEngine> engine)
    : address_(std::move(address)),
      token_(std::move(token)),
      shared_memory_(shared_memory),
      engine_(std::move(engine)) {}

GrpcTransport::~GrpcTransport() { shutdown(); }

std::shared_ptr<GrpcTransport::Connection> GrpcTransport::connection() const {
  std::lock_guard lock(mutex_);
  return connection_;
}

absl::Status GrpcTransport::hello(const v1::HelloRequest& hello, v1::HelloReply* reply) {
  v1::HelloRequest request = hello;
  request.set_shared_memory(shared_memory_);
  auto connection = std::make_shared<Connection>();
  // A fresh channel: one that has failed waits before it tries again.
  connection->stub = v1::Engine::NewStub(new_channel(address_.target));
  Call call(*this, "");
  if (!token_.empty()) call.context.AddMetadata("authorization", "Bearer " + token_);
  bool resumes = !request.resume_key().empty();
  call.context.set_deadline(std::chrono::system_clock::now() + (resumes ? kResumePatience : kConnectPatience));
  grpc::Status status = connection->stub->Hello(&call.context, request, reply);
  if (!status.ok()) return to_status(status);
  connection->session_key = reply->session_key();
  if (shared_memory_ && reply->has_shared_memory()) connection->memory = SharedMemory::open(reply->shared_memory());
  std::lock_guard lock(mutex_);
  connection_ = std::move(connection);
  return absl::OkStatus();
}

// ---- The stream

absl::Status GrpcTransport::open(const std::string& session_key) {
  if (stream_) stream_call_->context.TryCancel();
  stream_.reset();
  stream_call_ = std::make_unique<Call>(*this, session_key);
  stream_ = connection()->stub->Session(&stream_call_->context);
  return absl::OkStatus();
}

absl::Status GrpcTransport::send(const v1::Frame& frame) {
  return stream_->Write(frame) ? absl::OkStatus() : absl::UnavailableError("the stream broke");
}

absl::Status GrpcTransport::receive(v1::Reply* reply) {
  if (stream_->Read(reply)) return absl::OkStatus();
  grpc::Status status = stream_->Finish();
  return status.ok() ? absl::UnavailableError("the engine ended the stream") : to_status(status);
}

void GrpcTransport::shutdown() {
  {
    std::lock_guard lock(mutex_);
    shut_down_ = true;
    for (grpc::ClientContext* context : calls_) context->TryCancel();
  }
  if (engine_) engine_->stop();
}

// ---- Bulk bytes in chunks

absl::Status GrpcTransport::upload(uint64_t transfer, Device device, absl::Span<const char> bytes,
                                   TransferProgress* progress) {
  std::shared_ptr<Connection> connection = this->connection();
  v1::UploadChunk first;
  first.set_transfer(transfer);
  first.set_device(device.encode());
  first.set_total_bytes(bytes.size());
  if (connection->memory && progress->failures == 0) {
    if (auto lane = connection->memory->claim_upload()) {
      absl::Status status = upload_shared(*connection, first, bytes);
      if (!absl::IsFailedPrecondition(status)) return status;  // that: the engine's end of the lane is unusable
    }
  }
  return upload_chunks(*connection, first, bytes, progress);
}

absl::Status GrpcTransport::upload_chunks(Connection& connection, v1::UploadChunk chunk, absl::Span<const char> bytes,
                                          TransferProgress* progress) {
  Call call(*this, connection.session_key);
  v1::UploadReply reply;
  auto writer = connection.stub->Upload(&call.context, &reply);
  size_t at = 0;
  bool goes_on = true;
  if (progress->failures != 0) {
    chunk.set_resume(true);
    goes_on = writer->Write(chunk);
    if (goes_on) writer->WaitForInitialMetadata();
    at = goes_on ? received(call.context) : 0;
    if (at > bytes.size()) {
      call.context.TryCancel();
      writer->Finish();
      return absl::DataLossError(absl::StrCat("the engine has ", at, " of ", bytes.size(), " bytes"));
    }
    progress->bytes = std::max<uint64_t>(progress->bytes, at);
    chunk.Clear();
  }
  const size_t most = chunk_bytes(*progress);
  for (bool first = progress->failures == 0; goes_on && (first || at < bytes.size()); first = false) {
    const size_t size = std::min(most, bytes.size() - at);
    chunk.mutable_data()->assign(bytes.data() + at, size);
    chunk.set_offset(at);
    goes_on = writer->Write(chunk);
    at += size;
    if (first) {
      chunk.clear_transfer();
      chunk.clear_device();
      chunk.clear_total_bytes();
    }
  }
  writer->WritesDone();
  grpc::Status status = writer->Finish();  // says why, where a write failed
  return status.ok() ? check_size(reply.bytes(), bytes.size()) : to_status(status, call.context);
}

absl::Status GrpcTransport::download(uint64_t handle, uint64_t after, absl::Span<char> into, TransferProgress* progress,
                                     v1::Error* error) {
  std::shared_ptr<Connection> connection = this->connection();
  v1::DownloadRequest request;
  request.set_handle(handle);
  request.set_after(after);
  if (connection->memory && progress->failures == 0) {
    if (auto lane = connection->memory->claim_download()) {
      request.set_through_shared_memory(true);
      absl::Status status = download_shared(*connection, request, into, error);
      if (!absl::IsFailedPrecondition(status)) return status;
      request.set_through_shared_memory(false);
    }
  }
  return download_chunks(*connection, request, into, progress, error);
}

absl::Status GrpcTransport::download_chunks(Connection& connection, v1::DownloadRequest request, absl::Span<char> into,
                                            TransferProgress* progress, v1::Error* error) {
  Call call(*this, connection.session_key);
  request.set_offset(progress->bytes);
  request.set_state(progress->state);
  if (progress->failures != 0) request.set_chunk_bytes(chunk_bytes(*progress));
  auto reader = connection.stub->Download(&call.context, request);
  v1::DownloadChunk chunk;
  size_t got = 0;
  for (bool first = true; reader->Read(&chunk); first = false) {
    if (chunk.has_error()) error->Swap(chunk.mutable_error());
    // The engine starts over, and says so, where it cannot tell that the tensor's bytes are the same.
    if (first && chunk.offset() == progress->bytes) got = progress->bytes;
    const bool starts_elsewhere = first && chunk.offset() != got;
    size_t size = chunk.data().size();
    if (starts_elsewhere || size > into.size() - got) {
      call.context.TryCancel();
      reader->Finish();
      if (!starts_elsewhere) return check_size(got + size, into.size());
      return absl::DataLossError(absl::StrCat("expected bytes from ", got, " on, got them from ", chunk.offset()));
    }
    std::memcpy(into.data() + got, chunk.data().data(), size);
    got += size;
    if (first) progress->state = chunk.state();
    progress->bytes = progress->state == 0 ? 0 : got;
  }
  grpc::Status status = reader->Finish();
  if (!status.ok() || !error->message().empty()) return to_status(status, call.context);
  return check_size(got, into.size());
}

}  // namespace tt::client
