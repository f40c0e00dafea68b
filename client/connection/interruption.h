// Interruption: how a program's main thread leaves a wait for the engine, as Python's does on Ctrl-C.
//
// The embedding language installs hooks once. Every wait of the client that may be long calls interrupted() at least
// every kInterruptInterval and throws Interrupted where it returns true. Without hooks no thread is interruptible, and
// waits cost what they did.
//
// Hooks may run any code of the language, calls of this library included: call them with no lock held.
#pragma once

#include <chrono>
#include <exception>

namespace tt::client {

inline constexpr std::chrono::milliseconds kInterruptInterval{50};

// Thrown out of an interrupted wait. It is no Error: nothing has failed, and the session goes on. The language knows
// the reason (Python has set its exception).
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "a wait for the engine was interrupted"; }
};

struct WaitHooks {
  // Whether the calling thread can be interrupted. Does not block.
  bool (*interruptible)() = nullptr;
  // Handles what is pending for the calling thread; true where its wait should end. Called where interruptible() only.
  bool (*interrupted)() = nullptr;
  // Around a wait of a caller that may hold the language's lock: begin_wait releases it where the calling thread holds
  // it and returns what end_wait takes.
  void* (*begin_wait)() = nullptr;
  void (*end_wait)(void* state) = nullptr;
};

// Before the first wait; the hooks stay for the life of the process.
void install_wait_hooks(const WaitHooks& hooks);

// Of the calling thread.
bool is_interruptible();
bool interrupted();

// Says when a wait has to ask. Costs nothing on a thread that is not interruptible.
class InterruptTimer {
 public:
  InterruptTimer() : InterruptTimer(is_interruptible()) {}
  // For a wait that has to end by itself.
  static InterruptTimer never() { return InterruptTimer(false); }

  bool interruptible() const { return interruptible_; }
  // The longest single sleep; milliseconds::max() where nothing interrupts it.
  std::chrono::milliseconds patience() const {
    return interruptible_ ? kInterruptInterval : std::chrono::milliseconds::max();
  }
  // Whether the interval has passed since this was last true, or since the first call.
  bool is_due() {
    if (!interruptible_) return false;
    auto now = std::chrono::steady_clock::now();
    if (next_ == std::chrono::steady_clock::time_point()) next_ = now + kInterruptInterval;
    if (now < next_) return false;
    next_ = now + kInterruptInterval;
    return true;
  }
  // Asks, where it is time; throws Interrupted. For waits that hold nothing.
  void check() {
    if (is_due() && interrupted()) throw Interrupted();
  }

 private:
  explicit InterruptTimer(bool interruptible) : interruptible_(interruptible) {}
  bool interruptible_;
  std::chrono::steady_clock::time_point next_;
};

// Lets other threads of the language run for the length of a scope. The destructor waits for the language's lock: hold
// no lock of this library there.
class LanguageWait {
 public:
  LanguageWait();
  ~LanguageWait();
  LanguageWait(const LanguageWait&) = delete;
  LanguageWait& operator=(const LanguageWait&) = delete;

 private:
  void* state_;
};

}  // namespace tt::client
