#include "python/bindings/tensor/function_log.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "client/session/call_log.h"
#include "python/bindings/tensor/object.h"

namespace tt::python {

bool logs_functions = false;

namespace {

struct FunctionCall {
  uint64_t start = 0;  // nanoseconds of CLOCK_MONOTONIC
  uint64_t end = 0;
  uint64_t thread = 0;  // the operating system's number
  uint64_t name = 0;
};
static_assert(sizeof(FunctionCall) == 32);

struct Log {
  std::vector<FunctionCall> calls;  // in the order of their ends
  size_t max_calls = 0;
  std::vector<std::string> names;
  absl::flat_hash_map<std::string, uint32_t> numbers;
};

Log& log() {
  static auto* log = new Log();
  return *log;
}

uint32_t number_of(std::string_view name) {
  const auto next = static_cast<uint32_t>(log().names.size());
  const auto [known, is_new] = log().numbers.try_emplace(std::string(name), next);
  if (is_new) log().names.emplace_back(name);
  return known->second;
}

std::string qualified(PyObject* module, PyObject* qualname) {
  const char *place = PyUnicode_AsUTF8(module), *name = PyUnicode_AsUTF8(qualname);
  if (place && name) return absl::StrCat(place, ".", name);
  PyErr_Clear();
  return "";
}

}  // namespace

LoggedCall::LoggedCall(std::string_view name) : start_(client::CallLog::now()), name_(number_of(name)) {}
LoggedCall::LoggedCall(PyObject* module, PyObject* qualname) : LoggedCall(qualified(module, qualname)) {}

LoggedCall::~LoggedCall() {
  if (!logs_functions || log().calls.size() >= log().max_calls) return;
  log().calls.push_back({start_, client::CallLog::now(), client::CallLog::thread_number(), name_});
}

namespace {

PyObject* start_function_log(PyObject*, PyObject* max_calls) {
  const size_t limit = PyLong_AsSize_t(max_calls);
  if (limit == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
  log().calls.clear();
  log().max_calls = limit;
  logs_functions = true;
  Py_RETURN_NONE;
}

PyObject* stop_function_log(PyObject*, PyObject*) {
  logs_functions = false;
  const std::vector<FunctionCall> calls = std::exchange(log().calls, {});
  Owned names(PyList_New(0));
  for (const std::string& name : log().names) {
    Owned text(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    if (!names || !text || PyList_Append(names.get(), text.get()) < 0) return nullptr;
  }
  return Py_BuildValue("NN",
                       PyBytes_FromStringAndSize(reinterpret_cast<const char*>(calls.data()),
                                                 static_cast<Py_ssize_t>(calls.size() * sizeof(FunctionCall))),
                       names.release());
}

PyMethodDef functions[] = {
    {"start_function_log", start_function_log, METH_O,
     "start_function_log(max_calls): logs the next calls of public functions and methods."},
    {"stop_function_log", stop_function_log, METH_NOARGS,
     "stop_function_log(): the calls in the order of their ends as bytes (uint64 start, end, thread, name; 32 bytes "
     "each), and the names by number."},
    {}};

}  // namespace

bool init_function_log(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace tt::python
