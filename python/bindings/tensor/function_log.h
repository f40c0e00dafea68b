// Function log: when the program called public functions and methods, for a profiler. One branch per call without one.
//
// All functions require the GIL. Calls of all threads are logged; those that are in progress when the log ends are not.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string_view>

namespace tt::python {

extern bool logs_functions;

// Logs a call, from construction to destruction. Construct it only if `logs_functions`.
class LoggedCall {
 public:
  explicit LoggedCall(std::string_view name);
  // A function written in Python: its public module and its name there.
  LoggedCall(PyObject* module, PyObject* qualname);
  ~LoggedCall();
  LoggedCall(const LoggedCall&) = delete;
  LoggedCall& operator=(const LoggedCall&) = delete;

 private:
  const uint64_t start_;
  const uint32_t name_;  // its number
};

// Adds _C.start_function_log(max_calls) and _C.stop_function_log() to the module.
bool init_function_log(PyObject* module);

}  // namespace tt::python
