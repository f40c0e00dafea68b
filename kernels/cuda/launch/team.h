// Team: the threads that a group has on a simulated device, and the orders in which that device does things.
//
// The threads take turns on one thread of the host. Each goes on until it waits for the others (or, by chance, until an
// atomic operation), and who comes next is drawn, so that a wait that is missing shows as a wrong value. A team of
// which not all threads wait at the same place, or of which some end while others wait, is a failure of the device: its
// launch is given up. Declared for the host's compiler alone; a simulated device keeps it
// (tests/cuda/simulated/team.cc), one launch at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <typeinfo>

#include "absl/functional/function_ref.h"

namespace tt::cuda {

inline constexpr int kWarp = 2;  // so that a team of a few threads has several warps
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kMostThreads = 1;  // sanitizers would have to be told of every change of stacks
#else
inline constexpr int kMostThreads = 8;  // of a team, which is a whole number of warps
#endif
inline constexpr size_t kValueBytes = 32;  // the largest value that a group reduces

// Where a thread waits for the others.
struct Wait {
  enum Kind : uint8_t { kNone, kSync, kReduce, kEnd };
  Kind kind = kNone;
  const std::type_info* value = nullptr;  // of a reduction: what is reduced, and how
  std::source_location place;
};

class Team {
 public:
  // Runs every thread of so many groups, in any order. The body's thread calls the others below.
  using Body = absl::FunctionRef<void(Team& team, int64_t index, int rank)>;
  static void run(int64_t groups, const std::type_info& kernel, Body body);

  virtual int size() const = 0;
  virtual void wait(int rank, const Wait& wait) = 0;

  // Every thread's value, in the order of their ranks, until this thread waits again.
  template <typename T>
  const T* exchange(int rank, const T& value, const Wait& wait) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kValueBytes);
    return static_cast<const T*>(exchange(rank, &value, sizeof value, wait));
  }

 protected:
  ~Team() = default;
  virtual const void* exchange(int rank, const void* value, size_t bytes, const Wait& wait) = 0;
};

// By atomic operations: lets other threads of the team go first, by chance. Nothing where no team runs.
void yield_by_chance();

// Drawn: 0 ... below - 1.
int64_t draw(int64_t below);

// 0 ... n - 1, each once, in an order that is drawn.
class Shuffle {
 public:
  explicit Shuffle(int64_t n);
  int64_t next() {
    at_ = at_ < n_ - step_ ? at_ + step_ : at_ - (n_ - step_);
    return at_;
  }

 private:
  int64_t n_, step_, at_;  // `step_` has no divisor in common with n
};

}  // namespace tt::cuda
