// SessionService: state that a floor above the engine keeps per session: autograd's tape, the server's uploads.
//
// A session's Context owns its services, each found by its type. Used by the thread that the Context is current on.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace tt {

class SessionService {
 public:
  virtual ~SessionService() = default;
  // Host memory that it takes beside tensors' bytes, about.
  virtual uint64_t host_bytes() const { return 0; }
};

class SessionServices {
 public:
  // Null where the session has none of that type.
  template <typename T>
  T* find() const {
    for (const auto& [key, service] : services_) {
      if (key == key_of<T>()) return static_cast<T*>(service.get());
    }
    return nullptr;
  }
  // Made at the first call.
  template <typename T>
  T& get() {
    if (T* found = find<T>()) [[likely]]
      return *found;
    return attach(std::make_unique<T>());
  }
  // Requires that there is none of that type yet.
  template <typename T>
  T& attach(std::unique_ptr<T> service) {
    T& attached = *service;
    services_.emplace_back(key_of<T>(), std::move(service));
    return attached;
  }
  uint64_t host_bytes() const {
    uint64_t bytes = 0;
    for (const auto& [key, service] : services_) bytes += service->host_bytes();
    return bytes;
  }
  // Ends them, the last attached first.
  void clear() {
    while (!services_.empty()) services_.pop_back();
  }

 private:
  // An address per type.
  template <typename T>
  static const void* key_of() {
    static const char key = 0;
    return &key;
  }

  absl::InlinedVector<std::pair<const void*, std::unique_ptr<SessionService>>, 2> services_;
};

}  // namespace tt
