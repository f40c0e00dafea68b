// GrpcTransport: a Transport over gRPC, on TCP or a unix socket.
//
// Bulk bytes go through shared memory if the engine offers it and it can be mapped, else in chunks on separate calls.
// May own the private engine that it connects to, and stops it in shutdown().
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "base/mutex.h"
#include "client/connection/address.h"
#include "client/connection/private_engine.h"
#include "client/transport/call_events.h"
#include "client/transport/session_stream.h"
#include "client/transport/shared_memory.h"
#include "client/transport/transport.h"
#include "proto/chunk_codec.h"
#include "proto/link_rate.h"
#include "teletensor/v1/engine.grpc.pb.h"

namespace tt::client {

struct TransferOptions {
  bool shared_memory = true;  // use shared memory if the engine offers it
  CompressionMode compression = CompressionMode::kAuto;
  bool content_addressed = false;  // do not send large uploads whose bytes another tensor in the engine has
};

class GrpcTransport final : public Transport {
 public:
  GrpcTransport(Address address, std::string token, const TransferOptions& options,
                std::unique_ptr<PrivateEngine> engine = nullptr);
  ~GrpcTransport() override;

  absl::Status hello(const v1::HelloRequest& request, v1::HelloReply* reply) override;
  bool engine_has_ended() const override;
  absl::Status open(const std::string& session_key) override;
  std::optional<absl::Status> send(const v1::Frame& frame, std::chrono::milliseconds timeout) override;
  std::optional<absl::Status> receive(v1::Reply* reply, std::chrono::milliseconds timeout) override;
  absl::Status upload(uint64_t transfer, Device device, absl::Span<const char> bytes,
                      TransferProgress* progress) override;
  absl::Status download(uint64_t handle, uint64_t after, absl::Span<char> into, TransferProgress* progress,
                        v1::Error* error) override;
  absl::StatusOr<uint64_t> cancel(uint64_t through) override;
  absl::Status persist(const v1::PersistRequest& request, v1::PersistReply* reply) override;
  void shutdown() override;
  BackgroundUploads background_uploads() const override;
  TransferCounters transfer_counters() const override;
  std::string address() const override { return address_.text; }

  class Call;  // a call in progress (client/transport/grpc_call.h)

 private:
  // A connection of its own for uploads. An engine serves a limited number of calls per connection, and downloads,
  // which wait for frames, must not keep out the uploads for which those frames wait. Bytes on this connection do not
  // delay frames either.
  struct UploadChannel {
    Mutex mutex;
    std::shared_ptr<v1::Engine::Stub> stub ABSL_GUARDED_BY(mutex);  // null: not connected
  };
  // Result of one Hello. Transfers in progress keep a reference to the Connection that they use.
  struct Connection {
    Address address;  // the engine's, or its worker's
    std::shared_ptr<v1::Engine::Stub> stub{};
    std::string session_key{};
    uint32_t max_templates = 0;              // v1::Limits
    std::shared_ptr<SharedMemory> memory{};  // may be null
    pid_t engine = -1;                       // number of the engine's process on this host; -1: unknown
    v1::Codec codec = v1::CODEC_NONE;        // of chunks
    bool content_addressed = false;          // the engine uses digests
    std::shared_ptr<UploadChannel> uploads = std::make_shared<UploadChannel>();
    // Memory that is being replaced: until the next Hello has succeeded the engine may watch its lock, and would
    // consider the client dead if it were released while the stream is broken.
    std::shared_ptr<SharedMemory> replaced{};
  };
  // Returns the stub for an upload over `connection`; connects on first use, and after a failure.
  absl::StatusOr<std::shared_ptr<v1::Engine::Stub>> upload_stub(Connection& connection);

