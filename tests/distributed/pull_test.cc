// OfferTable, PullServer and PullCall: tensors that one thread offers and another one pulls, over loopback.
#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <future>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "distributed/pull/offer_table.h"
#include "distributed/pull/pull_call.h"
#include "distributed/pull/pull_server.h"
#include "distributed/pull/wire.h"
#include "distributed/store/grpc_options.h"
#include "gmock/gmock.h"

namespace tt::distributed {
namespace {

using ::testing::HasSubstr;
using Milliseconds = OfferTable::Milliseconds;
constexpr Milliseconds kLong{20'000};

std::string capability(int number) { return absl::StrCat("capability-of-this-test-", number); }

OfferTable::Value value_of(Sizes sizes, float first = 0) {
  OfferedValue value;
  value.tensor = empty(sizes, DType::kFloat32, Device{});
  float* items = value.tensor.data_as<float>();
  std::iota(items, items + value.tensor.numel(), first);
  return std::make_shared<const OfferedValue>(std::move(value));
}

OfferTable::Value error_value(ErrorKind kind, std::string message) {
  return std::make_shared<const OfferedValue>(OfferedValue{Tensor(), Error(kind, std::move(message)), nullptr});
}

// Returns what take() passes to its callback.
std::future<absl::StatusOr<OfferTable::Value>> take(OfferTable& table, const std::string& capability,
                                                    Milliseconds timeout = kLong, uint64_t* wait = nullptr) {
  auto taken = std::make_shared<std::promise<absl::StatusOr<OfferTable::Value>>>();
  auto result = taken->get_future();
  const uint64_t number =
      table.take(capability, timeout, [taken](absl::StatusOr<OfferTable::Value> v) { taken->set_value(std::move(v)); });
  if (wait) *wait = number;
  return result;
}

TEST(OfferTable, AnOfferIsTakenOnce) {
  OfferTable table;
  const uint64_t owner = table.new_owner();
  const auto value = value_of({2});
  ASSERT_TRUE(table.offer(capability(1), value, owner, kLong).ok());
  EXPECT_EQ(table.num_offers(owner), 1u);
  EXPECT_EQ(*take(table, capability(1)).get(), value);
  EXPECT_EQ(table.num_offers(owner), 0u);
  EXPECT_EQ(take(table, capability(1)).get().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(table.offer(capability(1), value, owner, kLong).code(), absl::StatusCode::kAlreadyExists);
}

TEST(OfferTable, ATakeWaitsForItsOffer) {
  OfferTable table;
  const uint64_t owner = table.new_owner();
  auto first = take(table, capability(1));
  EXPECT_EQ(take(table, capability(1)).get().status().code(), absl::StatusCode::kNotFound) << "one wait per capability";
  EXPECT_EQ(first.wait_for(Milliseconds(20)), std::future_status::timeout);
  const auto value = value_of({2});
  ASSERT_TRUE(table.offer(capability(1), value, owner, kLong).ok());
  EXPECT_EQ(*first.get(), value);
  EXPECT_EQ(table.num_offers(owner), 0u);
  EXPECT_EQ(take(table, capability(1)).get().status().code(), absl::StatusCode::kNotFound);
}

TEST(OfferTable, OffersAndWaitsExpire) {
  OfferTable table;
  const uint64_t owner = table.new_owner();
  const auto value = value_of({2});
  ASSERT_TRUE(table.offer(capability(1), value, owner, Milliseconds(10)).ok());
  auto waiting = take(table, capability(2), Milliseconds(20));
  EXPECT_EQ(waiting.get().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(take(table, capability(1)).get().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(value.use_count(), 1);
  EXPECT_TRUE(table.offer(capability(2), value, owner, kLong).ok()) << "an expired wait does not use the capability";
}

TEST(OfferTable, AnOwnerWithdrawsItsOffersOnly) {
  OfferTable table;
  const uint64_t mine = table.new_owner(), other = table.new_owner();
  const auto value = value_of({2});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(table.offer(capability(i), value, mine, kLong).ok());
  ASSERT_TRUE(table.offer(capability(3), value, other, kLong).ok());
  EXPECT_FALSE(table.withdraw(capability(3), mine));
  EXPECT_TRUE(table.withdraw(capability(0), mine));
  EXPECT_FALSE(table.withdraw(capability(0), mine));
  table.withdraw_all(mine);
  EXPECT_EQ(table.num_offers(mine), 0u);
  EXPECT_EQ(take(table, capability(1)).get().status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(take(table, capability(3)).get().ok());
}

TEST(OfferTable, BytesThatSeveralOffersShareCountOnceAfterTheirOwner) {
  OfferTable table;
  const uint64_t owner = table.new_owner(), other = table.new_owner();
  const auto value = value_of({1024});
  const uint64_t bytes = value->tensor->storage->bytes();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(table.offer(capability(i), value, owner, kLong).ok());
  table.limit_all(owner, kLong, bytes);
  EXPECT_EQ(table.num_offers(owner), 8u);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(take(table, capability(i)).get().ok());
  ASSERT_TRUE(table.offer(capability(9), value_of({1024}), other, kLong).ok());
  table.limit_all(other, kLong, bytes);  // together more than the limit
  EXPECT_EQ(table.num_offers(owner) + table.num_offers(other), 1u);
}

TEST(OfferTable, TheNumbersOfOffersAndWaitsAreBounded) {
  OfferTable table;
  const uint64_t owner = table.new_owner();
  const auto value = value_of({1});
  for (size_t i = 0; i < OfferTable::kMaxOffers; ++i) {
    ASSERT_TRUE(table.offer(capability(static_cast<int>(i)), value, owner, kLong).ok());
  }
  EXPECT_EQ(table.offer(capability(-1), value, owner, kLong).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.offer(capability(-1), value, table.new_owner(), kLong).ok());
  std::vector<uint64_t> waits(OfferTable::kMaxWaits);
  for (size_t i = 0; i < waits.size(); ++i) take(table, capability(-2 - static_cast<int>(i)), kLong, &waits[i]);
  EXPECT_EQ(take(table, capability(-1'000'000)).get().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.cancel(waits[0]));
  EXPECT_FALSE(table.cancel(waits[0]));
  uint64_t wait = 0;
  take(table, capability(-1'000'000), kLong, &wait);
  EXPECT_NE(wait, 0u);
}

TEST(OfferTable, CapabilitiesAreChecked) {
  EXPECT_TRUE(OfferTable::check_capability("0123456789abcdefABCD-_").ok());
  for (const std::string& bad : {std::string("short"), std::string(22, ' '), std::string(129, 'a'),
                                 std::string(22, '\0'), std::string("0123456789abcdefABCD-\n")}) {
    const absl::Status status = OfferTable::check_capability(bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()).find(bad), std::string::npos) << "the message must not contain it";
  }
}

TEST(PullWire, DataAreReadAsTheyWereWritten) {
  for (size_t size : {size_t{1}, size_t{127}, size_t{128}, kDataBytes}) {
    auto bytes = std::make_shared<std::string>(size, 'x');
    (*bytes)[size - 1] = 'y';
    grpc::ByteBuffer buffer = data_reply(bytes, absl::MakeConstSpan(bytes->data(), size));
    std::string read(size, ' ');
    EXPECT_EQ(read_data(buffer, absl::MakeSpan(read)), static_cast<int64_t>(size));
    EXPECT_EQ(read, *bytes);
    EXPECT_EQ(read_data(buffer, absl::MakeSpan(read).subspan(1)), static_cast<int64_t>(size)) << "does not fit";
    v1::PullReply reply;  // generated code agrees
    ASSERT_TRUE(deserialize(&buffer, &reply));
    EXPECT_EQ(reply.data(), *bytes);
    EXPECT_EQ(bytes.use_count(), 1) << "the buffer releases the bytes";
  }
}

TEST(PullWire, OtherMessagesAreRefused) {
  char room[64];
  for (const std::string& bad : {std::string(), std::string("\x1a"), std::string("\x1a\x05xx"),
                                 std::string("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12),
                                 std::string("\x1a\x01xy"), std::string("\x0a\x00", 2)}) {
    const grpc::Slice slice(bad);
    EXPECT_EQ(read_data(grpc::ByteBuffer(&slice, 1), absl::MakeSpan(room)), -1);
  }
}

// Pulls from a server of this process.
class PullTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }  // as in an engine, gRPC does not stop with the last server
  void SetUp() override {
    auto server = PullServer::shared("127.0.0.1", PeerPolicy::any());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    owner_ = offers_->new_owner();
  }
  void TearDown() override { offers_->withdraw_all(owner_); }

  std::string next_capability() {
    static int number = 0;
    return absl::StrCat("capability-of-a-pull-test-", ++number);
  }
  void offer(const std::string& capability, OfferTable::Value value) {
    ASSERT_TRUE(offers_->offer(capability, std::move(value), owner_, kLong).ok());
  }
  PullCall::Source source(const std::string& capability, Milliseconds timeout = kLong) {
    return {server_->address(), server_->token(), capability, timeout};
  }
  std::shared_ptr<PullCall> start(const PullCall::Source& source, Sizes sizes, DType dtype = DType::kFloat32) {
    auto channel = grpc::CreateCustomChannel(channel_target(source.address), grpc::InsecureChannelCredentials(),
                                             channel_arguments());
    return std::make_shared<PullCall>(channel, source, empty(sizes, dtype, Device{}), notifier_);
  }
  Tensor wait(PullCall& call) {
    for (;;) {
      const uint64_t seen = notifier_->notifications();
      if (call.ready()) return call.result();
      notifier_->wait(seen, call.deadline());
    }
  }
  std::vector<float> pull(const std::string& capability, Sizes sizes) {
    const Tensor t = wait(*start(source(capability), sizes));
    return {t.data_as<float>(), t.data_as<float>() + t.numel()};
  }
  std::string error_of(const PullCall::Source& source, Sizes sizes = {2}, DType dtype = DType::kFloat32,
                       ErrorKind kind = ErrorKind::kRuntime) {
    try {
      wait(*start(source, sizes, dtype));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.message();
      return error.message();
    }
    return "no error";
  }

  const std::shared_ptr<OfferTable> offers_ = OfferTable::shared();
  std::shared_ptr<PullServer> server_;
  uint64_t owner_ = 0;
  const std::shared_ptr<SuspensionNotifier> notifier_ = std::make_shared<SuspensionNotifier>();
};

TEST_F(PullTest, TheProcessHasOneServerPerAddress) {
  EXPECT_EQ(*PullServer::shared("127.0.0.1", PeerPolicy::any()), server_);
  EXPECT_FALSE(PullServer::shared("192.0.2.1", PeerPolicy::any()).ok());  // of no host
}

TEST_F(PullTest, TensorsOfAllSizesArrive) {
  for (const Sizes& sizes : {Sizes{}, Sizes{0}, Sizes{3, 0}, Sizes{5}, Sizes{2, 3}, Sizes{1'000'003}}) {
    const std::string with = next_capability();
    const auto value = value_of(sizes, 7);
    offer(with, value);
    const float* items = value->tensor.data_as<float>();
    EXPECT_EQ(pull(with, sizes), std::vector<float>(items, items + value->tensor.numel()));
  }
}

TEST_F(PullTest, APullWaitsForItsOffer) {
  const std::string with = next_capability();
  const auto call = start(source(with), {4});
  while (take(*offers_, with, Milliseconds(0)).get().status().code() != absl::StatusCode::kNotFound) {
    std::this_thread::yield();  // until the call waits at the table
  }
  EXPECT_FALSE(call->ready());
  offer(with, value_of({4}, 1));
  EXPECT_EQ(wait(*call).data_as<float>()[3], 4);
}

TEST_F(PullTest, AnErrorIsOfferedAsItself) {
  const std::string with = next_capability();
  offer(with, error_value(ErrorKind::kIndex, "[index] index 7 is out of bounds"));
  EXPECT_EQ(error_of(source(with), {2}, DType::kFloat32, ErrorKind::kIndex),
            "the computation of the offered tensor failed: [index] index 7 is out of bounds");
  const std::string next = next_capability();
  offer(next, error_value(ErrorKind::kValue, std::string(size_t{8} << 20, 'x')));
  EXPECT_LT(error_of(source(next), {2}, DType::kFloat32, ErrorKind::kValue).size(), size_t{40'000});
}

TEST_F(PullTest, SizesAndDtypeMustAgree) {
  const std::string first = next_capability(), second = next_capability();
  offer(first, value_of({3}));
  EXPECT_EQ(error_of(source(first), {2}, DType::kFloat32, ErrorKind::kValue),
            "expected float32[2], but the offered tensor has the sizes [3]");
  offer(second, value_of({2}));
  EXPECT_THAT(error_of(source(second), {2}, DType::kInt32, ErrorKind::kValue), HasSubstr("another dtype"));
}

TEST_F(PullTest, WrongAndUsedCapabilitiesHaveOneMessage) {
  const std::string used = next_capability(), withdrawn = next_capability();
  offer(used, value_of({2}));
  pull(used, {2});
  offer(withdrawn, value_of({2}));
  offers_->withdraw(withdrawn, owner_);
  const std::string message = error_of(source(used));
  EXPECT_THAT(message, HasSubstr("no tensor is offered under this capability"));
  EXPECT_EQ(error_of(source(withdrawn)), message);
  EXPECT_THAT(error_of(source(next_capability(), Milliseconds(30))), HasSubstr("timed out after 30 ms"));
}

TEST_F(PullTest, TheServerRequiresItsToken) {
  const std::string with = next_capability();
  offer(with, value_of({2}));
  PullCall::Source wrong = source(with);
  wrong.token.back() ^= 1;
  EXPECT_THAT(error_of(wrong), HasSubstr("the token does not belong to this pull server"));
  EXPECT_EQ(pull(with, {2}).size(), 2u) << "the offer remains";
}

TEST_F(PullTest, AnUnreachableServerIsReported) {
  PullCall::Source gone = source(next_capability());
  gone.address = "127.0.0.1:1";
  EXPECT_THAT(error_of(gone), HasSubstr("the engine at 127.0.0.1:1 cannot be reached"));
}

TEST_F(PullTest, StoppingTheServerEndsItsCalls) {
  const auto call = start(source(next_capability()), {2});
  server_ = nullptr;
  EXPECT_THROW(wait(*call), Error);
}

TEST_F(PullTest, APullThatIsDestroyedReleasesItsTensor) {
  const std::string with = next_capability();
  auto call = start(source(with), {2});
  while (take(*offers_, with, Milliseconds(0)).get().status().code() != absl::StatusCode::kNotFound) {
    std::this_thread::yield();  // until the call waits at the table
  }
  call = nullptr;
  while (take(*offers_, with, Milliseconds(0)).get().status().code() == absl::StatusCode::kNotFound) {
    std::this_thread::yield();  // until the server has ended the wait
  }
  offer(with, value_of({2}, 3));
  EXPECT_EQ(pull(with, {2}), (std::vector<float>{3, 4})) << "the offer is still there";
}

// A call that never reads. The destructor ends it.
class StalledCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  StalledCall(const std::shared_ptr<grpc::Channel>& channel, const PullCall::Source& source) {
    v1::PullRequest request;
    request.set_capability(source.capability);
    request.set_timeout_milliseconds(1000);
    serialize(request, &request_);
    context_.AddMetadata("authorization", absl::StrCat("Bearer ", source.token));
    grpc::GenericStub(channel).PrepareBidiStreamingCall(&context_, kPullMethod, grpc::StubOptions(), this);
    StartWriteLast(&request_, grpc::WriteOptions());
    StartCall();
  }
  ~StalledCall() override {
    context_.TryCancel();
    done_.get_future().wait();
  }
  void OnDone(const grpc::Status&) override { done_.set_value(); }

 private:
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  std::promise<void> done_;
};

TEST_F(PullTest, AReceiverThatTakesNoBytesLosesTheTransfer) {
  auto server = PullServer::shared("127.0.0.2", PeerPolicy::any(), {}, Milliseconds(100));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string with = next_capability();
  const auto value = value_of({16 << 20});  // more than the buffers of a connection
  offer(with, value);
  auto channel = grpc::CreateCustomChannel(channel_target((*server)->address()), grpc::InsecureChannelCredentials(),
                                           channel_arguments());
  const StalledCall call(channel, {(*server)->address(), (*server)->token(), with, kLong});
  while (offers_->num_offers(owner_) > 0) std::this_thread::yield();  // until it is taken
  while (value.use_count() > 1) std::this_thread::yield();            // until the server has released it
}

TEST_F(PullTest, TransfersEndWithTheOwnerOfTheirValue) {
  const std::string with = next_capability();
  OfferedValue large = *value_of({16 << 20});
  large.owner_end = std::make_shared<OwnerEnd>();
  const std::shared_ptr<OwnerEnd> owner_end = large.owner_end;
  const auto value = std::make_shared<const OfferedValue>(std::move(large));
  offer(with, value);
  auto channel = grpc::CreateCustomChannel(channel_target(server_->address()), grpc::InsecureChannelCredentials(),
                                           channel_arguments());
  const StalledCall call(channel, source(with));
  while (offers_->num_offers(owner_) > 0) std::this_thread::yield();
  owner_end->end();
  while (value.use_count() > 1) std::this_thread::yield();

  const std::string late = next_capability();  // taken after the end
  offer(late, value);
  EXPECT_THAT(error_of(source(late), {16 << 20}), HasSubstr("ended the transfer after 0 of"));
}

// A server that answers every call with the given messages.
class HostileServer : public grpc::CallbackGenericService {
 public:
  explicit HostileServer(std::vector<std::string> messages) : messages_(std::move(messages)) {
    grpc::ServerBuilder builder;
    EXPECT_TRUE(port_.open(&builder, "127.0.0.1:0", "hostile", {}).ok());
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~HostileServer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_.number()); }

 private:
  class Call : public grpc::ServerGenericBidiReactor {
   public:
    explicit Call(const std::vector<std::string>& messages) : messages_(messages) { send(); }
    void OnWriteDone(bool ok) override { ok ? send() : Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }

   private:
    void send() {
      if (next_ == messages_.size()) return Finish(grpc::Status::OK);
      const grpc::Slice slice(messages_[next_++]);
      buffer_ = grpc::ByteBuffer(&slice, 1);
      StartWrite(&buffer_);
    }
    const std::vector<std::string>& messages_;
    size_t next_ = 0;
    grpc::ByteBuffer buffer_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Call(messages_);
  }
  const std::vector<std::string> messages_;
  ServerPort port_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(PullTest, InvalidAnswersAreErrors) {
  v1::PullReply header, data, many, unknown;
  header.mutable_header()->set_dtype(static_cast<uint32_t>(DType::kFloat32));
  header.mutable_header()->add_sizes(2);
  data.set_data(std::string(8, 'x'));
  many.mutable_header()->set_dtype(static_cast<uint32_t>(DType::kFloat32));
  for (int i = 0; i < 1000; ++i) many.mutable_header()->add_sizes(1);
  unknown.mutable_error()->set_kind(77);
  unknown.mutable_error()->set_message("x");
  const std::string h = header.SerializeAsString(), d = data.SerializeAsString();
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "sent 0 of 8 bytes"},
      {{h}, "sent 0 of 8 bytes"},
      {{d}, "invalid message, expected the tensor's dtype and sizes"},
      {{"\xff\xff"}, "invalid message, expected the tensor's dtype and sizes"},
      {{h, d, d}, "invalid message after 8 of 8 bytes"},
      {{h, h}, "invalid message after 0 of 8 bytes"},
      {{h, std::string("\x1a\x00", 2)}, "invalid message after 0 of 8 bytes"},
      {{unknown.SerializeAsString()}, "the computation of the offered tensor failed: x"},
  };
  for (const auto& [messages, expected] : cases) {
    HostileServer server(messages);
    PullCall::Source from = source(next_capability());
    from.address = server.address();
    EXPECT_THAT(error_of(from), HasSubstr(expected));
  }
  HostileServer server({many.SerializeAsString()});
  PullCall::Source from = source(next_capability());
  from.address = server.address();
  EXPECT_LT(error_of(from, {2}, DType::kFloat32, ErrorKind::kValue).size(), 300u);
}

}  // namespace
}  // namespace tt::distributed
