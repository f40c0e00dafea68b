// Headers of safetensors files: valid ones, and malformed or hostile ones.
#include "formats/safetensors.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "tests/server/checkpoint/files.h"

namespace tt::server {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::safetensors_file;
using testing::TemporaryFolder;
using testing::write_file;

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, uint64_t begin,
                  uint64_t end) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":[", shape, "],\"data_offsets\":[", begin,
                      ",", end, "]}");
}

std::string parse_error(const std::string& header, uint64_t bytes = 8) {
  return error_of([&] { SafetensorsHeader::parse(header, bytes); });
}

TEST(SafetensorsHeader, HasTensorsInTheOrderOfTheirBytes) {
  const std::string text = absl::StrCat("{\"__metadata__\":{\"format\":\"pt\"},", entry("b", "F32", "1, 2", 4, 12), ",",
                                        entry("a", "I16", "2", 0, 4), ",", entry("c", "F64", "0,3", 4, 4), ",",
                                        entry("scalar", "U8", "", 12, 13), "}   ");
  const SafetensorsHeader header = SafetensorsHeader::parse(text, 13);
  ASSERT_EQ(header.tensors().size(), 4u);
  EXPECT_EQ(header.tensors()[0].name, "a");
  EXPECT_EQ(header.tensors()[1].name, "c");
  const StoredTensor& b = header.find("b");
  EXPECT_EQ(b.dtype, DType::kFloat32);
  EXPECT_EQ(b.sizes, (Sizes{1, 2}));
  EXPECT_EQ(b.begin, 4u);
  EXPECT_TRUE(header.find("scalar").sizes.empty());
  EXPECT_THAT(error_of([&] { header.find("d"); }), HasSubstr("no tensor 'd'"));
  EXPECT_TRUE(SafetensorsHeader::parse("{}", 0).tensors().empty());
}

TEST(SafetensorsHeader, NamesDTypesAsTheParserReadsThem) {
  for (int i = 0; i <= static_cast<int>(DType::kFloat8E5m2); ++i) {
    const auto dtype = static_cast<DType>(i);
    const SafetensorsHeader header =
        SafetensorsHeader::parse("{" + entry("a", std::string(safetensors_name(dtype)), "0", 0, 0) + "}", 0);
    EXPECT_EQ(header.find("a").dtype, dtype);
  }
  EXPECT_EQ(json_name("a\"\n"), "\"a\\\"\\n\"");
  EXPECT_THAT(error_of([] { json_name("\xff"); }), HasSubstr("UTF-8"));
}

TEST(SafetensorsHeader, RejectsInvalidRanges) {
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "2", 0, 4) + "}"), HasSubstr("do not fit its shape"));
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "2", 8, 0) + "}"), HasSubstr("offsets"));
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "2", 8, 16) + "}"), HasSubstr("unused bytes"));
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "4", 0, 16) + "}"), HasSubstr("beyond the end"));
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "1", 0, 4) + "}"), HasSubstr("unused bytes at the end"));
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "2", 0, 8) + "," + entry("b", "F32", "1", 4, 8) + "}"),
              HasSubstr("overlap"));
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "1", 0, 4) + "," + entry("b", "F32", "1", 0, 4) + "}"),
              HasSubstr("overlap"));
}

TEST(SafetensorsHeader, RejectsOverflow) {
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "4611686018427387904,4", 0, 0) + "}"), HasSubstr("too large"));
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "0,9223372036854775807", 0, 0) + "}", 0), HasSubstr("too large"));
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "18446744073709551615", 0, 0) + "}"), HasSubstr("63 bits"));
  EXPECT_THAT(parse_error("{" + entry("a", "F32", "99999999999999999999999", 0, 0) + "}"), HasSubstr("fraction"));
  EXPECT_THAT(parse_error("{" + entry("a", "U8", "8", 0, UINT64_MAX) + "}"), HasSubstr("63 bits"));
  std::string shape = "1";
  for (int i = 0; i < 64; ++i) shape += ",1";
  EXPECT_THAT(parse_error("{" + entry("a", "F64", shape, 0, 8) + "}"), HasSubstr("more than 64"));
}

TEST(SafetensorsHeader, RejectsDuplicates) {
  EXPECT_THAT(parse_error("{" + entry("a", "U8", "0", 0, 0) + "," + entry("a", "U8", "8", 0, 8) + "}"),
              HasSubstr("'a' occurs twice"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"U8","dtype":"I8","shape":[8],"data_offsets":[0,8]}})"),
              HasSubstr("dtype occurs twice"));
  EXPECT_THAT(parse_error(R"({"a":{"shape":[],"shape":[8]}})"), HasSubstr("shape occurs twice"));
  EXPECT_THAT(parse_error(R"({"__metadata__":{},"__metadata__":{}})"), HasSubstr("__metadata__ occurs twice"));
}

