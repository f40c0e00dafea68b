// Published tensors: shared bytes, permissions, limits, charges and the audit log.
#include "server/session/publications.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/fuzz/frame_mutator.h"
#include "tests/server/engine_memory.h"
#include "tests/server/session/session_fixture.h"

namespace tt::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Instruction;
using testing::literal;
using testing::session_options;
using Json = nlohmann::json;
using V = std::vector<float>;

constexpr uint64_t kKeys = 900, kOpened = 901;  // handles

class PublicationsTest : public ::testing::Test {
 protected:
  PublicationsTest() {
    testing::start_engine();
    before_ = testing::engine_bytes();
    anna_ = open("anna");
    bert_ = open("bert");
  }
  ~PublicationsTest() override {
    sessions_.clear();
    publications_ = nullptr;
    EXPECT_EQ(testing::engine_bytes(), before_) << "nothing is kept";
  }

  Session* open(std::string principal, std::shared_ptr<Quota> quota = nullptr, Role role = Role::kUser,
                uint64_t limit = 0) {
    Session::Options options = session_options();
    options.id = ++last_id_;
    options.principal = std::move(principal);
    options.quota = std::move(quota);
    options.role = role;
    options.memory_limit = limit;
    options.publications = publications_;
    sessions_.push_back(std::make_unique<Session>(std::move(options)));
    return sessions_.back().get();
  }
  static v1::Reply run(Session* session, v1::Frame frame) {
    v1::Reply reply;
    frame.set_sequence(session->executed() + 1);
    session->execute(frame, &reply);
    EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
    return reply;
  }
  // Returns the bytes, and the error's message.
  static std::pair<std::string, std::string> read(Session* session, uint64_t handle) {
    v1::Frame frame;
    testing::read(&frame, 1, handle);
    const v1::Reply reply = run(session, frame);
    if (reply.reads_size() != 1) return {};
    return {reply.reads(0).data(), reply.reads(0).error().message()};
  }
  static V value(Session* session, uint64_t handle) { return testing::floats_of(read(session, handle).first); }
  static void make(Session* session, uint64_t handle, const V& values = {1, 2, 3, 4}) {
    v1::Frame frame;
    literal(&frame, handle, {static_cast<int64_t>(values.size())}, values);
    run(session, frame);
  }
  // Writes to a tensor and returns the error.
  static std::string double_in_place(Session* session, uint64_t handle) {
    v1::Frame frame;
    Instruction(&frame, "add").handle(handle).handle(handle).into(handle);
    run(session, frame);
    return read(session, handle).second;
  }
  static void drop(Session* session, uint64_t handle) {
    v1::Frame frame;
    frame.add_release(handle);
    run(session, frame);
  }

  struct Terms {
    std::string to = "";
    bool read_only = true, persist = false;
    std::optional<std::string> keys = std::nullopt;
  };
  // Returns the error, empty if there is none.
  static std::string publish(Session* session, const std::vector<uint64_t>& handles, const std::string& name,
                             const Terms& terms) {
    v1::Frame frame;
    Instruction call(&frame, "publish");
    call.handles(handles);
    if (terms.keys) {
      v1::Frame keys;
      Instruction(&keys, "literal")
          .bytes(*terms.keys)
          .integers({static_cast<int64_t>(terms.keys->size())})
          .integer(static_cast<int64_t>(DType::kUInt8))
          .integer(0)
          .result(kKeys);
      run(session, keys);
      call.handle(kKeys);
    } else {
      call.none();
    }
    call.bytes(name);
    terms.to.empty() ? call.none() : call.bytes(terms.to);
    call.boolean(terms.read_only).boolean(terms.persist).result(kOpened);
    run(session, frame);
    const std::string error = read(session, kOpened).second;
    drop(session, kOpened);
    if (terms.keys) drop(session, kKeys);
    return error;
  }
  static std::string publish(Session* session, uint64_t handle, const std::string& name = "weights") {
    return publish(session, {handle}, name, {});
  }

