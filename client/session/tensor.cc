#include "client/session/tensor.h"

#include <new>

#include "client/session/graph.h"
#include "client/session/session.h"

namespace tt::client {
namespace {

// Whether this thread's free list has been destroyed. Handles in static variables may be freed later; this flag is
// readable even then.
thread_local bool closed = false;

// Blocks of one size that this thread freed. If another thread than the allocating one frees a Handle, its block moves
// to the freeing thread's list. A full list returns blocks to the heap.
class FreeList {
 public:
  static constexpr size_t kBlock = sizeof(Handle);
  static constexpr size_t kMaxLength = 4096;

  ~FreeList() {
    while (head_) ::operator delete(take());
    closed = true;
  }
  void* take() {
    Node* node = head_;
    if (!node) return ::operator new(kBlock);
    head_ = node->next;
    --length_;
    return node;
  }
  void put(void* block) {
    if (closed || length_ == kMaxLength) return ::operator delete(block);
    head_ = new (block) Node{head_};
    ++length_;
  }

 private:
  struct Node {
    Node* next;
  };
  Node* head_ = nullptr;
  size_t length_ = 0;
};

thread_local FreeList free_list;

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
