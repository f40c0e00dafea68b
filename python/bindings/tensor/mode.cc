#include <Python.h>

#include "python/bindings/tensor/mode.h"

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/open_session.h"

namespace tt::python {

Mode& Mode::current() {
  static thread_local constinit Mode* known = nullptr;  // needs no guard, unlike `mode`
  if (known != nullptr) [[likely]]
    return *known;
  static thread_local Mode mode;
  return *(known = &mode);
}

namespace {

Ref<client::Session>& session_slot() {
  static auto* slot = new Ref<client::Session>();  // never destroyed: outlives the interpreter
  return *slot;
}

// Returns the folder of a module's file, such as "/usr/lib/python3.11/"; "/" if the module has no file.
std::string folder_of(const char* name) {
  std::string folder;
  PyObject *type, *value, *trace;  // may be called while an exception is set
  PyErr_Fetch(&type, &value, &trace);
  if (PyObject* module = PyImport_ImportModule(name)) {
    Owned owned(module), file(PyModule_GetFilenameObject(module));
    const char* text = file ? PyUnicode_AsUTF8(file.get()) : nullptr;
    if (text) folder = text;
  }
  PyErr_Restore(type, value, trace);
  return folder.substr(0, folder.rfind('/') + 1);
}

// Origin of a stack frame's code. A wait is attributed to the innermost line of the user's code. Frames of Python's
// standard library (contextlib, functools, threading) may be between that line and the frames of this package.
enum class CodeOrigin : uint8_t { kUser, kLibrary, kTeletensor };

CodeOrigin origin_of_file(std::string_view file) {
  static const std::string ours = folder_of("teletensor"), library = folder_of("os");
  if (ours.size() > 1 && file.starts_with(ours)) return CodeOrigin::kTeletensor;
  if (file.starts_with("<compiled ")) return CodeOrigin::kTeletensor;  // made by torch.compile
  if (file.starts_with("<frozen ")) return CodeOrigin::kLibrary;
  if (library.size() <= 1 || !file.starts_with(library)) return CodeOrigin::kUser;
  file.remove_prefix(library.size());
  return file.starts_with("site-packages/") || file.starts_with("dist-packages/") ? CodeOrigin::kUser
                                                                                  : CodeOrigin::kLibrary;
}

CodeOrigin origin_of(PyCodeObject* code) {
  // Cache of origins. Grows with the program's code, not with its calls. Holds references to the code objects, so that
  // an address is never reused for another code object.
  static auto* known = new absl::flat_hash_map<PyCodeObject*, CodeOrigin>();
  if (auto found = known->find(code); found != known->end()) return found->second;
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  CodeOrigin origin = origin_of_file(file ? file : "");  // may import a module and re-enter this function
  if (known->try_emplace(code, origin).second) Py_INCREF(code);
  return origin;
}

// Returns the line number of a bytecode instruction. An instruction added by the compiler (for example the exit of a
// `with`) may have no line; then returns the last line before it.
uint32_t line_of(PyCodeObject* code, int instruction) {
  int line = PyCode_Addr2Line(code, instruction);
  for (; line < 0 && instruction > 0; instruction -= 2) line = PyCode_Addr2Line(code, instruction);
  return static_cast<uint32_t>(line < 0 ? code->co_firstlineno : line);
}

}  // namespace

client::Session& current_session() {
  Ref<client::Session>& slot = session_slot();
  if (!slot) {
    Owned module(throw_if_null(PyImport_ImportModule("teletensor._connection")));
    Owned result(throw_if_null(PyObject_CallMethod(module.get(), "connection", nullptr)));
    if (!slot) fail(ErrorKind::kConnection, "[connect] expected connection() to open a session, got none");
  }
  return *slot;
}

const client::Session* open_session() { return session_slot().get(); }

void learn_device_types() {
  if (session_slot()) return;
  try {
    current_session();
  } catch (const PythonErrorSet&) {
    PyErr_Clear();
  } catch (const Error&) {
  }
}

void set_current_session(Ref<client::Session> session) { session_slot() = std::move(session); }

Device checked_device(Device device, client::Session* session) {
  if (!is_accelerator(device.type)) return device;
  int count = 0;
  for (const auto& entry : (session ? *session : current_session()).engine().devices()) {
    const Device there = decode_device(entry.device());
    if (there == device) return device;
    count += there.type == device.type;
  }
  if (is_plugin(device.type)) {
    check(count > 0, "the engine has no devices of type ", device_type_name(device.type), ", got ", device,
          ". `teletensor status` lists an engine's devices");
    fail(ErrorKind::kRuntime, "invalid device ordinal: expected an index below ", count,
         ", the number of the engine's ", device_type_name(device.type), " devices, got ", device);
  }
  check(count > 0, "No CUDA GPUs are available: expected cpu, the only device of the engine, got ", device,
        ". `teletensor status` lists an engine's devices");
  fail(ErrorKind::kRuntime, "CUDA error: invalid device ordinal: expected an index below ", count,
       ", the number of the engine's GPUs, got ", device);
}

client::Tensor upload(client::Session& session, absl::Span<const char> bytes, DType dtype, SizesView sizes,
                      Device device) {
  client::Tensor result = session.upload(bytes, dtype, sizes, device, current_site(session));
  result->is_inference = Mode::current().inference;
  return result;
}

uint32_t current_site(client::Session& session) {
  struct Cached {
    uint64_t session = 0;  // serial number, because a later session may reuse the address
    PyCodeObject* code = nullptr;
    int instruction = -1;
    uint32_t site = 0;
  };
  // Cache of site numbers, because a line usually makes several calls in a row or repeats one call.
  static thread_local Cached cache[64];

  auto site_of = [&](PyCodeObject* code, int instruction) {
    Cached& entry = cache[(reinterpret_cast<uintptr_t>(code) / 64 + static_cast<uintptr_t>(instruction)) % 64];
    if (entry.session != session.serial() || entry.code != code || entry.instruction != instruction) {
      const char* file = PyUnicode_AsUTF8(code->co_filename);
      const char* function = PyUnicode_AsUTF8(code->co_qualname);
      if (!file || !function) PyErr_Clear();  // the name is not UTF-8
      entry = {session.serial(), code, instruction,
               session.site(file ? file : "", line_of(code, instruction), function ? function : "")};
    }
    return entry.site;
  };
  // Fallback if no frame is the user's (a thread that runs a method of this package): the innermost library line.
  PyCodeObject* library = nullptr;
  int library_instruction = 0;

  PyThreadState* thread = PyThreadState_Get();
  PyFrameObject* frame = PyThreadState_GetFrame(thread);  // new reference, created once per frame
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_DECREF(code);  // the frame keeps a reference
    const CodeOrigin origin = origin_of(code);
    if (origin == CodeOrigin::kUser) {
      const int instruction = PyFrame_GetLasti(frame);
      Py_DECREF(frame);
      return site_of(code, instruction);
    }
    if (origin == CodeOrigin::kLibrary && !library) {
      library = code;
      library_instruction = PyFrame_GetLasti(frame);
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return library ? site_of(library, library_instruction) : 0;
}

}  // namespace tt::python
