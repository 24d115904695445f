#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/debug/analysis.h"

namespace retrograd::cli {

/// "--partition default|min-cut", "--budget BYTES", "--recompute all|MODULE|#OP": what is saved for backward.
void addPartition(CLI::App& app, PartitionOptions& partition);

/// "--library FILE", repeatable: ops and gradient rules of the user's own, loaded as soon as the command line is read.
void addLibraries(CLI::App& app, std::shared_ptr<const RuleRegistry>& rules);

/// "--order N", "--again joint|backward": gradients of gradients.
void addOrder(CLI::App& app, int& order, TraceKind& again);

/// "--shape NAME=2x3[:dtype]" and "--value NAME=3", each repeatable: inputs that are drawn in a shape, and those that are no tensors.
void addShapes(CLI::App& app, std::map<std::string, InputShape>& shapes, std::map<std::string, Argument>& values);

/// Options that say what a model is run on; shared by the subcommands that derive or run.
struct InputOptions {
  std::string inputs;  ///< safetensors file; empty: sample inputs, else drawn
  std::map<std::string, InputShape> shapes;
  std::map<std::string, Argument> values;
  std::optional<std::vector<std::string>> gradInputs;
  std::uint64_t seed = 0;
  int threads = 0;
  int order = 1;
  TraceKind again = TraceKind::joint;
  PartitionOptions partition;
  std::shared_ptr<const RuleRegistry> rules;

  void addTo(CLI::App& app);
  /// What to read a file with that has to be traced. Throws Error(badInput) for an unreadable inputs file.
  AnalysisOptions forReading() const;
  /// Applies `threads` and gives what to analyse `file` with. Throws Error(badInput) for an unreadable inputs file.
  AnalysisOptions forFile(const ModelFile& file) const;
};

/// Throws Error(badUse) where there is no such file.
void requireFile(const std::string& path);

/// Reads the file named on the command line. Throws Error(badUse) where there is no such file, else as readModel.
ModelFile readFile(const std::string& path, const InputOptions& options, const Progress& progress);

/// Reads and derives. Throws as readFile and analyse.
std::shared_ptr<const Analysis> open(const std::string& path, const InputOptions& options, const Progress& progress);

/// Writes notes and problems to standard error; true where one is an error.
bool reportProblems(const std::vector<Problem>& problems);

/// "--format text|json".
void addFormat(CLI::App& app, std::string& format);

}  // namespace retrograd::cli
