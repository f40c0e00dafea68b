// Interruption: ends waits for the engine in a program's main thread, as Python does on Ctrl-C.
//
// The embedding language installs hooks once. Every wait of the client that may be long calls interrupted() at least
// every kInterruptInterval and throws Interrupted if interrupted() returns true. Without hooks no thread is
// interruptible, and waits have no extra cost.
//
// Hooks may run any code of the language, including calls into this library: call them without holding a lock.
#pragma once

#include <chrono>
#include <exception>
#include <string>

namespace tt::client {

inline constexpr std::chrono::milliseconds kInterruptInterval{50};

// Thrown by an interrupted wait. Not an Error: nothing has failed, and the session continues. The language records the
// reason (Python has set its exception).
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "a wait for the engine was interrupted"; }
};

struct WaitHooks {
  // Whether the calling thread can be interrupted. Does not block.
  bool (*interruptible)() = nullptr;
  // Handles pending interrupts of the calling thread. Returns true if the wait must end. Called only if
  // interruptible().
  bool (*interrupted)() = nullptr;
  // Called around a wait whose caller may hold the language's lock. begin_wait releases the lock if the calling thread
  // holds it, and returns a value that is passed to end_wait.
  void* (*begin_wait)() = nullptr;
  void (*end_wait)(void* state) = nullptr;
  // Shows a warning of the language. Returns true if the language turned it into an exception.
  bool (*warn)(const char* message) = nullptr;
};

// Installs the hooks for the life of the process. Call before the first wait.
void install_wait_hooks(const WaitHooks& hooks);

// Calls the installed hooks for the calling thread.
bool is_interruptible();
bool interrupted();
bool warn(const std::string& message);

// Decides when a wait checks for interrupts. Costs nothing on a thread that is not interruptible.
class InterruptTimer {
 public:
  InterruptTimer() : InterruptTimer(is_interruptible()) {}
  // Returns a timer for a wait that must not be interrupted.
  static InterruptTimer never() { return InterruptTimer(false); }

  bool interruptible() const { return interruptible_; }
  // Maximum duration of one sleep; milliseconds::max() if the thread is not interruptible.
  std::chrono::milliseconds max_sleep() const {
    return interruptible_ ? kInterruptInterval : std::chrono::milliseconds::max();
  }
  // Whether the interval has passed since is_due() last returned true, or since its first call.
  bool is_due() {
    if (!interruptible_) return false;
    auto now = std::chrono::steady_clock::now();
    if (next_ == std::chrono::steady_clock::time_point()) next_ = now + kInterruptInterval;
    if (now < next_) return false;
    next_ = now + kInterruptInterval;
    return true;
  }
  // Checks for an interrupt if the interval has passed; throws Interrupted. For waits that hold no lock.
  void check() {
    if (is_due() && interrupted()) throw Interrupted();
  }

 private:
  explicit InterruptTimer(bool interruptible) : interruptible_(interruptible) {}
  bool interruptible_;
  std::chrono::steady_clock::time_point next_;
};

// Lets other threads of the language run for the duration of a scope. The destructor waits for the language's lock:
// hold no lock of this library when it runs.
class ReleaseInterpreterLock {
 public:
  ReleaseInterpreterLock();
  ~ReleaseInterpreterLock();
  ReleaseInterpreterLock(const ReleaseInterpreterLock&) = delete;
  ReleaseInterpreterLock& operator=(const ReleaseInterpreterLock&) = delete;

 private:
  void* state_;
};

}  // namespace tt::client
