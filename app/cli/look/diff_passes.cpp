#include "app/cli/look/diff_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/terminal.h"
#include "core/torch/reading/job_passes.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The op that makes a value of this name, and the first pass that has it; with a pass given, in that one.
std::pair<std::size_t, BoundSymbolId> opNamed(const JobPasses& chain, const std::string& value,
                                              const std::string& pass) {
  const auto first = pass.empty() ? 0 : chain.find(pass), end = pass.empty() ? chain.passes.size() : first + 1;
  for (auto i = first; i < end; ++i) {
    const auto& analysis = chain.passes[i].analysis;
    if (!analysis) continue;
    for (const auto op : chain.passes[i].trace().ops)
      for (const auto output : analysis->document->outputs(op))
        if (analysis->document->displayName(output) == value) return {i, op};
  }
  badUse(fmt::format("no op makes '{}' in {}", value,
                     pass.empty() ? "any pass of compile " + chain.compile : chain.passes[first].name));
}

std::string opText(const JobPass& pass, BoundSymbolId op) {
  const auto& document = *pass.analysis->document;
  const auto outputs = document.outputs(op);
  return (outputs.empty() ? std::string() : document.displayName(outputs[0]) + " = ") + document.opName(op);
}

std::string followedText(const JobPass& pass, const FollowedOp& followed) {
  using State = FollowedOp::State;
  if (followed.ops.empty()) return std::string(name(followed.state));
  std::string text;
  constexpr std::size_t most = 4;
  for (std::size_t i = 0; i < std::min(followed.ops.size(), most); ++i)
    text += (i == 0 ? "" : "; ") + opText(pass, followed.ops[i]);
  if (followed.ops.size() > most) text += fmt::format("; and {} more", followed.ops.size() - most);
  return followed.state == State::same ? text : fmt::format("{}: {}", name(followed.state), text);
}

std::string beforeName(const JobPasses& chain, const JobPass& pass) {
  return pass.before ? chain.passes[*pass.before].name : std::string();
}

void printList(const JobPasses& chain, const std::vector<FollowedOp>& followed) {
  std::size_t widest = 4;
  for (const auto& pass : chain.passes) widest = std::max(widest, pass.name.size());
  fmt::print("compile {}\n{:<{}} {:>6}  {:<{}} {:>8} {:>6} {:>6} {:>6}{}\n", chain.compile, "pass", widest, "ops",
             "against", widest, "changed", "gone", "new", "moved", followed.empty() ? "" : "  op");
  for (std::size_t i = 0; i < chain.passes.size(); ++i) {
    const auto& pass = chain.passes[i];
    auto line =
        fmt::format("{:<{}} {:>6}  {:<{}}", pass.name, widest,
                    pass.analysis ? std::to_string(pass.trace().ops.size()) : "?", beforeName(chain, pass), widest);
    if (pass.diff) {
      const auto& counts = pass.diff->counts;
      line += fmt::format(" {:>8} {:>6} {:>6} {:>6}", counts.changed, counts.onlyLeft, counts.onlyRight, counts.moved);
    } else {
      line += fmt::format(" {:>8} {:>6} {:>6} {:>6}", "", "", "", "");
    }
    if (!followed.empty() && pass.analysis) line += "  " + followedText(pass, followed[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
    if (!pass.problem.empty()) fmt::print("  cannot be read: {}\n", pass.problem);
  }
}

Json jsonOf(const JobPasses& chain, const std::string& path, const std::vector<FollowedOp>& followed) {
  Json json{{"path", path}, {"compile", chain.compile}, {"passes", Json::array()}};
  for (std::size_t i = 0; i < chain.passes.size(); ++i) {
    const auto& pass = chain.passes[i];
    Json entry{{"name", pass.name},
               {"ops", pass.analysis ? Json(pass.trace().ops.size()) : Json()},
               {"before", pass.before ? Json(beforeName(chain, pass)) : Json()}};
    if (pass.diff) {
      const auto& counts = pass.diff->counts;
      entry["counts"] = {{"same", counts.same},
                         {"changed", counts.changed},
                         {"onlyFirst", counts.onlyLeft},
                         {"onlySecond", counts.onlyRight},
                         {"moved", counts.moved}};
    }
    if (!pass.problem.empty()) entry["problem"] = pass.problem;
    if (!followed.empty()) {
      entry["op"] = {{"state", name(followed[i].state)}, {"ops", Json::array()}};
      for (const auto op : followed[i].ops) entry["op"]["ops"].push_back(opText(pass, op));
    }
    json["passes"].push_back(std::move(entry));
  }
  return json;
}

int printOne(const JobPasses& chain, const DiffPassesOptions& options) {
  const auto& pass = chain.passes[chain.find(options.pass)];
  if (!pass.before) badUse(fmt::format("{} is the first pass of compile {}", pass.name, chain.compile));
  if (!pass.diff) badInput(pass.problem.empty() ? chain.passes[*pass.before].problem : pass.problem);
  auto text = options.text;
  text.left = beforeName(chain, pass);
  text.right = pass.name;
  return printDiff(*pass.diff, text, options.format, options.sideBySide);
}

}  // namespace

int printDiff(const TraceDiff& diff, const DiffTextOptions& text, const std::string& format, bool sideBySide) {
  if (format == "json") {
    fmt::print("{}\n", dumpJson(diffJson(diff, text), 1));
  } else if (!terminal().quiet) {
    fmt::print("{}", sideBySide ? sideBySideText(diff, text) : unifiedText(diff, text));
    if (!diff.equal()) fmt::print("{}\n", summaryOf(diff));
  }
  return diff.equal() ? allWell : checkFailed;
}

int printPasses(const DiffPassesOptions& options, const Progress& progress) {
  const auto log = jobs::openJobLog(options.path, progress);
  const auto chain = jobPasses(log, jobs::chooseCompile(log, options.compile, options.rank), progress);
  if (!options.pass.empty() && options.follow.empty()) return printOne(chain, options);
  std::vector<FollowedOp> followed;
  if (!options.follow.empty()) {
    const auto [pass, op] = opNamed(chain, options.follow, options.pass);
    followed = followOp(chain, pass, op);
  }
  if (options.format == "json") {
    fmt::print("{}\n", dumpJson(jsonOf(chain, options.path, followed), 1));
  } else if (!terminal().quiet) {
    printList(chain, followed);
  }
  return allWell;
}

}  // namespace retrograd::cli
