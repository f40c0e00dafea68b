#include "client/session/tensor.h"

#include <new>

#include "client/session/graph.h"
#include "client/session/session.h"

namespace tt::client {
namespace {

// Blocks of one size that this thread freed. If another thread than the allocating one frees a Handle, its block moves
// to the freeing thread's list. A full list returns blocks to the heap. Constant-initialised and never destroyed, so
// that access needs no guard and Handles in static variables may be freed after the thread's other variables.
class FreeList {
 public:
  void* take() {
    Node* node = head_;
    if (!node) return ::operator new(sizeof(Handle));
    head_ = node->next;
    --length_;
    return node;
  }
  void put(void* block) {
    if (length_ >= capacity_ && !begin()) [[unlikely]]
      return ::operator delete(block);
    head_ = new (block) Node{head_};
    ++length_;
  }

 private:
  static constexpr size_t kMaxLength = 4096;
  struct Node {
    Node* next;
  };
  struct ThreadExitCleanup {
    explicit ThreadExitCleanup(FreeList& list) : list(list) {}
    ~ThreadExitCleanup() {
      list.capacity_ = 0;
      list.exited_ = true;
      while (list.head_) ::operator delete(list.take());
    }
    FreeList& list;
  };
  // Registers the cleanup at the first block. Returns whether the list has room.
  [[gnu::noinline]] bool begin() {
    if (exited_ || capacity_ != 0) return false;
    static thread_local ThreadExitCleanup cleanup(*this);
    capacity_ = kMaxLength;
    return true;
  }

  Node* head_ = nullptr;
  size_t length_ = 0;
  size_t capacity_ = 0;  // 0 before the first block and after the thread's end
  bool exited_ = false;
};

thread_local constinit FreeList free_list;

}  // namespace

void* Handle::operator new(size_t) { return free_list.take(); }
void Handle::operator delete(void* block) noexcept { free_list.put(block); }

Handle::Handle(TensorMeta meta, Ref<Session> session, uint64_t id)
    : TensorMeta(std::move(meta)), session(std::move(session)), id(id) {}

Handle::~Handle() {
  if (leaf_node || retains_grad) remove_from_graph(*this);
  if (id != 0) session->release(id);
}

}  // namespace tt::client
