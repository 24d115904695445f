#include "core/torch/opinion/opinion_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/user_choice.h"

namespace retrograd {
namespace {

bool hasBoth(const jobs::Attempt& attempt) {
  return attempt.find(jobs::GraphKind::forward) != nullptr && attempt.find(jobs::GraphKind::backward) != nullptr;
}

bool canBeCompared(const jobs::Compile& compile) {
  return std::any_of(compile.attempts.begin(), compile.attempts.end(), hasBoth);
}

}  // namespace

jobs::GraphChoice opinionChoice(const jobs::JobLog& log, const SecondOpinionRequest& request) {
  if (!request.compile.empty()) return jobs::chooseCompile(log, request.compile, request.rank);
  for (const auto& process : log.processes) {
    if (request.rank && process.rank != request.rank) continue;
    for (const auto& compile : process.compiles)
      for (auto attempt = compile.attempts.rbegin(); attempt != compile.attempts.rend(); ++attempt)
        if (hasBoth(*attempt)) return {&process, &compile, &*attempt};
  }
  return jobs::chooseCompile(log, {}, request.rank);
}

std::string whyNotCompared(const jobs::Attempt& attempt) {
  if (hasBoth(attempt)) return {};
  if (attempt.find(jobs::GraphKind::inference))
    return "there is no gradient to compare: it was compiled for inference, and the log has its inference graph alone";
  if (attempt.find(jobs::GraphKind::forward) || attempt.find(jobs::GraphKind::joint)) {
    const auto missing = attempt.find(jobs::GraphKind::forward) ? "backward" : "forward and no backward";
    return fmt::format("there is no gradient to compare: the log has no {} graph of this compile", missing);
  }
  return "there is no gradient to compare: the log has only Dynamo's graph of this compile";
}

std::string leftOutCompiles(const jobs::JobLog& log, const jobs::GraphChoice& choice) {
  std::vector<std::string> names;
  for (const auto& compile : choice.process->compiles)
    if (&compile != choice.compile && canBeCompared(compile)) names.push_back(jobs::nameOf(compile));
  std::vector<std::int64_t> ranks;
  bool isElsewhere = false;
  for (const auto& process : log.processes) {
    if (&process == choice.process || std::none_of(process.compiles.begin(), process.compiles.end(), canBeCompared))
      continue;
    isElsewhere = true;
    if (process.rank && process.rank != choice.process->rank) ranks.push_back(*process.rank);
  }
  std::vector<std::string> ways;
  if (!names.empty()) ways.push_back(fmt::format("{} {}", nameOf(UserChoice::compile), fmt::join(names, ", ")));
  if (!ranks.empty()) ways.push_back(fmt::format("{} {}", nameOf(UserChoice::rank), fmt::join(ranks, ", ")));
  if (isElsewhere && ranks.empty()) ways.emplace_back("the other logs of the folder");
  return ways.empty() ? "" : fmt::format("this is the first compile alone; there are more: {}", fmt::join(ways, "; "));
}

}  // namespace retrograd
