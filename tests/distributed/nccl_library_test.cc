// Compares the declarations of NCCL and of the driver with nccl.h and cuda.h, where these are installed.
#include <cuda.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <type_traits>

#include "distributed/nccl/nccl_library.h"

namespace tt::distributed::nccl {
namespace {

// Types that C functions pass in the same way: pointers and enumerations of one size, and structures of one size.
template <typename A, typename B>
constexpr bool kSame = std::is_same_v<A, B> || (std::is_pointer_v<A> && std::is_pointer_v<B>) ||
                       (std::is_enum_v<A> && std::is_enum_v<B> && sizeof(A) == sizeof(B)) ||
                       (std::is_integral_v<A> && std::is_enum_v<B> && sizeof(A) == sizeof(B)) ||
                       (std::is_class_v<A> && std::is_class_v<B> && sizeof(A) == sizeof(B));

// Whether a function of ours has the parameters and the result of a function of a header.
template <typename Ours, typename Theirs>
struct Matches : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct Matches<R (*)(A...), S (*)(B...)> : std::bool_constant<sizeof...(A) == sizeof...(B)> {
  static constexpr bool kAll = [] {
    if constexpr (sizeof...(A) == sizeof...(B)) return kSame<R, S> && (kSame<A, B> && ...);
    return false;
  }();
};

template <typename Ours, typename Theirs>
void expect_match(Ours Library::*, Theirs*, const char* name) {
  EXPECT_TRUE((Matches<Ours, Theirs*>::kAll)) << name;
}

TEST(NcclLibraryTest, FunctionsMatchTheHeader) {
#define EXPECT_MATCH(member, function) expect_match(&Library::member, static_cast<decltype(&function)>(nullptr), #function)
  EXPECT_MATCH(get_unique_id, ncclGetUniqueId);
  EXPECT_MATCH(comm_init_rank_config, ncclCommInitRankConfig);
  EXPECT_MATCH(comm_finalize, ncclCommFinalize);
  EXPECT_MATCH(comm_destroy, ncclCommDestroy);
  EXPECT_MATCH(comm_abort, ncclCommAbort);
  EXPECT_MATCH(comm_get_async_error, ncclCommGetAsyncError);
  EXPECT_MATCH(get_error_string, ncclGetErrorString);
  EXPECT_MATCH(get_last_error, ncclGetLastError);
  EXPECT_MATCH(group_start, ncclGroupStart);
  EXPECT_MATCH(group_end, ncclGroupEnd);
  EXPECT_MATCH(all_reduce, ncclAllReduce);
  EXPECT_MATCH(reduce, ncclReduce);
  EXPECT_MATCH(broadcast, ncclBroadcast);
  EXPECT_MATCH(all_gather, ncclAllGather);
  EXPECT_MATCH(reduce_scatter, ncclReduceScatter);
  EXPECT_MATCH(send, ncclSend);
  EXPECT_MATCH(recv, ncclRecv);
#undef EXPECT_MATCH
}

TEST(NcclLibraryTest, ValuesMatchTheHeader) {
  EXPECT_EQ(static_cast<int>(kSuccess), ncclSuccess);
  EXPECT_EQ(static_cast<int>(kInProgress), ncclInProgress);
  EXPECT_EQ(static_cast<int>(kInt8), ncclInt8);
  EXPECT_EQ(static_cast<int>(kUint8), ncclUint8);
  EXPECT_EQ(static_cast<int>(kInt32), ncclInt32);
  EXPECT_EQ(static_cast<int>(kUint32), ncclUint32);
  EXPECT_EQ(static_cast<int>(kInt64), ncclInt64);
  EXPECT_EQ(static_cast<int>(kUint64), ncclUint64);
  EXPECT_EQ(static_cast<int>(kFloat16), ncclFloat16);
  EXPECT_EQ(static_cast<int>(kFloat32), ncclFloat32);
  EXPECT_EQ(static_cast<int>(kFloat64), ncclFloat64);
  EXPECT_EQ(static_cast<int>(kBfloat16), ncclBfloat16);
  EXPECT_EQ(static_cast<int>(kSum), ncclSum);
  EXPECT_EQ(static_cast<int>(kProd), ncclProd);
  EXPECT_EQ(static_cast<int>(kMax), ncclMax);
  EXPECT_EQ(static_cast<int>(kMin), ncclMin);
  EXPECT_EQ(static_cast<int>(kAvg), ncclAvg);
}

TEST(NcclLibraryTest, StructuresMatchTheHeader) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_LE(sizeof(Config), sizeof(ncclConfig_t));
  EXPECT_EQ(offsetof(Config, size), offsetof(ncclConfig_t, size));
  EXPECT_EQ(offsetof(Config, magic), offsetof(ncclConfig_t, magic));
  EXPECT_EQ(offsetof(Config, version), offsetof(ncclConfig_t, version));
  EXPECT_EQ(offsetof(Config, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(sizeof(UniqueId), sizeof(ncclUniqueId));
  EXPECT_EQ(sizeof(Uuid), sizeof(CUuuid));
  EXPECT_EQ(sizeof(CUdevice), sizeof(int));
  EXPECT_EQ(sizeof(CUresult), sizeof(int));
}

// The installed library has the functions; no GPU is needed for that.
TEST(NcclLibraryTest, FindsTheFunctions) {
  std::string why;
  const Library* found = library(&why);
  if (found == nullptr && why.find("cannot open") != std::string::npos) GTEST_SKIP() << why;
  ASSERT_NE(found, nullptr) << why;
  EXPECT_GE(found->version, 21'400);
  EXPECT_STREQ(found->get_error_string(kSuccess), "no error");
}

}  // namespace
}  // namespace tt::distributed::nccl