  struct Opened {
    std::vector<int64_t> layout;
    std::string keys, error;
  };
  static Opened describe(Session* session, const std::string& name, const std::string& principal) {
    v1::Frame frame;
    Instruction call(&frame, "open_publication");
    call.bytes(name);
    principal.empty() ? call.none() : call.bytes(principal);
    call.result(kOpened, 2);
    run(session, frame);
    Opened opened;
    const auto [bytes, error] = read(session, kOpened);
    opened.error = error;
    opened.layout.resize(bytes.size() / sizeof(int64_t));
    if (!bytes.empty()) std::memcpy(opened.layout.data(), bytes.data(), bytes.size());
    opened.keys = read(session, kOpened + 1).first;
    drop(session, kOpened);
    drop(session, kOpened + 1);
    return opened;
  }
  static std::string take(Session* session, uint64_t handle, int64_t opened, int64_t index, int64_t size = 4,
                          DType dtype = DType::kFloat32, Device device = {}) {
    v1::Frame frame;
    Instruction(&frame, "opened_storage")
        .integer(opened)
        .integer(index)
        .integers({size})
        .integer(static_cast<int64_t>(dtype))
        .integer(device.encode())
        .result(handle);
    run(session, frame);
    return read(session, handle).second;
  }
  // Opens a publication of one storage. Returns the error.
  static std::string open_as(Session* session, uint64_t handle, const std::string& principal,
                             const std::string& name = "weights", int64_t size = 4) {
    const Opened opened = describe(session, name, principal);
    if (!opened.error.empty()) return opened.error;
    return take(session, handle, opened.layout[0], 0, size);
  }
  static std::string unpublish(Session* session, const std::string& name, const std::string& principal) {
    v1::Frame frame;
    Instruction call(&frame, "unpublish");
    call.bytes(name);
    principal.empty() ? call.none() : call.bytes(principal);
    call.result(kOpened);
    run(session, frame);
    const std::string error = read(session, kOpened).second;
    drop(session, kOpened);
    return error;
  }
  static Json list(Session* session) {
    v1::Frame frame;
    Instruction(&frame, "list_publications").result(kOpened);
    run(session, frame);
    const Json list = Json::parse(read(session, kOpened).first);
    drop(session, kOpened);
    return list;
  }

  std::shared_ptr<Publications> publications_ = std::make_shared<Publications>();
  uint64_t before_ = 0, last_id_ = 0;
  std::vector<std::unique_ptr<Session>> sessions_;
  Session *anna_, *bert_;
};

TEST_F(PublicationsTest, SessionsUseTheSameBytes) {
  make(anna_, 1);
  const uint64_t published = testing::engine_bytes();
  ASSERT_EQ(publish(anna_, {1}, "weights", {.to = "bert"}), "");
  ASSERT_EQ(open_as(bert_, 1, "anna"), "");
  Session* second = open("bert");
  ASSERT_EQ(open_as(second, 1, "anna"), "");
  EXPECT_EQ(value(bert_, 1), (V{1, 2, 3, 4}));
  EXPECT_EQ(value(second, 1), (V{1, 2, 3, 4}));
  EXPECT_EQ(testing::engine_bytes(), published) << "no copy";
  EXPECT_EQ(bert_->account()->held(), 16u);
  const Json listed = list(anna_);
  EXPECT_EQ(listed, Json::parse(R"([{"principal": "anna", "name": "weights", "bytes": 16, "tensors": 1, "sessions": 3,
                                     "read_only": true, "persist": false, "to": ["bert"]}])"));
  drop(anna_, 1);
  EXPECT_EQ(list(anna_)[0]["sessions"], 2);
  EXPECT_EQ(list(bert_)[0]["to"], nullptr) << "who else may open it is not for everybody";
}

TEST_F(PublicationsTest, ADictKeepsLayoutsAndTies) {
  v1::Frame frame;
  literal(&frame, 1, {2, 3}, {1, 2, 3, 4, 5, 6});
  Instruction(&frame, "permute").handle(1).integers({1, 0}).result(2);
  literal(&frame, 3, {}, {7});
  run(anna_, frame);
  ASSERT_EQ(publish(anna_, {1, 2, 3}, "dict", {.keys = "a.weight\nb.weight\nscale"}), "");
  const Opened opened = describe(anna_, "dict", "");
  EXPECT_EQ(opened.keys, "a.weight\nb.weight\nscale");
  const auto f32 = static_cast<int64_t>(DType::kFloat32);
  EXPECT_EQ(opened.layout, (std::vector<int64_t>{1, 1,   1, 2, 3, 24, 0, 4, 0,  //
                                                 0, f32, 0, 2, 2, 3,  3, 1,     //
                                                 0, f32, 0, 2, 3, 2,  1, 3,     //
                                                 1, f32, 0, 0}));
  EXPECT_EQ(take(anna_, 10, 1, 0, 6), "");
  EXPECT_EQ(value(anna_, 10), (V{1, 2, 3, 4, 5, 6}));
}

