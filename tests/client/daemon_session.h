// Sessions with a real teletensord and calls on them, for tests.
#pragma once

#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "client/connect.h"
#include "client/connection/interruption.h"
#include "tests/client/daemon.h"
#include "tests/relay/relay.h"

namespace tt::client::testing {

inline const Op& op(std::string_view name) { return *find_op(name); }

inline Ref<Session> connect_to(const Daemon& daemon, bool shared_memory = true) {
  return connect({.address = daemon.address(), .token = daemon.token(), .shared_memory = shared_memory});
}

inline Tensor upload(Session& session, const std::vector<float>& values) {
  int64_t size = static_cast<int64_t>(values.size());
  absl::Span<const char> bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return session.upload(bytes, DType::kFloat32, {size}, Device());
}

inline std::vector<float> read(Session& session, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor->numel()));
  session.read_into(tensor, absl::MakeSpan(reinterpret_cast<char*>(values.data()), values.size() * sizeof(float)));
  return values;
}

inline Tensor add(Session& session, const Tensor& a, const Arg& b, const CallOptions& options = {}) {
  const Arg args[] = {a.get(), b, Arg(1)};
  return session.call(op("add"), args, options)[0];
}

inline Tensor full(Session& session, SizesView sizes, double value, uint32_t site = 0) {
  const Arg args[] = {sizes, Arg(value), Arg(DType::kFloat32), Arg()};
  return session.call(op("full"), args, {.site = site})[0];
}

// Makes this thread interruptible, like Python's main thread.
inline thread_local bool interruptible = false;
inline std::atomic<bool> interrupt_pending{false};

class InterruptibleThread {
 public:
  InterruptibleThread() {
    install_wait_hooks({[] { return interruptible; }, [] { return interrupt_pending.exchange(false); }});
    interruptible = true;
  }
  ~InterruptibleThread() { interruptible = false; }
};

// Sanitizers slow down both sides: with breaks as frequent as otherwise, no reply would arrive between two of them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 10;
#else
inline constexpr int kSlowdown = 1;
#endif

// Breaks the connections through a relay every 50 to 100 ms.
class RepeatedBreaks {
 public:
  explicit RepeatedBreaks(relay::Relay& relay)
      : thread_([&relay](std::stop_token done) {
          for (int i = 0; !done.stop_requested(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(kSlowdown * (50 + i * 17 % 50)));
            relay.cut();
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace tt::client::testing