  std::shared_ptr<Connection> connection() const;
  bool is_shut_down() const;
  void set_connection(std::shared_ptr<Connection> connection);
  // Returns the connection for a transfer. Renews its shared memory if a lane is broken, for example after an
  // interrupt.
  std::shared_ptr<Connection> connection_for_transfer();
  static constexpr char kSessionKey[] = "teletensor-session";
  // A metadata entry that authorises a Hello.
  struct Credential {
    const char* name = nullptr;  // null: none
    std::string value{};
  };
  Credential token() const { return token_.empty() ? Credential{} : Credential{"authorization", "Bearer " + token_}; }
  // Sends Hello over `connection` and maps the shared memory that the engine offers.
  absl::Status send_hello(Connection& connection, const Credential& credential, const v1::HelloRequest& request,
                          std::chrono::milliseconds timeout, v1::HelloReply* reply);
  // Opens a connection to `address` and sends Hello.
  absl::StatusOr<std::shared_ptr<Connection>> connect(const Address& address, const Credential& credential,
                                                      const v1::HelloRequest& request,
                                                      std::chrono::milliseconds timeout, v1::HelloReply* reply);
  // Opens a session with the engine, in its worker if it redirects.
  absl::StatusOr<std::shared_ptr<Connection>> open_session(const v1::HelloRequest& request, v1::HelloReply* reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(hello_mutex_);
  // Resumes the session where it was opened.
  absl::StatusOr<std::shared_ptr<Connection>> resume_session(const v1::HelloRequest& request, v1::HelloReply* reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(hello_mutex_);
  // Returns why the worker's sessions are lost, according to the engine; OK if they are not, or if it does not answer.
  absl::Status ask_for_worker(const v1::HelloRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(hello_mutex_);
  absl::Status upload_over(v1::Engine::Stub& stub, Connection& connection, uint64_t transfer, Device device,
                           absl::Span<const char> bytes, TransferProgress* progress);
  absl::Status upload_chunks(v1::Engine::Stub& stub, Connection& connection, v1::UploadChunk chunk,
                             absl::Span<const char> bytes, TransferProgress* progress);
  CompressionMode compression_over(const Connection& connection) const {
    return connection.codec == v1::CODEC_ZSTD ? options_.compression : CompressionMode::kNone;
  }
  // Copies the data of a downloaded chunk to `into`, which may be larger. Returns the number of bytes, or
  // INVALID_ARGUMENT.
  absl::StatusOr<size_t> copy_chunk(const v1::DownloadChunk& chunk, ChunkDecompressor* decompressor,
                                    absl::Span<char> into);
  absl::Status upload_shared(v1::Engine::Stub& stub, Connection& connection, v1::UploadChunk first,
                             absl::Span<const char> bytes);
  absl::Status download_chunks(Connection& connection, v1::DownloadRequest request, absl::Span<char> into,
                               TransferProgress* progress, v1::Error* error);
  absl::Status download_shared(Connection& connection, const v1::DownloadRequest& request, absl::Span<char> into,
                               v1::Error* error);

  const Address address_;
  const std::string token_;
  const TransferOptions options_;
  std::unique_ptr<PrivateEngine> engine_;
  const pid_t private_engine_;  // its process; -1: none

  Mutex hello_mutex_;  // held during a Hello, because the engine uses only the segment of the last Hello
  v1::HelloRequest hello_ ABSL_GUARDED_BY(hello_mutex_);  // resumes the session
  // Where the session was opened, if not in the engine itself.
  struct Worker {
    Address address;
    uint64_t number;  // Redirect.worker
  };
  std::optional<Worker> worker_ ABSL_GUARDED_BY(hello_mutex_);
  std::chrono::milliseconds resume_timeout_ ABSL_GUARDED_BY(hello_mutex_){};

  mutable Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);  // in progress; cancelled by shutdown

  // Measured with uncompressed chunks, which the processors do not delay.
  LinkRate upload_rate_, download_rate_;
  std::atomic<uint64_t> upload_bytes_{0}, upload_compressed_bytes_{0}, upload_reused_bytes_{0};
  std::atomic<uint64_t> download_bytes_{0}, download_compressed_bytes_{0};

  // The session stream. Its owner opens it while no thread sends or receives. Set under the mutex; the owner uses it
  // without the mutex.
  struct Stream;
  CallPointer<Stream> stream_;
  bool pipes_are_usable_ = true;  // until a stream's pipe breaks; used by open()
};

}  // namespace tt::client
