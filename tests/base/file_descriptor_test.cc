#include "base/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace tt {
namespace {

int open_null() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(FileDescriptorTest, ClosesItsDescriptorOnce) {
  int fd;
  {
    FileDescriptor owner(open_null());
    fd = owner.get();
    EXPECT_TRUE(owner && is_open(fd));
    FileDescriptor moved(std::move(owner));
    EXPECT_FALSE(owner);  // NOLINT: a moved-from descriptor is none
    EXPECT_EQ(moved.get(), fd);
  }
  EXPECT_FALSE(is_open(fd));
}

TEST(FileDescriptorTest, AssignmentAndResetCloseThePreviousDescriptor) {
  FileDescriptor owner(open_null()), other(open_null());
  const int first = owner.get(), second = other.get();
  owner = std::move(other);
  EXPECT_FALSE(is_open(first));
  EXPECT_EQ(owner.get(), second);
  owner.reset();
  EXPECT_FALSE(is_open(second));
  EXPECT_FALSE(owner);
}

TEST(FileDescriptorTest, ReleaseKeepsTheDescriptorOpen) {
  FileDescriptor owner(open_null());
  const int fd = owner.release();
  EXPECT_FALSE(owner);
  owner.reset();
  EXPECT_TRUE(is_open(fd));
  close(fd);
}

}  // namespace
}  // namespace tt
