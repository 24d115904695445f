#include "app/cli/parsing/options.h"
#include "core/base/enum_array.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <filesystem>

#include "app/cli/parsing/input.h"
#include "app/cli/parsing/program.h"
#include "app/cli/parsing/terminal.h"
#include "core/base/allowed_memory.h"
#include "core/base/near_names.h"
#include "core/base/number_text.h"
#include "core/derivation/precision.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/torch/execution/device.h"
#include "core/torch/execution/memory_budget.h"
#include "core/torch/opening/open_model.h"
#include "core/torch/reading/formats.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/relocate.h"

namespace retrograd::cli {

void addPartition(Parser parser, std::optional<PartitionOptions>& partition) {
  static const std::map<std::string, PartitionOptions::Kind> kinds{{"default", PartitionOptions::defaultKind},
                                                                   {"min-cut", PartitionOptions::minCut}};
  const auto asked = [&partition]() -> PartitionOptions& { return partition ? *partition : partition.emplace(); };
  parser
      .add("--partition",
           "what to save for the backward: what the formulas ask for (default), or the fewest bytes (min-cut)",
           [asked](const std::string& kind) { asked().kind = kinds.at(kind); })
      .oneOf({"default", "min-cut"});
  parser.addSize("--budget", "how much may be saved for the backward, such as 100K; recomputes as little as possible",
                 [asked](std::int64_t bytes) { asked().budget = bytes; });
  parser
      .add("--recompute",
           "what to recompute in the backward: all, a module, LIST.* (each member from its input), or #OP (name or "
           "id); repeatable",
           [asked](const std::vector<std::string>& marks) { asked().recompute = marks; })
      .repeatable();
}

void addLibraries(Parser parser, std::shared_ptr<const RuleRegistry>& rules) {
  parser
      .add("--library",
           "shared library with ops and gradient rules of your own (see docs/extending.md); its code runs; repeatable",
           [&rules](const std::vector<std::string>& paths) {
             if (!program()) return;
             auto registry = std::make_shared<RuleRegistry>();
             for (const auto& path : paths) program()->loadLibrary(path, *registry);
             rules = std::move(registry);
           })
      .repeatable();
}

void addOrder(Parser parser, std::optional<int>& order, TraceKind& again) {
  parser.add("--order", order, "2: gradients of gradients, from the joint trace differentiated again; 3 and 4 likewise")
      .range(1, 4);
  parser
      .add("--again", "what --order differentiates again: joint (default) or backward",
           [&again](const std::string& kind) { again = kind == "joint" ? TraceKind::joint : TraceKind::backward; })
      .oneOf({"joint", "backward"});
}

namespace {

/// "x=2x3" as ("x", "2x3").
std::pair<std::string, std::string> splitAtEquals(const std::string& text, const char* form) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuseValue(text, fmt::format("is not of the form {}", form));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// "int64", or "i64" as printed traces write it.
std::optional<DType> dtypeNamed(const std::string& name) {
  const auto dtype = dtypeFromShortName(name);
  return dtype ? dtype : dtypeFromTorchName(name);
}

InputShape parseShape(const std::string& text) {
  InputShape shape;
  const auto colon = text.find(':');
  if (colon != std::string::npos) {
    shape.dtype = dtypeNamed(text.substr(colon + 1));
    if (!shape.dtype) refuseValue(text, "unknown dtype; known are float32 or f32, int64 or i64, bool, ...");
  }
  std::string_view sizes = std::string_view(text).substr(0, colon);
  while (!sizes.empty()) {
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(sizes.data(), sizes.data() + sizes.size(), size);
    const auto used = static_cast<std::size_t>(end - sizes.data());
    const bool more = used < sizes.size();
    if (error != std::errc() || size < 0 || (more && (sizes[used] != 'x' || used + 1 == sizes.size())))
      refuseValue(text, "is not a shape; write 2x3, or nothing for a tensor without dimensions");
    shape.sizes.push_back(size);
    sizes.remove_prefix(more ? used + 1 : used);
  }
  return shape;
}

/// 3, 2.5, true, else a text.
Argument parseValue(const std::string& text) {
  if (text == "true" || text == "True") return Argument::ofBool(true);
  if (text == "false" || text == "False") return Argument::ofBool(false);
  if (const auto integer = numberIn<std::int64_t>(text)) return Argument::ofInt(*integer);
  if (const auto real = numberIn<double>(text)) return Argument::ofReal(*real);
  return Argument::ofString(text);
}

}  // namespace

void addShapes(Parser parser, std::map<std::string, InputShape>& shapes, std::map<std::string, Argument>& values) {
  parser
      .add("--shape", "NAME=2x3[:dtype]: draw this input in that shape; repeatable",
           [&shapes](const std::vector<std::string>& all) {
             for (const auto& text : all) {
               const auto [name, shape] = splitAtEquals(text, "NAME=2x3 or NAME=2x3:int64");
               shapes.insert_or_assign(name, parseShape(shape));
             }
           })
      .repeatable();
  parser
      .add("--value", "NAME=3: an input that is a number, true, false or a text; repeatable",
           [&values](const std::vector<std::string>& all) {
             for (const auto& text : all) {
               const auto [name, value] = splitAtEquals(text, "NAME=VALUE");
               values.insert_or_assign(name, parseValue(value));
             }
           })
      .repeatable();
}

Device parseDevice(const std::string& text) {
  const auto named = withIndex(deviceFromString(text));
  const bool known = named.type == Device::Type::cpu || named.type == Device::Type::cuda;
  if (!known || (toString(named) != text && text != "cuda"))
    refuseValue(text, "is not a device; write cpu, cuda or cuda:1");
  return named;
}

void addDevice(Parser parser, std::optional<Device>& device, const std::string& name, const std::string& help) {
  parser.add(name,
             help.empty() ? "cpu (default), cuda or cuda:N: where parameters and inputs are. Deriving needs no GPU, "
                            "running does; docs/gpu.md says what has run on one"
                          : help,
             [&device](const std::string& text) { device = parseDevice(text); });
}

void addOpeningMemory(Parser parser) {
  parser.addSize("--opening-memory",
                 "how much opening may allocate where it runs ops, such as 20G (default: a quarter of the free memory, "
                 "and the file's size)",
                 [](std::int64_t bytes) { setOpeningMemory(bytes); });
}

void addFill(Parser parser, std::string& path) {
  parser.add(
      "--fill", path,
      "safetensors file with results of opaque ops, by the name of the value: ops that are unknown here and never run");
}

TensorMap readFill(const std::string& path) { return path.empty() ? TensorMap() : readSafetensors(path).tensors; }

void addGivenData(Parser parser, GivenData& data, bool batch) {
  const auto weights = parser.add("--weights", data.weights,
                                  "weights of a training job instead of the model's: .safetensors, an index of shards, "
                                  "a state dict of torch.save, or the folder of a "
                                  "distributed checkpoint");
  parser
      .add("--weights-under", data.under,
           "the dictionary of the checkpoint that holds them (default: the one that fits best)")
      .needs(weights);
  parser.flag("--partial-weights", data.partial,
              "use what fits where weights or batch are incomplete, have more entries or other shapes");
  parser.add("--compile", data.compile,
             "of a job's log: which compile, such as 0/0 or 0/0_1 for an attempt (`retrograd graphs` lists them); "
             "default: the first");
  parser.add("--rank", data.rank, "which rank, of logs of several ranks");
  if (batch)
    parser.add(
        "--batch", data.batch,
        "the inputs by name: .safetensors, or a dictionary, list or tuple of torch.save; a missing input is an error");
}

void addRunningMemory(Parser parser) {
  parser.addSize(
      "--running-memory",
      "what a run may take, such as 20G; one that is predicted to take more is refused (default: the free memory)",
      [](std::int64_t bytes) { setRunningMemory(bytes); });
}

void InputOptions::addTo(Parser parser, bool batch) {
  addGivenData(parser, data, batch);
  addFill(parser, fill);
  addOpeningMemory(parser);
  addRunningMemory(parser);
  addDevice(parser, device);
  addOrder(parser, order, again);
  addPartition(parser, partition);
  addLibraries(parser, rules);
  addShapes(parser, shapes, numbers);
  parser.add("--inputs", inputs, "safetensors file with inputs (in.NAME or NAME) and cotangents (cot.N)");
  parser
      .add("--grad-inputs", gradInputs,
           "user inputs to differentiate, comma separated; \"none\" for none (default: all floating and complex)")
      .commaSeparated();
  parser.add("--seed", seed, "seed of inputs and cotangents that are drawn, and of random ops (default 0)").seed();
  parser.add("--threads", threads, "the most threads an op takes; small ops take one (default, and 0: all cores)")
      .zeroOrMore();
}

void requireToRun(const std::optional<Device>& device) {
  if (device) requireDevice(*device);
}

namespace {

/// The nearest name in the folder, for a name that is misspelt.
std::string fileMeant(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::vector<std::string> names;
  constexpr std::size_t most = 5000;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end && names.size() < most;
       entry.increment(ignored)) {
    if (ignored) break;
    names.push_back(entry->path().filename().string());
  }
  return didYouMean(path.filename().string(), names);
}

}  // namespace

