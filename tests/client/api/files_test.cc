// `.pt` files and safetensors, also hostile ones. tests/python/serialization/test_cpp_files.py reads the files that are
// written here.
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <random>

#include "client/serialize/archive.h"
#include "client/serialize/pickle.h"
#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kData = TT_API_TEST_DATA;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

Value sample() {
  const Tensor base = arange(6, kFloat).view({2, 3});
  return Value::Dict{
      {"weight", base},
      {"column", base.select(1, 1)},
      {"transposed", base.t()},
      {"counts", tensor({1, 2, 3})},
      {"mask", tensor({true, false})},
      {"half", tensor({0.5, -2.0}, kHalf)},
      {"empty", empty({0, 3})},
      {"number", tensor(2.5, kDouble)},
      {"numbers", Value::List{1, -70000, int64_t{1} << 40, 0.25, true, Value(), "text"}},
      {3, "three"},
  };
}

void expect_sample(const Value& value) {
  const Tensor& weight = value["weight"].to_tensor();
  EXPECT_THAT(weight.data<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(value["column"].to_tensor().data<float>(), ElementsAre(1, 4));
  EXPECT_EQ(value["transposed"].to_tensor().strides(), IntArrayRef({1, 3}));
  weight.fill_(9);  // tensors that shared memory share it again
  EXPECT_THAT(value["column"].to_tensor().data<float>(), ElementsAre(9, 9));
  EXPECT_EQ(value["counts"].to_tensor().dtype(), kLong);
  EXPECT_EQ(value["mask"].to_tensor().dtype(), kBool);
  EXPECT_THAT(value["half"].to_tensor().data<float>(), ElementsAre(0.5, -2));
  EXPECT_EQ(value["empty"].to_tensor().sizes(), IntArrayRef({0, 3}));
  EXPECT_EQ(value["number"].to_tensor().item<double>(), 2.5);
  const Value::List& numbers = value["numbers"].to_list();
  EXPECT_EQ(numbers[1].to_int(), -70000);
  EXPECT_EQ(numbers[2].to_int(), int64_t{1} << 40);
  EXPECT_EQ(numbers[3].to_double(), 0.25);
  EXPECT_TRUE(numbers[4].to_bool());
  EXPECT_TRUE(numbers[5].is_none());
  EXPECT_EQ(numbers[6].to_string(), "text");
  EXPECT_EQ(value.find(3)->to_string(), "three");
}

TEST_F(Api, PtFilesKeepValues) {
  const std::string path = ::testing::TempDir() + "/value.pt";
  save(sample(), path);
  expect_sample(load(path));
  // The file that Python reads in its own test is what this code writes.
  EXPECT_EQ(contents(path), contents(kData + "/written_by_cpp.pt"));
  expect_sample(load(kData + "/written_by_cpp.pt"));

  save(ones({2}), path);
  Tensor one;
  load(one, path);
  EXPECT_THAT(floats(one), ElementsAre(1, 1));
  save(std::vector<Tensor>{one, one * 2}, path);
  std::vector<Tensor> two;
  load(two, path);
  EXPECT_THAT(floats(two[1]), ElementsAre(2, 2));
  EXPECT_THAT(message_of<TypeError>([&] { load(one, path); }), HasSubstr("expected a tensor, got a list"));
  EXPECT_THROW(load(::testing::TempDir() + "/none.pt"), FileNotFoundError);
  EXPECT_THROW(load(::testing::TempDir()), IsADirectoryError);
}

TEST_F(Api, SafetensorsFilesKeepTensors) {
  const std::string path = ::testing::TempDir() + "/x.safetensors";
  const Tensor x = arange(6, kFloat).view({2, 3});
  const NamedTensors tensors = {{"a \"quoted\" name", x.t()}, {"b", tensor({1, 2}, kBFloat16)}};
  save_safetensors(tensors, path);
  EXPECT_EQ(contents(path), contents(kData + "/written_by_cpp.safetensors"));
  const NamedTensors loaded = load_safetensors(path);
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(loaded[0].first, "a \"quoted\" name");
  EXPECT_THAT(floats(loaded[0].second), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(loaded[1].second.dtype(), kBFloat16);
  EXPECT_THROW(save_safetensors({{"a", x}, {"a", x}}, path), ValueError);
  EXPECT_THROW(save_safetensors({{"\xff", x}}, path), ValueError);
  write(path, contents(path).substr(0, 100));
  EXPECT_THROW(load_safetensors(path), ValueError);
}

TEST_F(Api, DamagedFilesAreRefused) {
  const std::string path = ::testing::TempDir() + "/damaged.pt", whole = contents(kData + "/written_by_cpp.pt");
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole;
    if (i % 2 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      for (int changes = 0; changes < 3; ++changes) bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    write(path, bytes);
    try {
      load(path);  // bytes between entries may change
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 250);
}

// A pickle of an object that begins after the header of protocol 2.
Value unpickle(const std::string& body) {
  return internal::read_pickle("\x80\x02" + body, [](const internal::StoredView&) { return Tensor(); });
}

TEST_F(Api, HostilePicklesAreRefused) {
  EXPECT_THROW(unpickle("cposix\nsystem\n)R."), NotImplementedError);
  EXPECT_THROW(unpickle("cbuiltins\neval\n."), NotImplementedError);
  EXPECT_THROW(unpickle("i"), NotImplementedError);
  EXPECT_THROW(unpickle(")R."), RuntimeError);
  EXPECT_THROW(unpickle("."), RuntimeError);
  EXPECT_THROW(unpickle("]"), RuntimeError);
  EXPECT_THROW(unpickle(std::string("r\xff\xff\xff\xff", 5)), RuntimeError);
  // A list that contains itself.
  EXPECT_THAT(message_of<RuntimeError>([] { unpickle(std::string("]q\0h\0a.", 7)); }), HasSubstr("nested too deep"));
  // Lists that double their size: 2^40 values.
  std::string doubling = "]";
  for (int i = 0; i < 40; ++i) {
    const char number = static_cast<char>(i);
    doubling += std::string("q") + number + "0]h" + number + "ah" + number + "a";
  }
  EXPECT_THAT(message_of<RuntimeError>([&] { unpickle(doubling + "."); }), HasSubstr("more than 10 million values"));
  EXPECT_THROW(unpickle(std::string(1'000'000, '(') + "."), RuntimeError);
  // A tuple of a tuple of a tuple...
  EXPECT_THAT(message_of<RuntimeError>([] { unpickle(")" + std::string(2'000'000, '\x85') + "."); }),
              HasSubstr("nested too deep"));
}

// The text of a pickle's string, number, and tuple of numbers.
std::string text_of(const std::string& text) {
  const auto size = static_cast<uint32_t>(text.size());
  return "X" + std::string(reinterpret_cast<const char*>(&size), 4) + text;
}
std::string number_of(int64_t value) { return "\x8a\x08" + std::string(reinterpret_cast<const char*>(&value), 8); }

TEST_F(Api, PicklesThatCopyLongValuesAreRefused) {
  const auto refused = [](const std::string& body) {
    EXPECT_THAT(message_of<RuntimeError>([&] { unpickle(body); }), HasSubstr("too often")) << body.substr(0, 20);
  };
  std::string again, names, tensors;
  const std::string name = text_of(std::string(1000, 'n')) + std::string("q\0", 2);
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\nq" + std::string(1, '\0') + "((" + text_of("storage") +
                             "ctorch\nFloatStorage\n" + text_of("0") + text_of("cpu") + number_of(0) + "tQ" +
                             number_of(0);
  std::string zeros = "(";
  for (int i = 0; i < 64; ++i) zeros += number_of(0);
  for (int i = 0; i < 1000; ++i) again += std::string("h\0", 2);
  for (int i = 0; i < 70'000; ++i) names += std::string("h\0h\0\x93", 5);
  for (int i = 0; i < 80'000; ++i) tensors += std::string("h\0h\1R", 5);
  refused("(" + text_of(std::string(1 << 20, 'x')) + std::string("q\0", 2) + again + "l.");
  refused("(" + name + names + "l.");
  refused("(" + tensor + zeros + "t" + zeros + "ttq\1R" + tensors + "l.");
  EXPECT_THAT(
      message_of<RuntimeError>([&] {
        const std::string key = text_of(std::string(2000, 'n'));
        unpickle("(" + text_of("storage") + "ctorch\nFloatStorage\n" + key + text_of("cpu") + number_of(0) + "tQ.");
      }),
      HasSubstr("more than 1024 bytes"));
}

TEST_F(Api, StoragesWhoseSizeOverflowsAreRefused) {
  // 2^60 + 1 elements of 16 bytes: their size is 16 in 64 bits.
  const std::string path = ::testing::TempDir() + "/overflow.pt";
  const int64_t count = (int64_t{1} << 60) + 1;
  {
    internal::ArchiveWriter writer(path, "archive");
    writer.add("data.pkl",
               "\x80\x02"
               "ctorch._utils\n_rebuild_tensor_v2\n((" +
                   text_of("storage") + "ctorch\nComplexDoubleStorage\n" + text_of("0") + text_of("cpu") +
                   number_of(count) + "tQ" + number_of(0) + "(" + number_of(count) + "t(" + number_of(1) + "t\x89NtR.");
    writer.add("data/0", std::string(16, '\0'));
    writer.finish();
  }
  EXPECT_THAT(message_of<RuntimeError>([&] { load(path); }), HasSubstr("a storage has 16 bytes"));
  EXPECT_THAT(message_of<RuntimeError>([&] { from_blob(nullptr, {count}, kComplexDouble); }), HasSubstr("63 bits"));
  EXPECT_THROW(from_blob(nullptr, {0, int64_t{1} << 40, int64_t{1} << 40}), RuntimeError);
}

TEST_F(Api, FilesThatAreNotRegularAreRefused) {
  const std::string path = ::testing::TempDir() + "/fifo";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(message_of<RuntimeError>([&] { load(path); }), HasSubstr("not a regular file"));
  EXPECT_THROW(load_safetensors(path), ValueError);
  EXPECT_THROW(load("/dev/zero"), RuntimeError);
}

TEST_F(Api, HostileTensorsAreRefused) {
  // (offset, sizes, strides) of a storage with 6 elements
  const auto tensor = [](int32_t offset, std::vector<int32_t> sizes, std::vector<int32_t> strides) {
    const auto number = [](int32_t v) { return "J" + std::string(reinterpret_cast<const char*>(&v), 4); };
    const auto text = [](const std::string& t) {
      return std::string("X") + static_cast<char>(t.size()) + std::string(3, '\0') + t;
    };
    const auto list = [&](const std::vector<int32_t>& values) {
      std::string out = "(";
      for (int32_t v : values) out += number(v);
      return out + "t";
    };
    return unpickle("ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") +
                    text("cpu") + number(6) + "tQ" + number(offset) + list(sizes) + list(strides) + "\x89NtR.");
  };
  EXPECT_TRUE(tensor(0, {2, 3}, {3, 1}).is_tensor());
  EXPECT_TRUE(tensor(5, {1000}, {0}).is_tensor());  // an expanded tensor is one element
  EXPECT_THAT(message_of<RuntimeError>([&] { tensor(1, {2, 3}, {3, 1}); }), HasSubstr("beyond the end"));
  EXPECT_THROW(tensor(-1, {1}, {1}), RuntimeError);
  EXPECT_THROW(tensor(0, {-1}, {1}), RuntimeError);
  EXPECT_THROW(tensor(0, {2}, {-1}), RuntimeError);
  EXPECT_THROW(tensor(0, {2}, {}), RuntimeError);
  EXPECT_THROW(tensor(0, {INT32_MAX, INT32_MAX, INT32_MAX}, {0, 0, 0}), RuntimeError);
}

TEST_F(Api, HostileArchivesAreRefused) {
  const std::string path = ::testing::TempDir() + "/archive.pt";
  const auto refused = [&](const std::string& bytes) {
    write(path, bytes);
    return message_of<RuntimeError>([&] { internal::ArchiveReader reader(path); });
  };
  {
    internal::ArchiveWriter writer(path, "archive");
    writer.add("data.pkl", "first");
    writer.add("data.pkl", "second");
    writer.finish();
  }
  EXPECT_THAT(refused(contents(path)), HasSubstr("an entry occurs twice"));
  {
    internal::ArchiveWriter writer(path, "archive");
    writer.add("../escape", "x");
    writer.finish();
  }
  EXPECT_THAT(refused(contents(path)), HasSubstr("names of files in a folder"));
  {
    internal::ArchiveWriter writer(path, "archive");
    writer.add("data.pkl", "value");
    writer.finish();
  }
  std::string bytes = contents(path);
  EXPECT_EQ(refused(bytes), "");
  bytes[bytes.find("value")] = 'w';
  write(path, bytes);
  EXPECT_THAT(message_of<RuntimeError>([&] { internal::ArchiveReader(path).read("data.pkl"); }), HasSubstr("checksum"));
  EXPECT_THAT(refused(""), HasSubstr("failed finding central directory"));

  {
    internal::ArchiveWriter writer(path, "archive");
    writer.add("a", "same");
    writer.add("b", "same");
    writer.finish();
  }
  bytes = contents(path);
  const auto changed = [&](size_t field, const std::string& value) {
    return refused(std::string(bytes).replace(bytes.rfind("PK\x01\x02") + field, value.size(), value));
  };
  EXPECT_EQ(changed(42, ""), "");
  EXPECT_THAT(changed(42, std::string(4, '\0')), HasSubstr("entries overlap"));
  EXPECT_THAT(changed(42, "\xff\xff\xff\x7f"), HasSubstr("beyond the end"));
  EXPECT_THAT(changed(42, "\xff\xff\xff\xff"), HasSubstr("beyond the end"));
  EXPECT_THAT(changed(10, std::string("\x08\0", 2)), HasSubstr("neither compressed nor encrypted"));
  EXPECT_THAT(changed(20, "\xfe\xff\xff\xff\xfe\xff\xff\xff"), HasSubstr("beyond the file"));
  EXPECT_THAT(refused("PK\x05\x06" + std::string(18, '\xff')), HasSubstr("large directory"));
}

}  // namespace
}  // namespace teletensor::testing
