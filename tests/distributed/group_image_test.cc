// Which process groups can be passed on to a process that replaces this one.
#include "distributed/group_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tt::distributed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

GroupMember rank_of(const std::string& store, int rank, const std::string& token = "secret") {
  GroupMember member;
  member.store = store;
  member.token = token;
  member.group = "1/0";
  member.rank = rank;
  member.size = 2;
  return member;
}

GroupMember served_store(const std::string& address, int members) {
  GroupMember store;
  store.store = address;
  store.rank = -1;
  store.size = members;
  return store;
}

TEST(GroupImage, PassesOnAGroupWithAllItsRanks) {
  EXPECT_THAT(why_not_passed({rank_of("here:1", 0), served_store("0.0.0.0:1", 2), rank_of("here:1", 1)}),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

// Two runs, each with one rank in this engine, whose stores have the same port at two hosts.
TEST(GroupImage, RanksOfGroupsAtOtherStoresAreNotCounted) {
  const auto is_missing = HasSubstr("has other ranks that are not passed on");
  EXPECT_THAT(why_not_passed({rank_of("here:1", 0), served_store("here:1", 2), rank_of("there:1", 1)}),
              ElementsAre(is_missing, IsEmpty(), is_missing));
  EXPECT_THAT(why_not_passed({rank_of("here:1", 0), rank_of("here:1", 1, "other")}),
              ElementsAre(is_missing, is_missing));
  const auto is_twice = HasSubstr("rank 0 of its process group \"1/0\" exists twice");
  EXPECT_THAT(why_not_passed({rank_of("here:1", 0), rank_of("here:1", 0)}), ElementsAre(is_twice, is_twice));
}

TEST(GroupImage, StoresOfOtherEnginesRanksStay) {
  EXPECT_THAT(why_not_passed({rank_of("here:1", 0), rank_of("here:1", 1), served_store("here:1", 3)}),
              ElementsAre(IsEmpty(), IsEmpty(), HasSubstr("ranks on other engines")));
}

TEST(GroupImage, WaitsForCollectivesAndMessages) {
  GroupMember first = rank_of("here:1", 0), second = rank_of("here:1", 1);
  first.collectives = 1;
  EXPECT_THAT(why_not_passed({first, second})[0], HasSubstr("a collective"));
  second.collectives = 1;
  first.sent[1] = 2;
  second.received[0] = 1;
  EXPECT_THAT(why_not_passed({first, second})[1], HasSubstr("rank 1 of its process group \"1/0\" has not received"));
  second.received[0] = 2;
  EXPECT_THAT(why_not_passed({first, second}), ElementsAre(IsEmpty(), IsEmpty()));
  second.is_whole = false;
  EXPECT_THAT(why_not_passed({first, second})[0], HasSubstr("has left or failed"));
}

}  // namespace
}  // namespace tt::distributed
