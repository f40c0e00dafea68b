// Fuzz target: the inference server answers requests of arbitrary bytes.
//
// The first byte chooses the form: REST (with a coding of the body and one of the answer), a ModelInferRequest, or a
// request of a known model whose outputs are classified and whose sequences share batches. Whatever the bytes contain,
// the request is refused or answered; a compressed answer expands to JSON, a classified output has a string per class,
// the requests in progress have no bytes afterwards, and memory that a request has used is free again.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "server/serving/byte_strings.h"
#include "server/serving/inference_server.h"
#include "server/serving/rest.h"
#include "tests/fuzz/require.h"
#include "tests/server/engine_memory.h"
#include "tests/server/serving/models.h"
#include "tests/server/wait_until.h"

namespace {

using namespace tt::server;  // NOLINT: the server's names

constexpr uint64_t kLimit = uint64_t{1} << 20;

struct Server {
  testing::TemporaryFolder folder;
  Auth auth = Auth::with_tokens("user", "admin");
  std::unique_ptr<ModelRepository> repository;
  std::unique_ptr<InferenceServer> server;

  Server() {
    const std::string batches = R"({"max_batch_size": 8, "dynamic_batching": {},
        "output": [{"name": "y", "label_filename": "labels.txt"}]})";
    testing::write_shifted(folder.path() / "m" / "1", 1);
    testing::write_file(folder.path() / "m" / "config.json", batches);
    testing::write_file(folder.path() / "m" / "labels.txt", "cat\ndog\n");
    // y = x + hidden, which is the next state.
    tt::v1::Model model = testing::shifted();
    tt::v1::Entry* entry = model.mutable_entries(0);
    entry->clear_weights();
    *entry->add_inputs() = testing::port("hidden", {-1, 3});
    testing::write_file(folder.path() / "s" / "1" / "program.pb", model.SerializeAsString());
    testing::write_file(folder.path() / "s" / "config.json", R"({"max_batch_size": 8, "output": [{"name": "y"}],
        "sequence_batching": {"oldest": {}, "state": [{"input_name": "hidden", "output_name": "y", "dims": [3]}]}})");
    repository = std::make_unique<ModelRepository>(ModelRepository::Options{.folder = folder.path()});
    repository->start();
    tt::fuzz::require(testing::wait_until([&] { return repository->ready(); }), "the models are loaded");
    server = std::make_unique<InferenceServer>(
        *repository, auth,
        InferenceServer::Options{.open = true, .request_bytes = kLimit, .inflight_bytes = 8 * kLimit});
  }
};

Server& server() {
  static auto* const made = new Server;
  return *made;
}

void require_classes(const inference::ModelInferResponse& reply) {
  for (int i = 0; i < reply.outputs_size(); ++i) {
    if (reply.outputs(i).datatype() != kBytesDatatype) continue;
    uint64_t count = 1;
    for (const int64_t size : reply.outputs(i).shape()) count *= static_cast<uint64_t>(size);
    const std::string& bytes = reply.raw_output_contents(i);
    tt::fuzz::require(longest_string({bytes.data(), bytes.size()}, count).ok(), "a classified output has its strings");
  }
}

void infer(const inference::ModelInferRequest& request) {
  inference::ModelInferResponse reply;
  InferRequest limits;
  InferenceServer::Inflight answered;
  limits.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  limits.reserve = [&](absl::Span<const InferOutput> outputs) {
    uint64_t bytes = 0;
    for (const InferOutput& output : outputs) bytes += output.size;
    return server().server->begin_answer(bytes, &answered);
  };
  ModelShares::Place place;
  const absl::Status status = server().server->infer({.name = "fuzz"}, request, std::move(limits), &reply, &place);
  if (status.ok()) require_classes(reply);
}

void answer(uint8_t form, const std::string& body) {
  constexpr ContentCoding kCodings[] = {ContentCoding::kIdentity, ContentCoding::kGzip, ContentCoding::kDeflate};
  RestRequest request;
  request.method = "POST";
  request.path = form & 1 ? "/v2/models/s/infer" : "/v2/models/m/infer";
  request.coding = kCodings[(form >> 1) % 3];
  request.accepts = kCodings[(form >> 3) % 3];
  // Mutations of plain text are compressed here, because mutated compressed bytes are nearly always damaged.
  const std::string coded =
      request.coding != ContentCoding::kIdentity && (form & 32) ? compressed(request.coding, body) : body;
  request.body = coded;
  const RestResponse response = answer_rest(*server().server, request);
  tt::fuzz::require(response.status >= 200 && response.status < 600, "an answer has a status of HTTP");
  if (response.coding == ContentCoding::kIdentity) return;
  tt::fuzz::require(response.status == 200 && response.coding == request.accepts, "an answer has the accepted coding");
  const auto plain =
      decompressed(response.coding, {response.body}, 8 * kLimit, [](uint64_t) { return absl::OkStatus(); });
  tt::fuzz::require(plain.ok() && plain->starts_with("{"), "a compressed answer expands to JSON");
}

// A request with the bytes as values, classes and sequences.
void structured(uint8_t form, const uint8_t* data, size_t size) {
  constexpr size_t kRow = 3 * sizeof(float);
  const std::string values(reinterpret_cast<const char*>(data), size / kRow * kRow);
  inference::ModelInferRequest request;
  request.set_model_name(form & 1 ? "s" : "m");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("FP32");
  input->add_shape(static_cast<int64_t>(values.size() / kRow));
  input->add_shape(3);
  request.add_raw_input_contents(values);
  auto* output = request.add_outputs();
  output->set_name("y");
  if (form & 2) (*output->mutable_parameters())["classification"].set_int64_param(size == 0 ? -1 : data[0]);
  if (form & 1) {
    auto& parameters = *request.mutable_parameters();
    parameters["sequence_id"].set_int64_param(1 + (form >> 5));
    parameters["sequence_start"].set_bool_param((form & 4) != 0);
    parameters["sequence_end"].set_bool_param((form & 8) != 0);
  }
  infer(request);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tt::server::testing::start_engine();
  server();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 64 << 10) return 0;
  const uint8_t kind = data[0] % 3, form = data[1];
  const std::string body(reinterpret_cast<const char*>(data + 2), size - 2);
  if (kind == 0) {
    answer(form, body);
  } else if (kind == 1) {
    inference::ModelInferRequest request;
    if (request.ParseFromString(body)) infer(request);
  } else {
    structured(form, data + 2, size - 2);
  }
  tt::fuzz::require(server().server->begin(8 * kLimit).ok(), "no request is in progress");
  return 0;
}
