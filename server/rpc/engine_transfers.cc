// EngineService's Upload and Download: bulk bytes in chunks on the call, or through shared memory.
#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/memory/bytes.h"
#include "proto/chunk_codec.h"
#include "proto/link_rate.h"
#include "proto/sha256.h"
#include "server/convert.h"
#include "server/rpc/engine_service.h"
#include "server/rpc/unary.h"
#include "server/transfer/buffer_charge.h"

namespace tt::server {
namespace {

using Call = TransferMonitor::Call;
using Direction = TransferMonitor::Direction;

absl::StatusOr<Device> device_of(const v1::UploadChunk& chunk) try {
  return decode_device(chunk.device());
} catch (const Error& error) {
  return to_status(error);
}

// Reports ABORTED to the client as RESOURCE_EXHAUSTED with metadata that requests a retry. Without the metadata,
// RESOURCE_EXHAUSTED means that memory is exhausted.
grpc::Status refuse_transfer(grpc::ServerContext* context, const absl::Status& status) {
  if (!absl::IsAborted(status)) return to_grpc(status);
  context->AddTrailingMetadata("teletensor-retry", "1");
  return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, std::string(status.message()));
}

// Detects that a transfer through shared memory has made no progress for the call's idle limit.
class IdleDetector {
 public:
  explicit IdleDetector(const Call& call) : limit_(call.idle_limit()) {}
  bool is_idle(uint64_t moved) {
    const auto now = std::chrono::steady_clock::now();
    if (moved != std::exchange(moved_, moved)) since_ = now;
    return now - since_ >= limit_;
  }

 private:
  const std::chrono::milliseconds limit_;
  uint64_t moved_ = 0;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

// Counts a transfer at its end.
class CountedTransfer {
 public:
  // `left` returns the bytes that are left.
  CountedTransfer(FrameTimes::Transfers* counts, std::function<uint64_t()> left)
      : counts_(counts), left_(std::move(left)), at_begin_(counts ? left_() : 0) {}
  ~CountedTransfer() {
    if (counts_ == nullptr) return;
    const uint64_t left = left_();
    counts_->add(left == 0, at_begin_ - std::min(at_begin_, left));
  }
  CountedTransfer(const CountedTransfer&) = delete;
  CountedTransfer& operator=(const CountedTransfer&) = delete;

 private:
  FrameTimes::Transfers* const counts_;
  const std::function<uint64_t()> left_;
  const uint64_t at_begin_;
};

size_t chunk_bytes(const v1::DownloadRequest& request) {
  if (request.chunk_bytes() == 0) return kStreamChunkBytes;
  constexpr size_t kItem = 16;  // a chunk contains whole elements
  return std::clamp<uint64_t>(request.chunk_bytes(), kMinStreamChunkBytes, kStreamChunkBytes) / kItem * kItem;
}

bool write(Call& call, const v1::DownloadChunk& chunk, grpc::internal::WriterInterface<v1::DownloadChunk>* writer) {
  Call::ClientWait wait(call);
  return writer->Write(chunk);
}

CompressionMode compression_mode(const v1::DownloadRequest& request, bool allowed) {
  if (!allowed || request.codec() != v1::CODEC_ZSTD) return CompressionMode::kNone;
  return request.always_compress() ? CompressionMode::kAlways : CompressionMode::kAuto;
}

// Sends a download's bytes in chunks of at most `size` bytes. Compresses chunks as `mode` and the link's rate require.
class ChunkSender {
 public:
  ChunkSender(Call& call, CompressionMode mode, double link_rate, size_t size, std::shared_ptr<Account> account,
              grpc::internal::WriterInterface<v1::DownloadChunk>* writer)
      : call_(call),
        mode_(mode),
        link_rate_(link_rate),
        size_(size),
        writer_(writer),
        charge_(std::move(account)),
        compressor_(mode) {}

  grpc::Status send(ByteSource& bytes, v1::DownloadChunk* chunk) {
    do {
      const double rate = this->rate();
      const bool measures = mode_ == CompressionMode::kAuto && rate == 0;
      bytes_.resize(std::min({bytes.left(), size_, measures ? kMeasuredChunkBytes : SIZE_MAX}));
      bytes.read(bytes_.data(), bytes_.size());
      if (!send(rate, chunk)) return grpc::Status::CANCELLED;
      chunk->Clear();
    } while (bytes.left() != 0);
    return grpc::Status::OK;
  }

 private:
  // The rate measured by this call is newer than the client's.
  double rate() const {
    const double measured = measured_.current();
    return measured != 0 ? measured : link_rate_;
  }
  // Whether the account has room for the memory that compression takes.
  bool may_compress(double rate) {
    return compressor_.is_wanted(rate) && charge_.raise_to(ChunkCompressor::memory(size_), BufferCharge::kLeft);
  }
  bool send(double rate, v1::DownloadChunk* chunk) {
    if (may_compress(rate) && compressor_.compress(bytes_, rate, chunk->mutable_data(), chunk->mutable_compression())) {
      return write(call_, *chunk, writer_);
    }
    chunk->clear_compression();
    chunk->mutable_data()->swap(bytes_);
    LinkRate::Interval interval(measured_);
    interval.passed(chunk->data().size());
    const bool written = write(call_, *chunk, writer_);
    chunk->mutable_data()->swap(bytes_);
    return written;
  }

