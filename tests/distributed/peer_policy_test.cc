// PeerPolicy: rows of networks, ports and addresses.
#include "distributed/peers/peer_policy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "distributed/gloo/mesh.h"
#include "distributed/store/memory_store.h"
#include "engine/schema/error.h"
#include "gmock/gmock.h"

namespace tt::distributed {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> words(const std::string& text) { return absl::StrSplit(text, ' ', absl::SkipEmpty()); }

PeerPolicy policy(const std::string& networks, const std::string& ports = "1024-65535") {
  auto parsed = PeerPolicy::parse(words(networks), words(ports));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *parsed;
}

TEST(PeerPolicy, ResolvesAllowedAddressesOnly) {
  struct Row {
    const char *networks, *ports, *address, *resolved;  // "": refused
  };
  const Row rows[] = {
      {"10.0.0.0/8", "1024-65535", "10.1.2.3:29500", "10.1.2.3:29500"},
      {"10.0.0.0/8", "1024-65535", "11.1.2.3:29500", ""},
      {"10.0.0.0/8", "1024-65535", "10.1.2.3:1023", ""},
      {"10.0.0.0/8", "22 80-90", "10.1.2.3:90", "10.1.2.3:90"},
      {"10.0.0.0/8", "22 80-90", "10.1.2.3:91", ""},
      {"10.1.2.128/25", "1-65535", "10.1.2.127:80", ""},
      {"10.1.2.128/25", "1-65535", "10.1.2.128:80", "10.1.2.128:80"},
      {"10.1.2.3", "1-65535", "10.1.2.2:80", ""},
      {"192.168.0.0/16 10.1.2.3", "1-65535", "10.1.2.3:80", "10.1.2.3:80"},
      {"fd00::/8", "1-65535", "[fd12::1]:80", "[fd12::1]:80"},
      {"fd00::/8", "1-65535", "[fe80::1]:80", ""},
      {"127.0.0.0/8", "1-65535", "[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80"},
      {"::/0", "1-65535", "[::ffff:10.0.0.1]:80", ""},  // is an IPv4 address
      {"127.0.0.0/8", "1-65535", "localhost:80", "127.0.0.1:80"},
      {"10.0.0.0/8", "1-65535", "localhost:80", ""},
      {"10.0.0.0/8", "1-65535", "0.0.0.0:80", ""},  // which would be this host
      {"0.0.0.0/0", "1-65535", "8.8.8.8:53", "8.8.8.8:53"},
      {"", "1-65535", "127.0.0.1:80", ""},
      {"127.0.0.1", "", "127.0.0.1:80", ""},
      {"127.0.0.1", "1-65535", "127.0.0.1", ""},
      {"127.0.0.1", "1-65535", "127.0.0.1:99999", ""},
  };
  for (const Row& row : rows) {
    const auto resolved = policy(row.networks, row.ports).resolve(row.address);
    const std::string where = absl::StrCat(row.networks, " ", row.ports, " ", row.address);
    if (*row.resolved != 0) {
      EXPECT_TRUE(resolved.ok()) << where << resolved.status();
      EXPECT_EQ(resolved.value_or(""), row.resolved) << where;
    } else {
      EXPECT_EQ(
          resolved.status().message(),
          absl::StrCat("expected an address that the engine's options --peer-networks and --peer-ports allow, got ",
                       row.address))
          << where;
    }
  }
  EXPECT_TRUE(absl::IsNotFound(policy("10.0.0.0/8").resolve("no-such-name.invalid:2000").status()));
  EXPECT_EQ(*PeerPolicy::any().resolve("no-such-name.invalid:22"), "no-such-name.invalid:22");
}

TEST(PeerPolicy, ChecksItsOptions) {
  for (const char* network : {"10.0.0.0/33", "10.0.0/8", "::/129", "host", "10.0.0.0/", "10.0.0.0/-1", ""}) {
    EXPECT_THAT(PeerPolicy::parse({network}, {}).status().message(), HasSubstr("expected a network")) << network;
  }
  for (const char* ports : {"0", "65536", "20-10", "80-", "-80", "http", "", "1-2-3"}) {
    EXPECT_THAT(PeerPolicy::parse({}, {ports}).status().message(), HasSubstr("expected ports")) << ports;
  }
}

TEST(PeerPolicy, ListensWhereAllowed) {
  struct Row {
    const char *networks, *address, *at;  // "": refused
  };
  const Row rows[] = {
      {"127.0.0.0/8", "127.0.0.1:2000", "127.0.0.1:2000"},
      {"127.0.0.0/8", "127.0.0.1:22", ""},
      {"127.0.0.0/8", "0.0.0.0:2000", ""},
      {"127.0.0.0/8 ::1", "[::]:2000", ""},
      {"10.0.0.0/8", "0.0.0.0:2000", "0.0.0.0:2000"},
      {"10.0.0.0/8", "127.0.0.1:2000", ""},
      {"", "127.0.0.1:2000", ""},
  };
  for (const Row& row : rows) {
    std::string at;
    const absl::Status status = policy(row.networks).listen(row.address, [&](const std::string& address) {
      at = address;
      return absl::OkStatus();
    });
    EXPECT_EQ(at, row.at) << row.networks << " " << row.address;
    EXPECT_EQ(status.ok(), *row.at != 0) << row.networks << " " << row.address;
  }
}

TEST(PeerPolicy, DrawsPortsUntilOneIsFree) {
  std::set<std::string> seen;
  const absl::Status status = policy("127.0.0.1", "2000 3000-3001").listen("127.0.0.1:0", [&](const std::string& at) {
    seen.insert(at);
    return seen.size() < 3 ? absl::UnavailableError("in use") : absl::OkStatus();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(seen, ::testing::ElementsAre("127.0.0.1:2000", "127.0.0.1:3000", "127.0.0.1:3001"));
}

// What rank 1 publishes is what a hostile program writes into the store.
TEST(PeerPolicy, AppliesToAddressesThatRanksPublish) {
  const auto connect = [](const std::string& published, const PeerPolicy& peers) -> std::string {
    MemoryStore store;
    const std::string key = "g/gloo/1";
    EXPECT_TRUE(store.set({&key, 1}, {&published, 1}).ok());
    MeshOptions options;
    options.prefix = "g";
    options.size = 2;
    options.timeout = std::chrono::milliseconds(2000);
    options.host = "127.0.0.1";
    options.peers = peers;
    try {
      connect_mesh(store, options, [] { return false; });
    } catch (const Error& error) {
      return std::string(error.message());
    }
    return "";
  };
  std::string tcp(64, '\0');
  auto* inet = reinterpret_cast<sockaddr_in*>(tcp.data());
  inet->sin_family = AF_INET;
  inet->sin_port = htons(22);
  inet_pton(AF_INET, "127.0.0.1", &inet->sin_addr);
  std::string local(64, '\0');
  auto* unix_socket = reinterpret_cast<sockaddr_un*>(local.data());
  unix_socket->sun_family = AF_UNIX;
  std::string("/run/x.sock").copy(unix_socket->sun_path, 32);
  EXPECT_THAT(connect(tcp, policy("127.0.0.0/8")), HasSubstr("rank 1 published an address that"));
  EXPECT_THAT(connect(local, PeerPolicy::any()), HasSubstr("rank 1 published an address that"));
}

}  // namespace
}  // namespace tt::distributed
