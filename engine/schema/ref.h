// Ref<T>: an intrusive reference-counted pointer; T derives from RefCounted.
//
// The count is atomic: transfer threads release tensors as well as the session's thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tt {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;
  void add_ref() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  uint32_t ref_count() const { return count_.load(std::memory_order_relaxed); }

 private:
  mutable std::atomic<uint32_t> count_{0};
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: null is a value
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->add_ref();
  }
  Ref(const Ref& other) : Ref(other.p_) {}
  Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  template <typename U>
  requires std::is_convertible_v<U*, T*> Ref(const Ref<U>& other) : Ref(static_cast<T*>(other.get())) {}  // NOLINT
  Ref& operator=(Ref other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~Ref() {
    if (p_) p_->drop_ref();
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

template <typename T, typename... A>
Ref<T> make_ref(A&&... args) {
  return Ref<T>(new T(std::forward<A>(args)...));
}

}  // namespace tt