TEST(SafetensorsHeader, RejectsOtherStructure) {
  for (const char* text :
       {R"({"a":1})", R"({"a":"x"})", R"({"a":[1]})", R"({"a":null})", R"({"a":{"dtype":1}})",
        R"({"a":{"dtype":["F32"]}})", R"({"a":{"shape":"1"}})", R"({"a":{"shape":[-1]}})", R"({"a":{"shape":[1.5]}})",
        R"({"a":{"shape":[[1]]}})", R"({"a":{"shape":[{}]}})", R"({"a":{"shape":{}}})", R"({"__metadata__":{"a":1}})",
        R"({"__metadata__":{"a":[]}})", R"({"__metadata__":{"a":{}}})", R"({"__metadata__":[]})"}) {
    EXPECT_THAT(parse_error(text), HasSubstr("malformed")) << text;
  }
  EXPECT_THAT(parse_error(R"({"a":{}})"), HasSubstr("lacks"));
  EXPECT_THAT(parse_error(R"({"a":{"color":"F32"}})"), HasSubstr("unknown key"));
  EXPECT_THAT(parse_error(R"({"a":{"dtype":"F13"}})"), HasSubstr("unknown dtype"));
  for (const char* text : {"", "[]", "x", " {}", "{", "{}}", R"({"a")", "{\"\xff\":{}}", "{}\x01"}) {
    EXPECT_THAT(parse_error(text, 0), HasSubstr("malformed")) << text;
  }
}

TEST(SafetensorsHeader, RejectsDeepNestingAtOnce) {
  EXPECT_THAT(parse_error("{\"a\":" + std::string(50'000'000, '[')), HasSubstr("malformed"));
  std::string objects = "{";
  for (int i = 0; i < 1'000'000; ++i) objects += "\"a\":{";
  EXPECT_THAT(parse_error(objects), HasSubstr("malformed"));
  EXPECT_THAT(parse_error(std::string(SafetensorsHeader::kMaxBytes + 1, '{')), HasSubstr("more than"));
}

// Changes of random bytes give a valid header or an Error.
TEST(SafetensorsHeader, SurvivesMutations) {
  const std::string text = absl::StrCat("{\"__metadata__\":{\"format\":\"pt\"},", entry("b", "F32", "1, 2", 4, 12), ",",
                                        entry("a", "I16", "2", 0, 4), "}");
  std::mt19937 random(1);
  const std::string interesting = "{}[]\",:0123456789-+.eE\\u \x80\xff";
  int valid = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = text;
    for (uint32_t n = random() % 4; n-- > 0;) {
      const size_t at = random() % changed.size();
      switch (random() % 3) {
        case 0: changed[at] = interesting[random() % interesting.size()]; break;
        case 1: changed.erase(at, 1 + random() % 5); break;
        default: changed.insert(at, changed.substr(random() % changed.size(), random() % 20));
      }
      if (changed.empty()) changed = "{";
    }
    try {
      const SafetensorsHeader header = SafetensorsHeader::parse(changed, 12);
      for (const StoredTensor& tensor : header.tensors()) {
        EXPECT_LE(tensor.begin + tensor.bytes, 12u);
      }
      ++valid;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(valid, 1000);
  EXPECT_LT(valid, 19'000);
}

class SafetensorsFileTest : public ::testing::Test {
 protected:
  std::string read_error(const std::string& contents) {
    write_file(folder_ / "x", contents);
    const FileDescriptor file(open((folder_ / "x").c_str(), O_RDONLY));
    return error_of([&] { read_safetensors_header(file.get(), "x"); });
  }
  TemporaryFolder folder_;
};

TEST_F(SafetensorsFileTest, RejectsWrongLengths) {
  EXPECT_THAT(read_error(""), HasSubstr("it has 0 bytes"));
  EXPECT_THAT(read_error("1234567"), HasSubstr("it has 7 bytes"));
  EXPECT_THAT(read_error(std::string(8, '\xff') + "{}"), HasSubstr("would have 18446744073709551615 bytes"));
  EXPECT_THAT(read_error(safetensors_file("{}", "").substr(0, 9)), HasSubstr("would have 2 bytes of 9"));
}

TEST_F(SafetensorsFileTest, ReadsTheHeader) {
  write_file(folder_ / "x", safetensors_file("{ }", "abc"));
  const FileDescriptor file(open((folder_ / "x").c_str(), O_RDONLY));
  const SafetensorsFile found = read_safetensors_header(file.get(), "x");
  EXPECT_EQ(found.text, "{ }");
  EXPECT_EQ(found.data_offset, 11u);
  EXPECT_EQ(found.data_bytes, 3u);
}

TEST(StringList, IsParsed) {
  EXPECT_EQ(parse_string_list(R"(["a","b\n"])"), (std::vector<std::string>{"a", "b\n"}));
  EXPECT_TRUE(parse_string_list("[]").empty());
  for (const char* text : {"", "{}", "[1]", "[[]]", "\"a\"", "[\"a\"", "[\"a\"]x"}) {
    EXPECT_THAT(error_of([&] { parse_string_list(text); }), HasSubstr("list of strings")) << text;
  }
}

}  // namespace
}  // namespace tt::server
