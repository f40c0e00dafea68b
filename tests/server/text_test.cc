#include "server/text.h"

#include <gtest/gtest.h>

namespace tt::server {
namespace {

TEST(TextTest, KeepsValidUtf8) {
  for (const char* text : {"", "plain", "Grüße", "日本語", "🙂 smiles", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(valid_utf8(text), text);
}

TEST(TextTest, EscapesOtherBytes) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\\xffb");
  EXPECT_EQ(valid_utf8("\xc3"), "\\xc3");
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
}

TEST(TextTest, CutsBetweenCharacters) {
  EXPECT_EQ(valid_utf8("aé", 2), "a");
  EXPECT_EQ(valid_utf8("aé", 3), "aé");
  EXPECT_EQ(valid_utf8("abc\xff", 6), "abc");
}

}  // namespace
}  // namespace tt::server