  Call& call_;
  const CompressionMode mode_;
  const double link_rate_;  // the client's measurement, in bytes per second; 0: unknown
  const size_t size_;
  grpc::internal::WriterInterface<v1::DownloadChunk>* const writer_;
  BufferCharge charge_;
  ChunkCompressor compressor_;
  LinkRate measured_;
  std::string bytes_;
};

bool read(Call& call, grpc::ServerReader<v1::UploadChunk>* reader, v1::UploadChunk* chunk) {
  Call::ClientWait wait(call);
  return reader->Read(chunk);
}

// Appends the chunks of an upload.
class ChunkReceiver {
 public:
  ChunkReceiver(const Call& call, Upload& upload, bool compression, std::shared_ptr<Account> account)
      : call_(call), upload_(upload), compression_(compression), charge_(std::move(account)) {}

  absl::Status append(const v1::UploadChunk& chunk) {
    if (chunk.has_offset() && chunk.offset() != upload_.received()) {
      return absl::InvalidArgumentError(absl::StrCat("expected offset ", upload_.received(), ", got ", chunk.offset()));
    }
    if (!chunk.has_compression()) return upload_.append(chunk.data());
    if (!compression_) return absl::InvalidArgumentError("this engine does not accept compressed chunks");
    const uint64_t bytes = chunk.compression().bytes();
    const uint64_t limit = std::min<uint64_t>(upload_.left(), kStreamChunkBytes);
    if (bytes > limit) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a compressed chunk of at most ", limit, " bytes, got ", bytes));
    }
    absl::Status status = reserve(limit, chunk.compression().item_bytes() != 0);
    if (!status.ok()) return status;
    bytes_.resize(bytes);
    status = decompressor_.decompress(chunk.data(), chunk.compression(), absl::MakeSpan(bytes_));
    return status.ok() ? upload_.append(bytes_) : status;
  }

 private:
  // Charges and allocates the memory for decompressed chunks of up to `bytes` bytes, which decreases during an upload.
  // ABORTED if the session has no room until other calls end.
  absl::Status reserve(size_t bytes, bool shuffled) {
    if (reserved_ != 0 && (reserved_shuffled_ || !shuffled)) return absl::OkStatus();
    bytes = std::max(bytes, reserved_);
    const size_t needed = bytes + ChunkDecompressor::memory(bytes, shuffled);
    const bool can_wait = call_.shares_buffers();
    if (!charge_.raise_to(needed, can_wait ? BufferCharge::kLeft : 0)) {
      const std::string message = absl::StrCat("out of memory on the host: no room for the ", bytes_text(needed),
                                               " that decompressing an upload takes");
      return can_wait ? absl::AbortedError(message) : absl::ResourceExhaustedError(message);
    }
    bytes_.reserve(bytes);
    if (shuffled) decompressor_.reserve(bytes);
    reserved_ = bytes;
    reserved_shuffled_ = shuffled;
    return absl::OkStatus();
  }

  const Call& call_;
  Upload& upload_;
  const bool compression_;
  BufferCharge charge_;
  size_t reserved_ = 0;  // maximum size of a chunk; 0: nothing is reserved
  bool reserved_shuffled_ = false;
  ChunkDecompressor decompressor_;
  std::string bytes_;
};

grpc::Status receive_chunks(Call& call, grpc::ServerReader<v1::UploadChunk>* reader, Upload& upload, bool compression,
                            std::shared_ptr<Account> account, grpc::ServerContext* context, v1::UploadChunk* chunk) {
  ChunkReceiver receiver(call, upload, compression, std::move(account));
  do {
    absl::Status status = receiver.append(*chunk);
    // The client does not repeat an invalid upload.
    if (absl::IsInvalidArgument(status))
      upload.fail(Error(ErrorKind::kValue, std::string(status.message()))).IgnoreError();
    if (absl::IsResourceExhausted(status))
      upload.fail(Error(ErrorKind::kOutOfMemory, std::string(status.message()))).IgnoreError();
    if (!status.ok()) return refuse_transfer(context, status);
  } while (read(call, reader, chunk));
  return grpc::Status::OK;
}

}  // namespace

