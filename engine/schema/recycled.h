// Recycled<T>: a base class that recycles objects' memory on the thread that frees them.
//
// Every operation creates a TensorImpl and a Storage, and a training step frees hundreds at once: more than malloc's
// thread cache holds. T must be final and derive from Recycled<T>.
#pragma once

#include <cstddef>
#include <new>

namespace tt {

// A thread's free list. Constant-initialised and never destroyed, so that access needs no guard and it outlives the
// thread's other variables.
template <int N>
struct KeptPieces {
  void* pieces[N + 1];
  int count;
  int most;  // 0 before the first piece and after the thread's end
  bool ended;
};

template <typename T>
class Recycled {
 public:
  static void* operator new(size_t bytes) {
    Kept& kept = kept_;
    if (kept.count > 0) [[likely]]
      return kept.pieces[--kept.count];
    return ::operator new(bytes);
  }
  static void operator delete(void* piece) {
    Kept& kept = kept_;
    if (kept.count < kept.most) [[likely]] {
      kept.pieces[kept.count++] = piece;
    } else {
      put_aside(piece);
    }
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr int kMost = 0;  // so that the sanitizer detects a use after free
#else
  static constexpr int kMost = 256;
#endif
  using Kept = KeptPieces<kMost>;
  struct Sweeper {
    ~Sweeper() {
      kept_.most = 0;
      kept_.ended = true;
      while (kept_.count > 0) ::operator delete(kept_.pieces[--kept_.count]);
    }
  };
  [[gnu::noinline]] static void put_aside(void* piece) {
    if (kept_.ended || kept_.most == kMost) return ::operator delete(piece);
    static thread_local Sweeper sweeper;
    kept_.most = kMost;
    if (kMost == 0) return ::operator delete(piece);
    kept_.pieces[kept_.count++] = piece;
  }
  static inline thread_local constinit Kept kept_{};
};

}  // namespace tt
