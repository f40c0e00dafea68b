// GuardedMemory: the memory of simulated devices, which the host cannot touch.
//
// It lies in one range of addresses that nobody may read or write but while the devices work: whoever executes what was
// put off opens it, and it is closed once nobody does. Host code that touches it then ends the process with SIGSEGV,
// after one line on stderr that says so. While it is open another thread's touch goes unseen. Used under the runtime's
// lock, one a process.
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

  // Addresses, of which none is memory yet. Null: none left.
  char* take(size_t bytes);
  void give_back(char* addresses);
  // What of them is memory. It holds nothing that anybody may rely on.
  void add(char* at, size_t bytes);
  void remove(char* at, size_t bytes);

  // Until the last Opening there is ends. Requires one.
  void open() {
    if (!is_open_) protect(true);
  }

  // Lasts as long as work is done that may want the memory: opening and closing it costs some ten microseconds.
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
  std::map<char*, size_t> taken_, pieces_;
  int openings_ = 0;
  bool is_open_ = false;
};

}  // namespace tt::cuda
