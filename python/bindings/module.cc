// teletensor._C: the Python module implemented in C++.
#include <Python.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "base/user_folder.h"
#include "client/connect.h"
#include "client/connection/interruption.h"
#include "client/session/call_log.h"
#include "client/session/session.h"
#include "client/session/thread_generator.h"
#include "client/session/wait_policy.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/admin.h"
#include "python/bindings/autocast.h"
#include "python/bindings/autograd/autograd.h"
#include "python/bindings/connection.h"
#include "python/bindings/custom_operators.h"
#include "python/bindings/file_states.h"
#include "python/bindings/frame_cache.h"
#include "python/bindings/operator_table.h"
#include "python/bindings/overridable.h"
#include "python/bindings/program.h"
#include "python/bindings/published.h"
#include "python/bindings/serving.h"
#include "python/bindings/size_facts.h"
#include "python/bindings/store.h"
#include "python/bindings/tensor/convert.h"
#include "python/bindings/tensor/errors.h"
#include "python/bindings/tensor/function_log.h"
#include "python/bindings/tensor/gil.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/operators.h"
#include "python/bindings/tensor/parse.h"
#include "python/bindings/tensor/read.h"
#include "python/bindings/tensor/symbolic_int.h"
#include "python/bindings/tensor/torch_dispatch.h"
#include "python/bindings/tensor/torch_function.h"
#include "python/bindings/tensor/types.h"
#include "python/bindings/wait.h"

namespace py = pybind11;

