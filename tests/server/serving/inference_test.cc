// Requests: what is answered, how requests are refused, batches of several clients, sequences, shared memory, REST.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "server/http/inference_paths.h"
#include "server/serving/inference_server.h"
#include "server/serving/rest.h"
#include "tests/server/engine_memory.h"
#include "tests/server/serving/models.h"
#include "tests/server/wait_until.h"

namespace tt::server {
namespace {

using nlohmann::json;
using testing::bytes_of;
using ::testing::ElementsAre;
using testing::floats_of;
using ::testing::HasSubstr;
using testing::port;
using testing::request_for;
using testing::write_file;
using testing::write_shifted;

class InferenceTest : public ::testing::Test {
 protected:
  InferenceTest() { testing::start_engine(); }

  InferenceServer& start(const InferenceServer::Options& options = {.shared_memory = true}) {
    repository_ = std::make_unique<ModelRepository>(ModelRepository::Options{.folder = folder_.path()});
    repository_->start();
    EXPECT_TRUE(testing::wait_until([&] { return repository_->ready(); }));
    for (const ModelRepository::Entry& entry : repository_->index()) EXPECT_EQ(entry.reason, "") << entry.name;
    server_ = std::make_unique<InferenceServer>(*repository_, auth_, options);
    return *server_;
  }
  void write_batched(const std::string& settings = "") {
    write_shifted(folder_.path() / "m" / "1", 1);
    write_file(folder_.path() / "m" / "config.json", "{\"max_batch_size\": 8" + settings + "}");
  }
  absl::StatusOr<inference::ModelInferResponse> infer(const inference::ModelInferRequest& request,
                                                      const std::string& principal = "alice") {
    inference::ModelInferResponse reply;
    ModelShares::Place place;
    absl::Status status = server_->infer({.name = principal}, request, {}, &reply, &place);
    if (!status.ok()) return status;
    return reply;
  }
  std::string refusal(const inference::ModelInferRequest& request) {
    const auto reply = infer(request);
    return reply.ok() ? "" : reply.status().ToString();
  }

