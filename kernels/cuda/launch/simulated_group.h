// SimulatedGroup: the threads of a group on a simulated device, and the random numbers that order the device's work.
//
// The threads run one at a time on one host thread. A thread runs until it waits for the others, or randomly until an
// atomic operation. The next thread is then chosen at random, so that a missing wait produces a wrong value. If the
// threads of a group wait at different places, or some end while others wait, the device fails and the launch is
// abandoned. Declared only for the host's compiler. tests/cuda/simulated/simulated_group.cc implements it, for one
// launch at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <typeinfo>

#include "absl/functional/function_ref.h"

namespace tt::cuda {

inline constexpr int kWarp = 2;  // small, so that a group of a few threads has several warps
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kMaxThreads = 1;  // sanitizers do not support the stack switches
#else
inline constexpr int kMaxThreads = 8;  // per group; a group is a whole number of warps
#endif
inline constexpr size_t kValueBytes = 32;  // maximum size of a value that a group reduces

// The point at which a thread waits for the others.
struct Wait {
  enum Kind : uint8_t { kNone, kSync, kReduce, kEnd };
  Kind kind = kNone;
  const std::type_info* value = nullptr;  // kReduce: types of the value and of the operation
  std::source_location place;
};

class SimulatedGroup {
 public:
  // Runs every thread of `groups` groups, in random order. Only the thread that runs may call the functions below.
  using Body = absl::FunctionRef<void(SimulatedGroup& group, int64_t index, int rank)>;
  static void run(int64_t groups, const std::type_info& kernel, Body body);

  virtual int size() const = 0;
  virtual void wait(int rank, const Wait& wait) = 0;

  // Returns every thread's value, ordered by rank. Valid until this thread waits again.
  template <typename T>
  const T* exchange(int rank, const T& value, const Wait& wait) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kValueBytes);
    return static_cast<const T*>(exchange(rank, &value, sizeof value, wait));
  }

 protected:
  ~SimulatedGroup() = default;
  virtual const void* exchange(int rank, const void* value, size_t bytes, const Wait& wait) = 0;
};

// Called by atomic operations: at random, lets other threads of the group run first. Does nothing if no group runs.
void yield_randomly();

// Returns a random number in [0, below).
int64_t draw(int64_t below);

// The numbers 0 ... n - 1 in random order.
class Shuffle {
 public:
  explicit Shuffle(int64_t n);
  int64_t next() {
    at_ = at_ < n_ - step_ ? at_ + step_ : at_ - (n_ - step_);
    return at_;
  }

 private:
  int64_t n_, step_, at_;  // step_ and n are coprime
};

}  // namespace tt::cuda
