#include "core/torch/experiments/passes.h"
#include "core/torch/analysis/analyse.h"

#include <algorithm>
#include <cctype>

namespace retrograd {
namespace {

bool beginsWith(std::string_view text, std::string_view beginning) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return text.size() >= beginning.size() && std::equal(beginning.begin(), beginning.end(), text.begin(),
                                                       [&](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::size_t PassTraces::find(std::string_view pass, TraceKind kind) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 1; i < results.size(); ++i)
    if (!pass.empty() && beginsWith(results[i].pass, pass)) found.push_back(i);
  if (found.empty()) {
    std::string known;
    for (std::size_t i = 1; i < results.size(); ++i)
      if (results[i].pass != results[i - 1].pass) known += (known.empty() ? "" : ", ") + results[i].pass;
    throw Error(ErrorCode::badUse, "no such pass was run on this model; there are: " + known,
                "pass " + std::string(pass));
  }
  for (auto i : found)
    if (results[i].trace.kind == kind) return i;
  return found.front();
}

const Trace& PassTraces::before(std::size_t i) const {
  if (i == 0) throw Error(ErrorCode::badUse, "the computation was read, not made of another trace", results.at(0).pass);
  while (results.at(i).pass == results[i - 1].pass) --i;
  return results[i - 1].trace;
}

PassTraces passesOf(const Analysis& analysis, const Progress& progress) {
  PassTraces passes;
  passes.results.emplace_back();
  passes.analysis = deriveAgain(analysis, requestOf(analysis), &passes.results, progress);
  if (!passes.analysis->derived())
    throw Error(ErrorCode::badUse, "nothing can be derived from this model, so no pass was run on it",
                analysis.file.path);
  const auto& computation = passes.analysis->computation().trace;
  passes.results.front() = {computation.history.empty() ? "Read" : computation.history.back().pass, computation};
  return passes;
}

}  // namespace retrograd
