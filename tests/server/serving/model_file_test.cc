// Descriptions of models: what is read, and hostile files.
#include "server/serving/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "server/serving/served_model.h"
#include "tests/server/engine_memory.h"
#include "tests/server/serving/models.h"

namespace tt::server {
namespace {

using ::testing::HasSubstr;
using testing::Instruction;
using testing::port;
using testing::shifted;

class ModelFileTest : public ::testing::Test {
 protected:
  ModelFileTest() { testing::start_engine(); }
};

std::string error_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}
std::string error_of(const v1::Model& model) {
  return error_of([&] { parse_model(model.SerializeAsString()); });
}

TEST_F(ModelFileTest, ReadsWhatAModelDescribes) {
  const ModelFile file = parse_model(shifted().SerializeAsString());
  ASSERT_EQ(file.entries.size(), 1u);
  const ModelEntry& entry = *file.find("");
  EXPECT_EQ(entry.inputs[0].name, "x");
  EXPECT_EQ(entry.inputs[0].dims[0].size, kDynamic);
  EXPECT_EQ(entry.inputs[0].dims[0].name, "batch");
  EXPECT_EQ(entry.inputs[0].dims[1].size, 3);
  EXPECT_TRUE(entry.is_batchable());
  EXPECT_EQ(entry.program->interface().read, 2u);
  EXPECT_EQ(file.find("step"), nullptr);
}

TEST_F(ModelFileTest, IsBatchableOnlyIfAllFirstDimensionsAreTheBatch) {
  v1::Model model = shifted();
  *model.mutable_entries(0)->mutable_outputs(0) = port("y", {-1, 3}, DType::kFloat32, "rows");
  EXPECT_FALSE(parse_model(model.SerializeAsString()).entries[0].is_batchable());
  *model.mutable_entries(0)->mutable_outputs(0) = port("y", {3, -1});
  EXPECT_FALSE(parse_model(model.SerializeAsString()).entries[0].is_batchable());
}

struct Refused {
  const char* name;
  std::function<void(v1::Model*)> change;
  const char* message;
};

class RefusedModels : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedModels, AreReported) {
  testing::start_engine();
  v1::Model model = shifted();
  GetParam().change(&model);
  EXPECT_THAT(error_of(model), HasSubstr(GetParam().message));
}