  testing::TemporaryFolder folder_;
  Auth auth_ = Auth::with_tokens("user-token", "admin-token");
  std::unique_ptr<ModelRepository> repository_;
  std::unique_ptr<InferenceServer> server_;
};

TEST_F(InferenceTest, AnswersRawAndTypedContents) {
  write_batched();
  start();
  inference::ModelInferRequest request = request_for("m", {2, 3}, {1, 2, 3, 4, 5, 6});
  request.set_id("seven");
  const inference::ModelInferResponse raw = infer(request).value();
  EXPECT_EQ(raw.model_name(), "m");
  EXPECT_EQ(raw.model_version(), "1");
  EXPECT_EQ(raw.id(), "seven");
  EXPECT_EQ(raw.outputs(0).name(), "y");
  EXPECT_EQ(raw.outputs(0).datatype(), "FP32");
  EXPECT_THAT(raw.outputs(0).shape(), ElementsAre(2, 3));
  EXPECT_THAT(floats_of(raw.raw_output_contents(0)), ElementsAre(2, 3, 4, 5, 6, 7));
  request.clear_raw_input_contents();
  for (const float value : {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}) {
    request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(value);
  }
  EXPECT_EQ(infer(request).value().raw_output_contents(0), raw.raw_output_contents(0));
}

struct Refused {
  const char* name;
  std::function<void(inference::ModelInferRequest*)> change;
  const char* message;
};

class RefusedRequests : public InferenceTest, public ::testing::WithParamInterface<Refused> {};

TEST_P(RefusedRequests, LeaveTheModelAsItIs) {
  write_batched();
  start();
  const inference::ModelInferRequest good = request_for("m", {1, 3}, {1, 2, 3});
  inference::ModelInferRequest request = good;
  GetParam().change(&request);
  EXPECT_THAT(refusal(request), HasSubstr(GetParam().message));
  EXPECT_THAT(floats_of(infer(good).value().raw_output_contents(0)), ElementsAre(2, 3, 4));
}

using Wire = inference::ModelInferRequest;
INSTANTIATE_TEST_SUITE_P(
    All, RefusedRequests,
    ::testing::Values(
        Refused{"Model", [](Wire* r) { r->set_model_name("n"); }, "NOT_FOUND"},
        Refused{"Version", [](Wire* r) { r->set_model_version("2"); }, "NOT_FOUND"},
        Refused{"NoInput", [](Wire* r) { r->clear_inputs(), r->clear_raw_input_contents(); },
                "expected 1 inputs, got 0"},
        Refused{"Name", [](Wire* r) { r->mutable_inputs(0)->set_name("z"); },
                "expected the input 'x', which is missing"},
        Refused{"Datatype", [](Wire* r) { r->mutable_inputs(0)->set_datatype("INT32"); }, "expected the datatype FP32"},
        Refused{"Text", [](Wire* r) { r->mutable_inputs(0)->set_datatype("BYTES"); },
                "expected the datatype FP32 for input 'x', got BYTES"},
        Refused{"Rank", [](Wire* r) { r->mutable_inputs(0)->add_shape(1); }, "expected the shape [-1, 3]"},
        Refused{"Size", [](Wire* r) { r->mutable_inputs(0)->set_shape(1, 4); }, "expected the shape [-1, 3]"},
        Refused{"NegativeSize", [](Wire* r) { r->mutable_inputs(0)->set_shape(0, -1); }, "expected sizes of 0 or more"},
        Refused{"HugeSize", [](Wire* r) { r->mutable_inputs(0)->set_shape(0, INT64_MAX); }, "elements"},
        Refused{"Bytes", [](Wire* r) { r->mutable_raw_input_contents(0)->pop_back(); }, "expected 12 bytes"},
        Refused{"Rows",
                [](Wire* r) {
                  *r = request_for("m", {9, 3}, std::vector<float>(27));
                },
                "1 to 8 rows, got 9"},
        Refused{"NoRows",
                [](Wire* r) {
                  *r = request_for("m", {0, 3}, {});
                },
                "1 to 8 rows, got 0"},
        Refused{"Both", [](Wire* r) { r->mutable_inputs(0)->mutable_contents()->add_fp32_contents(1); }, "got both"},
        Refused{"OtherField",
                [](Wire* r) {
                  r->clear_raw_input_contents();
                  for (int i = 0; i < 3; ++i) r->mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
                  r->mutable_inputs(0)->mutable_contents()->add_fp64_contents(1);
                },
                "in the field of its datatype"},
        Refused{"MoreBytes", [](Wire* r) { r->add_raw_input_contents("x"); }, "as many raw_input_contents as inputs"},
        Refused{"Output", [](Wire* r) { r->add_outputs()->set_name("z"); }, "names of the model's outputs"},
        Refused{"Priority", [](Wire* r) { (*r->mutable_parameters())["priority"].set_int64_param(5); },
                "a priority of"},
        Refused{"Parameter", [](Wire* r) { (*r->mutable_parameters())["colour"].set_bool_param(true); },
                "got 'colour'"},
        Refused{"ParameterKind", [](Wire* r) { (*r->mutable_parameters())["timeout"].set_bool_param(true); },
                "of the wrong kind"},
        Refused{"Classes",
                [](Wire* r) {
                  auto* output = r->add_outputs();
                  output->set_name("y");
                  (*output->mutable_parameters())["classification"].set_int64_param(-3);
                },
                "at least 1 as 'classification'"},
        Refused{"OutputParameter",
                [](Wire* r) {
                  auto* output = r->add_outputs();
                  output->set_name("y");
                  (*output->mutable_parameters())["classes"].set_int64_param(3);
                },
                "got 'classes'"},
        Refused{"ClassesOfAnInput",
                [](Wire* r) { (*r->mutable_inputs(0)->mutable_parameters())["classification"].set_int64_param(1); },
                "got 'classification'"},
        Refused{"OutputTwice", [](Wire* r) { r->add_outputs()->set_name("y"), r->add_outputs()->set_name("y"); },
                "distinct outputs, got 'y' twice"},
        Refused{"LongSequence",
                [](Wire* r) { (*r->mutable_parameters())["sequence_id"].set_string_param(std::string(1025, 'a')); },
                "sequence_id of at most 1024 bytes, got 1025"},
        Refused{"Sequence", [](Wire* r) { (*r->mutable_parameters())["sequence_id"].set_int64_param(5); },
                "no sequence_batching"},
        Refused{"Region",
                [](Wire* r) {
                  auto& parameters = *r->mutable_inputs(0)->mutable_parameters();
                  parameters["shared_memory_region"].set_string_param("none");
                },
                "NOT_FOUND"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(InferenceTest, NamedSizesAndBoundsHold) {
  v1::Model model;
  model.set_format(1);
  v1::Entry* entry = model.add_entries();
  *entry->add_inputs() = port("x", {-1}, DType::kFloat32, "n");
  *entry->add_inputs() = port("y", {-1}, DType::kFloat32, "n");
  entry->mutable_inputs(0)->add_min_sizes(2);
  entry->mutable_inputs(0)->add_max_sizes(4);
  *entry->add_outputs() = port("z", {-1}, DType::kFloat32, "n");
  v1::SizeRequirement* even = entry->add_requirements();  // size(x, 0) % 2 == 0
  for (const int term : {1, 0, 1, 0, 2, 0, 6, 0, 0}) even->add_left(term);
  for (const int term : {0, 0, 0}) even->add_right(term);
  even->set_expected(true);
  even->set_where("model.py:3");
  v1::Frame program;
  testing::add(&program, 3, 1, 2);
  testing::read(&program, 1, 3);
  entry->set_program(program.SerializeAsString());
  write_file(folder_.path() / "m" / "1" / "program.pb", model.SerializeAsString());
  start();
  const auto ask = [&](size_t x, size_t y) {
    inference::ModelInferRequest request = request_for("m", {static_cast<int64_t>(x)}, std::vector<float>(x, 1));
    auto* second = request.add_inputs();
    second->set_name("y");
    second->set_datatype("FP32");
    second->add_shape(static_cast<int64_t>(y));
    request.add_raw_input_contents(bytes_of(std::vector<float>(y, 2)));
    return refusal(request);
  };
  EXPECT_EQ(ask(2, 2), "");
  EXPECT_EQ(ask(4, 4), "");
  EXPECT_THAT(ask(2, 4), HasSubstr("expected the size 2 ('n')"));
  EXPECT_THAT(ask(1, 1), HasSubstr("a size of 2 to 4"));
  EXPECT_THAT(ask(6, 6), HasSubstr("a size of 2 to 4"));
  EXPECT_THAT(ask(3, 3), HasSubstr("(model.py:3), got 1 and 0"));
}

TEST_F(InferenceTest, JoinsRequestsOfSeveralClients) {
  write_batched(R"(, "dynamic_batching": {"max_queue_delay_microseconds": 60000000, "preferred_batch_size": [8]})");
  InferenceServer& server = start();
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&, i] {
      const auto v = static_cast<float>(10 * i);
      const auto reply = infer(request_for("m", {2, 3}, {v, v, v, v, v, v + 1}));
      right += reply.ok() &&
               floats_of(reply->raw_output_contents(0)) == std::vector<float>{v + 1, v + 1, v + 1, v + 1, v + 1, v + 2};
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, 4);
  inference::ModelStatisticsResponse statistics;
  EXPECT_TRUE(server.describe({}, inference::ModelStatisticsRequest(), &statistics).ok());
  ASSERT_EQ(statistics.model_stats_size(), 1);
  EXPECT_EQ(statistics.model_stats(0).execution_count(), 1u);
  EXPECT_EQ(statistics.model_stats(0).inference_count(), 8u);
  EXPECT_EQ(statistics.model_stats(0).batch_stats(0).batch_size(), 8u);
  EXPECT_EQ(statistics.model_stats(0).inference_stats().success().count(), 4u);
}

// An index out of range in one request must not fail those that share its batch.
TEST_F(InferenceTest, ARequestsValuesFailOnlyThatRequest) {
  v1::Model model = testing::shifted();
  v1::Entry* entry = model.mutable_entries(0);
  *entry->mutable_inputs(0) = port("x", {-1, 1}, DType::kInt64);
  *entry->mutable_outputs(0) = port("y", {-1, 1});
  v1::Frame program;
  testing::Instruction(&program, "reshape").handle(1).integers({-1}).result(3);
  testing::Instruction(&program, "index_select").handle(2).integer(0).handle(3).result(4);
  testing::Instruction(&program, "unsqueeze").handle(4).integer(1).result(5);
  testing::read(&program, 1, 5);
  entry->set_program(program.SerializeAsString());
  write_file(folder_.path() / "m" / "1" / "program.pb", model.SerializeAsString());
  write_file(folder_.path() / "m" / "1" / "model.safetensors", testing::weights_file("w", {5, 6, 7}));
  write_file(folder_.path() / "m" / "config.json", R"({"max_batch_size": 8, "dynamic_batching":
      {"max_queue_delay_microseconds": 60000000, "preferred_batch_size": [3]}})");
  start();
  std::vector<std::string> answers(3);
  std::vector<std::thread> clients;
  for (const int64_t index : {0, 1, 100}) {
    clients.emplace_back([&, index, at = clients.size()] {
      inference::ModelInferRequest request = request_for("m", {1, 1}, {});
      request.mutable_inputs(0)->set_datatype("INT64");
      request.clear_raw_input_contents();
      request.mutable_inputs(0)->mutable_contents()->add_int64_contents(index);
      const auto reply = infer(request);
      answers[at] =
          reply.ok() ? std::to_string(floats_of(reply->raw_output_contents(0))[0]) : reply.status().ToString();
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_THAT(answers[0], HasSubstr("5.0"));
  EXPECT_THAT(answers[1], HasSubstr("6.0"));
  EXPECT_THAT(answers[2], HasSubstr("INVALID_ARGUMENT"));
}

TEST_F(InferenceTest, SequencesKeepTheirStates) {
  write_file(folder_.path() / "m" / "1" / "program.pb", testing::totals().SerializeAsString());
  write_file(folder_.path() / "m" / "config.json", R"({"sequence_batching": {"direct": {}}})");
  start();
  const auto ask = [&](int64_t id, float value, bool start, bool end, const std::string& who = "alice") {
    inference::ModelInferRequest request = request_for("m", {2}, {value, 1});
    (*request.mutable_parameters())["sequence_id"].set_int64_param(id);
    (*request.mutable_parameters())["sequence_start"].set_bool_param(start);
    (*request.mutable_parameters())["sequence_end"].set_bool_param(end);
    const auto reply = infer(request, who);
    return reply.ok() ? floats_of(reply->raw_output_contents(0))[0] : -1;
  };
  EXPECT_EQ(ask(1, 5, false, false), -1);  // has not begun
  EXPECT_EQ(ask(1, 5, true, false), 5);
  EXPECT_EQ(ask(2, 100, true, false), 100);
  EXPECT_EQ(ask(1, 6, false, false), 11);
  EXPECT_EQ(ask(1, 1, false, false, "bob"), -1);  // another principal's
  EXPECT_EQ(ask(2, 1, false, false), 101);
  EXPECT_EQ(ask(1, 1, false, true), 12);
  EXPECT_EQ(ask(1, 1, false, false), -1);  // has ended
  EXPECT_EQ(ask(0, 1, true, false), -1);
  EXPECT_EQ(ask(1, 3, true, true), 3);
  EXPECT_EQ(repository_->find("m", "").value()->sequences(), 1u);
}

class CandidatesTest : public InferenceTest {
 protected:
  // A model with two sequences at a time.
  void write(int64_t idle_us) {
    write_file(folder_.path() / "m" / "1" / "program.pb", testing::totals().SerializeAsString());
    write_file(folder_.path() / "m" / "config.json",
               "{\"sequence_batching\": {\"max_sequence_idle_microseconds\": " + std::to_string(idle_us) +
                   ", \"oldest\": {\"max_candidate_sequences\": 2}}}");
    start();
    version_ = repository_->find("m", "").value();
  }
  bool ask(const std::string& who, int64_t id, bool start, bool end = false) {
    inference::ModelInferRequest request = request_for("m", {2}, {1, 1});
    (*request.mutable_parameters())["sequence_id"].set_int64_param(id);
    (*request.mutable_parameters())["sequence_start"].set_bool_param(start);
    (*request.mutable_parameters())["sequence_end"].set_bool_param(end);
    return infer(request, who).ok();
  }
  std::shared_ptr<ModelVersion> version_;
};

TEST_F(CandidatesTest, AFreePlaceIsForTheCallerWithFewerSequences) {
  write(60'000'000);
  EXPECT_TRUE(ask("alice", 1, true));
  EXPECT_TRUE(ask("alice", 2, true));
  std::atomic<bool> alice{false}, bob{false};
  std::thread first([&] { alice = ask("alice", 3, true); });
  EXPECT_TRUE(testing::wait_until([&] { return version_->starting() == 1; }));
  std::thread second([&] { bob = ask("bob", 1, true); });
  EXPECT_TRUE(testing::wait_until([&] { return version_->starting() == 2; }));
  EXPECT_TRUE(ask("alice", 1, false, true));
  second.join();
  EXPECT_TRUE(bob);
  EXPECT_FALSE(alice);
  EXPECT_TRUE(ask("alice", 2, false, true));
  first.join();
  EXPECT_TRUE(alice);
}

TEST_F(CandidatesTest, ACallerCannotKeepMoreThanItsShare) {
  constexpr int64_t kIdle = 1'000'000;
  write(kIdle);
  EXPECT_TRUE(ask("alice", 1, true));
  EXPECT_TRUE(ask("alice", 2, true));
  std::atomic<bool> has_begun{false};
  std::thread other([&] { has_begun = ask("bob", 1, true); });
  bool first = true, second = true;  // whether they go on
  EXPECT_TRUE(testing::wait_until([&] {
    first = first && ask("alice", 1, false);
    second = second && ask("alice", 2, false);
    return has_begun.load();
  }));
  other.join();
  EXPECT_NE(first && ask("alice", 1, false), second && ask("alice", 2, false));
  EXPECT_EQ(version_->sequences(), 2u);
  EXPECT_TRUE(ask("bob", 1, false));
}

TEST_F(InferenceTest, RequestsOfASequenceRunOneAfterTheOther) {
  write_file(folder_.path() / "m" / "1" / "program.pb", testing::totals().SerializeAsString());
  write_file(folder_.path() / "m" / "config.json", R"({"sequence_batching": {}})");
  start();
  const auto request = [](bool starts, bool ends) {
    inference::ModelInferRequest made = request_for("m", {2}, {1, 0});
    (*made.mutable_parameters())["sequence_id"].set_int64_param(7);
    (*made.mutable_parameters())["sequence_start"].set_bool_param(starts);
    (*made.mutable_parameters())["sequence_end"].set_bool_param(ends);
    return made;
  };
  ASSERT_TRUE(infer(request(true, false)).ok());
  constexpr int kClients = 4, kRequests = 25;
  std::vector<std::atomic<int>> seen(2 + kClients * kRequests);
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      for (int k = 0; k < kRequests; ++k) {
        const auto reply = infer(request(false, false));
        if (reply.ok()) ++seen[static_cast<size_t>(floats_of(reply->raw_output_contents(0))[0])];
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 2; i < seen.size(); ++i) EXPECT_EQ(seen[i], 1) << i;
  EXPECT_TRUE(infer(request(false, true)).ok());
  EXPECT_THAT(refusal(request(false, false)), HasSubstr("has ended"));
  EXPECT_EQ(repository_->find("m", "").value()->sequences(), 0u);
}

TEST_F(InferenceTest, SharedMemoryIsCheckedAtEachUse) {
  write_batched();
  InferenceServer& server = start();
  const std::string key = "/teletensor-test-" + std::to_string(getpid());
  const int object = shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(object, 0);
  ASSERT_EQ(ftruncate(object, 4096), 0);
  const std::string values = bytes_of({1, 2, 3});
  ASSERT_EQ(pwrite(object, values.data(), values.size(), 100), 12);
  const Principal alice{.name = "alice"}, bob{.name = "bob"};
  inference::SystemSharedMemoryRegisterRequest add;
  add.set_name("r");
  add.set_key(key);
  add.set_offset(100);
  add.set_byte_size(5000);
  EXPECT_THAT(server.add(alice, true, add).ToString(), HasSubstr("which has 4096"));
  add.set_byte_size(1000);
  EXPECT_THAT(server.add(alice, false, add).ToString(), HasSubstr("on the engine's host"));
  EXPECT_TRUE(server.add(alice, true, add).ok());
  EXPECT_EQ(server.add(alice, true, add).code(), absl::StatusCode::kAlreadyExists);
  inference::SystemSharedMemoryRegisterRequest outside = add;
  outside.set_key("/../etc/passwd");
  outside.set_name("s");
  EXPECT_EQ(server.add(alice, true, outside).code(), absl::StatusCode::kInvalidArgument);

  inference::ModelInferRequest request = request_for("m", {1, 3}, {});
  request.clear_raw_input_contents();
  const auto use = [](auto* wire, int64_t offset, int64_t bytes) {
    auto& parameters = *wire->mutable_parameters();
    parameters["shared_memory_region"].set_string_param("r");
    parameters["shared_memory_offset"].set_int64_param(offset);
    parameters["shared_memory_byte_size"].set_int64_param(bytes);
  };
  use(request.mutable_inputs(0), 0, 12);
  EXPECT_THAT(floats_of(infer(request).value().raw_output_contents(0)), ElementsAre(2, 3, 4));
  request.add_outputs()->set_name("y");
  use(request.mutable_outputs(0), 64, 12);
  const inference::ModelInferResponse written = infer(request).value();
  EXPECT_EQ(written.raw_output_contents_size(), 0);
  EXPECT_EQ(written.outputs(0).parameters().at("shared_memory_byte_size").int64_param(), 12);
  std::string read(12, '\0');
  ASSERT_EQ(pread(object, read.data(), read.size(), 164), 12);
  EXPECT_THAT(floats_of(read), ElementsAre(2, 3, 4));
  use(request.mutable_outputs(0), 64, 8);
  EXPECT_THAT(refusal(request), HasSubstr("at least 12 bytes"));
  use(request.mutable_inputs(0), 995, 12);
  EXPECT_THAT(refusal(request), HasSubstr("which has 1000"));
  EXPECT_EQ(infer(request, "bob").status().code(), absl::StatusCode::kNotFound);
  use(request.mutable_inputs(0), 0, int64_t{1} << 40);  // is refused before memory is allocated
  EXPECT_EQ(infer(request).status().code(), absl::StatusCode::kOutOfRange);
  use(request.mutable_inputs(0), -1, 12);
  EXPECT_EQ(infer(request).status().code(), absl::StatusCode::kInvalidArgument);
  use(request.mutable_inputs(0), INT64_MAX, 12);
  EXPECT_THAT(refusal(request), HasSubstr("which has 1000"));
  use(request.mutable_inputs(0), 0, 12);
  ASSERT_EQ(ftruncate(object, 0), 0);  // the client shrinks the object
  EXPECT_THAT(refusal(request), HasSubstr("has become smaller"));
  inference::SystemSharedMemoryUnregisterRequest remove;
  EXPECT_TRUE(server.remove(bob, remove).ok());
  inference::SystemSharedMemoryStatusResponse status;
  EXPECT_TRUE(server.describe(alice, inference::SystemSharedMemoryStatusRequest(), &status).ok());
  EXPECT_EQ(status.regions_size(), 1);
  EXPECT_TRUE(server.remove(alice, remove).ok());
  EXPECT_EQ(infer(request).status().code(), absl::StatusCode::kNotFound);
  close(object);
  shm_unlink(key.c_str());
}

TEST_F(InferenceTest, CallersNeedRights) {
  write_batched(R"(, "parameters": {"principals": {"string_value": "alice,carol"}})");
  InferenceServer& server = start({.request_bytes = 1 << 20, .inflight_bytes = 1000});
  using Right = InferenceServer::Right;
  const auto code = [&](const char* token, Right right) { return server.caller({token}, right).status().code(); };
  EXPECT_EQ(code("", Right::kNone), absl::StatusCode::kOk);
  EXPECT_EQ(code("", Right::kInfer), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code("Bearer user-token", Right::kInfer), absl::StatusCode::kOk);
  EXPECT_EQ(code("Bearer user-token", Right::kManage), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code("Bearer admin-token", Right::kManage), absl::StatusCode::kOk);
  InferenceServer open(*repository_, auth_, {.open = true});
  EXPECT_TRUE(open.caller({""}, Right::kInfer).ok());
  EXPECT_FALSE(open.caller({"Bearer wrong"}, Right::kInfer).ok());
  EXPECT_FALSE(open.caller({""}, Right::kManage).ok());
  const inference::ModelInferRequest request = request_for("m", {1, 3}, {1, 2, 3});
  EXPECT_TRUE(infer(request, "carol").ok());
  EXPECT_EQ(infer(request, "bob").status().code(), absl::StatusCode::kNotFound);
  inference::RepositoryIndexResponse index;
  EXPECT_TRUE(server.describe({.name = "bob"}, inference::RepositoryIndexRequest(), &index).ok());
  EXPECT_EQ(index.models_size(), 0);
  // A model that does not serve is as unknown to others, and one that was removed is forgotten.
  EXPECT_TRUE(repository_->unload("m", "").ok());
  EXPECT_EQ(infer(request, "carol").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(infer(request, "bob").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(server.describe({.name = "bob"}, inference::RepositoryIndexRequest(), &index).ok());
  EXPECT_EQ(index.models_size(), 0);
  EXPECT_TRUE(server.describe({.name = "carol"}, inference::RepositoryIndexRequest(), &index).ok());
  EXPECT_EQ(index.models_size(), 1);
  repository_->remove("m", "");
  EXPECT_TRUE(repository_->index().empty());
  EXPECT_EQ(infer(request, "carol").status().code(), absl::StatusCode::kNotFound);
  const auto first = server.begin(900);
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(server.begin(200).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(server.begin(50).ok());
}

class RestTest : public InferenceTest {
 protected:
  RestResponse ask(const std::string& method, const std::string& path, const std::string& body = "",
                   size_t json_bytes = SIZE_MAX, const std::string& token = "admin-token") {
    RestRequest request;
    request.method = method;
    request.path = path;
    request.authorization = "Bearer " + token;
    request.body = body;
    request.json_bytes = json_bytes;
    return answer_rest(*server_, request);
  }
  json ask_json(const std::string& method, const std::string& path, const std::string& body = "") {
    return json::parse(ask(method, path, body).body);
  }
};

TEST_F(RestTest, AnswersJsonAndBinaryData) {
  write_batched();
  start();
  const std::string input = R"({"name": "x", "datatype": "FP32", "shape": [1, 3])";
  const json reply =
      ask_json("POST", "/v2/models/m/infer", R"({"id": "7", "inputs": [)" + input + R"(, "data": [[1, 2.5, -3]]}]})");
  EXPECT_EQ(reply["id"], "7");
  EXPECT_EQ(reply["outputs"][0]["shape"], json({1, 3}));
  EXPECT_EQ(reply["outputs"][0]["data"], json({2.0, 3.5, -2.0}));
  const std::string text = R"({"inputs": [)" + input + R"(, "parameters": {"binary_data_size": 12}}],
      "outputs": [{"name": "y", "parameters": {"binary_data": true}}]})";
  const RestResponse binary = ask("POST", "/v2/models/m/versions/1/infer", text + bytes_of({1, 2, 3}), text.size());
  ASSERT_EQ(binary.status, 200) << binary.body;
  EXPECT_EQ(json::parse(binary.body.substr(0, binary.json_bytes))["outputs"][0]["parameters"]["binary_data_size"], 12);
  EXPECT_THAT(floats_of(binary.body.substr(binary.json_bytes)), ElementsAre(2, 3, 4));
}

TEST_F(RestTest, AnswersTheOtherPaths) {
  write_batched();
  start();
  EXPECT_EQ(ask_json("GET", "/v2")["name"], "teletensor");
  EXPECT_EQ(ask("GET", "/v2/health/live").status, 200);
  EXPECT_EQ(ask("GET", "/v2/health/ready").status, 200);
  EXPECT_EQ(ask("GET", "/v2/models/m/ready").status, 200);
  EXPECT_EQ(ask("GET", "/v2/models/n/ready").status, 404);
  EXPECT_EQ(ask_json("GET", "/v2/models/m")["inputs"][0]["shape"], json({-1, 3}));
  EXPECT_EQ(ask_json("GET", "/v2/models/m")["versions"], json({"1"}));
  EXPECT_EQ(ask_json("GET", "/v2/models/m/config")["max_batch_size"], 8);
  EXPECT_EQ(ask_json("GET", "/v2/models/m/config")["input"][0]["dims"], json({3}));
  EXPECT_EQ(ask_json("GET", "/v2/models/m/versions/1/stats")["model_stats"][0]["inference_count"], 0);
  EXPECT_EQ(ask_json("POST", "/v2/repository/index")[0]["state"], "READY");
  EXPECT_EQ(ask("POST", "/v2/repository/models/m/unload", "{}").status, 200);
  EXPECT_EQ(ask("GET", "/v2/models/m/ready").status, 503);
  EXPECT_EQ(ask("POST", "/v2/repository/models/m/load", "{}").status, 200);
  EXPECT_EQ(ask("GET", "/v2/models/m/ready").status, 200);
  EXPECT_EQ(ask("POST", "/v2/repository/models/n/load", "{}").status, 404);
  EXPECT_EQ(ask_json("GET", "/v2/systemsharedmemory/status"), json::array());
  EXPECT_EQ(ask("POST", "/v2/cudasharedmemory/region/a/register", "{}").status, 501);
  for (const char* path : {"/v2/", "/v2/x", "/v2/models", "/v2/models/m/x", "/v2/models/m/versions/1/infer/x"}) {
    EXPECT_THAT(ask("GET", path).status, ::testing::AnyOf(200, 404)) << path;
  }
}

TEST_F(RestTest, ChangesRequireAnOperatorAndPost) {
  write_batched();
  start();
  for (const char* path : {"/v2/repository/models/m/unload", "/v2//repository/models/m/unload",
                           "/v2/repository//models//m/unload/", "/v2/repository/models/m/load"}) {
    EXPECT_EQ(ask("POST", path, "{}", SIZE_MAX, "user-token").status, 403) << path;
    EXPECT_EQ(ask("GET", path, "", SIZE_MAX, "user-token").status, 403) << path;
    EXPECT_EQ(ask("GET", path).status, 501) << path;
  }
  EXPECT_EQ(ask("GET", "/v2/systemsharedmemory/unregister").status, 501);
  EXPECT_EQ(ask("GET", "/v2/models/m/ready").status, 200);
  EXPECT_EQ(ask("POST", "/v2//repository/models/m/unload", "{}").status, 200);
}

TEST_F(RestTest, OutputsAsJsonAreCounted) {
  write_batched();
  start({.request_bytes = 10'000, .inflight_bytes = 6'000});
  const std::string text = R"({"parameters": {"binary_data_output": true}, "inputs": [{"name": "x", "datatype": "FP32",
      "shape": [8, 3], "parameters": {"binary_data_size": 96}}]})";
  const std::string values = bytes_of(std::vector<float>(24));
  EXPECT_EQ(ask("POST", "/v2/models/m/infer", text + values, text.size()).status, 200);
  const std::string as_json = R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [8, 3],
      "parameters": {"binary_data_size": 96}}]})";
  EXPECT_EQ(ask("POST", "/v2/models/m/infer", as_json + values, as_json.size()).status, 200);
  const auto most = server_->begin(2'500);
  EXPECT_EQ(ask("POST", "/v2/models/m/infer", as_json + values, as_json.size()).status, 429);
}

