// Sampler: records at regular times what every session does, for administrators.
//
// Owns one thread. It sleeps for longer while no session has work. A sample costs a few loads per session, and the
// sessions' own threads are not stopped. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "server/session/sessions.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::server {

class Sampler {
 public:
  // `rate`: samples per second; 0: no thread is started. `sessions` must outlive this object.
  Sampler(const Sessions& sessions, double rate);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  bool active() const { return rate_ > 0; }
  // The samples since the start.
  v1::ProfileReply profile() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Key {
    uint64_t session;
    SessionActivity::Phase phase;
    uint16_t op;
    uint16_t kernel;
    uint32_t site;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.session, k.phase, k.op, k.kernel, k.site);
    }
  };
  struct Entry {
    std::string principal;
    std::string site;  // described when the entry is made, because the session may have ended when it is shown
    uint64_t count = 0;
  };

  void run();
  // Returns whether a session has work.
  bool sample() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Sessions& sessions_;
  const double rate_;
  const Clock::time_point started_ = Clock::now();
  mutable Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t other_ ABSL_GUARDED_BY(mutex_) = 0;  // samples without an entry
  double cpu_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace tt::server
