// Router: requests as text, and their answers.
#include "server/http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    router_.Get("/headers", [](const httplib::Request& request, httplib::Response& response) {
      std::string names;
      for (const auto& [name, value] : request.headers) absl::StrAppend(&names, name, "=", value, ";");
      response.set_content(names + request.remote_addr, "text/plain");
    });
    router_.Get("/fails", [](const httplib::Request&, httplib::Response&) { throw std::runtime_error("a secret"); });
  }
  std::string answer(const std::string& request) { return router_.answer(request, "ipv4:10.1.2.3:4711"); }
  Router router_;
};

TEST_F(RouterTest, AnswersGetAndHead) {
  EXPECT_THAT(answer("GET /headers HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Connection: close\r\n"), HasSubstr("ipv4:10.1.2.3:4711")));
  EXPECT_THAT(answer("HEAD /headers HTTP/1.1\r\n\r\n"), AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\n")));
  EXPECT_THAT(answer("GET /other HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(answer("GET /../headers HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(RouterTest, PassesOnlyTheHeadersThatHandlersRead) {
  const std::string text = answer(
      "GET /headers HTTP/1.1\r\nhost: x\r\nAUTHORIZATION: Bearer t\r\nRange: bytes=0-1\r\nExpect: 100-continue\r\n"
      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nAccept-Encoding: gzip\r\nIf-None-Match: \"e\"\r\n\r\n");
  EXPECT_THAT(text, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("host=x;"), HasSubstr("AUTHORIZATION=Bearer t;"),
                          HasSubstr("If-None-Match=\"e\";")));
  for (const char* name : {"Range=", "Expect=", "Content-Length=", "Transfer-Encoding=", "Accept-Encoding="}) {
    EXPECT_THAT(text, Not(HasSubstr(name)));
  }
}

TEST_F(RouterTest, RefusesOtherMethodsAndInvalidText) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "get", "GETX", "PRI"}) {
    EXPECT_THAT(answer(absl::StrCat(method, " /headers HTTP/1.1\r\n\r\n")), StartsWith("HTTP/1.1 405 ")) << method;
  }
  EXPECT_THAT(answer("\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer("GET\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(answer("GET /headers\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer("GET /headers HTTP/1.1\r\nhost: a\nb: c\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer(std::string("GET /hea\0ders HTTP/1.1\r\n\r\n", 27)), StartsWith("HTTP/1.1 400 "));
}

TEST_F(RouterTest, HidesExceptions) {
  EXPECT_THAT(answer("GET /fails HTTP/1.1\r\n\r\n"), AllOf(StartsWith("HTTP/1.1 500 "), Not(HasSubstr("secret"))));
}

}  // namespace
}  // namespace tt::server
