#include "python/bindings/program.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/session/program.h"
#include "client/session/program_trace.h"
#include "engine/schema/error.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"

namespace py = pybind11;

namespace tt::python {
namespace {

std::vector<client::Tensor> tensors_of(const py::sequence& objects, const char* function) {
  std::vector<client::Tensor> tensors;
  for (py::handle object : objects) tensors.push_back(tensor_argument(object.ptr(), function));
  return tensors;
}

py::object wrapped(absl::Span<const client::Tensor> tensors) {
  return py::reinterpret_steal<py::object>(throw_if_null(wrap_tuple(tensors)));
}

struct Program {
  Ref<client::Program> program;

  py::object run(const py::sequence& inputs) const {
    const std::vector<client::Tensor> tensors = tensors_of(inputs, "run_program");
    const client::CallOptions options = call_options(session_for(tensors));
    return wrapped(program->run(tensors, options));
  }
  // A (dtype, sizes) per result of the Program.
  py::list infer(const py::sequence& inputs) const {
    py::list results;
    for (const TensorMeta& meta : program->infer(tensors_of(inputs, "infer_program"))) {
      results.append(py::make_tuple(py::reinterpret_borrow<py::object>(dtype_object(meta.dtype)),
                                    std::vector<int64_t>(meta.sizes.begin(), meta.sizes.end())));
    }
    return results;
  }
  // A (source, index) per output: a result of the Program, an input, a captured tensor, or None.
  py::list outputs() const {
    static constexpr const char* kSources[] = {"result", "input", "captured", "none"};
    py::list sources;
    for (const client::Program::Output& output : program->outputs())
      sources.append(py::make_tuple(kSources[static_cast<size_t>(output.from)], output.index));
    return sources;
  }
  // What runs require of sizes: (terms of the left side, of the right side, relation, expected, where) of each.
  py::list requirements() const {
    const auto terms_of = [](const std::vector<SizeTerm>& side) {
      std::vector<int64_t> terms;
      for (const SizeTerm& term : side) {
        terms.push_back(static_cast<int64_t>(term.kind));
        terms.push_back(term.number);
        terms.push_back(static_cast<int64_t>(term.name));
      }
      return terms;
    };
    py::list list;
    for (const client::SizeRequirement& each : program->requirements()) {
      list.append(py::make_tuple(terms_of(each.left), terms_of(each.right), static_cast<int>(each.relation),
                                 each.expected, each.where));
    }
    return list;
  }
  std::string explain(const py::sequence& inputs) const {
    const std::vector<client::Tensor> tensors = tensors_of(inputs, "explain_program");
    return program->explain(tensors, current_site(session_for(tensors)));
  }
  std::string expanded(const py::sequence& inputs) const {
    const std::vector<client::Tensor> tensors = tensors_of(inputs, "expand_program");
    return program->expanded(tensors, current_site(session_for(tensors)));
  }

 private:
  static client::Session& session_for(const std::vector<client::Tensor>& tensors) {
    return tensors.empty() ? current_session() : *tensors[0]->session;
  }
};

// A context in which calls are sent as usual, although the thread traces.
class TracePause {
 public:
  void enter() { pause_.emplace(); }
  void exit(const py::args&) { pause_.reset(); }

 private:
  std::optional<client::ProgramTrace::Pause> pause_;
};

class TraceRegion {
 public:
  void enter() {
    trace_ = client::ProgramTrace::active();
    if (trace_ != nullptr) trace_->begin_region();
  }
  void exit(const py::args&) {
    if (trace_ != nullptr && trace_ == client::ProgramTrace::active()) trace_->end_region();
  }

