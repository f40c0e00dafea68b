// RemoteEngines: the engines in which a front engine opens its principals' sessions (--engines), instead of itself.
//
// One thread requests their status every second. A session is opened in the one whose device is the least loaded, by a
// single-use key, so that no byte of it passes through the front engine. Engines that do not answer are skipped until
// they do. Owned by the daemon. Thread-safe. Calls to engines are made without the lock.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "server/rpc/placement.h"
#include "teletensor/v1/admin.grpc.pb.h"

namespace tt::server {

class RemoteEngines final : public Placement {
 public:
  struct Engine {
    std::string address;      // "host:port"
    bool tls = false;         // it requires TLS
    std::string fingerprint;  // of its certificate; empty: an authority has to have signed it
  };
  struct Options {
    std::vector<Engine> engines;
    std::string token;        // by which they know this engine: that of their --placed-by
    std::string authorities;  // PEM file, of the certificates without a fingerprint; empty: the system's
    std::chrono::milliseconds interval{1'000};
  };

  // Parses "host:port", "teletensors://host:port" and "teletensors://host:port#sha256:...".
  static absl::StatusOr<Engine> parse(absl::string_view text);

  // FAILED_PRECONDITION if a file for TLS cannot be used.
  static absl::StatusOr<std::unique_ptr<RemoteEngines>> start(Options options);
  ~RemoteEngines() override;  // calls stop()

  bool is_remote() const override { return true; }
  // UNAVAILABLE with the reasons if no engine answers, RESOURCE_EXHAUSTED if all that do are full.
  absl::Status place(const Principal& principal, bool by_socket, v1::HelloReply* reply) override;
  // A client resumes its session in its engine. Here it learns whether to go on trying.
  absl::Status locate(const Principal& principal, uint64_t engine, bool by_socket, v1::HelloReply* reply) override;
  // Also revokes the principal, later, in engines that do not answer now. Returns the number of sessions that have
  // ended.
  size_t revoke(absl::string_view principal) override;

  // Places no more sessions. Idempotent; call before the calls of place() are waited for.
  void stop();
  // Adds the engines, as they answered last.
  void describe(v1::StatusReply* reply) const;

 private:
  // How loaded an engine is; the least is placed in first.
  struct Load {
    uint64_t memory = 0;  // of its least loaded device, in tenths of the device's
    uint64_t working = 0, sessions = 0, placed = 0;
    auto operator<=>(const Load&) const = default;
  };
  struct Entry {
    Engine engine;
    uint64_t number = 0;  // Redirect.worker: the same after a restart of the front engine
    std::unique_ptr<v1::Admin::Stub> admin;
    v1::PlacedEngineStatus status{};      // as reported last
    uint64_t recent = 0;                  // sessions placed since then
    std::set<std::string> not_revoked{};  // principals whose revocation did not reach the engine
  };

  explicit RemoteEngines(Options options) : options_(std::move(options)) {}
  static Load load_of(const Entry& entry);
  void set_status(Entry& entry, const grpc::Status& status, const v1::StatusReply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The engine that answers and is the least loaded, and is not among `tried`, if there is one.
  std::optional<size_t> best(const Principal& principal, const std::set<size_t>& tried) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status admit(v1::Admin::Stub& admin, const Principal& principal, const std::string& key) const;
  void prepare(grpc::ClientContext* context, std::chrono::milliseconds timeout) const;
  size_t revoke_in(size_t index, const std::string& principal) ABSL_LOCKS_EXCLUDED(mutex_);
  void check_engines();
  void retry_revocations();
  void run();

  const Options options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // their number and stubs never change
  bool checked_ ABSL_GUARDED_BY(mutex_) = false;        // all have been asked once
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::server
