#include "base/text.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

namespace tt {
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

// tests/python/session/test_printable.py has the same rows.
TEST(TextTest, EscapesControls) {
  for (const auto& [text, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Grüße, 日本語 🙂 \\", "Grüße, 日本語 🙂 \\"},
           {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
           {"a\r\n\tb", "a\\r\\n\\tb"},
           {"\x7f\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", "\\x7f\\x80\\x9b\\x9f\xc2\xa0"},
           {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
           {"\xe2\x80\xaa\xe2\x80\xae", "\\u202a\\u202e"},
           {"\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069"},
           {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u200e\\u200f\\u061c"},
           {"\xff\xc3(", "\\xff\\xc3("},
       }) {
    EXPECT_EQ(printable(text), expected);
    EXPECT_EQ(printable(printable(text)), expected);
  }
  EXPECT_EQ(printable("ab\x1b", 5), "ab");
  EXPECT_EQ(printable(absl::string_view("a\0b", 3)), "a\\x00b");
}

}  // namespace
}  // namespace tt
