// Images of sessions through a pipe: pages that the pipe refers to, bytes that it copies, and readers that end.
#include "server/daemon/image_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/schema/error.h"
#include "server/daemon/backends.h"

namespace tt::server {
namespace {

struct Ends {
  FileDescriptor reader, writer;
};

Ends make_pipe() {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Ref<Storage> storage_of(size_t bytes, uint32_t seed) {
  register_backends(1, 0);
  auto storage = make_ref<Storage>(Device(), bytes);
  for (size_t i = 0; i < bytes; ++i)
    static_cast<char*>(storage->data())[i] = static_cast<char>(seed = seed * 1103515245 + 12345);
  return storage;
}

// What a reader gets of an image with small writes between two storages, of which one is too small to be referred to.
std::string passed(const Ends& ends, uint64_t* referred) {
  Ref<Storage> large = storage_of((size_t{3} << 20) + 100, 1), small = storage_of(1000, 2);
  std::string expected = "Shead";
  const std::string tail = "tail";
  expected.append(static_cast<const char*>(large->data()), large->bytes());
  expected.append(static_cast<const char*>(small->data()), small->bytes());
  expected += tail;
  std::string got(expected.size(), '\0');
  PipeSink sink(ends.writer.get(), 'S');
  std::thread writer([&] {
    sink.begin(0);
    sink.write("head", 4);
    sink.write_stable(large, 0, size_t{1} << 20);
    sink.write_stable(large, size_t{1} << 20, large->bytes() - (size_t{1} << 20));
    large = {};  // the sink keeps it
    sink.write_stable(small, 0, small->bytes());
    sink.write(tail.data(), tail.size());
  });
  PipeSource(ends.reader.get()).read(got.data(), got.size());
  writer.join();
  EXPECT_EQ(sink.bytes(), expected.size());
  *referred = sink.referred();
  return got == expected ? "" : "the bytes differ";
}

TEST(ImagePipe, RefersToThePagesOfLargeStorages) {
  uint64_t referred = 0;
  EXPECT_EQ(passed(make_pipe(), &referred), "");
  EXPECT_EQ(referred, (size_t{3} << 20) + 100);
}

TEST(ImagePipe, CopiesWhereTheSystemCannotReferToPages) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  uint64_t referred = 1;
  EXPECT_EQ(passed({FileDescriptor(ends[0]), FileDescriptor(ends[1])}, &referred), "");
  EXPECT_EQ(referred, 0u);
}

TEST(ImagePipe, AReaderThatEndsIsAnError) {
  std::signal(SIGPIPE, SIG_IGN);  // as in the daemon
  Ends ends = make_pipe();
  const Ref<Storage> storage = storage_of(size_t{4} << 20, 1);
  PipeSink sink(ends.writer.get(), 'S');
  std::thread reader([&] {
    char byte;
    PipeSource(ends.reader.get()).read(&byte, 1);
    ends.reader.reset();
  });
  EXPECT_THROW(sink.write_stable(storage, 0, storage->bytes()), Error);
  reader.join();
  EXPECT_THROW(sink.write("x", 1), Error);
}

TEST(ImagePipe, AWriterThatEndsIsAnError) {
  Ends ends = make_pipe();
  ASSERT_TRUE(write_all(ends.writer.get(), "abc", 3));
  ends.writer.reset();
  char bytes[4];
  EXPECT_THROW(PipeSource(ends.reader.get()).read(bytes, sizeof bytes), Error);
}

}  // namespace
}  // namespace tt::server
