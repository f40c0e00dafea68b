// GuardedMemory: the memory of simulated devices, inaccessible to the host.
//
// The memory is one address range, readable and writable only while the devices work: the executor of deferred work
// opens it, and it is closed when no work runs. Host code that touches it while it is closed ends the process with
// SIGSEGV, after one line on stderr. An access by another thread while it is open is not detected. One per process;
// requires the runtime's lock.
#pragma once

#include <cstddef>
#include <map>

namespace tt::cuda {

class GuardedMemory {
 public:
  GuardedMemory();
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Reserves addresses without memory. Returns null if none are left.
  char* reserve(size_t bytes);
  void release(char* addresses);
  // Maps memory at reserved addresses. Its contents are unspecified.
  void add(char* at, size_t bytes);
  void remove(char* at, size_t bytes);

  // Opens the memory until the last Opening ends. Requires an Opening.
  void open() {
    if (!is_open_) protect(true);
  }

  // Exists while device memory may be accessed, since opening and closing the memory costs some ten microseconds.
  class Opening {
   public:
    explicit Opening(GuardedMemory& memory) : memory_(memory) { ++memory_.openings_; }
    ~Opening() {
      if (--memory_.openings_ == 0 && memory_.is_open_) memory_.protect(false);
    }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

   private:
    GuardedMemory& memory_;
  };

 private:
  void protect(bool open);

  char* range_;
  std::map<char*, size_t> reserved_, pieces_;
  int openings_ = 0;
  bool is_open_ = false;
};

}  // namespace tt::cuda
