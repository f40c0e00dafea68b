#include "client/transport/grpc_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/connection/channel.h"
#include "client/connection/metadata.h"
#include "client/connection/process.h"
#include "client/transport/call_events.h"
#include "client/transport/grpc_call.h"
#include "client/transport/interruptible_call.h"
#include "proto/sha256.h"

namespace tt::client {
namespace {

constexpr size_t kChunkBytes = size_t{2} << 20;  // streams are fastest between 1 and 4 MiB
// Minimum chunk size. After a call has failed, the next call uses smaller chunks, so that some arrive over a link that
// breaks often.
constexpr size_t kMinChunkBytes = size_t{64} << 10;
constexpr auto kCancelTimeout = std::chrono::milliseconds(800);
// For the first image of a session on the disk.
constexpr std::chrono::milliseconds kPersistTimeout{120'000};

size_t chunk_bytes(const TransferProgress& progress) {
  return std::max(kMinChunkBytes, kChunkBytes >> std::min(progress.failures, 8));
}

// Uploads of the background share the link, and the engine sees progress only when a chunk is complete.
size_t upload_chunk_bytes(const TransferProgress& progress, size_t bytes) {
  constexpr size_t kMinChunks = 8, kItem = 16;  // a chunk contains whole elements
  return std::clamp(bytes / kMinChunks, kMinChunkBytes, chunk_bytes(progress)) / kItem * kItem;
}

// Returns the number of bytes of a resumed transfer that the engine has, from the call's initial metadata; 0 if the
// metadata has no valid entry.
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

struct GrpcTransport::Stream {
  Stream(GrpcTransport& transport, const std::string& session_key, v1::Engine::Stub& stub,
         const FrameEncoder::Options& encoding, std::unique_ptr<SharedMemory::Pipes> pipes)
      : call(transport, session_key), events(stub, call.context, encoding, std::move(pipes)) {}
  Call call;
  SessionStream events;
};

GrpcTransport::GrpcTransport(Address address, std::string token, const TransferOptions& options,
                             std::unique_ptr<PrivateEngine> engine)
    : address_(std::move(address)),
      token_(std::move(token)),
      options_(options),
      engine_(std::move(engine)),
      private_engine_(engine_ ? engine_->pid() : -1) {}

GrpcTransport::~GrpcTransport() { shutdown(); }

std::shared_ptr<GrpcTransport::Connection> GrpcTransport::connection() const {
  MutexLock lock(mutex_);
  return connection_;
}

bool GrpcTransport::engine_has_ended() const {
  const pid_t process = private_engine_ != -1 ? private_engine_ : connection()->engine;
  return process != -1 && process_has_ended(process);
}

bool GrpcTransport::is_shut_down() const {
  MutexLock lock(mutex_);
  return shut_down_;
}

void GrpcTransport::set_connection(std::shared_ptr<Connection> connection) {
  MutexLock lock(mutex_);
  connection_ = std::move(connection);
}

std::shared_ptr<GrpcTransport::Connection> GrpcTransport::connection_for_transfer() {
  std::shared_ptr<Connection> old = connection();
  if (!old->memory || !old->memory->has_broken_lane()) return old;
  if (!hello_mutex_.try_lock()) return connection();
  MutexLock lock(hello_mutex_, std::adopt_lock);
  // The engine uses only its latest segment, so no transfer through the old segment may start or continue during the
  // renewal.
  auto [upload, download] = old->memory->claim_all();
  if (!upload || connection() != old) return connection();
  auto renewed = std::make_shared<Connection>(*old);
  renewed->replaced = std::exchange(renewed->memory, nullptr);
  set_connection(renewed);  // if the reply is lost, the engine may have replaced its segment
  renewed = std::make_shared<Connection>(*renewed);
  v1::HelloReply reply;
  const Credential own = worker_ ? Credential{kSessionKey, hello_.resume_key()} : token();
  if (send_hello(*renewed, own, hello_, resume_timeout_, &reply).ok()) {
    renewed->replaced = nullptr;
    set_connection(renewed);
  }
  return connection();
}

// ---- Session stream

absl::Status GrpcTransport::open(const std::string& session_key) {
  CallPointer<Stream> stream;
  {
    MutexLock lock(mutex_);
    stream.swap(stream_);
  }
  pipes_are_usable_ = pipes_are_usable_ && !(stream && stream->events.has_broken_pipe());
  stream.reset();
  const std::shared_ptr<Connection> connection = this->connection();
  std::unique_ptr<SharedMemory::Pipes> pipes;
  if (connection->memory && pipes_are_usable_) pipes = SharedMemory::claim_pipes(connection->memory);
  FrameEncoder::Options encoding{connection->max_templates, CompressionMode::kNone, &upload_rate_};
  if (!pipes) encoding.compression = compression_over(*connection);
  stream.reset(new Stream(*this, session_key, *connection->stub, encoding, std::move(pipes)));
  MutexLock lock(mutex_);
  stream_ = std::move(stream);
  if (shut_down_) stream_->events.abort();
  return absl::OkStatus();
}

std::optional<absl::Status> GrpcTransport::send(const v1::Frame& frame, std::chrono::milliseconds timeout) {
  return stream_->events.send(frame, timeout);
}

std::optional<absl::Status> GrpcTransport::receive(v1::Reply* reply, std::chrono::milliseconds timeout) {
  return stream_->events.receive(reply, timeout);
}

absl::StatusOr<uint64_t> GrpcTransport::cancel(uint64_t through) {
  std::shared_ptr<Connection> connection = this->connection();
  v1::CancelRequest request;
  request.set_through(through);
  v1::CancelReply reply;
  auto prepare = [&](grpc::ClientContext& context) {
    add_metadata(context, "teletensor-session", connection->session_key);
  };
  auto start = [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return connection->stub->AsyncCancel(context, request, queue);
  };
  grpc::Status status = call_unary(kCancelTimeout, prepare, start, &reply);
  if (!status.ok()) return to_status(status);
  return reply.executed();
}

absl::Status GrpcTransport::persist(const v1::PersistRequest& request, v1::PersistReply* reply) {
  std::shared_ptr<Connection> connection = this->connection();
  auto prepare = [&](grpc::ClientContext& context) {
    add_metadata(context, "teletensor-session", connection->session_key);
  };
  auto start = [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return connection->stub->AsyncPersist(context, request, queue);
  };
  return to_status(call_unary(kPersistTimeout, prepare, start, reply));
}

BackgroundUploads GrpcTransport::background_uploads() const {
  // The shared memory has one lane for uploads, and an upload of several megabytes is faster without another copy.
  if (connection()->memory) return {.max_bytes = size_t{8} << 20, .max_calls = 1};
  // Each call waits a round trip for the engine's answer, so a distant engine needs many at a time. They are fewer than
  // the engine accepts (256), which leaves room for uploads that it has received and not used, and for the callers'
  // own.
  return {.max_bytes = size_t{64} << 20, .max_calls = 160};
}

TransferCounters GrpcTransport::transfer_counters() const {
  return {.upload_bytes = upload_bytes_,
          .upload_compressed_bytes = upload_compressed_bytes_,
          .upload_reused_bytes = upload_reused_bytes_,
          .download_bytes = download_bytes_,
          .download_compressed_bytes = download_compressed_bytes_,
          .upload_rate = upload_rate_.last(),
          .download_rate = download_rate_.last()};
}

void GrpcTransport::shutdown() {
  {
    MutexLock lock(mutex_);
    shut_down_ = true;
    for (grpc::ClientContext* context : calls_) context->TryCancel();
    if (stream_) stream_->events.abort();
  }
  if (engine_) engine_->stop();
}

// ---- Bulk bytes in chunks

absl::StatusOr<std::shared_ptr<v1::Engine::Stub>> GrpcTransport::upload_stub(Connection& connection) {
  MutexLock lock(connection.uploads->mutex);
  std::shared_ptr<v1::Engine::Stub>& stub = connection.uploads->stub;
  if (!stub) {
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = open_channel(connection.address);
    if (!channel.ok()) return channel.status();
    stub = v1::Engine::NewStub(*channel);
  }
  return stub;
}

absl::Status GrpcTransport::upload(uint64_t transfer, Device device, absl::Span<const char> bytes,
                                   TransferProgress* progress) {
  std::shared_ptr<Connection> connection = connection_for_transfer();
  auto stub = upload_stub(*connection);
  if (!stub.ok()) return stub.status();
  absl::Status status = upload_over(**stub, *connection, transfer, device, bytes, progress);
  if (absl::IsUnavailable(status)) {
    MutexLock lock(connection->uploads->mutex);
    if (connection->uploads->stub == *stub) connection->uploads->stub = nullptr;
  }
  return status;
}

absl::Status GrpcTransport::upload_over(v1::Engine::Stub& stub, Connection& connection, uint64_t transfer,
                                        Device device, absl::Span<const char> bytes, TransferProgress* progress) {
  v1::UploadChunk first;
  first.set_transfer(transfer);
  first.set_device(device.encode());
  first.set_total_bytes(bytes.size());
  if (connection.memory && progress->failures == 0 && !progress->was_refused) {
    if (auto lane = connection.memory->claim_upload()) {
      absl::Status status = upload_shared(stub, connection, first, bytes);
      if (!absl::IsFailedPrecondition(status)) return status;
      connection.memory->abandon_upload();  // the engine's end of the lane is unusable
    }
  }
  return upload_chunks(stub, connection, first, bytes, progress);
}

absl::Status GrpcTransport::upload_chunks(v1::Engine::Stub& stub, Connection& connection, v1::UploadChunk chunk,
                                          absl::Span<const char> bytes, TransferProgress* progress) {
  auto start = [&](grpc::ClientContext* context, v1::UploadReply* reply, grpc::CompletionQueue* queue, void* tag) {
    return stub.AsyncUpload(context, reply, queue, tag);
  };
  InterruptibleWriter<v1::UploadChunk, v1::UploadReply> writer(*this, connection.session_key, start);
  v1::UploadReply reply;
  size_t at = 0;
  bool open = true;
  // Up to this size an upload is sent without waiting for the engine's answer.
  constexpr size_t kMinAddressedBytes = size_t{1} << 20;
  const bool addressed =
      options_.content_addressed && connection.content_addressed && bytes.size() > kMinAddressedBytes;
  if (addressed && progress->digest.empty()) progress->digest = Sha256::of(bytes);
  const bool resumes = progress->failures != 0 || addressed;
  if (resumes) {
    chunk.set_resume(true);
    if (addressed) chunk.set_digest(progress->digest);
    open = writer.Write(chunk) && writer.WaitForInitialMetadata();
    at = open ? received(writer.context()) : 0;
    if (at > bytes.size()) {
      writer.TryCancel();
      writer.Finish(&reply);
      return absl::DataLossError(absl::StrCat("the engine confirmed ", at, " bytes of an upload of ", bytes.size()));
    }
    if (progress->failures == 0) upload_reused_bytes_ += at;
    progress->bytes = std::max<uint64_t>(progress->bytes, at);
    chunk.Clear();
  }
  const CompressionMode compression = compression_over(connection);
  ChunkCompressor compressor(compression);
  const size_t max_size = upload_chunk_bytes(*progress, bytes.size());
  bool measures = false;
  for (bool first = !resumes; open && (first || at < bytes.size()); first = false) {
    const double rate = upload_rate_.current();
    const bool unknown = compression == CompressionMode::kAuto && rate == 0;
    const auto part = bytes.subspan(at, unknown ? std::min(max_size, kMeasuredChunkBytes) : max_size);
    measures = !compressor.compress(part, rate, chunk.mutable_data(), chunk.mutable_compression());
    if (measures) {
      chunk.mutable_data()->assign(part.data(), part.size());
      chunk.clear_compression();
    }
    chunk.set_offset(at);
    std::optional<LinkRate::Interval> interval;
    if (measures) interval.emplace(upload_rate_).passed(chunk.data().size());
    open = writer.Write(chunk);
    at += part.size();
    upload_bytes_ += part.size();
    upload_compressed_bytes_ += chunk.data().size();
    if (first) {
      chunk.clear_transfer();
      chunk.clear_device();
      chunk.clear_total_bytes();
    }
  }
  std::optional<LinkRate::Interval> interval;
  if (measures) interval.emplace(upload_rate_);  // the last bytes are still being sent
  writer.WritesDone();
  grpc::Status status = writer.Finish(&reply);  // contains the reason if a write failed
  return status.ok() ? check_size(reply.bytes(), bytes.size()) : transfer_status(status, writer.context());
}

absl::Status GrpcTransport::download(uint64_t handle, uint64_t after, absl::Span<char> into, TransferProgress* progress,
                                     v1::Error* error) {
  std::shared_ptr<Connection> connection = connection_for_transfer();
  v1::DownloadRequest request;
  request.set_handle(handle);
  request.set_after(after);
  if (connection->memory && progress->failures == 0 && !progress->was_refused) {
    if (auto lane = connection->memory->claim_download()) {
      request.set_through_shared_memory(true);
      request.set_segment(connection->memory->nonce());
      absl::Status status = download_shared(*connection, request, into, error);
      if (!absl::IsFailedPrecondition(status)) return status;
      connection->memory->abandon_download();
      request.set_through_shared_memory(false);
    }
  }
  return download_chunks(*connection, request, into, progress, error);
}

absl::StatusOr<size_t> GrpcTransport::copy_chunk(const v1::DownloadChunk& chunk, ChunkDecompressor* decompressor,
                                                 absl::Span<char> into) {
  const absl::string_view data = chunk.data();
  const size_t size = chunk.has_compression() ? chunk.compression().bytes() : data.size();
  if (size > into.size()) {
    return absl::DataLossError(absl::StrCat("expected at most ", into.size(), " more bytes, got ", size));
  }
  download_bytes_ += size;
  download_compressed_bytes_ += data.size();
  if (!chunk.has_compression()) {
    std::memcpy(into.data(), data.data(), size);
    return size;
  }
  absl::Status status = decompressor->decompress(data, chunk.compression(), into.first(size));
  if (!status.ok()) return status;
  return size;
}

absl::Status GrpcTransport::download_chunks(Connection& connection, v1::DownloadRequest request, absl::Span<char> into,
                                            TransferProgress* progress, v1::Error* error) {
  request.set_offset(progress->bytes);
  request.set_state(progress->state);
  if (progress->failures != 0) request.set_chunk_bytes(chunk_bytes(*progress));
  if (const CompressionMode mode = compression_over(connection); mode != CompressionMode::kNone) {
    request.set_codec(v1::CODEC_ZSTD);
    request.set_always_compress(mode == CompressionMode::kAlways);
    request.set_link_rate(static_cast<uint64_t>(download_rate_.current()));
  }
  auto start = [&](grpc::ClientContext* context, grpc::CompletionQueue* queue, void* tag) {
    return connection.stub->AsyncDownload(context, request, queue, tag);
  };
  InterruptibleReader<v1::DownloadChunk> reader(*this, connection.session_key, start);
  ChunkDecompressor decompressor;
  v1::DownloadChunk chunk;
  size_t got = 0;
  auto read = [&](bool first) {
    if (first) return reader.Read(&chunk);  // waits for the tensor
    LinkRate::Interval interval(download_rate_);
    const bool arrived = reader.Read(&chunk);
    if (chunk.has_compression()) interval.drop();
    if (arrived) interval.passed(chunk.data().size());
    return arrived;
  };
  for (bool first = true; read(first); first = false) {
    if (chunk.has_error()) error->Swap(chunk.mutable_error());
    // The engine starts at offset 0 if it cannot verify that the tensor's bytes are the same.
    if (first && chunk.offset() == progress->bytes) got = progress->bytes;
    const bool starts_elsewhere = first && chunk.offset() != got;
    absl::StatusOr<size_t> size =
        starts_elsewhere ? absl::DataLossError(absl::StrCat("expected offset ", got, ", got ", chunk.offset()))
                         : copy_chunk(chunk, &decompressor, into.subspan(got));
    if (!size.ok()) {
      reader.TryCancel();
      reader.Finish();
      return size.status();
    }
    got += *size;
    if (first) progress->state = chunk.state();
    progress->bytes = progress->state == 0 ? 0 : got;
  }
  grpc::Status status = reader.Finish();
  if (!status.ok() || !error->message().empty()) return transfer_status(status, reader.context());
  return check_size(got, into.size());
}

}  // namespace tt::client