TEST(ContentCoding, DecompressesPartsOfAnySizes) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 10'007);
  const auto grant = [](uint64_t) { return absl::OkStatus(); };
  for (const ContentCoding coding : {ContentCoding::kGzip, ContentCoding::kDeflate}) {
    const std::string bytes = compressed(coding, text);
    for (const size_t size : {size_t{1}, size_t{7}, size_t{4096}, bytes.size()}) {
      std::vector<absl::string_view> parts = {""};
      for (size_t at = 0; at < bytes.size(); at += size) {
        parts.push_back(absl::string_view(bytes).substr(at, size));
        if (parts.size() % 3 == 0) parts.push_back("");
      }
      EXPECT_EQ(decompressed(coding, parts, text.size(), grant).value(), text) << size;
      parts.push_back("more");
      EXPECT_THAT(decompressed(coding, parts, text.size(), grant).status().message(), HasSubstr("further bytes"));
      parts.assign({absl::string_view(bytes).substr(0, 100), absl::string_view(bytes).substr(100, 50)});
      EXPECT_THAT(decompressed(coding, parts, text.size(), grant).status().message(), HasSubstr("incomplete"));
    }
    EXPECT_THAT(decompressed(coding, {}, text.size(), grant).status().message(), HasSubstr("incomplete"));
  }
}