TEST_F(PublicationsTest, NobodyWritesToReadOnlyTensors) {
  make(anna_, 1);
  v1::Frame frame;
  Instruction(&frame, "detach").handle(1).result(2);
  run(anna_, frame);
  ASSERT_EQ(publish(anna_, {1}, "weights", {.to = "*"}), "");
  ASSERT_EQ(open_as(bert_, 1, "anna"), "");
  const char* const kRefused = "a published tensor is read-only";
  EXPECT_THAT(double_in_place(anna_, 2), HasSubstr(kRefused)) << "through a view";
  EXPECT_THAT(double_in_place(bert_, 1), HasSubstr(kRefused));
  ASSERT_EQ(open_as(bert_, 5, "anna"), "");
  EXPECT_EQ(value(bert_, 5), (V{1, 2, 3, 4}));
  // Through an argument that the operator writes: the buffers of a norm.
  v1::Frame step;
  literal(&step, 8, {4}, {1, 1, 1, 1});
  literal(&step, 9, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  Instruction(&step, "batch_norm")
      .handle(9)
      .handle(5)
      .handle(8)
      .none()
      .none()
      .boolean(true)
      .real(0.1)
      .real(0.1)
      .result(10);
  run(bert_, step);
  EXPECT_THAT(read(bert_, 10).second, HasSubstr(kRefused));
  ASSERT_EQ(open_as(bert_, 15, "anna"), "");
  EXPECT_EQ(value(bert_, 15), (V{1, 2, 3, 4}));
  // Outside training a norm only reads them.
  v1::Frame evaluated;
  literal(&evaluated, 16, {4}, {1, 1, 1, 1});
  Instruction(&evaluated, "batch_norm")
      .handle(9)
      .handle(15)
      .handle(16)
      .none()
      .none()
      .boolean(false)
      .real(0.1)
      .real(0.0)
      .result(17);
  run(bert_, evaluated);
  EXPECT_EQ(value(bert_, 17), (V{0, 0, 0, 0, 4, 4, 4, 4}));
  // It stays so after the end of the publication, because bert still reads the bytes.
  EXPECT_EQ(unpublish(anna_, "weights", ""), "");
  make(anna_, 20);
  ASSERT_EQ(publish(anna_, 20), "");
  ASSERT_EQ(unpublish(anna_, "weights", ""), "");
  EXPECT_THAT(double_in_place(anna_, 20), HasSubstr(kRefused));
}

TEST_F(PublicationsTest, TensorsThatMayBeWrittenAreForOnePrincipal) {
  make(anna_, 1);
  EXPECT_THAT(publish(anna_, {1}, "shared", {.to = "bert", .read_only = false}),
              HasSubstr("sessions of the same principal"));
  EXPECT_THAT(publish(anna_, {1}, "shared", {.to = "*", .read_only = false}),
              HasSubstr("sessions of the same principal"));
  ASSERT_EQ(publish(anna_, {1}, "shared", {.read_only = false}), "");
  Session* second = open("anna");
  ASSERT_EQ(open_as(second, 1, "", "shared"), "");
  EXPECT_EQ(double_in_place(second, 1), "");
  EXPECT_EQ(value(anna_, 1), (V{2, 4, 6, 8}));
  EXPECT_THAT(publish(anna_, {1}, "frozen", {}), HasSubstr("got one that is shared"));
  make(anna_, 2);
  ASSERT_EQ(publish(anna_, {2}, "frozen", {}), "");
  EXPECT_THAT(publish(anna_, {2}, "again", {.read_only = false}), HasSubstr("got a read-only tensor"));
  ASSERT_EQ(publish(anna_, {2}, "again", {}), "") << "several names for the same bytes";
}

TEST_F(PublicationsTest, OnlyThoseWhoMayOpenIt) {
  make(anna_, 1);
  Session* carl = open("carl");
  ASSERT_EQ(publish(anna_, {1}, "weights", {.to = "bert\ndora"}), "");
  ASSERT_EQ(open_as(bert_, 1, "anna"), "");
  // The errors for what is not for carl, what does not exist, and who does not exist, differ only in the names.
  const std::string refused = open_as(carl, 1, "anna");
  EXPECT_EQ(refused,
            "[open_publication] anna has published nothing as \"weights\" that carl may use: there is no such "
            "publication, it has ended, or it is for others");
  EXPECT_EQ(open_as(carl, 2, "anna", "missing"), absl::StrReplaceAll(refused, {{"weights", "missing"}}));
  EXPECT_THAT(open_as(carl, 3, "nobody"), HasSubstr("nobody has published nothing as \"weights\" that carl may use"));
  EXPECT_EQ(list(carl), Json::array());
  EXPECT_EQ(list(bert_).size(), 1u);
  // Nor may others end it, even if they may open it.
  EXPECT_THAT(unpublish(bert_, "weights", "anna"), HasSubstr("that bert may use"));
  Session* root = open("root", nullptr, Role::kOperator);
  EXPECT_EQ(list(root)[0]["to"], (Json{"bert", "dora"}));
  EXPECT_THAT(open_as(root, 1, "anna"), HasSubstr("that root may use"))
      << "an operator does not read what is for others";
  EXPECT_EQ(unpublish(root, "weights", "anna"), "");
  EXPECT_THAT(open_as(bert_, 9, "anna"), HasSubstr("has published nothing"));
  EXPECT_EQ(value(bert_, 1), (V{1, 2, 3, 4})) << "what was opened stays";
}

TEST_F(PublicationsTest, AnOpenedPublicationOutlivesItsEnds) {
  make(anna_, 1);
  ASSERT_EQ(publish(anna_, {1}, "weights", {.to = "bert"}), "");
  make(anna_, 2, {5, 6, 7, 8});
  ASSERT_EQ(publish(anna_, {2}, "kept", {.to = "bert", .persist = true}), "");
  ASSERT_EQ(open_as(bert_, 1, "anna"), "");
  anna_->close();
  EXPECT_THAT(open_as(bert_, 2, "anna"), HasSubstr("has published nothing"));
  EXPECT_EQ(value(bert_, 1), (V{1, 2, 3, 4}));
  ASSERT_EQ(open_as(bert_, 3, "anna", "kept"), "");
  EXPECT_EQ(value(bert_, 3), (V{5, 6, 7, 8}));
  publications_->revoke("anna");
  EXPECT_THAT(open_as(bert_, 4, "anna", "kept"), HasSubstr("has published nothing"));
  EXPECT_EQ(value(bert_, 3), (V{5, 6, 7, 8}));
  EXPECT_GT(testing::engine_bytes(), before_);
}

TEST_F(PublicationsTest, ARevokedPrincipalPublishesAndOpensNothing) {
  make(anna_, 1);
  make(bert_, 1);
  ASSERT_EQ(publish(bert_, {1}, "open", {.to = "*"}), "");
  publications_->revoke("anna");  // its session has not ended yet
  EXPECT_THAT(publish(anna_, {1}, "weights", {.persist = true}), HasSubstr("the access of anna was revoked"));
  EXPECT_EQ(double_in_place(anna_, 1), "") << "a failed publication does not freeze the tensor";
  EXPECT_THAT(open_as(anna_, 2, "bert", "open"), HasSubstr("has published nothing"));
  Session* again = open("anna");
  make(again, 1);
  EXPECT_EQ(publish(again, 1), "");
}

TEST_F(PublicationsTest, AQuotaPaysOnceForItsSessions) {
  const auto quota = std::make_shared<Quota>("dora", QuotaLimits{.memory = 64 << 10});
  Session* first = open("dora", quota);
  constexpr int64_t kCount = 10 << 10;  // 40 KiB
  v1::Frame frame;
  Instruction(&frame, "zeros").integers({kCount}).none().none().result(1);
  run(first, frame);
  EXPECT_EQ(quota->held(), 40u << 10);
  ASSERT_EQ(publish(first, {1}, "weights", {.persist = true}), "");
  EXPECT_EQ(quota->held(), 40u << 10);
  Session* second = open("dora", quota);
  ASSERT_EQ(open_as(second, 1, "", "weights", kCount), "");
  EXPECT_EQ(second->account()->held(), 40u << 10);
  EXPECT_EQ(quota->held(), 40u << 10) << "three holders, one copy";
  first->close();
  second->close();
  EXPECT_EQ(quota->held(), 40u << 10) << "what persists is charged without a session";
  Session* third = open("dora", quota);
  v1::Frame more;
  Instruction(&more, "zeros").integers({kCount}).none().none().result(1);
  run(third, more);
  EXPECT_THAT(read(third, 1).second, HasSubstr("the sessions of dora hold 40 KiB of their limit of 64 KiB"));
  EXPECT_EQ(unpublish(third, "weights", ""), "");
  EXPECT_EQ(quota->held(), 0u);
}

TEST_F(PublicationsTest, OpeningIsChargedAndRefused) {
  make(anna_, 1, V(1024, 1.0f));
  ASSERT_EQ(publish(anna_, {1}, "weights", {.to = "*"}), "");
  const auto quota = std::make_shared<Quota>("dora", QuotaLimits{.memory = 8 << 10});
  Session* dora = open("dora", quota);
  make(dora, 1, V(1500, 1.0f));
  EXPECT_THAT(open_as(dora, 2, "anna"), AllOf(HasSubstr("out of memory on cpu: requested 4 KiB"), HasSubstr("dora")));
  EXPECT_EQ(quota->held(), 6000u) << "a refusal charges nothing";
  drop(dora, 1);
  EXPECT_EQ(open_as(dora, 3, "anna", "weights", 1024), "");
  EXPECT_EQ(quota->held(), 4096u);
  drop(dora, 3);
  EXPECT_EQ(quota->held(), 0u);
  // The bytes fit, but their description does not.
  quota->set_limits({.memory = 4096});
  EXPECT_THAT(open_as(dora, 4, "anna"), HasSubstr("out of memory"));
  EXPECT_EQ(quota->held(), 0u);
}

TEST_F(PublicationsTest, PublicationsTogetherAreLimited) {
  publications_ = std::make_shared<Publications>(/*memory_limit=*/6 << 10);
  Session* dora = open("dora", nullptr, Role::kUser, 6 << 10);
  make(dora, 1, V(1024, 1.0f));
  ASSERT_EQ(publish(dora, {1}, "a", {.persist = true}), "");
  drop(dora, 1);
  make(dora, 2, V(1024, 1.0f));
  EXPECT_THAT(publish(dora, {2}, "b", {.persist = true}),
              HasSubstr("requested 4 KiB; the account of dora's publications holds 4 KiB of its 6 KiB limit"));
  EXPECT_EQ(double_in_place(dora, 2), "");
  EXPECT_EQ(list(dora).size(), 1u);
}

TEST_F(PublicationsTest, ThePartOfAStorageIsNotForOthers) {
  make(anna_, 1, {1, 2, 3, 4, 5, 6});
  v1::Frame frame;
  Instruction(&frame, "narrow").handle(1).integer(0).integer(0).integer(4).result(2);
  Instruction(&frame, "narrow").handle(1).integer(0).integer(4).integer(2).result(3);
  Instruction(&frame, "as_strided").handle(1).integers({3}).integers({2}).integer(0).result(4);
  run(anna_, frame);
  EXPECT_THAT(publish(anna_, {2}, "part", {.to = "bert"}), HasSubstr("got 16 of the 24 bytes"));
  EXPECT_THAT(publish(anna_, {4}, "gaps", {.to = "bert"}), HasSubstr("got 0 of the 24 bytes"));
  EXPECT_EQ(publish(anna_, {2, 3}, "parts", {.to = "bert", .keys = "a\nb"}), "") << "together they are all of it";
  EXPECT_EQ(publish(anna_, {2}, "part", {}), "") << "the same principal has all of it anyway";
}

TEST_F(PublicationsTest, InvalidArgumentsAreRefused) {
  make(anna_, 1);
  for (const char* name : {"", "a/b", ".hidden", "-x", "a b", "a\nb", "caf\xc3\xa9", "\xff"}) {
    EXPECT_THAT(publish(anna_, 1, name), HasSubstr("expected a name of 1 to 128 letters")) << name;
  }
  EXPECT_THAT(publish(anna_, 1, std::string(129, 'a')), HasSubstr("expected a name of 1 to 128 letters"));
  const auto with_keys = [&](const std::string& keys) { return publish(anna_, {1}, "dict", {.keys = keys}); };
  EXPECT_THAT(with_keys("a\nb"), HasSubstr("got 2 keys and 1 tensors"));
  EXPECT_THAT(with_keys(""), HasSubstr("got 0 keys and 1 tensors"));
  EXPECT_THAT(with_keys("\xff"), HasSubstr("expected keys of 1 to 512 bytes of UTF-8"));
  EXPECT_THAT(with_keys("a\tb"), HasSubstr("without control characters"));
  EXPECT_THAT(with_keys(std::string(513, 'a')), HasSubstr("expected keys of 1 to 512 bytes"));
  EXPECT_THAT(publish(anna_, {1, 1}, "dict", {.keys = "a\na"}), HasSubstr("the key \"a\" occurs twice"));
  EXPECT_THAT(publish(anna_, {1, 1}, "list", {}), HasSubstr("got 0 keys and 2 tensors"));
  EXPECT_THAT(publish(anna_, {1}, "to", {.to = "a b"}), HasSubstr("expected names of principals"));
  EXPECT_THAT(publish(anna_, {1}, "to", {.to = std::string(65, 'a')}), HasSubstr("expected names of principals"));
  std::string many = "p0";
  for (int i = 1; i <= 256; ++i) absl::StrAppend(&many, "\np", i);
  EXPECT_THAT(publish(anna_, {1}, "to", {.to = many}), HasSubstr("expected at most 256 principals, got 257"));
  v1::Frame frame;
  Instruction(&frame, "zeros").integers({2}).none().integer(Device{DeviceType::kMeta}.encode()).result(2);
  run(anna_, frame);
  EXPECT_THAT(publish(anna_, {2}, "meta", {}), HasSubstr("got a meta tensor"));
  EXPECT_EQ(list(anna_), Json::array());
  EXPECT_EQ(double_in_place(anna_, 1), "") << "a refused publication does not freeze the tensor";
  ASSERT_EQ(publish(anna_, 1), "");
  EXPECT_THAT(publish(anna_, 1), HasSubstr("anna has published something as \"weights\" already"));
  EXPECT_THAT(unpublish(anna_, "none", ""), HasSubstr("has published nothing as \"none\""));
}

TEST_F(PublicationsTest, OpenedStoragesAreReceivedOnce) {
  make(anna_, 1);
  ASSERT_EQ(publish(anna_, {1}, "weights", {.to = "bert"}), "");
  const Opened opened = describe(bert_, "weights", "anna");
  const int64_t number = opened.layout[0];
  EXPECT_THAT(take(bert_, 1, number, 1), HasSubstr("expected a storage that was opened and not received"));
  EXPECT_THAT(take(bert_, 2, number, -1), HasSubstr("expected a storage that was opened and not received"));
  EXPECT_THAT(take(bert_, 3, number + 1, 0), HasSubstr("expected a storage that was opened and not received"));
  EXPECT_THAT(take(anna_, 4, number, 0), HasSubstr("expected a storage that was opened and not received"));
  EXPECT_EQ(take(bert_, 4, number, 0), "");
  EXPECT_THAT(take(bert_, 5, number, 0), HasSubstr("expected a storage that was opened and not received"));
  EXPECT_THAT(take(bert_, 6, describe(bert_, "weights", "anna").layout[0], 0, 5), HasSubstr("at most the 16 bytes"));
  // Descriptions whose storages are not received are limited, and freed with the session.
  for (int i = 0; i < 64; ++i) EXPECT_EQ(describe(bert_, "weights", "anna").error, "");
  EXPECT_THAT(describe(bert_, "weights", "anna").error, HasSubstr("expected at most 64 publications"));
}

TEST_F(PublicationsTest, NumbersOfPublicationsAreLimited) {
  make(anna_, 1);
  for (size_t i = 0; i < Publications::kMaxPublications; ++i) ASSERT_EQ(publish(anna_, 1, absl::StrCat("p", i)), "");
  EXPECT_THAT(publish(anna_, 1, "more"), HasSubstr("anna has 256 publications, the most"));
  make(bert_, 1);
  EXPECT_EQ(publish(bert_, 1, "more"), "") << "the limit is that of a principal";
  EXPECT_EQ(unpublish(anna_, "p7", ""), "");
  EXPECT_EQ(publish(anna_, 1, "more"), "");
}

TEST_F(PublicationsTest, TheAuditLogHasCausesAndIsLimited) {
  const std::string file = ::testing::TempDir() + "/publications_audit.jsonl";
  std::remove(file.c_str());
  auto audit = AuditLog::open(file);
  ASSERT_TRUE(audit.ok());
  publications_ = std::make_shared<Publications>(0, 0, audit->get());
  Session *dora = open("dora"), *emil = open("emil");
  make(dora, 1);
  publish(dora, {1}, "weights", {.to = "anna"});
  open_as(dora, 2, "dora");
  open_as(emil, 1, "dora");
  open_as(emil, 2, "dora", "none");
  unpublish(dora, "weights", "");
  for (int i = 0; i < 200; ++i) open_as(emil, 10 + static_cast<uint64_t>(i), "dora");
  std::ifstream lines(file);
  std::vector<Json> records;
  for (std::string line; std::getline(lines, line);) records.push_back(Json::parse(line));
  ASSERT_GE(records.size(), 5u);
  EXPECT_LT(records.size(), 200u);
  const auto is = [&](size_t i, const char* event, const char* principal, const char* outcome, const char* reason) {
    EXPECT_EQ(records[i]["event"], event);
    EXPECT_EQ(records[i]["principal"], principal);
    EXPECT_EQ(records[i]["outcome"], outcome);
    EXPECT_EQ(records[i]["reason"], reason);
  };
  is(0, "publication.publish", "dora", "ok", "weights");
  is(1, "publication.open", "dora", "ok", "dora/weights");
  is(2, "publication.open", "emil", "permission_denied", "dora/weights: it is published to others");
  is(3, "publication.open", "emil", "not_found", "dora/none: there is no such publication");
  is(4, "publication.unpublish", "dora", "ok", "dora/weights");
  sessions_.clear();  // before the log
  publications_ = nullptr;
}

// A session that publishes, opens, receives, writes and ends, with fields changed at random.
TEST_F(PublicationsTest, MutatedFramesLeaveNothingBehind) {
  constexpr int kMutations = 1500;
  v1::Frame valid;
  literal(&valid, 1, {4}, {1, 2, 3, 4});
  Instruction(&valid, "literal")
      .bytes("w")
      .integers({1})
      .integer(static_cast<int64_t>(DType::kUInt8))
      .integer(0)
      .result(2);
  Instruction(&valid, "publish")
      .handles({1})
      .handle(2)
      .bytes("weights")
      .bytes("*")
      .boolean(true)
      .boolean(true)
      .result(3);
  Instruction(&valid, "open_publication").bytes("weights").none().result(4, 2);
  Instruction(&valid, "opened_storage")
      .integer(1)
      .integer(0)
      .integers({4})
      .integer(static_cast<int64_t>(DType::kFloat32))
      .integer(0)
      .result(6);
  Instruction(&valid, "add").handle(6).handle(1).into(6);
  Instruction(&valid, "list_publications").result(7);
  Instruction(&valid, "unpublish").bytes("weights").none().result(8);
  testing::read(&valid, 1, 3);
  valid.set_sequence(1);
  const uint64_t before = testing::engine_bytes();
  int succeeded = 0;
  for (int number = 0; number < kMutations; ++number) {
    SCOPED_TRACE(number);
    fuzz::Random random(static_cast<uint64_t>(number));
    v1::Frame frame = valid;
    if (number != 0) fuzz::mutate_fields(&frame, random);
    v1::Reply reply;
    Session* session = open(absl::StrCat("p", number));
    session->execute(frame, &reply);
    ASSERT_EQ(session->over(), reply.has_fault() || frame.close());
    succeeded += reply.reads_size() == 1 && !reply.reads(0).has_error();
    publications_->revoke(session->principal());
    sessions_.pop_back();
    ASSERT_EQ(testing::engine_bytes(), before);
  }
  EXPECT_GT(succeeded, kMutations / 10) << "most of a frame remains valid";
}

}  // namespace
}  // namespace tt::server