v1::Entry* entry(v1::Model* model) { return model->mutable_entries(0); }
// Replaces the Program by one that `add` writes.
void set_program(v1::Model* model, const std::function<void(v1::Frame*)>& add) {
  v1::Frame program;
  add(&program);
  entry(model)->set_program(program.SerializeAsString());
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedModels,
    ::testing::Values(
        Refused{"Format", [](v1::Model* m) { m->set_format(2); }, "expected format 1, got 2"},
        Refused{"NoEntry", [](v1::Model* m) { m->clear_entries(); }, "expected 1 to 64 entries, got 0"},
        Refused{"TwoEntriesOfOneName", [](v1::Model* m) { *m->add_entries() = m->entries(0); }, "distinct short names"},
        Refused{"ManyEntries",
                [](v1::Model* m) {
                  for (int i = 0; i < 64; ++i) m->add_entries()->set_name(std::to_string(i));
                },
                "expected 1 to 64 entries, got 65"},
        Refused{"Dtype", [](v1::Model* m) { entry(m)->mutable_inputs(0)->set_dtype(99); }, "number of a dtype"},
        Refused{"NegativeSize", [](v1::Model* m) { entry(m)->mutable_inputs(0)->set_sizes(0, -2); }, "at least -1"},
        Refused{"ManyDims",
                [](v1::Model* m) {
                  for (int i = 0; i < 100; ++i) entry(m)->mutable_inputs(0)->add_sizes(1);
                },
                "at most 64 dimensions"},
        Refused{"NamesOfSizes", [](v1::Model* m) { entry(m)->mutable_inputs(0)->add_size_names("z"); },
                "a name and bounds for each"},
        Refused{"Bounds",
                [](v1::Model* m) {
                  for (int i = 0; i < 2; ++i) entry(m)->mutable_inputs(0)->add_min_sizes(5);
                  for (int i = 0; i < 2; ++i) entry(m)->mutable_inputs(0)->add_max_sizes(4);
                },
                "ascending order"},
        Refused{"EmptyName", [](v1::Model* m) { entry(m)->mutable_inputs(0)->set_name(""); }, "a name of 1 to 512"},
        Refused{"LongName", [](v1::Model* m) { entry(m)->mutable_inputs(0)->set_name(std::string(1000, 'x')); },
                "a name of 1 to 512"},
        Refused{"TwoInputsOfOneName", [](v1::Model* m) { *entry(m)->add_inputs() = entry(m)->inputs(0); },
                "distinct names of inputs"},
        Refused{"ManyInputs",
                [](v1::Model* m) {
                  for (int i = 0; i < 1025; ++i) *entry(m)->add_inputs() = port(std::to_string(i), {1});
                },
                "at most 1024 inputs"},
        Refused{"Outputs", [](v1::Model* m) { *entry(m)->add_outputs() = port("z", {-1}); },
                "expected 2 outputs of the Program"},
        Refused{"StatesInPlaceFirst",
                [](v1::Model* m) {
                  for (const char* name : {"a", "b"}) {
                    v1::State* state = entry(m)->add_states();
                    state->set_name(name);
                    state->set_dtype(8);
                    state->set_in_place(name[0] == 'a');
                  }
                },
                "changed in place last"},
        Refused{"ProgramBytes", [](v1::Model* m) { entry(m)->set_program("\xff\xff\xff"); }, "serialized frame"},
        Refused{"UnknownName",
                [](v1::Model* m) {
                  set_program(m, [](v1::Frame* f) {
                    Instruction(f, "add").handle(1).handle(9).result(3);
                    testing::read(f, 1, 3);
                  });
                },
                "a name that exists"},
        Refused{"UnknownOperator",
                [](v1::Model* m) {
                  set_program(m, [](v1::Frame* f) {
                    f->add_instructions()->set_op(60'000);
                    testing::read(f, 1, 3);
                  });
                },
                "unknown to this engine"},
        Refused{"ProgramInAProgram",
                [](v1::Model* m) {
                  set_program(m, [](v1::Frame* f) {
                    Instruction(f, "run_program").handles({1}).handles({}).integer(1).result(3);
                    testing::read(f, 1, 3);
                  });
                },
                "cannot contain it"},
        Refused{"Generator",
                [](v1::Model* m) {
                  set_program(m, [](v1::Frame* f) {
                    Instruction(f, "manual_seed").integer(1);
                    Instruction(f, "add").handle(1).handle(2).result(3);
                    testing::read(f, 1, 3);
                  });
                },
                "operators that need no session, got manual_seed"},
        Refused{"Publication",
                [](v1::Model* m) {
                  set_program(m, [](v1::Frame* f) {
                    Instruction(f, "unpublish").bytes("x").none().result(3);
                    testing::read(f, 1, 3);
                  });
                },
                "[unpublish] changes the session's state, or uses what is outside of it"},
        Refused{"ControlsInAName", [](v1::Model* m) { entry(m)->mutable_inputs(0)->set_name("x\x1b[2J"); },
                "UTF-8 without control characters"},
        Refused{"RequirementTerms", [](v1::Model* m) { entry(m)->add_requirements()->add_left(0); },
                "three numbers per term"},
        Refused{"RequirementKind",
                [](v1::Model* m) {
                  v1::SizeRequirement* r = entry(m)->add_requirements();
                  for (const int n : {50, 0, 0}) r->add_left(n);
                },
                "a kind of term"},
        Refused{"Attributes", [](v1::Model* m) { (*m->mutable_attributes())["a"] = std::string(5000, 'x'); },
                "at most 4096 bytes"}),
    [](const auto& each) { return std::string(each.param.name); });

// Two bytes of a file become an object of some hundred bytes: the number of fields is limited before they are parsed.
TEST_F(ModelFileTest, RefusesManyFieldsBeforeParsing) {
  std::string bytes;
  for (int i = 0; i < 400'000; ++i) bytes += std::string("\x1a\x00", 2);  // empty entries
  EXPECT_THAT(error_of([&] { parse_model(bytes); }), HasSubstr("fields"));
  std::string ports;
  for (int i = 0; i < 400'000; ++i) ports += std::string("\x12\x00", 2);  // empty inputs
  v1::Model model;
  model.set_format(1);
  std::string entry = model.SerializeAsString() + "\x1a";
  for (size_t size = ports.size(); size != 0; size >>= 7)
    entry += static_cast<char>((size & 127) | (size > 127 ? 128 : 0));
  EXPECT_THAT(error_of([&] { parse_model(entry + ports); }), HasSubstr("fields"));
}

TEST_F(ModelFileTest, AnyPrefixOrChangedByteIsHandled) {
  const std::string bytes = shifted().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) error_of([&] { parse_model(bytes.substr(0, size)); });
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const char change : {'\x00', '\x01', '\x7f', '\xff'}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      error_of([&] { parse_model(changed); });
    }
  }
}

TEST_F(ModelFileTest, WeightsAreCheckedAndFreed) {
  const testing::TemporaryFolder folder;
  const uint64_t before = testing::engine_bytes();
  const auto load = [&] { return ServedModel::load(folder.path(), {.name = "m/1"}); };
  EXPECT_THAT(error_of([&] { load(); }), HasSubstr("cannot open program.pb"));
  testing::write_file(folder.path() / "program.pb", shifted().SerializeAsString());
  EXPECT_THAT(error_of([&] { load(); }), HasSubstr("cannot open model.safetensors"));
  const std::string weights = testing::weights_file("w", {1, 2, 3});
  testing::write_file(folder.path() / "model.safetensors", weights.substr(0, weights.size() - 1));
  EXPECT_NE(error_of([&] { load(); }), "");
  testing::write_file(folder.path() / "model.safetensors", testing::weights_file("v", {1, 2, 3}));
  EXPECT_NE(error_of([&] { load(); }), "");
  testing::write_file(folder.path() / "model.safetensors", weights);
  EXPECT_EQ(load()->weight_bytes(), 12u);
  std::filesystem::rename(folder.path() / "program.pb", folder.path() / "elsewhere");
  std::filesystem::create_symlink("elsewhere", folder.path() / "program.pb");
  EXPECT_THAT(error_of([&] { load(); }), HasSubstr("cannot open program.pb"));
  EXPECT_EQ(testing::engine_bytes(), before);
}

TEST_F(ModelFileTest, WeightsCountTowardsTheLimit) {
  const testing::TemporaryFolder folder;
  testing::write_shifted(folder.path(), 1, 100'000);
  EXPECT_THAT(error_of([&] { ServedModel::load(folder.path(), {.name = "m/1", .memory_limit = 1000}); }),
              HasSubstr("out of memory"));
}

}  // namespace
}  // namespace tt::server