TEST_F(RestTest, DecompressedBytesAreCountedOnce) {
  write_batched();
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  InferenceServer& server = start({.request_bytes = 2 * kMiB, .inflight_bytes = 4 * kMiB});
  const std::string bytes = compressed(ContentCoding::kGzip, std::string(3 * kMiB / 2, ' '));
  InferenceServer::Inflight charged;
  const auto decompress = [&] {
    return server.decompress(ContentCoding::kGzip, {bytes}, server.options().request_bytes, &charged).status();
  };
  EXPECT_TRUE(decompress().ok());
  EXPECT_TRUE(server.begin(2 * kMiB).ok());  // it is 2 MiB large, and its smaller copies are gone
  EXPECT_FALSE(server.begin(2 * kMiB + 1).ok());
  charged = InferenceServer::Inflight();
  {
    const auto other = server.begin(5 * kMiB / 4);  // while it grows from 1 to 2 MiB, both count
    EXPECT_EQ(decompress().code(), absl::StatusCode::kResourceExhausted);
    charged = InferenceServer::Inflight();
  }
  EXPECT_TRUE(server.begin(4 * kMiB).ok());
}

TEST_F(RestTest, RefusesInvalidBodies) {
  write_batched();
  start();
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  const std::string input = R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], )";
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), deep, R"({"inputs": [)" + deep + "]}",
        std::string(R"({"inputs": [1]})"), input + R"("data": )" + deep + "}]}", input + R"("data": [1, 2, "3"]}]})",
        input + R"("data": [1, 2]}]})", input + R"("data": [1, 2, 3, 4]}]})",
        input + R"("parameters": {"binary_data_size": 12}}]})", input + R"("parameters": {"binary_data_size": -1}}]})",
        input + R"("parameters": 7}]})", input + R"("data": [1, 2, null]}]})"}) {
    const RestResponse response = ask("POST", "/v2/models/m/infer", body);
    EXPECT_EQ(response.status, 400) << body.substr(0, 100);
    EXPECT_TRUE(json::parse(response.body).contains("error"));
  }
  EXPECT_EQ(ask("POST", "/v2/models/m/infer", "{}", 100).status, 400);
}

