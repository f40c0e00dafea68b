// Inference requests in REST: JSON or JSON followed by binary data, to requests of InferenceServer and back.
#pragma once

#include <string>

#include "server/serving/inference_server.h"
#include "server/serving/rest.h"

namespace tt::server {

// Runs the request in a body and returns its response. The model's version may be empty. Throws Refused
// (server/serving/rest_json.h). Parsed values count as bytes of requests in progress.
RestResponse answer_infer(InferenceServer& server, const Principal& caller, const RestRequest& wire,
                          const std::string& model, const std::string& version);

}  // namespace tt::server
