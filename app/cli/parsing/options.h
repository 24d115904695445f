#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/parsing/parser.h"
#include "core/base/tensor_meta.h"
#include "core/torch/opening/open_request.h"

namespace retrograd::cli {

/// --opening-memory: what opening a model may allocate.
void addOpeningMemory(Parser parser);

/// "--partition default|min-cut", "--budget BYTES", "--recompute all|MODULE|#OP": what is saved for backward.
void addPartition(Parser parser, std::optional<PartitionOptions>& partition);

/// "--library FILE", repeatable: ops and gradient rules of the user's own, loaded as soon as the command line is read.
void addLibraries(Parser parser, std::shared_ptr<const RuleRegistry>& rules);

/// "--order N", "--again joint|backward": gradients of gradients.
void addOrder(Parser parser, std::optional<int>& order, TraceKind& again);

/// "--shape NAME=2x3[:dtype]" and "--value NAME=3", each repeatable: inputs that are drawn in a shape, and those that
/// are not tensors.
void addShapes(Parser parser, std::map<std::string, InputShape>& shapes, std::map<std::string, Argument>& values);

/// cpu, cuda (the first one) or cuda:N. Refuses anything else (refuseValue).
Device parseDevice(const std::string& text);

/// "--device cpu|cuda|cuda:N", or an option of that kind by another name: where parameters and inputs are.
void addDevice(Parser parser, std::optional<Device>& device, const std::string& name = "--device",
               const std::string& help = {});

/// "--fill FILE": results of opaque ops. readFill() throws Error(badInput) for an unreadable file.
void addFill(Parser parser, std::string& path);
TensorMap readFill(const std::string& path);
/// "--weights PATH", "--weights-under KEY", "--batch PATH", "--partial-weights": what a training job saved, instead of
/// what the model's file holds.
void addGivenData(Parser parser, GivenData& data, bool batch = true);

/// Options that say what a model is run on; shared by the subcommands that derive or run.
struct InputOptions : OpenRequest {
  int threads = 0;

  /// `batch`: also --batch, where that is not a subcommand's own option.
  void addTo(Parser parser, bool batch = true);
};

/// Throws Error(badUse) where nothing can run on `device`, before a file is read in vain; absent: the file decides.
void requireToRun(const std::optional<Device>& device);

/// Throws Error(badUse) where there is no such file.
void requireFile(const std::string& path);

/// Opens the file named on the command line as openModel() does. Throws Error(badUse) where there is no such file.
std::shared_ptr<const Analysis> open(const std::string& path, const InputOptions& options, const Progress& progress);

/// Writes notes and problems to standard error; true where one is an error.
bool reportProblems(const std::vector<Problem>& problems);

/// "--format text|json".
void addFormat(Parser parser, std::string& format);

/// "--partition-b", "--budget-b", "--recompute-b": of the second side; stays empty where nobody asks.
void addPartitionB(Parser parser, std::optional<PartitionOptions>& partition);

/// "--dtype-b float64|float32|bfloat16|float16": the precision of the second side.
void addPrecisionB(Parser parser, std::optional<DType>& precision);

}  // namespace retrograd::cli
