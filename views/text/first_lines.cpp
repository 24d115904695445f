#include "views/text/first_lines.h"

namespace retrograd::views {
namespace {

constexpr std::size_t longComputation =
    20'000;                         // ops: a fifth of a second, at some ten microseconds to derive and index one
constexpr std::size_t most = 1000;  // lines that one may scroll through meanwhile

}  // namespace

FirstLines firstLines(const ModelFile& file) {
  FirstLines first;
  const auto& ops = file.computation.trace.ops;
  if (ops.size() < longComputation) return first;
  first.ops = ops.size();
  for (auto op : std::span(ops).first(most)) first.lines.push_back(lineOf(*file.document, op, nullptr, true));
  return first;
}

}  // namespace retrograd::views
