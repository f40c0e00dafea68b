# Writes a source with the files of a folder as strings: cmake -DFOLDER=server/http/page -DOUT=page.cc -P EmbedPage.cmake
# The interface is server/http/page.h.

set(entries "")
foreach(pair "page.html|/|text/html" "page.css|/page.css|text/css" "page.js|/page.js|text/javascript"
        "charts.js|/charts.js|text/javascript")
  string(REPLACE "|" ";" parts "${pair}")
  list(GET parts 0 name)
  list(GET parts 1 path)
  list(GET parts 2 type)
  file(READ "${FOLDER}/${name}" content)
  file(SHA256 "${FOLDER}/${name}" hash)
  string(FIND "${content}" ")tt_page\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${name} contains the end of a string of the generated source")
  endif()
  string(SUBSTRING "${hash}" 0 32 hash)
  string(APPEND entries "    {\"${path}\", \"${type}; charset=utf-8\", \"\\\"${hash}\\\"\", R\"tt_page(${content})tt_page\"},\n")
endforeach()
file(WRITE "${OUT}" "#include \"server/http/page.h\"

namespace tt::server {
namespace {

constexpr PageFile kFiles[] = {
${entries}};

}  // namespace

absl::Span<const PageFile> page_files() { return kFiles; }

}  // namespace tt::server
")