TEST_F(RestTest, BodiesAreAdmittedByTheirHeaders) {
  write_batched();
  start({.request_bytes = 1000});
  AuditLog audit;
  InferencePaths paths(*server_, auth_, audit, /*is_local=*/true);
  const std::string peer = "ipv4:127.0.0.1:1";
  const auto admit = [&](const std::string& head) { return paths.admit(head + "\r\n\r\n", peer); };
  const std::string post = "POST /v2/models/m/infer HTTP/1.1\r\n", token = "authorization: Bearer user-token\r\n";
  EXPECT_EQ(admit(post + token + "Content-Length: 10").bytes, 10u);
  EXPECT_TRUE(admit(post + token + "Content-Length: 10").is_slow);
  EXPECT_THAT(admit(post + "Content-Length: 10").refusal, HasSubstr("401"));
  EXPECT_THAT(admit(post + "authorization: Bearer x\r\nContent-Length: 10").refusal, HasSubstr("401"));
  EXPECT_THAT(admit(post + token + "Content-Length: 1001").refusal, HasSubstr("413"));
  EXPECT_THAT(admit(post + token + "Content-Length: 1\r\nContent-Length: 2").refusal, HasSubstr("400"));
  EXPECT_THAT(admit(post + token + "Content-Length: -1").refusal, HasSubstr("400"));
  EXPECT_THAT(admit(post + token + "Transfer-Encoding: chunked").refusal, HasSubstr("411"));
  EXPECT_EQ(admit(post + token + "Content-Encoding: gzip\r\nContent-Length: 10").bytes, 10u);
  EXPECT_THAT(admit(post + token + "Content-Encoding: br\r\nContent-Length: 10").refusal, HasSubstr("415"));
  EXPECT_THAT(admit(post + token + "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: 10").refusal,
              HasSubstr("415"));
  EXPECT_THAT(
      admit(post + token + "Transfer-Encoding: chunked\r\nContent-Encoding: identity\r\nContent-Length: 0").refusal,
      HasSubstr("411"));
  EXPECT_THAT(admit(post + token + "Content-Length : 10").refusal, HasSubstr("400"));
  EXPECT_THAT(admit(post + token + "Content-Length: 10\r\n X: y").refusal, HasSubstr("400"));
  EXPECT_THAT(admit(post + token + token + "Content-Length: 10").refusal, HasSubstr("400"));
  EXPECT_THAT(admit("POST /v2//repository/models/m/unload HTTP/1.1\r\n" + token + "Content-Length: 2").refusal,
              HasSubstr("403"));
  EXPECT_THAT(admit("GET /v2/repository/models/m/unload HTTP/1.1\r\n" + token).refusal, HasSubstr("403"));
  EXPECT_THAT(admit("GET /v2/models/m HTTP/1.1\r\n" + token + "Content-Length: 10").refusal, HasSubstr("400"));
  EXPECT_THAT(admit("GET /v2/models/m HTTP/1.1\r\n" + token + "Transfer-Encoding: chunked").refusal, HasSubstr("400"));
  EXPECT_EQ(admit("GET /v2/models/m HTTP/1.1\r\n" + token + "Content-Length: 0").refusal, "");
  EXPECT_THAT(admit("PUT /v2/models/m/infer HTTP/1.1\r\n" + token).refusal, HasSubstr("400"));
  EXPECT_THAT(admit("POST /v2/repository/models/m/unload HTTP/1.1\r\n" + token + "Content-Length: 2").refusal,
              HasSubstr("403"));
  EXPECT_EQ(admit("GET / HTTP/1.1\r\nContent-Length: 10").bytes, 0u);
  // Without tokens, pages in a browser on this host must not reach the server.
  const Auth none = Auth::disabled();
  InferenceServer open(*repository_, none, {});
  InferencePaths local(open, none, audit, /*is_local=*/true);
  const auto admit_local = [&](const std::string& head) { return local.admit(post + head + "\r\n\r\n", peer).refusal; };
  EXPECT_EQ(admit_local("Content-Length: 1\r\nHost: localhost:80"), "");
  EXPECT_THAT(admit_local("Content-Length: 1\r\nHost: evil.example"), HasSubstr("403"));
  EXPECT_THAT(admit_local("Content-Length: 1\r\nHost: localhost\r\nOrigin: http://evil.example"), HasSubstr("403"));
}

