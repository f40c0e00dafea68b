// Serves a store for tests in Python: store_server ADDRESS TOKEN. Prints the port; ends when its input ends.
#include <cstdio>
#include <memory>

#include "distributed/store/store_server.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto server = tt::distributed::StoreServer::start(argv[1], argv[2]);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  std::printf("%d\n", (*server)->port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
