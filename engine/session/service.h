// SessionService: per-session state of a layer above the engine, e.g. autograd's tape or the server's uploads.
//
// Owned by the session's Context and found by type. Used by the thread on which the Context is current.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/schema/error.h"
#include "engine/schema/op.h"

namespace tt {

class SessionService {
 public:
  virtual ~SessionService() = default;
  // Estimated host memory in use, not counting tensors' bytes.
  virtual uint64_t host_bytes() const { return 0; }
  // An instruction of the session is not executed, because an argument is poisoned with `error`. Poisoned tensors in
  // `args` are null, and the other arguments are not checked. `site` is the instruction's.
  virtual void skipped(const Op& /*op*/, Args /*args*/, const Error& /*error*/, uint32_t /*site*/) {}
  // Why an image of the session (engine/session/image.h) would lack something of this service now: "it is a member of a
  // process group". Empty if the service has no state, or its state is part of the image. Called between two frames.
  virtual std::string unsaved() const = 0;
};

class SessionServices {
 public:
  // Null if the session has no service of that type.
  template <typename T>
  T* find() const {
    for (const auto& [key, service] : services_) {
      if (key == key_of<T>()) return static_cast<T*>(service.get());
    }
    return nullptr;
  }
  // Creates the service at the first call.
  template <typename T>
  T& get() {
    if (T* found = find<T>()) [[likely]]
      return *found;
    return attach(std::make_unique<T>());
  }
  // Requires that no service of that type is attached.
  template <typename T>
  T& attach(std::unique_ptr<T> service) {
    T& attached = *service;
    services_.emplace_back(key_of<T>(), std::move(service));
    return attached;
  }
  void skipped(const Op& op, Args args, const Error& error, uint32_t site) {
    for (const auto& [key, service] : services_) service->skipped(op, args, error, site);
  }
  // The first service's reason, or "".
  std::string unsaved() const {
    for (const auto& [key, service] : services_) {
      if (std::string reason = service->unsaved(); !reason.empty()) return reason;
    }
    return "";
  }
  uint64_t host_bytes() const {
    uint64_t bytes = 0;
    for (const auto& [key, service] : services_) bytes += service->host_bytes();
    return bytes;
  }
  // Destroys the services, the last attached first.
  void clear() {
    while (!services_.empty()) services_.pop_back();
  }

 private:
  // Returns an address that is unique for the type.
  template <typename T>
  static const void* key_of() {
    static const char key = 0;
    return &key;
  }

  absl::InlinedVector<std::pair<const void*, std::unique_ptr<SessionService>>, 2> services_;
};

}  // namespace tt
