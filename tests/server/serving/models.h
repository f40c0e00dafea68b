// Native models in temporary folders.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/schema/dtype.h"
#include "inference/grpc_service.pb.h"
#include "proto/wire.h"
#include "teletensor/v1/model.pb.h"
#include "tests/server/frames.h"

namespace tt::server::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "teletensor-serving-XXXXXX").native();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  // By renaming, as a program that replaces a served model should.
  const std::filesystem::path partial = path.native() + ".partial";
  std::ofstream(partial, std::ios::binary) << bytes;
  std::filesystem::rename(partial, path);
}

// A safetensors file with one float32 vector.
inline std::string weights_file(const std::string& name, const std::vector<float>& values) {
  std::string header = "{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(values.size()) +
                       "],\"data_offsets\":[0," + std::to_string(4 * values.size()) + "]}}";
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + bytes_of(values);
}

inline v1::Port port(const std::string& name, const std::vector<int64_t>& sizes, DType dtype = DType::kFloat32,
                     const std::string& first = "batch") {
  v1::Port port;
  port.set_name(name);
  port.set_dtype(static_cast<uint32_t>(dtype));
  for (const int64_t size : sizes) {
    port.add_sizes(size);
    port.add_size_names(size == -1 && port.sizes_size() == 1 ? first : "");
  }
  return port;
}

// y = x + w for rows of x.
inline v1::Model shifted(int64_t columns = 3) {
  v1::Model model;
  model.set_format(1);
  v1::Entry* entry = model.add_entries();
  *entry->add_inputs() = port("x", {-1, columns});
  *entry->add_outputs() = port("y", {-1, columns});
  entry->add_weights("w");
  v1::Frame program;
  Instruction(&program, "add").handle(1).handle(2).result(3);
  read(&program, 1, 3);
  entry->set_program(program.SerializeAsString());
  return model;
}

// The sum of all inputs of a sequence so far: total = total + x, of which the output is a copy.
inline v1::Model totals() {
  v1::Model model;
  model.set_format(1);
  v1::Entry* entry = model.add_entries();
  *entry->add_inputs() = port("x", {2});
  *entry->add_outputs() = port("total", {2});
  v1::State* state = entry->add_states();
  state->set_name("total");
  state->set_dtype(static_cast<uint32_t>(DType::kFloat32));
  state->add_sizes(2);
  v1::Frame program;
  Instruction(&program, "add").handle(1).handle(2).result(3);
  Instruction(&program, "clone").handle(3).result(4);
  read(&program, 1, 4);
  read(&program, 2, 3);
  entry->set_program(program.SerializeAsString());
  return model;
}

// Writes a version of shifted() with w = {shift, ...}.
inline void write_shifted(const std::filesystem::path& folder, float shift, int64_t columns = 3) {
  write_file(folder / "model.safetensors", weights_file("w", std::vector<float>(static_cast<size_t>(columns), shift)));
  write_file(folder / "program.pb", shifted(columns).SerializeAsString());
}

inline inference::ModelInferRequest request_for(const std::string& model, const std::vector<int64_t>& shape,
                                                const std::vector<float>& values) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("FP32");
  for (const int64_t size : shape) input->add_shape(size);
  request.add_raw_input_contents(bytes_of(values));
  return request;
}

}  // namespace tt::server::testing
