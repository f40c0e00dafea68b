// CallAdmission: admits calls within fixed quotas, and cancels calls whose request does not arrive in time.
//
// Each synchronous gRPC call occupies a thread of gRPC's pool. The quotas divide the pool among the kinds of calls, so
// that one kind cannot starve another, and each quota among the principals (server/session/place_share.h), with places
// for operators and for principals that have no call. A call that waits for its peer, because its request is incomplete
// or its answer unread, gives way to a new call that finds no place: first the oldest one of the principal that has
// most calls of the kind. It does not give way to a call of its own principal if requests of the kind may be large:
// slow uploads would restart each other. Only calls with a valid token or session key are admitted, so other calls
// occupy a thread only until they are refused. Thread-safe; one thread watches the deadlines. Must outlive every call.
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
#include "server/session/principal.h"

namespace tt::server {

class CallAdmission {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Kind { kHello, kStream, kTransfer, kRequest, kInference, kAdmin, kReflection };
  static constexpr size_t kKinds = 7;
  // Maximum time until the request of an admitted call arrives.
  static constexpr std::chrono::milliseconds kRequestTimeout{5'000};
  // Maximum time until an upload's first chunk arrives, which may have megabytes.
  static constexpr std::chrono::milliseconds kChunkTimeout{60'000};
  // Time until an answer has been sent: more than `timeout` as far as a client needs that reads kSendRate.
  static constexpr uint64_t kSendRate = uint64_t{256} << 10;  // bytes per second
  static std::chrono::milliseconds time_to_send(std::chrono::milliseconds timeout, uint64_t bytes) {
    return timeout + std::chrono::milliseconds(bytes / kSendRate * 1000);
  }
  // Maximum number of threads that all quotas together can use, plus threads for calls that are being refused.
  static int max_threads();

  // Whose call it is: a principal, or an address for calls without a token. `part`: the address or session that has a
  // limit of its own within some quotas; empty: none.
  struct Holder {
    std::string name;
    bool is_operator = false;
    std::string part{};
  };
  static Holder holder_of(const Principal& principal, const grpc::ServerContextBase& context);
  static Holder address_holder(const grpc::ServerContextBase& context);

  // A slot within a quota, released by the destructor.
  class Slot {
   public:
    Slot(CallAdmission* admission, Kind kind, Holder holder)
        : admission_(admission), kind_(kind), holder_(std::move(holder)) {}
    Slot(Slot&& other) noexcept;
    Slot& operator=(Slot&&) = delete;
    ~Slot();
    // Whether the call has not given way to another one. Not while a Deadline with this slot exists.
    bool is_held() const { return admission_ != nullptr; }

   private:
    friend class CallAdmission;
    CallAdmission* admission_;  // null: moved from, or the call has given way
    Kind kind_;
    Holder holder_;
  };

  // What a call waits for: that its peer sends the request, or reads the answer.
  enum class Awaited : uint8_t { kRequest, kAnswer };
  // An answer that waits for less time may be on its way: its call does not give way.
  static constexpr std::chrono::milliseconds kSending{100};

  // Cancels `call` with DEADLINE_EXCEEDED after `timeout`, unless the Deadline is destroyed first. With a slot, which
  // must be neither moved nor destroyed before, the call may give way to another call. If its request was incomplete,
  // it then ends with UNAVAILABLE, and clients repeat it, otherwise with DEADLINE_EXCEEDED.
  class Deadline {
   public:
    Deadline(CallAdmission& admission, grpc_call* call, Awaited awaited, std::chrono::milliseconds timeout,
             Slot* slot = nullptr);
    ~Deadline();
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;

   private:
    friend class CallAdmission;
    CallAdmission& admission_;
    grpc_call* const call_;
    const Awaited awaited_;
    const Clock::time_point since_ = Clock::now();
    Slot* const slot_;
    bool pending_ ABSL_GUARDED_BY(admission_.mutex_) = true;
    // Valid while pending_.
    std::multimap<Clock::time_point, Deadline*>::iterator position_ ABSL_GUARDED_BY(admission_.mutex_);
  };

  // Functions called with the peer (gRPC's format) of each call that presented a token or session key, and of each
  // refused call.
  struct Observer {
    std::function<void(const std::string& peer)> authenticated = [](const std::string&) {};
    std::function<void(const std::string& peer, const absl::Status& status)> refused = [](const std::string&,
                                                                                          const absl::Status&) {};
  };
  explicit CallAdmission(Observer observer);
  CallAdmission() : CallAdmission(Observer()) {}
  ~CallAdmission();

  // Admits a call of `holder` within the holder's part of the quota. Returns UNAVAILABLE, with a message that ends with
  // "try again later" (clients retry), if the holder or all holders together have too many calls of this kind, and none
  // of them can give way.
  absl::StatusOr<Slot> admit(Kind kind, Holder holder);
  // Waits until the handlers of all admitted calls but Admin's and Reflection's have returned, at most for `timeout`.
  void wait_until_idle(std::chrono::milliseconds timeout);
  // The same for the calls of one kind.
  void wait_for_calls(Kind kind, std::chrono::milliseconds timeout);
  void authenticated(const std::string& peer) const { observer_.authenticated(peer); }
  // Ends a call at once with `status`, without waiting for the peer to read it, and logs it (rate-limited). A
  // synchronous handler returns the result.
  grpc::Status refuse(grpc::ServerContext& context, const absl::Status& status) const;

 private:
  struct Count {
    size_t all = 0;
    absl::flat_hash_map<std::string, size_t> by_name, by_part;
  };
  Count& count(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return counts_[static_cast<size_t>(kind)]; }
  absl::Status check_room(Kind kind, const Holder& holder, bool* is_part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool make_room(Kind kind, const Holder& holder, bool in_part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void cancel(Deadline& deadline, bool gives_way) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void release(const Slot& slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void watch();

  const Observer observer_;
  Mutex mutex_;
  CondVar changed_;
  CondVar released_;
  std::array<Count, kKinds> counts_ ABSL_GUARDED_BY(mutex_);
  std::multimap<Clock::time_point, Deadline*> deadlines_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point watched_until_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();  // when watch() wakes up itself
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

// Returns "10.1.2.3" for the peer "ipv4:10.1.2.3:4711", and "unix" for every unix socket. IPv6 addresses are reduced to
// their /64 network, loopback addresses to 127.0.0.1.
std::string address_of(absl::string_view peer);
// Returns "10.1.2.3:4711" or "[::1]:4711" for a peer in gRPC's format; "unix" for every unix socket.
std::string connection_of(absl::string_view peer);

}  // namespace tt::server
