#include "app/cli/options.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "core/checking/reference.h"
#include "core/checking/threads.h"
#include "core/debug/session_file.h"
#include "core/formats/file_kind.h"
#include "core/grad/library.h"
#include "core/tracing/op_table.h"

namespace retrograd::cli {

void addPartition(CLI::App& app, std::optional<PartitionOptions>& partition) {
  static const std::map<std::string, PartitionOptions::Kind> kinds{{"default", PartitionOptions::defaultKind}, {"min-cut", PartitionOptions::minCut}};
  const auto asked = [&partition]() -> PartitionOptions& { return partition ? *partition : partition.emplace(); };
  app.add_option_function<std::string>(
         "--partition", [asked](const std::string& kind) { asked().kind = kinds.at(kind); },
         "what to save for backward: what the formulas ask for (default), or the fewest bytes (min-cut)")
      ->check(CLI::IsMember({"default", "min-cut"}));
  app.add_option_function<std::int64_t>(
         "--budget", [asked](std::int64_t bytes) { asked().budget = bytes; },
         "bytes that may be saved for backward; recomputes as little as that takes")
      ->check(CLI::NonNegativeNumber);
  app.add_option_function<std::vector<std::string>>(
         "--recompute", [asked](const std::vector<std::string>& marks) { asked().recompute = marks; },
         "recompute in the backward: all, a module's path, or #OP (name or id); repeatable")
      ->allow_extra_args(false);
}

void addLibraries(CLI::App& app, std::shared_ptr<const RuleRegistry>& rules) {
  app.add_option_function<std::vector<std::string>>(
         "--library",
         [&rules](const std::vector<std::string>& paths) {
           auto registry = std::make_shared<RuleRegistry>();
           for (const auto& path : paths) loadLibrary(path, *registry);
           rules = std::move(registry);
         },
         "shared library with ops and gradient rules of your own (see docs/extending.md); its code runs; repeatable")
      ->allow_extra_args(false);
}

void addOrder(CLI::App& app, std::optional<int>& order, TraceKind& again) {
  app.add_option("--order", order, "2: gradients of gradients, the joint trace differentiated again; 3 and up likewise")->check(CLI::Range(1, 4));
  app.add_option_function<std::string>(
         "--again", [&again](const std::string& kind) { again = kind == "joint" ? TraceKind::joint : TraceKind::backward; },
         "what --order differentiates again: joint (default) or backward")
      ->check(CLI::IsMember({"joint", "backward"}));
}

void InputOptions::addTo(CLI::App& app) {
  addOrder(app, order, again);
  addPartition(app, partition);
  addLibraries(app, rules);
  app.add_option("--inputs", inputs, "safetensors file with inputs (in.NAME or NAME) and cotangents (cot.N)");
  app.add_option("--grad-inputs", gradInputs,
                 "user inputs to differentiate, comma separated; \"none\" for none (default: all floating and complex)")
      ->delimiter(',');
  app.add_option("--seed", seed, "seed for what is drawn: inputs, cotangents, random ops (default 0)");
  app.add_option("--threads", threads, "threads of LibTorch (default: its own choice)")->check(CLI::NonNegativeNumber);
}

AnalysisOptions InputOptions::forFile(const ModelFile& file) const {
  AnalysisOptions options;
  if (!inputs.empty()) options = optionsFor(readReference(inputs), file);
  if (seed) options.seed = *seed;
  options.exactCotangents = false;
  options.partition = partition.value_or(PartitionOptions());
  options.rules = rules;
  options.order = order.value_or(1);
  options.again = again;
  if (gradInputs) {
    options.gradInputs = *gradInputs;
    std::erase(*options.gradInputs, "none");
  }
  return options;
}

AnalysisOptions InputOptions::forSession(const Analysis& stored) const {
  const auto asked = forFile(stored.file);
  auto options = overlaid(stored, asked);
  if (seed) options.seed = *seed;  // the default can be asked for, too
  if (partition) options.partition = *partition;
  if (order) options.order = *order;
  return options;
}

void requireFile(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw Error(ErrorCode::badUse, "no such file", path);
  if (std::filesystem::is_directory(path, ignored)) throw Error(ErrorCode::badUse, "is a folder, not a file", path);
}

std::shared_ptr<const Analysis> open(const std::string& path, const InputOptions& options, const Progress& progress) {
  requireFile(path);
  setThreads(options.threads);
  if (isSessionFile(path)) {
    auto stored = loadSession(path, progress, options.rules);
    return options.given() ? deriveAnew(*stored, options.forSession(*stored), progress) : stored;
  }
  auto file = readModelFile(path, lookupSymbol, progress);
  const auto analysisOptions = options.forFile(file);
  return analyse(std::move(file), analysisOptions, progress);
}

bool reportProblems(const std::vector<Problem>& problems) {
  static constexpr const char* severities[] = {"note", "warning", "error"};
  bool isError = false;
  for (const auto& p : problems) {
    fmt::print(stderr, "{}: {}{}{}\n", severities[static_cast<std::size_t>(p.severity)], p.place, p.place.empty() ? "" : ": ", p.message);
    isError |= p.severity == Problem::Severity::error;
  }
  return isError;
}

void addFormat(CLI::App& app, std::string& format) {
  app.add_option("--format", format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
}

}  // namespace retrograd::cli
