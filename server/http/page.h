// The files of the page that shows what the engine does, as the build embeds them (deploy/cmake/EmbedPage.cmake).
#pragma once

#include <string_view>

#include "absl/types/span.h"

namespace tt::server {

struct PageFile {
  const char* path;  // of its URL
  std::string_view type;
  std::string_view etag;  // of the contents, with quotes
  std::string_view content;
};

absl::Span<const PageFile> page_files();

}  // namespace tt::server
