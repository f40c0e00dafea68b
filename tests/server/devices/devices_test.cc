// Device libraries: which ones the engine refuses, and what an accepted one provides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/schema/op.h"
#include "kernels/plugin/plugin.h"
#include "kernels/plugin/stream.h"
#include "server/daemon/plugin.h"

namespace tt::plugin {
namespace {

using ::testing::HasSubstr;

class Fault {
 public:
  explicit Fault(const char* name) { setenv(kVariable, name, 1); }
  ~Fault() { unsetenv(kVariable); }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

 private:
  static constexpr char kVariable[] = "TELETENSOR_TEST_DEVICE_FAULT";
};

// The reason why a library is refused, when it is opened or added; empty: it was accepted.
std::string refusal(const std::string& path) {
  Devices devices;
  Dispatcher dispatcher;
  try {
    add_library(DeviceLibrary::open(path), devices, dispatcher);
  } catch (const Error& error) {
    EXPECT_TRUE(devices.list().empty());
    return error.message();
  }
  return "";
}

struct Row {
  const char* fault;
  const char* message;
};

class RefusedLibrary : public ::testing::TestWithParam<Row> {};

TEST_P(RefusedLibrary, HasAReason) {
  const Fault fault(GetParam().fault);
  EXPECT_THAT(refusal(TT_FAULTY_DEVICE), HasSubstr(GetParam().message));
}

std::string name_of(const ::testing::TestParamInfo<Row>& row) {
  std::string name = row.param.fault;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, RefusedLibrary,
    ::testing::Values(
        Row{"entry throws", "teletensor_device_table() threw an exception"},
        Row{"null table", "does not support version 1"}, Row{"another version", "was built for version 2"},
        Row{"short table", "its table has 64 bytes"}, Row{"bad name", "is no valid name of a device type"},
        Row{"null name", "'' is no valid name of a device type"},
        Row{"taken name", "'cuda' is no valid name of a device type"},
        Row{"missing function", "its table has no function allocate"},
        Row{"short operators", "its operators have 8 bytes each"},
        Row{"too many operators", "its table has 4294967295 operators"}, Row{"no operators", "at no address"},
        Row{"two kernels", "the operator neg has two kernels"}, Row{"null kernel", "has no name or no kernel"},
        Row{"count fails", "faulty: device_count: no driver"},
        Row{"count throws", "faulty: device_count: no driver at all"},
        Row{"too many devices", "it has 1000 devices, of at most 16"}, Row{"negative count", "it has -1 devices"},
        Row{"unprintable name", "name is not printable"}, Row{"no memory", "the device has no memory"}),
    &name_of);

TEST(DeviceLibraryTest, MissingFile) { EXPECT_THAT(refusal("/nowhere/device.so"), HasSubstr("is not a file")); }

TEST(DeviceLibraryTest, FileThatIsNotALibrary) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "text_device.so";
  std::ofstream(path) << "not a library";
  EXPECT_THAT(refusal(path), HasSubstr("cannot open the device library"));
  chmod(path.c_str(), 0666);
  EXPECT_THAT(refusal(path), HasSubstr("can be written by every user"));
  std::filesystem::remove(path);
}

TEST(DeviceLibraryTest, Segments) {
  const std::unique_ptr<DeviceLibrary> library = DeviceLibrary::open(TT_FAULTY_DEVICE);
  const auto at = [](uintptr_t address) { return reinterpret_cast<void*>(address); };
  library->add_segment(0, at(0x10000), 0x1000);
  library->add_segment(3, at(0x11000), 0x1000);
  EXPECT_EQ(library->device_of(at(0x10000), 0x1000), 0);
  EXPECT_EQ(library->device_of(at(0x11fff), 1), 3);
  EXPECT_EQ(library->device_of(at(0x12000), 1), -1);
  EXPECT_EQ(library->device_of(at(0xffff), 1), -1);
  EXPECT_THROW(library->device_of(at(0x11000), 0x1001), Error);
  for (const uintptr_t bad :
       {uintptr_t{0}, uintptr_t{0x10001}, uintptr_t{0x10040}, uintptr_t{0xffc0}, uintptr_t{1} << 63}) {
    EXPECT_THROW(library->add_segment(0, at(bad), 0x80), Error) << bad;
  }
  library->remove_segment(at(0x10000));
  EXPECT_EQ(library->device_of(at(0x10000), 1), -1);
}

TEST(DeviceLibraryTest, KernelsOfKnownOperatorsOnly) {
  const std::unique_ptr<DeviceLibrary> library = DeviceLibrary::open(TT_FAULTY_DEVICE);
  EXPECT_NE(library->find(find_op("neg")->id), nullptr);
  EXPECT_EQ(library->find(find_op("exp")->id), nullptr);  // has another number of parameters
  EXPECT_EQ(library->find(find_op("abs")->id), nullptr);  // beyond num_operators
}

TEST(DeviceNameTest, Names) {
  for (const char* valid : {"mydev", "npu2", "_a", "abcdefghijklmnopqrstuvwxyzabcdef"}) {
    EXPECT_TRUE(is_device_type_name(valid)) << valid;
  }
  for (const char* invalid : {"", "cpu", "cuda", "meta", "privateuseone", "xpu", "MyDev", "2a", "a-b", "a:0", "a b",
                              "abcdefghijklmnopqrstuvwxyzabcdefg"}) {
    EXPECT_FALSE(is_device_type_name(invalid)) << invalid;
  }
}

TEST(DeviceNameTest, TypesAreUnknownUntilNamed) {
  const DeviceType last = plugin_type(kMaxPluginTypes - 1);
  const Device device{last, 2};
  EXPECT_THROW(decode_device(device.encode()), Error);
  EXPECT_THROW(parse_device("lastdev:2"), Error);
  name_device_type(last, "lastdev");
  EXPECT_EQ(decode_device(device.encode()), device);
  EXPECT_EQ(parse_device("lastdev:2"), device);
  EXPECT_EQ(to_string(device), "lastdev:2");
  EXPECT_THROW(parse_device("lastdev:16"), Error);
  EXPECT_THROW(decode_device(device.encode() + 14), Error);
  EXPECT_THROW(name_device_type(plugin_type(kMaxPluginTypes), "beyond"), Error);
  EXPECT_THROW(name_device_type(DeviceType::kCUDA, "renamed"), Error);
  rename_device_type(last, "other");
  EXPECT_EQ(to_string(device), "other:2");
  EXPECT_EQ(parse_device("lastdev:2"), parse_device("other:2"));
  EXPECT_THROW(name_device_type(plugin_type(0), "other"), Error);
}

// One process has one set of device types, so this test is the only one that adds a library.
TEST(DeviceLibrariesTest, FolderOfLibraries) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "device_libraries";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(TT_FAULTY_DEVICE, folder / "b.so");
  std::ofstream(folder / "a.so") << "not a library";
  std::filesystem::copy_file(TT_FAULTY_DEVICE, folder / "c.so");  // another library for the same type
  std::ofstream(folder / "d.txt") << "not a library either";
  Dispatcher dispatcher;
  Devices& devices = Devices::instance();
  ASSERT_EQ(server::open_device_libraries({folder}, devices, dispatcher), 1);
  const Device device = parse_device("faulty");
  ASSERT_TRUE(devices.has(device));
  Backend& backend = devices.backend(device);
  EXPECT_EQ(backend.libraries().at(0).version, "0.1");

  const std::unique_ptr<Stream> stream = backend.lease_stream();
  AllocRequest request;
  request.stream = stream.get();
  void* const memory = backend.allocator().allocate(1'000, request);
  char text[] = "bytes", back[sizeof text] = {};
  stream->copy(memory, text, sizeof text);
  stream->copy(back, memory, sizeof text);
  EXPECT_STREQ(back, "bytes");
  EXPECT_THROW(stream->copy(back, text, sizeof text), Error);
  stream->zero(memory, sizeof text);
  stream->copy(back, memory, sizeof text);
  EXPECT_STREQ(back, "");
  EXPECT_TRUE(stream->record()->done());
  backend.allocator().deallocate(memory, 1'000);
  EXPECT_THROW(backend.allocator().allocate(size_t{65} << 20, request), Error);
  const Fault fault("record fails");
  EXPECT_THROW(stream->record(), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tt::plugin
