// The REST form of the Open Inference Protocol: answers requests below /v2.
//
// Bodies are JSON, or with the header Inference-Header-Content-Length JSON followed by the tensors' bytes (the binary
// data extension). A body may be compressed, and so is the answer of an inference whose caller accepts it. Conversions
// only: InferenceServer does the rest. Requests are untrusted: their size is limited by the caller, what they expand
// to, the nesting of JSON and the number of its values here. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/serving/content_coding.h"
#include "server/serving/inference_server.h"
#include "server/serving/inflight.h"

namespace tt::server {

struct RestRequest {
  std::string method;            // "GET", "POST"
  std::string path;              // without the query, "/v2/models/resnet/infer"
  std::string authorization;     // headers; empty: absent
  size_t json_bytes = SIZE_MAX;  // Inference-Header-Content-Length, of the plain body; SIZE_MAX: absent
  absl::string_view body;
  ContentCoding coding = ContentCoding::kIdentity;   // of the body; kUnknown only without one
  ContentCoding accepts = ContentCoding::kIdentity;  // for the response
  Inflight* contents = nullptr;        // counts the body, if it was decompressed, until answer_infer() does
  bool is_local = false;               // the caller is on this host
  std::string address;                 // the caller's, as address_of() has it
  std::function<bool()> is_cancelled;  // as InferRequest has it
};

struct RestResponse {
  int status = 200;
  std::string type = "application/json";
  size_t json_bytes = SIZE_MAX;  // of a plain body with binary data; SIZE_MAX: the body is JSON
  std::string body;
  ContentCoding coding = ContentCoding::kIdentity;  // of the body
  Inflight charged;                                 // counts the body, until it has been sent
  ModelShares::Place place;                         // of the request, as long
};

// What a path needs, with any method.
InferenceServer::Right rest_right(absl::string_view path);
// Answers a request; never throws.
RestResponse answer_rest(InferenceServer& server, const RestRequest& request);

}  // namespace tt::server