// totals() with an output whose size the description does not say.
class AnswerTest : public InferenceTest {
 protected:
  void write_totals(bool is_known) {
    v1::Model model = testing::totals();
    if (!is_known) *model.mutable_entries(0)->mutable_outputs(0) = port("total", {-1}, DType::kFloat32, "");
    write_file(folder_.path() / "m" / "1" / "program.pb", model.SerializeAsString());
  }
  // The total after a request, or the message of its error.
  std::string total(
      float value, bool is_start, InferRequest limits = {},
      absl::FunctionRef<absl::Status()> finish = [] { return absl::OkStatus(); }) {
    inference::ModelInferRequest request = request_for("m", {2}, {value, 0});
    (*request.mutable_parameters())["sequence_id"].set_int64_param(7);
    (*request.mutable_parameters())["sequence_start"].set_bool_param(is_start);
    inference::ModelInferResponse reply;
    ModelShares::Place place;
    const absl::Status status = server_->infer({.name = "alice"}, request, std::move(limits), &reply, &place, finish);
    return status.ok() ? std::to_string(static_cast<int>(floats_of(reply.raw_output_contents(0))[0]))
                       : std::string(status.message());
  }
  uint64_t runs() { return repository_->find("m", "").value()->statistics().totals().batches; }
};

TEST_F(AnswerTest, KnownSizesAreReservedBeforeTheRun) {
  write_totals(true);
  start();
  EXPECT_EQ(total(1, true), "1");
  uint64_t reserved = 0;
  const uint64_t before = runs();
  const auto refuse = [&](absl::Span<const InferOutput> outputs) {
    reserved = outputs[0].size;
    return absl::ResourceExhaustedError("no room");
  };
  EXPECT_EQ(total(10, false, {.reserve = refuse}), "no room");
  EXPECT_EQ(total(10, true, {.reserve = refuse}), "no room");  // does not begin again
  EXPECT_EQ(reserved, 8u);
  EXPECT_EQ(runs(), before);
  EXPECT_EQ(total(2, false), "3");
}

