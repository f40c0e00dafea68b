// Recycled<T>: objects whose memory is used again by the thread that frees it.
//
// Every operation makes a TensorImpl and a Storage, and a training step frees hundreds at once:
// more than malloc's own thread cache keeps. T is final and derives from it.
#pragma once

#include <cstddef>
#include <new>

namespace tt {

template <typename T>
class Recycled {
 public:
  static void* operator new(size_t bytes) {
    if (kept_.count > 0) [[likely]] return kept_.pieces[--kept_.count];
    return ::operator new(bytes);
  }
  static void operator delete(void* piece) {
    if (kept_.count < kMost) [[likely]] {
      kept_.pieces[kept_.count++] = piece;
    } else {
      ::operator delete(piece);
    }
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr int kMost = 0;  // a use after free is to be seen
#else
  static constexpr int kMost = 256;
#endif
  struct Kept {
    void* pieces[kMost + 1];
    int count = 0;
    ~Kept() {
      while (count > 0) ::operator delete(pieces[--count]);
    }
  };
  static inline thread_local Kept kept_;
};

}  // namespace tt
