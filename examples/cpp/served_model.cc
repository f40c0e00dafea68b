// Calls a model that an engine serves, by the Open Inference Protocol: served_model ADDRESS MODEL INPUT NUMBER...
//
// The input is one row of float32. The token is that of TELETENSOR_TOKEN. See docs/serving-python.md.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "client/inference.h"
#include "engine/schema/error.h"

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: served_model ADDRESS MODEL INPUT NUMBER...\n");
    return 2;
  }
  std::vector<float> row;
  for (int i = 4; i < argc; ++i) row.push_back(std::strtof(argv[i], nullptr));
  try {
    const char* token = std::getenv("TELETENSOR_TOKEN");
    const tt::client::Inference engine(argv[1], token ? token : "");
    inference::ModelInferRequest request;
    request.set_model_name(argv[2]);
    auto* input = request.add_inputs();
    input->set_name(argv[3]);
    input->set_datatype("FP32");
    input->add_shape(1);
    input->add_shape(static_cast<int64_t>(row.size()));
    request.add_raw_input_contents(row.data(), row.size() * sizeof(float));
    const inference::ModelInferResponse response = engine.infer(request, /*seconds=*/30);
    for (int i = 0; i < response.outputs_size() && i < response.raw_output_contents_size(); ++i) {
      const std::string& bytes = response.raw_output_contents(i);
      std::printf("%s:", response.outputs(i).name().c_str());
      for (size_t at = 0; response.outputs(i).datatype() == "FP32" && at + 4 <= bytes.size(); at += 4) {
        float value;
        std::memcpy(&value, bytes.data() + at, 4);
        std::printf(" %g", value);
      }
      std::printf("\n");
    }
    return 0;
  } catch (const tt::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
