#include <Python.h>

#include "python/bindings/wait.h"

#include <pthread.h>

#include <atomic>

#include "client/connection/interruption.h"
#include "python/bindings/tensor/object.h"

namespace tt::python {
namespace {

// Python runs signal handlers in one thread only; in a forked process that is the thread that called fork().
std::atomic<unsigned long> main_thread{0};

bool is_main_thread() { return PyThread_get_thread_ident() == main_thread.load(std::memory_order_relaxed); }

// Runs the handlers of pending signals. If one raises (Ctrl-C: KeyboardInterrupt), the exception stays set for the
// caller, which unwinds to Python with Interrupted.
bool run_signal_handlers() {
  if (!Py_IsInitialized()) return false;
  HoldGil held;
  return PyErr_CheckSignals() != 0;
}

// Attributed to the innermost line of Python, which is in this package if its function calls the client. A thread of
// the client library, which downloads in the background, has no caller that could receive an exception.
bool show_warning(const char* message) {
  if (!Py_IsInitialized()) return false;
  const bool has_caller = PyGILState_GetThisThreadState() != nullptr;
  HoldGil held;
  bool raised = PyErr_WarnEx(PyExc_UserWarning, message, 1) != 0;
  if (raised && !has_caller) {
    PyErr_WriteUnraisable(nullptr);
    raised = false;
  }
  return raised;
}

void* release_gil() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }
void take_gil(void* state) { restore_gil(static_cast<PyThreadState*>(state)); }

}  // namespace

void init_waits() {
  Owned threading(throw_if_null(PyImport_ImportModule("threading")));
  Owned main(throw_if_null(PyObject_CallMethod(threading.get(), "main_thread", nullptr)));
  Owned ident(throw_if_null(PyObject_GetAttrString(main.get(), "ident")));
  main_thread = PyLong_AsUnsignedLong(ident.get());
  if (PyErr_Occurred()) throw PythonErrorSet();
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
  client::install_wait_hooks({&is_main_thread, &run_signal_handlers, &release_gil, &take_gil, &show_warning});
}

}  // namespace tt::python