TEST_F(AnswerTest, UnknownSizesAreReservedAfterTheRunWhichChangesNoState) {
  write_totals(false);
  start();
  EXPECT_EQ(total(1, true), "1");
  const uint64_t before = runs();
  const auto refuse = [](absl::Span<const InferOutput> outputs) {
    return outputs[0].size == 8 ? absl::ResourceExhaustedError("no room") : absl::OkStatus();
  };
  EXPECT_EQ(total(10, false, {.reserve = refuse}), "no room");
  EXPECT_EQ(runs(), before + 1);
  EXPECT_EQ(total(2, false), "3");
  EXPECT_EQ(total(5, true, {.reserve = refuse}), "no room");  // would begin again
  EXPECT_EQ(total(5, false), "8");
}

TEST_F(AnswerTest, ARequestThatNobodyWaitsForChangesNoState) {
  write_totals(true);
  start();
  EXPECT_EQ(total(1, true), "1");
  int asked = 0;
  // Not at the beginning, but when it has run.
  const auto late = [&] { return runs() != 1 && ++asked > 0; };
  EXPECT_THAT(total(10, false, {.is_cancelled = late}), HasSubstr("cancelled"));
  EXPECT_GT(asked, 0);
  EXPECT_EQ(runs(), 2u);
  EXPECT_THAT(total(10, true, {.deadline = std::chrono::steady_clock::now()}), HasSubstr("time has passed"));
  EXPECT_EQ(total(2, false), "3");
}