void requireFile(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) badUse("there is no such file" + fileMeant(path), path);
  if (std::filesystem::is_directory(path, ignored) && isOf(Format::model, path))
    badUse(
        "is a folder, not a file, and holds no job's log, repro script, captured step or recording; a folder "
        "of models is "
        "for `retrograd check --suite`" +
            jobsBelow(path),
        path);
}

std::shared_ptr<const Analysis> open(const std::string& name, const InputOptions& options, const Progress& progress) {
  OpenRequest request = options;
  request.path = inputFile(name);
  requireFile(request.path);
  if (!request.inputs.empty()) request.inputs = inputFile(request.inputs);
  setThreads(options.threads);
  return openModel(request, progress);
}

bool reportProblems(const std::vector<Problem>& problems) {
  static constexpr EnumArray<Problem::Severity, const char*, 3> severities{"note", "warning", "error"};
  static constexpr EnumArray<Problem::Severity, Style, 3> styles{Style::strong, Style::warning, Style::bad};
  bool isError = false;
  clearProgress();
  for (const auto& p : problems) {
    if (terminal().quiet && p.severity != Problem::Severity::error) continue;
    fmt::print(stderr, "{}: {}{}{}\n", styled(stderr, styles[p.severity], severities[p.severity]), p.place,
               p.place.empty() ? "" : ": ", p.message);
    isError |= p.severity == Problem::Severity::error;
  }
  return isError;
}

