#include <Python.h>

#include "python/bindings/mode.h"

#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "python/bindings/object.h"

namespace tt::python {

Mode& Mode::current() {
  static thread_local Mode mode;
  return mode;
}

namespace {

Ref<client::Session>& session_slot() {
  static auto* slot = new Ref<client::Session>();  // outlives the interpreter's teardown
  return *slot;
}

// A code object is ours when its file lies in this package's folder.
bool is_ours(PyCodeObject* code) {
  // Grows with the program's code, not with its calls; holds a reference so that an address is
  // never another code object's.
  static auto* known = new absl::flat_hash_map<PyCodeObject*, bool>();
  auto [it, inserted] = known->try_emplace(code, false);
  if (inserted) {
    Py_INCREF(code);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (!file) PyErr_Clear();
    it->second = file && std::strstr(file, "/teletensor/") != nullptr && std::strstr(file, "/tests/") == nullptr;
  }
  return it->second;
}

}  // namespace

client::Session& current_session() {
  Ref<client::Session>& slot = session_slot();
  if (!slot) {
    Owned module(must(PyImport_ImportModule("teletensor._connection")));
    Owned result(must(PyObject_CallMethod(module.get(), "connect", nullptr)));
    if (!slot) fail(ErrorKind::kConnection, "[connect] no engine");
  }
  return *slot;
}

void set_current_session(Ref<client::Session> session) { session_slot() = std::move(session); }

Device present_device(Device device, client::Session* session) {
  if (device.type != DeviceType::kCUDA) return device;
  int count = 0;
  for (const auto& entry : (session ? *session : current_session()).engine().devices()) {
    const Device there = decode_device(entry.device());
    if (there == device) return device;
    count += there.type == DeviceType::kCUDA;
  }
  check(count > 0, "No CUDA GPUs are available: the engine has none, so tensors stay on its CPU, got ", device,
        ". `teletensor status` lists an engine's devices");
  fail(ErrorKind::kRuntime, "CUDA error: invalid device ordinal, the engine has ", count, " GPUs, got ", device);
}

uint32_t current_site(client::Session& session) {
  struct Cached {
    client::Session* session = nullptr;
    PyCodeObject* code = nullptr;
    int instruction = -1;
    uint32_t site = 0;
  };
  // One line of the user's is usually many calls in a row, or one call many times.
  static thread_local Cached cache[64];

  PyThreadState* thread = PyThreadState_Get();
  PyFrameObject* frame = PyThreadState_GetFrame(thread);  // new reference, made once a frame
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(code);  // the frame holds it
    if (!is_ours(code)) {
      int instruction = PyFrame_GetLasti(frame);
      Cached& entry = cache[(reinterpret_cast<uintptr_t>(code) / 64 + static_cast<uintptr_t>(instruction)) % 64];
      if (entry.session != &session || entry.code != code || entry.instruction != instruction) {
        const char* file = PyUnicode_AsUTF8(code->co_filename);
        const char* function = PyUnicode_AsUTF8(code->co_qualname);
        if (!file || !function) PyErr_Clear();  // a name that is not UTF-8
        int line = PyCode_Addr2Line(code, instruction);
        entry = {&session, code, instruction,
                 session.site(file ? file : "", static_cast<uint32_t>(line), function ? function : "")};
      }
      Py_DECREF(frame);
      return entry.site;
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return 0;
}

}  // namespace tt::python
