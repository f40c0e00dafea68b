// teletensord and its plug-in: which one it opens, how it reports an unusable one, and which devices remain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "proto/wire.h"
#include "teletensor/v1/engine.grpc.pb.h"
#include "tests/server/daemon.h"

namespace tt::server {
namespace {

using testing::Daemon;
using ::testing::HasSubstr;
using ::testing::Not;

// Sets the plug-in that the test's daemons open.
class Plugin {
 public:
  explicit Plugin(const std::string& path) { setenv(kVariable, path.c_str(), 1); }
  ~Plugin() { unsetenv(kVariable); }

 private:
  static constexpr char kVariable[] = "TELETENSOR_CUDA_PLUGIN";
};

std::vector<std::string> devices(const Daemon& daemon) {
  grpc::ClientContext context;
  daemon.authorize(&context);
  v1::HelloReply hello;
  grpc::Status status = v1::Engine::NewStub(daemon.channel())->Hello(&context, {}, &hello);
  EXPECT_TRUE(status.ok()) << status.error_message();
  std::vector<std::string> names;
  for (const v1::DeviceDescription& device : hello.devices()) names.push_back(device.name());
  return names;
}

void expect_cpu_alone(const std::string& plugin, const std::string& message) {
  Plugin named(plugin);
  Daemon daemon;
  EXPECT_EQ(devices(daemon).size(), 1);
  EXPECT_THAT(daemon.standard_error(), HasSubstr("warning no GPU: "));
  EXPECT_THAT(daemon.standard_error(), HasSubstr(message));
}

TEST(PluginTest, MissingFile) { expect_cpu_alone("/nowhere/plugin.so", "/nowhere/plugin.so: cannot open"); }

TEST(PluginTest, FileThatIsNotALibrary) {
  testing::TemporaryFolder folder;
  const std::string path = folder.path() / "plugin.so";
  std::ofstream(path) << "not a library";
  expect_cpu_alone(path, "plugin.so: ");
}

TEST(PluginTest, LibraryThatIsNotAPlugin) { expect_cpu_alone("libm.so.6", "libm.so.6 is not a teletensor plug-in"); }

TEST(PluginTest, PluginOfAnotherBuild) {
  expect_cpu_alone(TT_FOREIGN_PLUGIN, "was built for a different operator table");
}

TEST(PluginTest, PluginWithDevices) {
  Plugin named(TT_SIMULATED_PLUGIN);
  Daemon daemon;
  EXPECT_THAT(devices(daemon), ::testing::ElementsAre(HasSubstr("cores"), "simulated GPU", "simulated GPU"));
  EXPECT_THAT(daemon.standard_error(), Not(HasSubstr("no GPU")));
}

TEST(PluginTest, PluginRejectsInvalidEnvironment) {
  setenv("TELETENSOR_CUDA_REPLAY", "perhaps", 1);
  expect_cpu_alone(TT_SIMULATED_PLUGIN,
                   "TELETENSOR_CUDA_REPLAY must be 'off' or a number of microseconds, got 'perhaps'");
  unsetenv("TELETENSOR_CUDA_REPLAY");
}

TEST(PluginTest, NoPluginWithoutDriver) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "requires a machine without a GPU";
  Daemon daemon;
  EXPECT_EQ(devices(daemon).size(), 1);
  EXPECT_THAT(daemon.standard_error(), HasSubstr("info no CUDA driver is installed; using the CPU only"));
}

}  // namespace
}  // namespace tt::server
