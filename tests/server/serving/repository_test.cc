// The repository: loading, replacing and unloading models, also while requests run.
#include "server/serving/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "server/serving/infer_messages.h"
#include "tests/server/engine_memory.h"
#include "tests/server/serving/models.h"
#include "tests/server/wait_until.h"

namespace tt::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::write_file;
using testing::write_shifted;

class RepositoryTest : public ::testing::Test {
 protected:
  RepositoryTest() {
    testing::start_engine();
    bytes_before_ = testing::engine_bytes();
  }
  ~RepositoryTest() override {
    repository_ = nullptr;
    EXPECT_EQ(testing::engine_bytes(), bytes_before_);
  }

  std::filesystem::path path() const { return folder_.path() / "models"; }
  ModelRepository& start(int poll_ms = 0, std::vector<std::string> converter = {"false"}) {
    std::filesystem::create_directories(path());
    ModelRepository::Options options;
    options.folder = path();
    options.poll = std::chrono::milliseconds(poll_ms);
    options.converter.command = std::move(converter);
    options.converter.cache = folder_.path() / "cache";
    repository_ = std::make_unique<ModelRepository>(std::move(options));
    repository_->start();
    EXPECT_TRUE(testing::wait_until([&] { return repository_->ready(); }));
    return *repository_;
  }
  // Returns the first output of a model for rows of `columns` zeros.
  absl::StatusOr<float> ask(const std::string& name, const std::string& version = "", int64_t columns = 3) {
    const auto found = repository_->find(name, version);
    if (!found.ok()) return found.status();
    const auto wire = testing::request_for(name, {1, columns}, std::vector<float>(static_cast<size_t>(columns)));
    InferRequest request;
    if (absl::Status status = read_request_message(wire, "", nullptr, &request); !status.ok()) return status;
    const absl::StatusOr<InferResult> result = (*found)->infer(request);
    if (!result.ok()) return result.status();
    return testing::floats_of(std::string(result->outputs[0].bytes()))[0];
  }
  std::string reason(const std::string& name) {
    for (const ModelRepository::Entry& entry : repository_->index()) {
      if (entry.name == name) return entry.reason;
    }
    return "not in the index";
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<ModelRepository> repository_;
  uint64_t bytes_before_ = 0;
};

TEST_F(RepositoryTest, ServesTheNewestVersion) {
  write_shifted(path() / "m" / "2", 2);
  write_shifted(path() / "m" / "10", 10);
  write_shifted(path() / "m" / "007", 7);  // no version
  write_shifted(path() / ".hidden" / "1", 1);
  ModelRepository& repository = start();
  EXPECT_EQ(ask("m").value(), 10);
  EXPECT_THAT(repository.versions("m"), ElementsAre(10));
  EXPECT_EQ(ask("m", "2").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ask("nothing").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ask("m", "../m").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(repository.index().size(), 1u);
}

TEST_F(RepositoryTest, ServesVersionsSideBySide) {
  for (const int version : {1, 2, 3}) {
    write_shifted(path() / "m" / std::to_string(version), static_cast<float>(version));
  }
  write_file(path() / "m" / "config.json", R"({"version_policy": {"specific": {"versions": [1, 3]}}})");
  ModelRepository& repository = start();
  EXPECT_THAT(repository.versions("m"), ElementsAre(1, 3));
  EXPECT_EQ(ask("m", "1").value(), 1);
  EXPECT_EQ(ask("m", "3").value(), 3);
}

TEST_F(RepositoryTest, ConfigurationsAreChecked) {
  write_shifted(path() / "m" / "1", 1);
  start();
  ModelRepository& repository = *repository_;
  const auto load = [&](const std::string& config) { return std::string(repository.load("m", config, "").message()); };
  EXPECT_THAT(load("{"), HasSubstr("configuration is invalid"));
  EXPECT_THAT(load(R"({"unknown": 1})"), HasSubstr("configuration is invalid"));
  EXPECT_THAT(load(R"({"name": "other"})"), HasSubstr("expected the configuration of 'm'"));
  EXPECT_THAT(load(R"({"max_batch_size": -1})"), HasSubstr("max_batch_size"));
  EXPECT_THAT(load(R"({"dynamic_batching": {}})"), HasSubstr("requires max_batch_size"));
  EXPECT_THAT(load(R"({"max_batch_size": 4, "dynamic_batching": {"preferred_batch_size": [8]}})"),
              HasSubstr("preferred_batch_size of 1 to 4"));
  EXPECT_THAT(load(R"({"instance_group": [{"count": 1000}]})"), HasSubstr("at most 32 instances"));
  EXPECT_THAT(load(R"({"instance_group": [{"kind": "KIND_GPU", "gpus": [7]}]})"), HasSubstr("device of this engine"));
  EXPECT_THAT(load(R"({"parameters": {"color": {"string_value": "red"}}})"), HasSubstr("got 'color'"));
  EXPECT_THAT(load(R"({"parameters": {"memory_limit": {"string_value": "8"}}})"), HasSubstr("out of memory"));
  const std::string batching = R"({"max_batch_size": 4, "dynamic_batching": )";
  EXPECT_THAT(load(batching + R"({"preserve_ordering": true}})"), HasSubstr("preserve_ordering is not supported"));
  std::string sizes = "1";
  for (int i = 0; i < 100; ++i) sizes += ", 1";
  EXPECT_THAT(load(batching + R"({"preferred_batch_size": [)" + sizes + "]}}"), HasSubstr("at most 64 sizes"));
  EXPECT_THAT(load(R"({"sequence_batching": {"direct": {"max_queue_delay_microseconds": 1}}})"),
              HasSubstr("sequences"));
  EXPECT_THAT(load(R"({"model_transaction_policy": {"decoupled": true}})"), HasSubstr("a model that generates"));
  EXPECT_THAT(load(R"({"input": [{"name": "z"}]})"), HasSubstr("names the input 'z'"));
  EXPECT_THAT(load(R"({"input": [{"name": "x", "data_type": "TYPE_INT8"}]})"), HasSubstr("another data type"));
  EXPECT_THAT(load(R"({"output": [{"name": "y", "dims": [-1, 4]}]})"), HasSubstr("other sizes"));
  EXPECT_THAT(load(R"({"model_warmup": [{"inputs": {"x": {"dims": [200000000, 3]}}}]})"), HasSubstr("model_warmup"));
  EXPECT_EQ(ask("m").value(), 1);  // what served before does
  EXPECT_EQ(load(R"({"max_batch_size": 4, "dynamic_batching": {"preferred_batch_size": [2, 4]}})"), "");
  EXPECT_EQ(ask("m").value(), 1);
  write_file(path() / "m" / "config.pbtxt", "max_batch_size: 8 colour: 1");
  EXPECT_THAT(load(""), HasSubstr("config.pbtxt is invalid: line 1"));
  write_file(path() / "m" / "config.pbtxt", "max_batch_size: 8 instance_group { count: 2 kind: KIND_CPU }");
  EXPECT_EQ(load(""), "");
  EXPECT_EQ(repository.find("m", "").value()->settings().max_batch, 8u);
}

TEST_F(RepositoryTest, BatchesStayWithinTheModelsBounds) {
  write_shifted(path() / "m" / "1", 1);
  v1::Model model = testing::shifted();
  v1::Port* x = model.mutable_entries(0)->mutable_inputs(0);
  for (const int64_t most : {6, 0}) x->add_max_sizes(most);
  write_file(path() / "m" / "1" / "program.pb", model.SerializeAsString());
  start();
  const auto load = [&](const std::string& config) {
    return std::string(repository_->load("m", config, "").message());
  };
  EXPECT_THAT(load(R"({"max_batch_size": 8})"), HasSubstr("max_batch_size of at most 6"));
  EXPECT_EQ(load(R"({"max_batch_size": 6})"), "");
}

TEST_F(RepositoryTest, AFailedVersionLeavesTheOldOneServing) {
  write_shifted(path() / "m" / "1", 1);
  ModelRepository& repository = start();
  write_file(path() / "m" / "2" / "program.pb", "not a model");
  EXPECT_FALSE(repository.load("m", "", "").ok());
  EXPECT_EQ(ask("m").value(), 1);
  EXPECT_EQ(ask("m", "2").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(ask("m", "2").status().message()), HasSubstr("serialized Model"));
  // The files of the version that serves are damaged.
  write_file(path() / "m" / "1" / "model.safetensors", "12345678");
  std::filesystem::remove_all(path() / "m" / "2");
  EXPECT_FALSE(repository.load("m", "", "").ok());
  EXPECT_EQ(ask("m").value(), 1);
  EXPECT_NE(reason("m"), "");
  write_shifted(path() / "m" / "1", 5);
  EXPECT_TRUE(repository.load("m", "", "").ok());
  EXPECT_EQ(ask("m").value(), 5);
  EXPECT_EQ(reason("m"), "");
}

TEST_F(RepositoryTest, WarmsUpBeforeItServes) {
  // The weights have another size than the Program's input: the first run fails.
  write_file(path() / "m" / "1" / "program.pb", testing::shifted(3).SerializeAsString());
  write_file(path() / "m" / "1" / "model.safetensors", testing::weights_file("w", {1, 2}));
  write_file(path() / "m" / "config.json", R"({"max_batch_size": 4})");
  start();
  EXPECT_EQ(ask("m").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(reason("m"), HasSubstr("[add]"));
}

TEST_F(RepositoryTest, UnloadsAndLoads) {
  write_shifted(path() / "m" / "1", 1);
  ModelRepository& repository = start(20);
  EXPECT_TRUE(repository.unload("m", "").ok());
  EXPECT_EQ(ask("m").status().code(), absl::StatusCode::kUnavailable);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));  // polling does not load it again
  EXPECT_EQ(ask("m").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(repository.load("m", "", "").ok());
  EXPECT_EQ(ask("m").value(), 1);
  EXPECT_EQ(repository.unload("nothing", "").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(repository.load("nothing", "", "").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(repository.load("../models/m", "", "").code(), absl::StatusCode::kNotFound);
}

TEST_F(RepositoryTest, PollingFollowsTheFolder) {
  ModelRepository& repository = start(20);
  write_shifted(path() / "m" / "1", 1);
  EXPECT_TRUE(testing::wait_until([&] { return ask("m").ok() && *ask("m") == 1; }));
  write_shifted(path() / "m" / "2", 2);
  EXPECT_TRUE(testing::wait_until([&] { return *ask("m") == 2; }));
  EXPECT_TRUE(testing::wait_until([&] { return repository.versions("m") == std::vector<int64_t>{2}; }));
  std::filesystem::remove_all(path() / "m" / "2");
  EXPECT_TRUE(testing::wait_until([&] { return *ask("m") == 1; }));
  std::filesystem::remove_all(path() / "m");
  EXPECT_TRUE(testing::wait_until([&] { return absl::IsNotFound(ask("m").status()); }));
}

TEST_F(RepositoryTest, ReplacingAModelLosesNoRequest) {
  write_shifted(path() / "m" / "1", 1);
  write_file(path() / "m" / "config.json", R"({"max_batch_size": 8, "dynamic_batching": {}})");
  ModelRepository& repository = start();
  std::atomic<bool> stopping{false};
  std::atomic<int> answered{0}, lost{0}, wrong{0};
  std::atomic<int> newest{1};
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      while (!stopping) {
        const int least = newest;
        const absl::StatusOr<float> answer = ask("m");
        ++answered;
        if (!answer.ok()) ++lost;
        // A request begins with a version that serves then.
        if (answer.ok() && (*answer < static_cast<float>(least) || *answer > static_cast<float>(newest + 1))) ++wrong;
      }
    });
  }
  for (int version = 2; version <= 10; ++version) {
    const int before = answered;
    write_shifted(path() / "m" / std::to_string(version), static_cast<float>(version));
    EXPECT_TRUE(repository.load("m", "", "").ok());
    newest = version;
    testing::wait_until([&] { return answered > before + 20; });
  }
  stopping = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(repository.versions("m"), ElementsAre(10));
}

TEST_F(RepositoryTest, AnOlderVersionServesIfTheNewestOneCannotBeLoadedAtTheStart) {
  write_shifted(path() / "m" / "1", 1);
  write_shifted(path() / "m" / "2", 2);
  write_file(path() / "m" / "3" / "program.pb", "damaged");
  std::filesystem::create_directories(path() / "m" / "4");
  ModelRepository& repository = start();
  EXPECT_EQ(ask("m").value(), 2);
  EXPECT_THAT(repository.versions("m"), ElementsAre(2));
  EXPECT_FALSE(repository.load("m", "", "").ok());  // the newest one still fails
  EXPECT_THAT(repository.versions("m"), ElementsAre(2));
  write_shifted(path() / "m" / "4", 4);
  EXPECT_TRUE(repository.load("m", "", "").ok());
  EXPECT_EQ(ask("m").value(), 4);
  EXPECT_THAT(repository.versions("m"), ElementsAre(4));
  // A damaged version is not replaced by an older one if the configuration names the versions.
  write_file(path() / "m" / "5" / "program.pb", "damaged");
  repository.unload("m", "").IgnoreError();
  EXPECT_FALSE(repository.load("m", R"({"version_policy": {"specific": {"versions": [5]}}})", "").ok());
  EXPECT_THAT(repository.versions("m"), ElementsAre());
}

TEST_F(RepositoryTest, ReasonsNameTheFile) {
  write_shifted(path() / "m" / "1", 1);
  ModelRepository& repository = start();
  const auto reason_of = [&](const std::string& file, const std::string& content) {
    std::filesystem::remove_all(path() / "m" / "2");
    write_shifted(path() / "m" / "2", 2);
    if (!file.empty()) {
      write_file(path() / "m" / "2" / file, content);
    } else {
      std::filesystem::remove(path() / "m" / "2" / "program.pb");
    }
    EXPECT_EQ(ask("m").value(), 1);
    return std::string(repository.load("m", "", "").message());
  };
  EXPECT_THAT(reason_of("", ""),
              HasSubstr("expected program.pb, or one .onnx or .pt2 file, in the folder m/2, got model"));
  EXPECT_THAT(reason_of("program.pb", ""), HasSubstr("program.pb: expected a serialized Model, got an empty file"));
  EXPECT_THAT(reason_of("program.pb", "damaged"), HasSubstr("program.pb: expected a serialized Model"));
  EXPECT_THAT(reason_of("program.pb", "damaged"), HasSubstr("got 7 bytes that are damaged"));
  EXPECT_THAT(reason_of("model.safetensors", "1"), HasSubstr("model.safetensors"));
  std::string weights = testing::weights_file("w", {1, 1, 1});
  weights.resize(weights.size() - 4);
  EXPECT_THAT(reason_of("model.safetensors", weights), HasSubstr("model.safetensors: the safetensors header"));
  EXPECT_THAT(reason_of("model.safetensors", testing::weights_file("v", {1, 1, 1})), HasSubstr("model.safetensors: "));
  std::filesystem::remove_all(path() / "m" / "2");
  std::filesystem::create_directories(path() / "m" / "2");
  EXPECT_THAT(std::string(repository.load("m", "", "").message()), HasSubstr("in the folder m/2, got no file"));
  EXPECT_EQ(ask("m").value(), 1);
}

TEST_F(RepositoryTest, TheReportOfAConversionIsShortened) {
  write_file(path() / "m" / "1" / "model.onnx", "onnx");
  start(0, {"sh", "-c", "echo /cache/1.partial; echo '  not convertible: a reason'; echo '  failed'; exit 1"});
  EXPECT_EQ(reason("m"), "[convert] sh could not convert model.onnx: a reason");
}

TEST_F(RepositoryTest, AFailedConversionIsTheVersionsReason) {
  write_file(path() / "m" / "1" / "model.onnx", "onnx");
  start(0, {"sh", "-c", "echo cannot convert Einsum; exit 1"});
  EXPECT_THAT(reason("m"), HasSubstr("could not convert model.onnx: cannot convert Einsum"));
}

TEST_F(RepositoryTest, ConvertsOnceAndKeepsTheResult) {
  write_shifted(folder_.path() / "native", 4);
  const std::string script = "echo run >> " + (folder_.path() / "runs").native() + "; cp " +
                             (folder_.path() / "native").native() + "/* \"$1\"; env > \"$1\"/env";
  setenv("TELETENSOR_TEST_SECRET", "secret", 1);
  write_file(path() / "m" / "1" / "model.onnx", "onnx");
  start(0, {"sh", "-c", script});
  unsetenv("TELETENSOR_TEST_SECRET");
  EXPECT_EQ(ask("m").value(), 4) << reason("m");
  repository_ = nullptr;
  start(0, {"sh", "-c", script});
  EXPECT_EQ(ask("m").value(), 4) << reason("m");
  EXPECT_EQ(std::filesystem::file_size(folder_.path() / "runs"), 4u);
  for (const auto& each : std::filesystem::directory_iterator(folder_.path() / "cache")) {
    std::ifstream environment(each.path() / "env");
    const std::string text((std::istreambuf_iterator<char>(environment)), std::istreambuf_iterator<char>());
    EXPECT_THAT(text, HasSubstr("PATH="));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("secret")));
  }
}

