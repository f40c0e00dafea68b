// Mutex, TimedMutex, MutexLock, MutexUnlock and CondVar: the standard library's classes, with the annotations that
// clang's -Wthread-safety checks (`make lint`).
//
// Use only these locks in the project. Members guarded by a mutex are annotated with ABSL_GUARDED_BY; functions and
// lambdas called with the mutex held, with ABSL_EXCLUSIVE_LOCKS_REQUIRED. absl::Mutex has the annotations too, but
// Debian builds Abseil without ThreadSanitizer, which then reports races under every lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/thread_annotations.h"

// Abseil's ABSL_UNLOCK_FUNCTION also covers shared locks. With that attribute, the analysis does not recognize that a
// scoped lock acquires its mutex again.
#if ABSL_HAVE_ATTRIBUTE(release_capability)
#define TT_EXCLUSIVE_UNLOCK_FUNCTION(...) __attribute__((release_capability(__VA_ARGS__)))
#else
#define TT_EXCLUSIVE_UNLOCK_FUNCTION(...)
#endif

namespace tt {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  // Declares to the analysis that the caller holds the mutex, where the analysis cannot infer this. Has no run-time
  // check.
  void assume_held() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// A Mutex with a timed lock operation.
class ABSL_LOCKABLE TimedMutex {
 public:
  TimedMutex() = default;
  TimedMutex(const TimedMutex&) = delete;
  TimedMutex& operator=(const TimedMutex&) = delete;

  bool try_lock_for(std::chrono::milliseconds timeout) ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return mutex_.try_lock_for(timeout);
  }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  std::timed_mutex mutex_;
};

// Holds a mutex until the end of its scope. unlock() and lock() release and reacquire it.
template <typename M = Mutex>
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(M& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.lock(); }
  // Adopts a mutex that the caller has locked.
  MutexLock(M& mutex, std::adopt_lock_t) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) : mutex_(mutex) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {
    if (locked_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.lock();
    locked_ = true;
  }
  void unlock() ABSL_UNLOCK_FUNCTION() {
    locked_ = false;
    mutex_.unlock();
  }

 private:
  M& mutex_;
  bool locked_ = true;
};

// Releases a mutex held by the caller, and acquires it again at the end of the scope, also on exceptions.
class ABSL_SCOPED_LOCKABLE MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) TT_EXCLUSIVE_UNLOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~MutexUnlock() TT_EXCLUSIVE_UNLOCK_FUNCTION() { mutex_.lock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable. Waiters hold the mutex, which is released while they wait; waits without a predicate may wake
// up spuriously.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  void wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Adopted lock(mutex);
    condition_.wait(lock.native);
  }
  template <typename Done>
  void wait(Mutex& mutex, Done done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Adopted lock(mutex);
    condition_.wait(lock.native, std::move(done));
  }
  template <typename Clock, typename Duration>
  std::cv_status wait_until(Mutex& mutex, std::chrono::time_point<Clock, Duration> deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Adopted lock(mutex);
    return condition_.wait_until(lock.native, deadline);
  }
  template <typename Rep, typename Period>
  std::cv_status wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Adopted lock(mutex);
    return condition_.wait_for(lock.native, timeout);
  }
  // Waits until done() is true or the timeout expires. Returns the last value of done().
  template <typename Rep, typename Period, typename Done>
  bool wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> timeout, Done done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Adopted lock(mutex);
    return condition_.wait_for(lock.native, timeout, std::move(done));
  }

 private:
  // Adapts the caller's mutex to the standard library's wait functions. The caller holds the mutex again when this
  // object is destroyed.
  struct Adopted {
    explicit Adopted(Mutex& mutex) : native(mutex.mutex_, std::adopt_lock) {}
    ~Adopted() { native.release(); }
    std::unique_lock<std::mutex> native;
  };

  std::condition_variable condition_;
};

}  // namespace tt
