// Helpers to build frames in the server's tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schema/dtype.h"
#include "engine/schema/op.h"
#include "proto/wire.h"

namespace tt::server::testing {

// One instruction under construction; must not outlive its frame.
class Instruction {
 public:
  Instruction(v1::Frame* frame, uint32_t op) : wire_(frame->add_instructions()) { wire_->set_op(op); }
  Instruction(v1::Frame* frame, std::string_view op) : Instruction(frame, find_op(op)->id) {}

  Instruction& none() {
    return add([](auto* arg) { arg->set_none(true); });
  }
  Instruction& handle(uint64_t h) {
    return add([&](auto* arg) { arg->set_handle(h); });
  }
  Instruction& integer(int64_t v) {
    return add([&](auto* arg) { arg->set_integer(v); });
  }
  Instruction& boolean(bool v) {
    return add([&](auto* arg) { arg->set_boolean(v); });
  }
  Instruction& real(double v) {
    return add([&](auto* arg) { arg->set_real(v); });
  }
  Instruction& bytes(std::string v) {
    return add([&](auto* arg) { arg->set_characters(std::move(v)); });
  }
  Instruction& handles(const std::vector<uint64_t>& list) {
    return add([&](auto* arg) { arg->mutable_handles()->mutable_values()->Add(list.begin(), list.end()); });
  }
  Instruction& integers(const std::vector<int64_t>& list) {
    return add([&](auto* arg) { arg->mutable_integers()->mutable_values()->Add(list.begin(), list.end()); });
  }
  Instruction& result(uint64_t first, uint32_t count = 0) {
    wire_->set_result(first);
    wire_->set_result_count(count);
    return *this;
  }
  Instruction& into(uint64_t h) { return wire_->add_into(h), *this; }
  Instruction& release(uint64_t h) { return wire_->add_release(h), *this; }
  Instruction& default_dtype(DType t) { return wire_->set_default_dtype(static_cast<uint32_t>(t)), *this; }
  Instruction& site(uint32_t id) { return wire_->set_site(id), *this; }

 private:
  template <typename Set>
  Instruction& add(Set&& set) {
    set(wire_->add_args());
    return *this;
  }
  v1::Instruction* wire_;
};

inline std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
inline std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// A float32 tensor on the CPU.
inline Instruction literal(v1::Frame* frame, uint64_t name, const std::vector<int64_t>& sizes,
                           const std::vector<float>& values) {
  return Instruction(frame, "literal")
      .bytes(bytes_of(values))
      .integers(sizes)
      .integer(static_cast<int64_t>(DType::kFloat32))
      .integer(0)
      .result(name);
}
inline Instruction uploaded(v1::Frame* frame, uint64_t name, uint64_t transfer, const std::vector<int64_t>& sizes,
                            Device device = {}) {
  return Instruction(frame, "uploaded")
      .integer(static_cast<int64_t>(transfer))
      .integers(sizes)
      .integer(static_cast<int64_t>(DType::kFloat32))
      .integer(device.encode())
      .result(name);
}
inline Instruction add(v1::Frame* frame, uint64_t name, uint64_t a, uint64_t b) {
  return Instruction(frame, "add").handle(a).handle(b).result(name);
}
inline void read(v1::Frame* frame, uint64_t request, uint64_t handle) {
  v1::Read* read = frame->add_reads();
  read->set_request(request);
  read->set_handle(handle);
}

}  // namespace tt::server::testing
