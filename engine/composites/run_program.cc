#include "engine/composites/run_program.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/session/context.h"
#include "engine/session/programs.h"
#include "engine/session/windows.h"

namespace tt::composites {
namespace {

Programs& programs() { return Context::current().services.get<Programs>(); }

Tensor bytes_of(const std::string& text) {
  const Tensor bytes = empty({static_cast<int64_t>(text.size())}, DType::kUInt8, Device{});
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// One row per element, whose members are numbers.
template <typename T>
Tensor rows_of(const std::vector<T>& rows) {
  constexpr int64_t kColumns = sizeof(T) / sizeof(int64_t);
  const Tensor table = empty({static_cast<int64_t>(rows.size()), kColumns}, DType::kInt64, Device{});
  if (!rows.empty()) std::memcpy(table.data(), rows.data(), rows.size() * sizeof(T));
  return table;
}

}  // namespace

Tensors run_defined(const Tensors& inputs, const Tensors& written, int64_t number) {
  const Programs::Entry program = programs().get(number);  // stays valid if the run drops its number
  Tensors outputs = program->run({inputs, written});
  programs().count_run(number);
  return outputs;
}

Tensor explain_defined(const Tensors& inputs, const Tensors& written, int64_t number) {
  return bytes_of(programs().get(number)->explain({inputs, written}));
}

Tensor expand_defined(const Tensors& inputs, const Tensors& written, int64_t number) {
  return bytes_of(programs().get(number)->expanded({inputs, written}));
}

Tensor count_programs() {
  std::vector<ProgramCounters> rows = programs().counters();
  std::sort(rows.begin(), rows.end(),
            [](const ProgramCounters& a, const ProgramCounters& b) { return a.number < b.number; });
  return rows_of(rows);
}

Tensor count_windows() {
  std::vector<WindowCounters> rows;
  if (const Windows* windows = Context::current().services.find<Windows>()) rows = windows->counters();
  std::sort(rows.begin(), rows.end(), [](const WindowCounters& a, const WindowCounters& b) { return a.runs > b.runs; });
  return rows_of(rows);
}

}  // namespace tt::composites
