#include "python/bindings/frame_cache.h"

#include <pybind11/stl.h>

#include <memory>
#include <utility>
#include <vector>

#include "client/session/program_trace.h"
#include "engine/schema/error.h"
#include "python/bindings/frame_guards.h"
#include "python/bindings/tensor/object.h"

namespace py = pybind11;

namespace tt::python {
namespace {

bool frames_plain = false;  // guarded by the GIL
thread_local int plain_regions = 0;

// Calls the code of the first entry whose guards hold for the slots, with the slots and the inputs; `miss` if there is
// none. Calls `plain` while frames run plain and while the thread traces a Program.
class FrameCache {
 public:
  FrameCache(py::object miss, py::object plain) : miss_(std::move(miss)), plain_(std::move(plain)) {}

  void add(const std::shared_ptr<FrameGuards>& guards, const py::object& code) {
    entries_.insert(entries_.begin(), Entry{guards, code});
  }
  void clear() { entries_.clear(); }

  py::object call(const py::tuple& slots) {
    if (frames_plain || plain_regions > 0 || client::ProgramTrace::is_active()) [[unlikely]]
      return invoke(plain_, slots);
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!entries_[i].guards->check(slots.ptr())) continue;
      const py::object code = entries_[i].code;  // a call may change the entries
      if (i > 0) std::swap(entries_[i], entries_[0]);
      const py::tuple inputs = entries_[0].guards->inputs();
      return py::reinterpret_steal<py::object>(
          throw_if_null(PyObject_CallFunctionObjArgs(code.ptr(), slots.ptr(), inputs.ptr(), nullptr)));
    }
    return invoke(miss_, slots);
  }

  py::list entries() const {
    py::list list;
    for (const Entry& entry : entries_) list.append(py::make_tuple(entry.guards, entry.code));
    return list;
  }

 private:
  struct Entry {
    std::shared_ptr<FrameGuards> guards;
    py::object code;
  };

  static py::object invoke(const py::object& function, const py::tuple& slots) {
    return py::reinterpret_steal<py::object>(throw_if_null(PyObject_CallOneArg(function.ptr(), slots.ptr())));
  }

  py::object miss_, plain_;
  std::vector<Entry> entries_;
};

}  // namespace

void bind_frame_cache(py::module_& m) {
  py::class_<FrameGuards, std::shared_ptr<FrameGuards>>(m, "FrameGuards",
                                                        "Checks of the Python state that a compiled function has read.")
      .def(py::init<const py::sequence&, std::vector<int>>(), py::arg("nodes"), py::arg("inputs") = std::vector<int>())
      .def("check", [](FrameGuards& guards, const py::tuple& slots) { return guards.check(slots.ptr()); })
      .def("inputs", &FrameGuards::inputs)
      .def_static(
          "stored",
          [](const py::bytes& nodes, py::list objects, std::vector<int> inputs, const py::tuple& slots,
             py::object unknown) {
            std::vector<py::object> found;
            for (py::handle object : objects)
              found.push_back(object.is(unknown) ? py::object() : py::reinterpret_borrow<py::object>(object));
            auto guards = FrameGuards::stored(std::string_view(nodes), &found, std::move(inputs), slots.ptr());
            if (!guards) return py::object(py::none());
            for (size_t i = 0; i < found.size(); ++i) {
              if (found[i]) objects[i] = found[i];
            }
            return py::cast(guards);
          },
          py::arg("nodes"), py::arg("objects"), py::arg("inputs"), py::arg("slots"), py::arg("unknown"),
          "The guards of another process for the objects of this one, or None if they do not hold for the slots; sets "
          "the elements of `objects` that are `unknown`.")
      .def_static("describe", [](py::handle tensor) { return py::bytes(FrameGuards::describe(tensor.ptr())); })
      .def_property_readonly("failed", &FrameGuards::failed)
      .def_property_readonly("sizes_failure", &FrameGuards::sizes_failure);
  py::class_<FrameCache>(m, "FrameCache", "The compiled versions of a function, with their guards.")
      .def(py::init<py::object, py::object>(), py::arg("miss"), py::arg("plain"))
      .def("add", &FrameCache::add, py::arg("guards"), py::arg("code"))
      .def("clear", &FrameCache::clear)
      .def("entries", &FrameCache::entries)
      .def("__call__", &FrameCache::call);
  m.def(
      "set_frames_plain", [](bool plain) { return std::exchange(frames_plain, plain); },
      "Whether compiled functions run as plain Python from now on; returns whether they did.");
  m.def(
      "add_plain_frames", [](int change) { return plain_regions += change; }, py::arg("change"),
      "Begins (1) or ends (-1) a region of this thread in which compiled functions run as plain Python.");
}

}  // namespace tt::python