namespace tt::python {
namespace {

py::dict counters(const Connection& c) {
  client::Session::Counters n = c.session().counters();
  py::dict d;
  d["instructions"] = n.instructions;
  d["frames"] = n.frames;
  d["bytes_sent"] = n.bytes_sent;
  d["waits"] = n.waits;
  d["seconds_waited"] = n.seconds_waited;
  d["seconds_blocked"] = n.seconds_blocked;
  d["round_trip"] = n.round_trip;
  d["frames_in_flight"] = n.frames_in_flight;
  d["max_frames_in_flight"] = n.max_frames_in_flight;
  d["upload_bytes_in_flight"] = n.upload_bytes_in_flight;
  d["upload_bytes"] = n.transfers.upload_bytes;
  d["upload_compressed_bytes"] = n.transfers.upload_compressed_bytes;
  d["upload_reused_bytes"] = n.transfers.upload_reused_bytes;
  d["upload_rate"] = n.transfers.upload_rate;
  d["download_bytes"] = n.transfers.download_bytes;
  d["download_compressed_bytes"] = n.transfers.download_compressed_bytes;
  d["download_rate"] = n.transfers.download_rate;
  return d;
}

const char* name_of(client::WaitKind kind) {
  switch (kind) {
    case client::WaitKind::kRead: return "read";
    case client::WaitKind::kUpload: return "upload";
    case client::WaitKind::kWindow: return "window";
  }
  return "";
}

py::list wait_report(const Connection& c) {
  py::list rows;
  for (const client::Session::Wait& w : c.session().wait_report()) {
    rows.append(py::make_tuple(w.where, name_of(w.kind), w.count, w.seconds));
  }
  return rows;
}

py::dict engine_info(const Connection& c) {
  const v1::HelloReply& hello = c.session().engine();
  py::dict d;
  d["version"] = hello.engine_version();
  d["session"] = hello.session_id();
  d["lease_seconds"] = hello.lease_seconds();
  py::dict limits;
  limits["max_frame_bytes"] = hello.limits().max_frame_bytes();
  limits["max_inline_bytes"] = hello.limits().max_inline_bytes();
  limits["max_handles"] = hello.limits().max_handles();
  d["limits"] = limits;
  py::list devices;
  for (const auto& device : hello.devices()) {
    py::dict entry;
    entry["device"] = to_string(decode_device(device.device()));
    entry["name"] = device.name();
    entry["total_memory"] = device.total_memory();
    entry["compute_capability"] = device.compute_capability();
    entry["driver"] = device.driver();
    devices.append(entry);
  }
  d["devices"] = devices;
  return d;
}

py::tuple stop_call_log(const Connection& connection) {
  std::vector<client::IssuedCall> calls = connection.session().call_log().stop();
  const auto start = std::find_if(calls.begin(), calls.end(),
                                  [](const client::IssuedCall& call) { return call.op == op_id::kProfilerStart; });
  calls.erase(calls.begin(), start == calls.end() ? start : start + 1);
  static_assert(sizeof(client::IssuedCall) == 32);
  py::dict sites;
  for (const client::IssuedCall& call : calls) {
    const py::int_ number(call.site);
    if (!sites.contains(number)) sites[number] = connection.session().site_name(call.site);
  }
  const std::vector<client::SentFrame> frames = connection.session().stop_frame_log();
  static_assert(sizeof(client::SentFrame) == 32);
  return py::make_tuple(py::bytes(reinterpret_cast<const char*>(calls.data()), calls.size() * sizeof(calls[0])), sites,
                        py::bytes(reinterpret_cast<const char*>(frames.data()), frames.size() * sizeof(frames[0])));
}

// The destructor of a capsule with a session. Errors of the connection have nobody to be reported to.
void close_last(void* session) {
  const std::unique_ptr<Ref<client::Session>> last(static_cast<Ref<client::Session>*>(session));
  set_current_session(Ref<client::Session>());
  try {
    ReleaseGil released;
    (*last)->close();
  } catch (const std::exception&) {
  }
}

void bind_connection(py::module_& m) {
  py::class_<PendingRead> read(m, "PendingRead", py::buffer_protocol(), "The bytes of a tensor as it was at the call.");
  py::class_<PendingList, PendingRead> list(
      m, "PendingList", "The lists that Tensor.tolist_async() requested, as they were at that call.");
  require_init(read), require_init(list);
  read.def(py::init([](py::handle tensor) {
        return std::make_unique<PendingRead>(tensor_argument(tensor.ptr(), "PendingRead"));
      }))
      .def("done", &PendingRead::done, "Whether wait() returns at once. Does not wait.")
      .def(
          "wait", [](const PendingRead& read) { read.wait_for_bytes(); },
          "Waits for the bytes, which the buffer protocol then exposes. Raises the tensor's error.")
      .def_buffer([](const PendingRead& read) {
        absl::Span<char> bytes = read.received();
        return py::buffer_info(reinterpret_cast<uint8_t*>(bytes.data()), static_cast<py::ssize_t>(bytes.size()));
      });
  list.def(
      "wait", [](const PendingList& list) { return py::reinterpret_steal<py::object>(throw_if_null(list.wait())); },
      "Waits for the values and returns them as nested lists. Raises the tensor's error if its computation failed.");
  py::class_<Connection> connection(m, "Connection", "An open session with an engine.");
  require_init(connection);
  connection
      .def(
          "close", [](const Connection& c) { c.session().close(); }, py::call_guard<ReleaseGil>())
      .def(
          "synchronize",
          [](const Connection& c) {
            uint32_t site = current_site(c.session());
            ReleaseGil released;
            c.session().synchronize(site);
          },
          "Waits until everything issued so far has been executed.")
      .def(
          "flush", [](const Connection& c) { c.session().flush(); }, py::call_guard<ReleaseGil>())
      .def(
          "set_trace_context",
          [](const Connection& c, const std::string& traceparent) { c.session().set_trace_context(traceparent); },
          py::call_guard<ReleaseGil>(), py::arg("traceparent"),
          "Sets the W3C trace context of the calls that are issued from now on; \"\": none.")
      .def(
          "persist", [](const Connection& c, double every, double wait) { c.session().persist(every, wait); },
          py::call_guard<ReleaseGil>(), py::arg("every"), py::arg("wait"),
          "Stores images of the session on the engine's disk (teletensor.persist).")
      .def(
          "cancel", [](const Connection& c) { c.session().cancel(); }, py::call_guard<ReleaseGil>(),
          "Cancels all issued work that has not been executed; reading its results raises an error.")
      .def("counters", &counters, "Counters of this session and the state of its link, by name (times in seconds).")
      .def(
          "start_call_log",
          [](const Connection& c, size_t max_calls) {
            c.session().call_log().start(max_calls);
            c.session().start_frame_log(max_calls);
          },
          "Logs the next instructions and frames, as many as `max_calls`.", py::arg("max_calls"))
      .def(
          "stop_call_log", &stop_call_log,
          "The instructions logged after profiler_start, in their order: bytes (uint64 start, duration, thread, uint32 "
          "site, uint16 op; 32 bytes each), the lines by site number, and the frames: bytes (uint64 sequence, sent, "
          "written, acknowledged).")
      .def(
          "site_name", [](const Connection& c, uint32_t site) { return c.session().site_name(site); },
          "The source line with a number, as \"file:line in function\"; empty if unknown.")
      .def("wait_report", &wait_report,
           "The waits as [(where, kind, count, seconds)], longest first; kind is read, upload or window.")
      .def(
          "owns",
          [](const Connection& c, py::handle tensor) {
            return is_tensor(tensor.ptr()) && handle_of(tensor.ptr())->session.get() == &c.session();
          },
          "Whether the tensor belongs to this session.")
      .def_property_readonly(
          "address", &Connection::address,
          "The engine's address for other processes of this user; empty for an engine in this process.")
      .def("engine", &engine_info, "The engine's version, session, lease, limits and devices.");
  m.def(
      "connect",
      [](const std::string& address, const std::string& token, const std::string& name, uint64_t memory_limit,
         const std::string& compression, bool content_addressed, const std::string& fingerprint, const std::string& ca,
         const std::string& certificate, const std::string& key, const std::string& traceparent,
         const std::string& engine_binary) {
        ReleaseGil released;
        std::string used_address;
        auto session = client::connect({.address = address,
                                        .token = token,
                                        .trust = {fingerprint, ca, certificate, key},
                                        .client_name = name,
                                        .memory_limit = memory_limit,
                                        .compression = compression,
                                        .content_addressed = content_addressed,
                                        .traceparent = traceparent,
                                        .engine_binary = engine_binary},
                                       &used_address);
        return Connection(std::move(session), std::move(used_address));
      },
      py::arg("address"), py::arg("token"), py::arg("client_name"), py::arg("memory_limit"), py::arg("compression"),
      py::arg("content_addressed"), py::arg("fingerprint") = "", py::arg("ca") = "", py::arg("certificate") = "",
      py::arg("key") = "", py::arg("traceparent") = "", py::arg("engine_binary") = "");
  m.def(
      "user_folder",
      [](const std::string& name) {
        return user_folder(name == "config"  ? UserFolder::kConfig
                           : name == "cache" ? UserFolder::kCache
                                             : UserFolder::kState);
      },
      py::arg("name"),
      "The user's folder for \"config\", \"cache\" or \"state\": an absolute path, or empty if the user has no home.");
  m.def("check_traceparent", &client::check_traceparent, py::arg("text"),
        "Raises ValueError unless the text is empty or a W3C traceparent.");
  m.def(
      "set_session", [](const Connection* c) { set_current_session(c ? c->ref() : Ref<client::Session>()); },
      py::arg("connection").none(true));
  m.def(
      "close_with_interpreter",
      [](const Connection& c) {
        const std::string key = absl::StrCat("teletensor session ", c.session().serial());
        py::handle(PyInterpreterState_GetDict(PyInterpreterState_Get()))[key.c_str()] =
            py::capsule(new Ref<client::Session>(c.ref()), &close_last);
      },
      "Closes a session when the interpreter ends, after it has finalized the objects of modules.");
}

Device device_or_default(const py::object& device) {
  return checked_device(device.is_none() ? default_device() : device_from(device.ptr()), nullptr);
}

// A copy of a tensor, computed by methods, so that handlers receive the operators.
py::object dispatched_copy(const py::object& tensor, const py::object& dtype, const py::object& device) {
  py::object copy = tensor.attr("detach")().attr("clone")();
  if (dtype.is_none() && device.is_none()) return copy;
  return copy.attr("to")(py::arg("device") = device, py::arg("dtype") = dtype);
}

py::object tensor_function(py::object data, py::object dtype, py::object device, bool requires_grad) {
  PyObject* argument = data.ptr();
  if (is_tensor(argument) && is_dispatched({nullptr, &argument, 1, nullptr})) {
    py::object copy = dispatched_copy(data, dtype, device);
    if (requires_grad) copy.attr("requires_grad") = true;
    return copy;
  }
  client::Session& session = current_session();
  std::optional<DType> requested;
  if (!dtype.is_none()) requested = dtype_from(dtype.ptr());
  client::Tensor t = tensor_from(data.ptr(), requested, device_or_default(device), session);
  if (!device.is_none() && t->device != device_or_default(device)) {
    const Arg args[] = {Arg(static_cast<const TensorMeta*>(t.get())), Arg(device_or_default(device))};
    t = call_op(op_id::kToDevice, args, session)[0];
  }
  py::object result = py::reinterpret_steal<py::object>(throw_if_null(wrap(std::move(t))));
  if (requires_grad) result.attr("requires_grad") = true;
  return result;
}

client::WaitPolicy parse_wait_policy(int policy) {
  check(ErrorKind::kValue, policy >= 0 && policy <= 2, "expected a policy of waits from 0 to 2, got ", policy);
  return static_cast<client::WaitPolicy>(policy);
}

void bind_wait_policy(py::module_& m) {
  m.def(
      "wait_policy", [] { return static_cast<int>(client::wait_policy()); },
      "What calls do that wait for a value or an upload: 0: wait; 1: warn; 2: raise.");
  m.def(
      "set_wait_policy",
      [](int policy) { return static_cast<int>(client::set_wait_policy(parse_wait_policy(policy))); },
      "Sets the policy of all threads and returns the earlier one.");
  m.def(
      "set_thread_wait_policy",
      [](int policy) { return static_cast<int>(client::set_thread_wait_policy(parse_wait_policy(policy))); },
      "Sets the policy of this thread and returns the earlier one; the stricter one applies.");
  m.def("add_error_waits", &client::add_error_waits,
        "Adds to the number of reasons why calls of all threads wait until it is known whether they have failed.");
  m.def("add_thread_error_waits", &client::add_thread_error_waits, "The same for calls of this thread.");
}

void bind_modes(py::module_& m) {
  bind_wait_policy(m);
  m.def("is_grad_enabled", [] { return Mode::current().grad; });
  m.def("set_grad_enabled", [](bool on) {
    Mode& mode = Mode::current();
    mode.grad_disabled += on ? 0 : 1;
    return std::exchange(mode.grad, on);
  });
  m.def(
      "grad_disabled_count", [] { return Mode::current().grad_disabled; },
      "How often this thread has disabled the recording of gradients.");
  m.def("is_inference_mode", [] { return Mode::current().inference; });
  m.def("set_inference_mode", [](bool on) { return std::exchange(Mode::current().inference, on); });
  bind_autocast(m);
  m.def("set_fills_new", &set_fills_new);
  m.def("set_other_spellings", [](py::function function) { set_other_spellings(function.ptr()); });
  m.def("default_dtype", [] { return py::reinterpret_borrow<py::object>(dtype_object(client::default_dtype())); });
  m.def("default_device", [] { return py::reinterpret_steal<py::object>(device_object(default_device())); });
  m.def("default_devices", [] {
    const std::optional<Device> chosen = chosen_device();
    PyObject* first = chosen ? device_object(*chosen) : Py_NewRef(Py_None);
    return py::make_tuple(py::reinterpret_steal<py::object>(first),
                          py::reinterpret_steal<py::object>(device_object(tensor_type_device())));
  });
  m.def("swap_default_device", [](py::object device) {
    return py::reinterpret_steal<py::object>(throw_if_null(swap_default_device(device.ptr())));
  });
  m.def("swap_tensor_type_device", [](py::object device) {
    return py::reinterpret_steal<py::object>(throw_if_null(swap_tensor_type_device(device.ptr())));
  });
  m.def("swap_current_gpu", &swap_current_gpu);
  m.def("swap_current_plugin", &swap_current_plugin);
  m.def("device_code", [](const py::object& device) { return device_from(device.ptr()).encode(); });
  m.def("rename_plugin_type", [](const std::string& name) { rename_device_type(DeviceType::kPlugin, name); });
  m.def("plugin_types", [] {
    std::vector<std::string> names;
    for (int i = 0; i < kMaxPluginTypes; ++i) {
      if (std::string name = device_type_name(plugin_type(i)); !name.empty()) names.push_back(std::move(name));
    }
    return names;
  });
  m.def("placed", [](py::object device) {  // resolves the device's index
    return py::reinterpret_steal<py::object>(device_object(device_from(device.ptr())));
  });
  m.def("set_default_dtype", [](py::object t) { client::set_default_dtype(dtype_from(t.ptr())); });
}

void add_functions(py::module_& parent, const char* name, PyMethodDef* table) {
  py::module_ sub = parent.def_submodule(name);
  if (PyModule_AddFunctions(sub.ptr(), table) < 0) throw py::error_already_set();
}

void bind(py::module_& m) {
  // Converts C++ errors thrown through pybind11's functions.
  py::register_exception_translator([](std::exception_ptr p) {
    if (!p) return;
    try {
      std::rethrow_exception(p);
    } catch (const PythonErrorSet&) {       // the Python exception is already set
    } catch (const client::Interrupted&) {  // the reason is already set as a Python exception
    } catch (const Error& e) {
      set_python_error(e);
    }
  });
  init_waits();
  if (!init_errors(m.ptr()) || !init_types(m.ptr()) || !init_symbolic_int(m.ptr()) || !init_tensor_type(m.ptr()) ||
      !init_pending_item_type(m.ptr()) || !init_torch_function(m.ptr()) || !init_overridable(m.ptr()) ||
      !init_function_log(m.ptr()))
    throw py::error_already_set();
  MethodTables tables = method_tables();
  add_functions(m, "torch", tables.torch);
  add_functions(m, "functional", tables.functional);
  add_functions(m, "ops", tables.all);
  for (const ModuleTable& module : tables.modules) add_functions(m, module.name, module.functions);
  bind_connection(m);
  bind_modes(m);
  bind_autograd(m);
  bind_admin(m);
  bind_store(m);
  bind_custom_operators(m);
  bind_program(m);
  bind_frame_cache(m);
  bind_file_states(m);
  bind_published(m);
  bind_size_facts(m);
  bind_serving(m);
  bind_operator_table(m);
  bind_extra(m);
  m.def("tensor", &tensor_function, py::arg("data"), py::kw_only(), py::arg("dtype") = py::none(),
        py::arg("device") = py::none(), py::arg("requires_grad") = false);
  m.def("read_into", [](py::handle tensor, py::handle buffer) {
    read_into(tensor_argument(tensor.ptr(), "read_into"), buffer.ptr());
  });
  m.def("set_thread_generator", [](py::handle state) {  // None: the thread draws from the session's generator
    client::thread_generator() =
        state.is_none() ? client::Tensor() : tensor_argument(state.ptr(), "set_thread_generator");
  });
  m.def("from_bytes", [](py::bytes data, py::object dtype, const std::vector<int64_t>& size, py::object device) {
    std::string_view bytes = data;
    DType t = dtype_from(dtype.ptr());
    Sizes sizes(size.begin(), size.end());
    int64_t expected = static_cast<int64_t>(item_size(t));
    bool valid = true;
    for (int64_t n : sizes) valid &= n >= 0 && !__builtin_mul_overflow(expected, n, &expected);
    check(ErrorKind::kValue, valid && static_cast<uint64_t>(expected) == bytes.size(), "[from_bytes] size ",
          to_string(sizes), " of ", std::string(name(t)), " does not match ", bytes.size(), " bytes");
    client::Session& session = current_session();
    return py::reinterpret_steal<py::object>(
        throw_if_null(wrap(upload(session, bytes, t, sizes, device_or_default(device)))));
  });
  m.def("promote_types", [](py::object a, py::object b) {
    return py::reinterpret_borrow<py::object>(dtype_object(promote(dtype_from(a.ptr()), dtype_from(b.ptr()))));
  });
  m.def("can_cast", [](py::object a, py::object b) { return can_cast(dtype_from(a.ptr()), dtype_from(b.ptr())); });
}

}  // namespace
}  // namespace tt::python

PYBIND11_MODULE(_C, m) { tt::python::bind(m); }