TEST_F(AnswerTest, AnExceptionLeavesTheSequenceToOthers) {
  write_totals(true);
  start();
  EXPECT_EQ(total(1, true), "1");
  const auto exhausted = []() -> bool { throw std::bad_alloc(); };
  EXPECT_THROW(total(10, false, {.is_cancelled = exhausted}), std::bad_alloc);
  EXPECT_EQ(total(2, false, {.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20)}), "3");
}

TEST_F(AnswerTest, AnAnswerThatCannotBeWrittenChangesNoState) {
  write_totals(true);
  start();
  EXPECT_EQ(total(1, true), "1");
  EXPECT_EQ(total(10, false, {}, [] { return absl::InvalidArgumentError("no JSON"); }), "no JSON");
  EXPECT_EQ(total(2, false), "3");
}

TEST_F(AnswerTest, RequestsInProgressRefuseAnAnswerForAWhileAndItsOwnSizeForever) {
  write_totals(true);
  start({.request_bytes = 1 << 20, .inflight_bytes = 1 << 20});
  EXPECT_EQ(total(1, true), "1");
  RestRequest request;
  request.method = "POST";
  request.path = "/v2/models/m/infer";
  request.authorization = "Bearer user-token";
  const std::string body = R"({"parameters": {"sequence_id": 9, "sequence_start": true},
      "inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [4, 0]}]})";
  request.body = body;
  {
    const auto other = server_->begin((1 << 20) - 25 * body.size() - 50);  // room for the request only
    ASSERT_TRUE(other.ok());
    const RestResponse response = answer_rest(*server_, request);
    EXPECT_EQ(response.status, 429);
    EXPECT_THAT(response.body, HasSubstr("try again later"));
  }
  EXPECT_EQ(answer_rest(*server_, request).status, 200);
  InferenceServer::Inflight charged;
  EXPECT_EQ(server_->begin_answer((1 << 20) + 1, &charged).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(AnswerTest, SharedMemoryThatIsTooSmallIsRefusedBeforeTheRun) {
  write_totals(true);
  start();
  EXPECT_EQ(total(1, true), "1");
  const std::string key = "/teletensor-answer-" + std::to_string(getpid());
  const int fd = shm_open(key.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  ASSERT_TRUE(server_->regions()->add("alice", "region", key, 0, 4096).ok());
  inference::ModelInferRequest request = request_for("m", {2}, {10, 0});
  (*request.mutable_parameters())["sequence_id"].set_int64_param(7);
  auto* output = request.add_outputs();
  output->set_name("total");
  (*output->mutable_parameters())["shared_memory_region"].set_string_param("region");
  (*output->mutable_parameters())["shared_memory_byte_size"].set_int64_param(4);
  const uint64_t before = runs();
  EXPECT_THAT(refusal(request), HasSubstr("shared memory of at least 8 bytes"));
  EXPECT_EQ(runs(), before);
  EXPECT_EQ(total(2, false), "3");
  shm_unlink(key.c_str());
  close(fd);
}

}  // namespace
}  // namespace tt::server
