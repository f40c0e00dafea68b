// The GIL, in threads that may outlive the interpreter.
//
// While the interpreter ends, Python ends every other thread inside the call with which it takes the GIL, by
// pthread_exit. That unwinds the frames of the thread, and the process ends with "terminate called without an active
// exception" at the first C++ function that throws nothing. Here such a thread sleeps until the process has ended
// instead, as all threads do from Python 3.14 on. It holds no lock of this library, because code that takes the GIL
// must not hold one (client/connection/interruption.h).
#pragma once

#include <Python.h>

namespace tt::python {

// Sleeps until the process has ended. For a thread that Python ends, in a handler of abi::__forced_unwind.
[[noreturn]] void sleep_until_exit() noexcept;

// PyEval_RestoreThread(). Does not return while the interpreter ends, except in the thread that ends it.
void restore_gil(PyThreadState* state) noexcept;

// Releases the GIL during its lifetime, so that other Python threads run.
class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ~ReleaseGil() { restore_gil(state_); }
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

// Holds the GIL during its lifetime, in any thread. The constructor does not return while the interpreter ends, except
// in the thread that ends it. Requires Py_IsInitialized().
class HoldGil {
 public:
  HoldGil() noexcept;
  ~HoldGil() { PyGILState_Release(state_); }
  HoldGil(const HoldGil&) = delete;
  HoldGil& operator=(const HoldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace tt::python