grpc::Status EngineService::Upload(grpc::ServerContext* context, grpc::ServerReader<v1::UploadChunk>* reader,
                                   v1::UploadReply* reply) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  absl::StatusOr<CallAdmission::Slot> slot = admit(*context, CallAdmission::Kind::kTransfer, *session);
  if (!slot.ok()) return admission_.refuse(*context, slot.status());
  auto call = session->begin_call(Direction::kUpload, [context] { context->TryCancel(); });
  if (!call.ok()) return refuse_transfer(context, call.status());
  auto should_continue = [&] { return !context->IsCancelled() && !session->over(); };
  if (!(*call)->acquire_buffers(should_continue)) return grpc::Status::CANCELLED;
  v1::UploadChunk chunk;
  if (!read(**call, reader, &chunk)) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "expected at least one chunk in an upload, got none");
  }
  absl::StatusOr<Device> device = device_of(chunk);
  if (!device.ok()) return to_grpc(device.status());
  const bool has_digest = chunk.resume() && !chunk.through_shared_memory() && !chunk.digest().empty();
  if (has_digest && chunk.digest().size() != Sha256::kBytes) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                        absl::StrCat("expected a digest of ", Sha256::kBytes, " bytes, got ", chunk.digest().size()));
  }
  (*call)->carry(chunk.transfer());
  auto upload = session->begin_upload(chunk.transfer(), chunk.total_bytes(), *device, chunk.resume(), call->get(),
                                      has_digest ? chunk.digest() : std::string(), should_continue);
  if (!upload.ok()) return refuse_transfer(context, upload.status());
  const CountedTransfer counted(session->times() ? &session->times()->uploads : nullptr,
                                [&] { return (*upload)->left(); });
  if (chunk.resume()) {
    context->AddInitialMetadata("teletensor-received", absl::StrCat((*upload)->received()));
    reader->SendInitialMetadata();
  }
  if (chunk.through_shared_memory()) {
    (*call)->release_buffers();
    auto segment = session->segment_of(chunk.segment());
    if (!segment.ok()) return to_grpc(segment.status());
    IdleDetector detector(**call);
    status = to_grpc(
        (*segment)->receive(**upload, [&] { return should_continue() && !detector.is_idle((*upload)->received()); }));
  } else {
    if ((*upload)->is_needed())
      status = receive_chunks(**call, reader, **upload, sessions_.compression(), session->account(), context, &chunk);
    // The instruction has failed or was cancelled, or has the bytes already. The client need not send the rest.
    const bool abandoned = status.error_code() == grpc::StatusCode::CANCELLED && !session->over();
    if (!(*upload)->is_needed() || (abandoned && !context->IsCancelled())) {
      reply->set_bytes((*upload)->bytes());
      return grpc::Status::OK;
    }
  }
  if (status.ok() && (*upload)->left() != 0) {
    status = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the upload ended before its last byte");
  }
  // After a broken call the client may resume; a rejected upload cannot be resumed.
  if (!status.ok() && !context->IsCancelled()) (*upload)->discard();
  reply->set_bytes((*upload)->received());
  return status;
}

grpc::Status EngineService::serve_download(grpc::ServerContext* context, DownloadStream* stream) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  absl::StatusOr<CallAdmission::Slot> slot = admit(*context, CallAdmission::Kind::kTransfer, *session);
  if (!slot.ok()) return admission_.refuse(*context, slot.status());
  v1::DownloadRequest request;
  absl::Status read = read_request(admission_, *context, &*slot, stream, &request);
  return read.ok() ? answer_download(context, *session, request, stream) : admission_.refuse(*context, read);
}

grpc::Status EngineService::answer_download(grpc::ServerContext* context, server::Session& session,
                                            const v1::DownloadRequest& request, DownloadWriter* writer) {
  grpc::Status status;
  auto call = session.begin_call(Direction::kDownload, [context] { context->TryCancel(); });
  if (!call.ok()) return refuse_transfer(context, call.status());
  auto should_continue = [&] { return !context->IsCancelled() && !session.over(); };
  const bool shared = request.through_shared_memory();
  const size_t chunk_size = chunk_bytes(request);
  auto download = session.begin_download(request.handle(), request.after(), should_continue,
                                         {request.offset(), request.state(), shared ? UINT64_MAX : chunk_size});
  if (!download.ok()) return to_grpc(download.status());
  std::shared_ptr<SharedSegment> segment;
  if (shared) {
    auto current = session.segment_of(request.segment());
    if (!current.ok()) return to_grpc(current.status());
    segment = *std::move(current);
  }
  v1::DownloadChunk chunk;
  if (download->error) {
    if (session.times()) session.times()->add_error(download->error->kind());
    *chunk.mutable_error() = *download->error;
    write(**call, chunk, writer);
    return grpc::Status::OK;
  }
  *chunk.mutable_tensor() = download->tensor;
  chunk.set_offset(download->offset);
  chunk.set_state(download->state);
  std::optional<CountedTransfer> counted;
  if (session.times()) counted.emplace(&session.times()->downloads, [&] { return download->bytes->left(); });
  try {
    if (shared) {
      write(**call, chunk, writer);
      IdleDetector detector(**call);
      status = to_grpc(segment->send(*download->bytes,
                                     [&] { return should_continue() && !detector.is_idle(download->bytes->left()); }));
    } else if ((*call)->acquire_buffers(should_continue)) {
      ChunkSender sender(**call, compression_mode(request, sessions_.compression()),
                         static_cast<double>(request.link_rate()), chunk_size, session.account(), writer);
      status = sender.send(*download->bytes, &chunk);
    } else {
      status = grpc::Status::CANCELLED;
    }
  } catch (const Error& error) {  // the device failed during the transfer
    status = to_grpc(to_status(error));
  }
  counted.reset();
  download->bytes = nullptr;
  session.finish_download();
  return status;
}

}  // namespace tt::server
