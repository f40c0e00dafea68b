// Simulates groups of threads with fibers: each thread has its own stack.
#include "kernels/cuda/launch/simulated_group.h"

#include <cxxabi.h>

#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda/simulated/random_decisions.h"
#include "tests/cuda/simulated/runtime.h"

namespace tt::cuda {
namespace {

using boost::context::fiber;

std::string describe(const std::type_info& type) {
  int status = 0;
  char* name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string text = status == 0 ? name : type.name();
  std::free(name);
  return text;
}

// "syncs at kernels/cuda/linalg/lu.cu:30".
std::string describe(const Wait& wait) {
  if (wait.kind == Wait::kEnd) return "has ended";
  absl::string_view file = wait.place.file_name();
  if (const size_t at = file.rfind("kernels/cuda/"); at != file.npos) file.remove_prefix(at);
  return absl::StrCat(wait.kind == Wait::kSync ? "syncs" : "reduces", " at ", file, ":", wait.place.line());
}

bool same(const Wait& a, const Wait& b) {
  return a.kind == b.kind && (a.value == b.value || (a.value && b.value && *a.value == *b.value)) &&
         a.place.line() == b.place.line() && a.place.column() == b.place.column() &&
         (a.place.file_name() == b.place.file_name() || std::strcmp(a.place.file_name(), b.place.file_name()) == 0);
}

// Stacks, allocated once and reused by later launches.
class Stacks {
 public:
  boost::context::stack_context allocate() {
    if (idle_.empty()) return maker_.allocate();
    const boost::context::stack_context stack = idle_.back();
    idle_.pop_back();
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) noexcept { idle_.push_back(stack); }

 private:
  static constexpr size_t kBytes = 256 * 1024;
  boost::context::protected_fixedsize_stack maker_{kBytes};
  std::vector<boost::context::stack_context> idle_;
};

// Stack allocator of Boost.Context: uses a reusable stack.
struct Stack {
  Stacks* stacks;
  boost::context::stack_context allocate() { return stacks->allocate(); }
  void deallocate(boost::context::stack_context& stack) noexcept { stacks->deallocate(stack); }
};

Stacks& stacks() {
  static auto* const kept = new Stacks;  // never destroyed, since fibers may run during process exit
  return *kept;
}

class Fibers;
Fibers* running = nullptr;

class Fibers final : public SimulatedGroup {
 public:
  Fibers(int size, Body body) : size_(size), body_(body) {
    for (int rank = 0; rank < size_; ++rank) {
      threads_[rank].fiber = fiber(std::allocator_arg, Stack{&stacks()}, [this, rank](fiber&& scheduler) {
        Thread& self = threads_[rank];
        self.scheduler = std::move(scheduler);
        while (index_ >= 0) {
          body_(*this, index_, rank);
          wait(rank, {Wait::kEnd, nullptr, {}});
        }
        return std::move(self.scheduler);
      });
    }
  }
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  ~Fibers() { running = nullptr; }  // unfinished threads are unwound

  int size() const override { return size_; }
  void wait(int rank, const Wait& wait) override {
    threads_[rank].wait = wait;
    suspend(rank);
  }
  void yield() { suspend(now_); }

  // Returns an error message; empty if there is no error.
  std::string run(int64_t index) {
    running = this;
    index_ = index;
    do {
      run_all();
      for (int rank = 1; rank < size_; ++rank) {
        if (!same(threads_[rank].wait, threads_[0].wait)) return describe_waits();
      }
      ++turn_;
    } while (threads_[0].wait.kind != Wait::kEnd);
    return {};
  }
  void end() {
    index_ = -1;
    run_all();
  }

 protected:
  // Double-buffered: a thread may enter the next exchange while others still read the values of this one.
  const void* exchange(int rank, const void* value, size_t bytes, const Wait& wait) override {
    std::byte* const values = values_[turn_ % 2];
    std::memcpy(values + rank * bytes, value, bytes);
    this->wait(rank, wait);
    return values;
  }

 private:
  struct Thread {
    boost::context::fiber fiber, scheduler;  // `scheduler` is valid only while the thread runs
    Wait wait;
  };

  void suspend(int rank) {
    Thread& self = threads_[rank];
    self.scheduler = std::move(self.scheduler).resume();
  }
  // Runs until all threads wait.
  void run_all() {
    std::array<int, kMaxThreads> ready;
    for (int rank = 0; rank < size_; ++rank) ready[rank] = rank;
    for (int left = size_; left > 0;) {
      int& place = ready[draw(left)];
      now_ = place;
      Thread& thread = threads_[now_];
      thread.wait = {};
      thread.fiber = std::move(thread.fiber).resume();
      if (thread.fiber && thread.wait.kind == Wait::kNone) continue;  // it yielded
      place = ready[--left];
    }
  }
  std::string describe_waits() const {
    std::string text;
    for (int rank = 0; rank < size_; ++rank) {
      absl::StrAppend(&text, rank ? ", " : "", "thread ", rank, " ", describe(threads_[rank].wait));
    }
    return text;
  }

  const int size_;
  Body body_;
  int64_t index_ = -1;  // index of the group; negative: the threads must exit
  int now_ = 0;
  int64_t turn_ = 0;  // number of completed barriers
  std::array<Thread, kMaxThreads> threads_;
  alignas(16) std::byte values_[2][kMaxThreads * kValueBytes];
};

// A single thread, on the host's own stack.
class SingleThread final : public SimulatedGroup {
 public:
  int size() const override { return 1; }
  void wait(int, const Wait&) override {}

 protected:
  const void* exchange(int, const void* value, size_t, const Wait&) override { return value; }
};

void run_single_threads(int64_t groups, SimulatedGroup::Body body) {
  Shuffle order(groups);
  SingleThread group;
  for (int64_t i = 0; i < groups; ++i) body(group, order.next(), 0);
}

}  // namespace

void SimulatedGroup::run(int64_t groups, const std::type_info& kernel, Body body) {
  if (kMaxThreads == 1) return run_single_threads(groups, body);
  const int size = kWarp * static_cast<int>(1 + draw(kMaxThreads / kWarp));
  Shuffle order(groups);
  Fibers group(size, body);
  for (int64_t i = 0; i < groups; ++i) {
    const int64_t index = order.next();
    const std::string wrong = group.run(index);
    if (wrong.empty()) continue;
    return simulated_runtime().fail_work(absl::StrCat("threads of group ", index,
                                                      " do not wait for each other: ", wrong, " (seed ",
                                                      simulated_seed(), ", in ", describe(kernel), ")"));
  }
  group.end();
}

void yield_randomly() {
  if (running && draw(4) == 0) running->yield();
}

}  // namespace tt::cuda
