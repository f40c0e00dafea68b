// ThreadCached<T>: a base class that recycles objects' memory on the thread that frees them.
//
// Every operation creates a TensorImpl and a Storage, and a training step frees hundreds of them at once, which exceeds
// the capacity of malloc's thread cache. T must be final and derive from ThreadCached<T>.
#pragma once

#include <cstddef>
#include <new>

namespace tt {

// A thread's free list. Constant-initialised and never destroyed, so that access needs no guard and it outlives the
// thread's other variables.
template <int N>
struct FreeList {
  void* blocks[N + 1];
  int count;
  int capacity;  // 0 before the first block and after the thread's end
  bool exited;
};

template <typename T>
class ThreadCached {
 public:
  static void* operator new(size_t bytes) {
    List& list = list_;
    if (list.count > 0) [[likely]]
      return list.blocks[--list.count];
    return ::operator new(bytes);
  }
  static void operator delete(void* block) {
    List& list = list_;
    if (list.count < list.capacity) [[likely]] {
      list.blocks[list.count++] = block;
    } else {
      free_without_list(block);
    }
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr int kMaxBlocks = 0;  // no block is kept, so that the sanitizer detects a use after free
#else
  static constexpr int kMaxBlocks = 256;
#endif
  using List = FreeList<kMaxBlocks>;
  struct ThreadExitCleanup {
    ~ThreadExitCleanup() {
      list_.capacity = 0;
      list_.exited = true;
      while (list_.count > 0) ::operator delete(list_.blocks[--list_.count]);
    }
  };
  [[gnu::noinline]] static void free_without_list(void* block) {
    if (list_.exited || list_.capacity == kMaxBlocks) return ::operator delete(block);
    static thread_local ThreadExitCleanup cleanup;
    list_.capacity = kMaxBlocks;
    if (kMaxBlocks == 0) return ::operator delete(block);
    list_.blocks[list_.count++] = block;
  }
  static inline thread_local constinit List list_{};
};

}  // namespace tt
