// Gate: admits calls within fixed quotas, and cancels a call whose request does not arrive in time.
//
// gRPC's synchronous calls hold one thread of its pool each. The quotas divide that pool among the kinds of calls, so
// that no kind can take the threads of another; Admin's part is its own. Only calls that have shown their token or
// session key are admitted, so a peer without one holds no thread. Thread-safe; one thread of its own watches the
// deadlines. Outlives every call.
#pragma once

#include <grpcpp/grpcpp.h>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace tt::server {

class Gate {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Kind { kHello, kStream, kTransfer, kRequest, kAdmin, kReflection };
  static constexpr size_t kKinds = 6;
  // How long the request of an admitted call may take to arrive.
  static constexpr std::chrono::milliseconds kPatience{5'000};
  // The same of an upload's first chunk, which may be megabytes.
  static constexpr std::chrono::milliseconds kChunkPatience{60'000};
  // The threads that all quotas together can hold, and some for calls that are being refused.
  static int max_threads();

  // A place within a quota, given back by the destructor.
  class Slot {
   public:
    Slot(Gate* gate, Kind kind, std::string holder) : gate_(gate), kind_(kind), holder_(std::move(holder)) {}
    Slot(Slot&& other) noexcept;
    Slot& operator=(Slot&&) = delete;
    ~Slot();

   private:
    Gate* gate_;
    Kind kind_;
    std::string holder_;
  };

  // Cancels `call` with DEADLINE_EXCEEDED after `patience`, unless it is destroyed before.
  class Deadline {
   public:
    Deadline(Gate& gate, grpc_call* call, std::chrono::milliseconds patience = kPatience);
    ~Deadline();
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;

   private:
    friend class Gate;
    Gate& gate_;
    grpc_call* const call_;
    bool pending_ ABSL_GUARDED_BY(gate_.mutex_) = true;
    // Valid while pending_.
    std::multimap<Clock::time_point, Deadline*>::iterator place_ ABSL_GUARDED_BY(gate_.mutex_);
  };

  // Hears of peers, as gRPC names them: of calls that have shown a token or a session key, and of refused calls.
  struct Observer {
    std::function<void(const std::string& peer)> authenticated = [](const std::string&) {};
    std::function<void(const std::string& peer)> refused = [](const std::string&) {};
  };
  explicit Gate(Observer observer);
  Gate() : Gate(Observer()) {}
  ~Gate();

  // `holder`: whom the quota's part for one holder counts for: an address, or a session. UNAVAILABLE, after which
  // clients try again, where either the holder or all together have too many calls of this kind.
  absl::StatusOr<Slot> admit(Kind kind, std::string holder);
  // The same for the caller's address, whose connection counts as authenticated from now on.
  absl::StatusOr<Slot> admit(Kind kind, const grpc::ServerContextBase& context);
  void authenticated(const std::string& peer) const { observer_.authenticated(peer); }
  // Ends a call at once with `status`, without waiting until the peer has read it, and logs a limited number of lines.
  // A synchronous handler returns what this returns.
  grpc::Status refuse(grpc::ServerContext& context, const absl::Status& status) const;

 private:
  struct Count {
    int all = 0;
    absl::flat_hash_map<std::string, int> by_holder;
  };
  void release(Kind kind, const std::string& holder);
  void watch();

  const Observer observer_;
  Mutex mutex_;
  CondVar changed_;
  std::array<Count, kKinds> counts_ ABSL_GUARDED_BY(mutex_);
  std::multimap<Clock::time_point, Deadline*> deadlines_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

// "10.1.2.3" of the peer "ipv4:10.1.2.3:4711"; "unix" of every unix socket. IPv6 addresses count by their network
// (/64), loopback addresses as one.
std::string address_of(absl::string_view peer);
// "10.1.2.3:4711", "[::1]:4711" of a peer that gRPC names; "unix" of every unix socket.
std::string connection_of(absl::string_view peer);

}  // namespace tt::server