TEST_F(RepositoryTest, AConversionHasNoNetwork) {
  write_file(path() / "m" / "1" / "model.onnx", "onnx");
  start(0, {"bash", "-c", "echo > /dev/udp/127.0.0.1/9 && echo sent; exit 1"});
  EXPECT_THAT(reason("m"), HasSubstr("Address family not supported"));
  EXPECT_THAT(reason("m"), ::testing::Not(HasSubstr("sent")));
}

TEST_F(RepositoryTest, TheCacheKeepsWhatWasUsedLast) {
  namespace fs = std::filesystem;
  write_shifted(folder_.path() / "native", 4);
  const ModelConverter converter({.command = {"sh", "-c", "cp " + (folder_.path() / "native").native() + "/* \"$1\""},
                                  .cache = folder_.path() / "cache",
                                  .cache_entries = 2});
  fs::create_directories(folder_.path() / "cache" / "another");
  for (const char* name : {"a", "b", "c"}) write_file(folder_.path() / name / "model.onnx", name);
  const auto convert = [&](const char* name) { return converter.convert(folder_.path() / name / "model.onnx"); };
  const auto age = [](const fs::path& entry, std::chrono::minutes by) {
    fs::last_write_time(entry, fs::file_time_type::clock::now() - by);
  };
  const fs::path a = convert("a"), b = convert("b"), c = convert("c");
  EXPECT_TRUE(fs::exists(a) && fs::exists(b) && fs::exists(c));  // they may be being read
  age(a, std::chrono::minutes(3));
  age(b, std::chrono::minutes(4));
  age(c, std::chrono::minutes(5));
  EXPECT_EQ(convert("c"), c);  // is not run again
  EXPECT_TRUE(fs::exists(a) && !fs::exists(b) && fs::exists(c));
  EXPECT_TRUE(fs::exists(folder_.path() / "cache" / "another"));
}

TEST_F(RepositoryTest, AMissingConverterIsReported) {
  write_file(path() / "m" / "1" / "model.pt2", "pt2");
  start(0, {"/nonexistent/teletensor"});
  EXPECT_THAT(reason("m"), HasSubstr("--model-converter"));
}

}  // namespace
}  // namespace tt::server
