#include "base/mutex.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace tt {
namespace {

using std::chrono::milliseconds;

// Whether another thread could lock the mutex now.
template <typename M>
bool is_free(M& mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  bool free = false;
  std::thread([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    free = mutex.try_lock_for(milliseconds(0));
    if (free) mutex.unlock();
  }).join();
  return free;
}
bool is_free(Mutex& mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  bool free = false;
  std::thread([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    free = mutex.try_lock();
    if (free) mutex.unlock();
  }).join();
  return free;
}

TEST(MutexTest, ScopeHoldsLockUntilReleased) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(is_free(mutex));
    lock.unlock();
    EXPECT_TRUE(is_free(mutex));
    lock.lock();
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
  {
    MutexLock lock(mutex);
    lock.unlock();
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexTest, AdoptedLockIsReleased) {
  TimedMutex mutex;
  if (!mutex.try_lock_for(milliseconds(1))) FAIL();
  {
    MutexLock lock(mutex, std::adopt_lock);
    EXPECT_FALSE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexTest, ExceptionReacquiresReleasedLock) {
  Mutex mutex;
  MutexLock lock(mutex);
  try {
    MutexUnlock unlocked(mutex);
    EXPECT_TRUE(is_free(mutex));
    throw std::runtime_error("a transport that fails");
  } catch (const std::runtime_error&) {
    EXPECT_FALSE(is_free(mutex));
  }
}

TEST(CondVarTest, WaitReleasesAndReacquiresLock) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::thread other;
  {
    MutexLock lock(mutex);
    other = std::thread([&] {
      MutexLock lock(mutex);
      ready = true;
      changed.notify_one();
    });
    changed.wait(mutex, [&] { return ready; });
    EXPECT_FALSE(is_free(mutex));
  }
  other.join();
  EXPECT_TRUE(is_free(mutex));
}

TEST(CondVarTest, WaitWithTimeoutReturnsCondition) {
  Mutex mutex;
  CondVar changed;
  MutexLock lock(mutex);
  EXPECT_FALSE(changed.wait_for(mutex, milliseconds(1), [] { return false; }));
  EXPECT_TRUE(changed.wait_for(mutex, milliseconds(1), [] { return true; }));
  EXPECT_EQ(changed.wait_until(mutex, std::chrono::steady_clock::now()), std::cv_status::timeout);
  EXPECT_FALSE(is_free(mutex));
}

TEST(CondVarTest, ThrowingConditionKeepsLock) {
  Mutex mutex;
  CondVar changed;
  MutexLock lock(mutex);
  EXPECT_THROW(changed.wait(mutex, []() -> bool { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_FALSE(is_free(mutex));
}

}  // namespace
}  // namespace tt