 private:
  client::ProgramTrace* trace_ = nullptr;  // not used after its end
};

// `constant_sizes`: True for all sizes, or a list of (number of the tensor, dimension).
std::unique_ptr<client::ProgramTrace> begin_trace(const py::sequence& examples, const py::object& constant_sizes,
                                                  bool only_metadata, bool records_sizes) {
  const std::vector<client::Tensor> tensors = tensors_of(examples, "trace");
  client::Session& session = tensors.empty() ? current_session() : *tensors[0]->session;
  client::TraceOptions options;
  options.only_metadata = only_metadata;
  options.records_sizes = records_sizes;
  options.current_site = [&session] { return current_site(session); };  // the trace keeps the session
  if (py::isinstance<py::bool_>(constant_sizes)) {
    options.are_sizes_constant = constant_sizes.cast<bool>();
  } else {
    for (const auto& [input, dim] : constant_sizes.cast<std::vector<std::pair<size_t, size_t>>>())
      options.constant_sizes.push_back({input, dim});
  }
  return std::make_unique<client::ProgramTrace>(Ref<client::Session>(&session), tensors, options);
}

}  // namespace

void bind_program(py::module_& m) {
  py::class_<Program>(m, "Program")
      .def("run", &Program::run, py::arg("inputs"))
      .def("infer", &Program::infer, py::arg("inputs"))
      .def("explain", &Program::explain, py::arg("inputs"))
      .def("expanded", &Program::expanded, py::arg("inputs"))
      .def_property_readonly("order", [](const Program& p) { return p.program->order(); })
      .def_property_readonly("text", [](const Program& p) { return p.program->text(); })
      .def_property_readonly("instructions", [](const Program& p) { return p.program->instructions(); })
      .def_property_readonly("is_in_session",
                             [](const Program& p) { return &p.program->session() == &current_session(); })
      .def_property_readonly("number", [](const Program& p) { return p.program->number(); })
      .def_property_readonly("inputs", [](const Program& p) { return p.program->inputs(); })
      .def_property_readonly("outputs", &Program::outputs)
      .def_property_readonly("definition", [](const Program& p) { return py::bytes(p.program->definition()); })
      .def_property_readonly("can_be_stored", [](const Program& p) { return p.program->can_be_stored(); })
      .def_static(
          "restored",
          [](std::string definition, std::vector<size_t> order, size_t written, std::vector<size_t> outputs, bool exact,
             const py::sequence& inputs) {
            const std::vector<client::Tensor> tensors = tensors_of(inputs, "restore_program");
            client::Session& session = tensors.empty() ? current_session() : *tensors[0]->session;
            const Mode& mode = Mode::current();
            const client::Program::Stored stored{std::move(definition), std::move(order), written, std::move(outputs),
                                                 exact};
            return Program{client::Program::restored(Ref<client::Session>(&session), tensors, stored,
                                                     mode.grad && !mode.inference)};
          },
          py::arg("definition"), py::arg("order"), py::arg("written"), py::arg("outputs"), py::arg("exact"),
          py::arg("inputs"))
      .def_property_readonly("requirements", &Program::requirements)
      .def_property_readonly("written", [](const Program& p) { return p.program->written(); })
      .def_property_readonly("is_exact", [](const Program& p) { return p.program->is_exact(); })
      .def_property_readonly("captured", [](const Program& p) { return wrapped(p.program->captured()); });
  m.def(
      "program_counters",
      [] {
        client::Session& session = current_session();
        return client::program_counters(session, current_site(session));
      },
      "A row of counters per Program of the session (operator program_counters).");
  m.def(
      "window_counters",
      [] {
        client::Session& session = current_session();
        return client::window_counters(session, current_site(session));
      },
      "A row of counters per compiled window of the session (operator window_counters).");
  m.def(
      "is_tracing", [] { return client::ProgramTrace::is_active(); }, "Whether this thread traces a Program.");
  py::class_<TracePause>(m, "TracePause", "Calls of this thread are sent, although it traces a Program.")
      .def(py::init<>())
      .def("__enter__", &TracePause::enter)
      .def("__exit__", &TracePause::exit);
  py::class_<TraceRegion>(m, "TraceRegion", "Backward of the Program that this thread traces computes results again.")
      .def(py::init<>())
      .def("__enter__", &TraceRegion::enter)
      .def("__exit__", &TraceRegion::exit);
  py::class_<client::SizeChecks, std::shared_ptr<client::SizeChecks>>(
      m, "SizeChecks", "Whether code that was made for some sizes is right for others.")
      .def_property_readonly("failure", &client::SizeChecks::failure)
      .def("hold", [](client::SizeChecks& checks, const std::vector<std::vector<int64_t>>& sizes) {
        check(ErrorKind::kValue, sizes.size() == checks.inputs(), "[SizeChecks] expected sizes of ", checks.inputs(),
              " inputs, got ", sizes.size());
        std::vector<TensorMeta> metas;
        for (size_t i = 0; i < sizes.size(); ++i) {
          metas.push_back(checks.input(i));
          if (std::equal(sizes[i].begin(), sizes[i].end(), metas[i].sizes.begin(), metas[i].sizes.end())) continue;
          metas[i].sizes.assign(sizes[i].begin(), sizes[i].end());
          metas[i].strides = contiguous_strides(metas[i].sizes);
        }
        std::vector<const TensorMeta*> pointers;
        for (const TensorMeta& meta : metas) pointers.push_back(&meta);
        return checks.hold(pointers);
      });
  py::class_<client::ProgramTrace>(m, "ProgramTrace")
      .def(py::init(&begin_trace), py::arg("examples"), py::arg("constant_sizes") = false,
           py::arg("only_metadata") = false, py::arg("records_sizes") = false)
      .def_property_readonly("gave_sizes", &client::ProgramTrace::gave_sizes)
      .def(
          "add_input",
          [](client::ProgramTrace& t, py::handle example, const std::vector<size_t>& dims) {
            const client::Tensor& tensor = tensor_argument(example.ptr(), "trace");
            return py::reinterpret_steal<py::object>(throw_if_null(wrap(t.add_input(tensor, dims))));
          },
          py::arg("example"), py::arg("dims") = std::vector<size_t>())
      .def("size_checks", &client::ProgramTrace::size_checks)
      .def_property_readonly("inputs", [](const client::ProgramTrace& t) { return wrapped(t.inputs()); })
      .def("stop", &client::ProgramTrace::stop)
      .def(
          "finish",
          [](client::ProgramTrace& t, const py::sequence& outputs, bool exact, double memory_budget) {
            return Program{t.finish(tensors_of(outputs, "trace"), {.exact = exact, .memory_budget = memory_budget})};
          },
          py::arg("outputs"), py::arg("exact"), py::arg("memory_budget") = 1.0);
}

}  // namespace tt::python
