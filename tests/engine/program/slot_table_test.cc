#include "engine/program/slot_table.h"

#include <gtest/gtest.h>

namespace tt {
namespace {

TEST(SlotTableTest, NamesReferToTensorsUntilReleased) {
  SlotTable slots;
  Tensor t = empty({2}, DType::kFloat32, {});
  slots.put(7, {t, nullptr});
  ASSERT_NE(slots.find(7), nullptr);
  EXPECT_TRUE(slots.find(7)->tensor.same(t));
  EXPECT_TRUE(slots.release(7));
  EXPECT_FALSE(slots.release(7));
  EXPECT_EQ(slots.find(7), nullptr);
  EXPECT_EQ(t->ref_count(), 1u);
}

TEST(SlotTableTest, NameIsAssignedOnce) {
  SlotTable slots;
  slots.put(7, {empty({2}, DType::kFloat32, {}), nullptr});
  EXPECT_THROW(slots.put(7, {}), Error);
  EXPECT_THROW(slots.put(0, {}), Error);
  EXPECT_TRUE(slots.find(7)->tensor);
  EXPECT_EQ(slots.size(), 1u);
}

TEST(SlotTableTest, PoisonReplacesValue) {
  SlotTable slots;
  auto poison = std::make_shared<const Poison>(Poison{ErrorKind::kIndex, "out of range", "select"});
  slots.put(7, {empty({2}, DType::kFloat32, {}), nullptr});
  slots.poison(7, poison);
  slots.poison(8, poison);
  EXPECT_FALSE(slots.find(7)->tensor);
  EXPECT_EQ(slots.find(7)->poison, poison);
  EXPECT_EQ(slots.find(8), nullptr);
}

TEST(SlotTableTest, WithheldTensorIsErrorUntilAcknowledged) {
  SlotTable slots;
  auto poison = std::make_shared<const Poison>(Poison{ErrorKind::kIndex, "out of range", "select"});
  auto other = std::make_shared<const Poison>(Poison{ErrorKind::kIndex, "out of range", "select"});
  Tensor t = empty({2}, DType::kFloat32, {});
  slots.put(7, {t, nullptr});
  slots.put(8, {empty({2}, DType::kFloat32, {}), nullptr});
  slots.put(9, {t, nullptr});
  slots.withhold_where([&](const Tensor& x) { return x.same(t); }, poison);
  EXPECT_EQ(slots.find(7)->poison, poison);
  EXPECT_FALSE(slots.find(8)->poison);
  slots.withhold_where([&](const Tensor&) { return true; }, other);
  EXPECT_EQ(slots.find(7)->poison, poison) << "the first error must be kept";
  slots.acknowledge(other);
  EXPECT_FALSE(slots.find(8)->poison);
  slots.release(9);
  slots.acknowledge(poison);
  EXPECT_FALSE(slots.find(7)->poison);
  EXPECT_TRUE(slots.find(7)->tensor.same(t));
}

}  // namespace
}  // namespace tt
