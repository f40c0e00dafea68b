#include "python/bindings/serving.h"

#include <google/protobuf/util/json_util.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "client/inference.h"
#include "engine/schema/error.h"
#include "python/bindings/connection.h"
#include "python/bindings/tensor/gil.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/parse.h"
#include "teletensor/v1/model.pb.h"

namespace py = pybind11;

namespace tt::python {
namespace {

using client::Inference;

std::string to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  check(ErrorKind::kValue, status.ok(), "[serving] the message cannot be converted to JSON");
  return text;
}

// A serialized teletensor.v1.Model of JSON text without Programs, and a definition per entry.
py::bytes model_bytes(const std::string& json, const std::vector<std::string>& definitions) {
  teletensor::v1::Model model;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &model);
  check(ErrorKind::kValue, status.ok(), "[serving] expected the JSON form of teletensor.v1.Model: ", status.ToString());
  check(ErrorKind::kValue, static_cast<size_t>(model.entries_size()) == definitions.size(),
        "[serving] expected a definition per entry, got ", definitions.size(), " for ", model.entries_size());
  for (int i = 0; i < model.entries_size(); ++i)
    model.mutable_entries(i)->set_program(definitions[static_cast<size_t>(i)]);
  return model.SerializeAsString();
}

// The reverse, without Programs.
std::string model_json(const std::string& bytes) {
  teletensor::v1::Model model;
  check(ErrorKind::kValue, model.ParseFromString(bytes), "[serving] expected a serialized teletensor.v1.Model");
  for (auto& entry : *model.mutable_entries()) entry.clear_program();
  return to_json(model);
}

void set_parameter(py::handle value, inference::InferParameter* parameter) {
  if (py::isinstance<py::bool_>(value)) {
    parameter->set_bool_param(value.cast<bool>());
  } else if (py::isinstance<py::int_>(value)) {
    parameter->set_int64_param(value.cast<int64_t>());
  } else if (py::isinstance<py::float_>(value)) {
    parameter->set_double_param(value.cast<double>());
  } else {
    check(ErrorKind::kType, py::isinstance<py::str>(value),
          "[inference] expected bool, int, float or str as a parameter, got ", Py_TYPE(value.ptr())->tp_name);
    parameter->set_string_param(value.cast<std::string>());
  }
}

using InputTensor = std::tuple<std::string, std::string, std::vector<int64_t>, py::bytes>;

// Inputs and outputs are (name, datatype, shape, bytes).
py::list infer(const Inference& engine, const std::string& model, const std::string& version,
               const std::vector<InputTensor>& inputs, const std::vector<std::string>& outputs,
               const py::dict& parameters, double seconds) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  request.set_model_version(version);
  for (const auto& [key, value] : parameters)
    set_parameter(value, &(*request.mutable_parameters())[key.cast<std::string>()]);
  for (const auto& [name, datatype, shape, bytes] : inputs) {
    inference::ModelInferRequest::InferInputTensor* input = request.add_inputs();
    input->set_name(name);
    input->set_datatype(datatype);
    for (int64_t size : shape) input->add_shape(size);
    const std::string_view view = bytes;
    request.add_raw_input_contents(view.data(), view.size());
  }
  for (const std::string& name : outputs) request.add_outputs()->set_name(name);
  inference::ModelInferResponse reply;
  {
    ReleaseGil released;
    reply = engine.infer(request, seconds);
  }
  check(reply.outputs_size() == reply.raw_output_contents_size(),
        "[inference] expected the outputs as raw contents, got ", reply.raw_output_contents_size(), " of ",
        reply.outputs_size());
  py::list results;
  for (int i = 0; i < reply.outputs_size(); ++i) {
    const auto& output = reply.outputs(i);
    results.append(py::make_tuple(output.name(), output.datatype(),
                                  std::vector<int64_t>(output.shape().begin(), output.shape().end()),
                                  py::bytes(reply.raw_output_contents(i))));
  }
  return results;
}

}  // namespace

void bind_serving(py::module_& m) {
  using Free = py::call_guard<ReleaseGil>;
  m.def("handle_number", [](py::handle tensor) { return tensor_argument(tensor.ptr(), "serving")->id; });
  m.def("dtype_number", [](py::handle dtype) { return static_cast<int>(dtype_from(dtype.ptr())); });
  m.def("model_bytes", &model_bytes, py::arg("json"), py::arg("definitions"));
  m.def("model_json", &model_json, py::arg("bytes"));
  py::class_<Inference> engine(m, "Inference", "Calls of the models that an engine serves.");
  require_init(engine);
  engine
      .def(
          py::init([](const std::string& address, const std::string& token, const std::string& fingerprint,
                      const std::string& ca, const std::string& certificate, const std::string& key) {
            return std::make_unique<Inference>(address, token, client::TrustOptions{fingerprint, ca, certificate, key});
          }),
          py::arg("address") = "", py::arg("token") = "", py::arg("fingerprint") = "", py::arg("ca") = "",
          py::arg("certificate") = "", py::arg("key") = "")
      .def_property_readonly("address", [](const Inference& e) { return e.address(); })
      .def("infer", &infer, py::arg("model"), py::arg("version"), py::arg("inputs"), py::arg("outputs"),
           py::arg("parameters"), py::arg("seconds"))
      .def(
          "metadata",
          [](const Inference& e, const std::string& model, const std::string& version) {
            return to_json(e.metadata(model, version));
          },
          Free(), py::arg("model"), py::arg("version") = "")
      .def(
          "config",
          [](const Inference& e, const std::string& model, const std::string& version) {
            return to_json(e.config(model, version));
          },
          Free(), py::arg("model"), py::arg("version") = "")
      .def(
          "statistics",
          [](const Inference& e, const std::string& model, const std::string& version) {
            return to_json(e.statistics(model, version));
          },
          Free(), py::arg("model") = "", py::arg("version") = "")
      .def(
          "index", [](const Inference& e) { return to_json(e.index()); }, Free())
      .def(
          "load", [](const Inference& e, const std::string& model, double seconds) { e.load(model, seconds); }, Free(),
          py::arg("model"), py::arg("seconds") = 600.0)
      .def(
          "publish",
          [](const Inference& e, const std::string& name, int64_t version, const std::string& model,
             const std::string& weights, const std::string& config, double seconds) {
            teletensor::v1::PublishModelRequest request;
            request.set_name(name);
            request.set_version(version);
            request.set_model(model);
            request.set_weights(weights);
            request.set_config(config);
            return e.publish(request, seconds);
          },
          Free(), py::arg("name"), py::arg("version"), py::arg("model"), py::arg("weights"), py::arg("config"),
          py::arg("seconds"))
      .def(
          "withdraw",
          [](const Inference& e, const std::string& name, int64_t version, double seconds) {
            e.withdraw(name, version, seconds);
          },
          Free(), py::arg("name"), py::arg("version"), py::arg("seconds") = 600.0)
      .def(
          "unload", [](const Inference& e, const std::string& model, double seconds) { e.unload(model, seconds); },
          Free(), py::arg("model"), py::arg("seconds") = 600.0);
}

}  // namespace tt::python