void addFormat(Parser parser, std::string& format) {
  parser.add("--format", format, "text or json").oneOf({"text", "json"}).showDefault();
}

void addPartitionB(Parser parser, std::optional<PartitionOptions>& partition) {
  const auto asked = [&partition]() -> PartitionOptions& { return partition ? *partition : partition.emplace(); };
  parser
      .add("--partition-b", "what the second side saves for backward: default or min-cut",
           [asked](const std::string& kind) {
             asked().kind = kind == "min-cut" ? PartitionOptions::minCut : PartitionOptions::defaultKind;
           })
      .oneOf({"default", "min-cut"});
  parser.addSize("--budget-b", "how much the second side may save, such as 100K",
                 [asked](std::int64_t bytes) { asked().budget = bytes; });
  parser
      .add("--recompute-b", "what the second side recomputes: all, a module's path, LIST.*, or #OP; repeatable",
           [asked](const std::vector<std::string>& marks) { asked().recompute = marks; })
      .repeatable();
}

void addPrecisionB(Parser parser, std::optional<DType>& precision) {
  std::vector<std::string> names;
  for (auto dtype : precisions()) names.emplace_back(torchName(dtype));
  const auto option = parser.add("--dtype-b",
                                 "precision of the second side: its floating parameters, buffers, inputs and dtype "
                                 "literals (default: as in the first)",
                                 [&precision](const std::string& name) { precision = dtypeFromTorchName(name); });
  option.oneOf(names);
  parser.flag("--double", {}, [&precision] { precision = DType::f64; }).excludes(option).hidden();
}

}  // namespace retrograd::cli
