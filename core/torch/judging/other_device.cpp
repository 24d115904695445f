#include "core/torch/judging/other_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/reading/session_file.h"

namespace retrograd {
namespace {

constexpr double noiseFactor = 4;  // as Judge

std::shared_ptr<const Analysis> derivedOn(const Analysis& here, Device device, const Progress& progress) {
  auto request = optionsFromModel(here);
  request.device = device;
  auto file = firstOf(here).file;
  file.document = std::make_shared<Document>(*file.document);
  auto there = analyse(std::move(file), request, progress);
  if (there->derived()) return there;
  std::string reasons;
  for (const auto& problem : there->problems)
    if (problem.severity == Problem::Severity::error) reasons += (reasons.empty() ? "" : "; ") + problem.message;
  throw Error(ErrorCode::execution, fmt::format("on {}: {}", toString(device), reasons), here.file.path);
}

/// For each user input whose name differs, its gradient and its content after the run: there, by the name here.
std::map<std::string, std::string> namesThere(const Analysis& here, const Analysis& there) {
  std::map<std::string, std::string> names;
  const auto &ours = here.computation().inputs, &theirs = there.computation().inputs;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (ours[i].kind != InputKind::user || ours[i].name == theirs[i].name) continue;
    for (const std::string prefix : {"grad.in.", "mut.in."})
      names.emplace(prefix + ours[i].name, prefix + theirs[i].name);
  }
  return names;
}

/// Why cuFFT does not compute an op of a transform; nothing where it does.
std::optional<std::string> refusedTransform(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  const auto& symbol = document.symbol(bound.symbol);
  if (!symbol.name.starts_with("aten._fft_")) return std::nullopt;
  const auto operands = document.operands(op), outputs = document.outputs(op);
  if (operands.empty() || outputs.empty() || !outputs[0]) return std::nullopt;
  const auto& in = document.meta(operands[0]);
  if (in.dtype != DType::f16 && in.dtype != DType::c32) return std::nullopt;
  // Of a transform from half a spectrum the result has the size, else the operand.
  const bool fromHalf = symbol.name.starts_with("aten._fft_c2r");
  const auto& sizes = fromHalf ? document.meta(outputs[0]).sizes : in.sizes;
  for (const auto& dim : document.pattern(bound.pattern).arguments.at(1).items) {
    const auto at = dim.integer < 0 ? dim.integer + std::ssize(sizes) : dim.integer;
    if (at < 0 || static_cast<std::size_t>(at) >= sizes.size()) continue;
    const auto size = static_cast<std::uint64_t>(sizes[at]);
    if (!std::has_single_bit(size))
      return fmt::format(
          "cuFFT transforms {} only in sizes that are powers of two, and {} has {}: compute it in "
          "float32, or on the CPU",
          torchName(in.dtype), document.opName(op), size);
  }
  return std::nullopt;
}

}  // namespace

OtherDevice::OtherDevice(const Analysis& here, Device device, const Progress& progress)
    : there_(derivedOn(here, device, progress)), names_(namesThere(here, *there_)), noise_(there_) {}

std::string OtherDevice::thereName(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? name : found->second;
}

TensorMap OtherDevice::run(const Progress& progress) const {
  auto results = namedSessionResults(there_, progress);
  TensorMap renamed;
  for (const auto& [here, there] : names_)
    if (auto node = results.extract(there)) renamed.emplace(here, std::move(node.mapped()));
  renamed.merge(results);
  return renamed;
}

double OtherDevice::apart(const std::string& name, const TensorMap* eager) {
  const auto there = thereName(name);
  auto most = noiseFactor * noise_.refined(there);
  const auto* theirs = noise_.eager();
  if (!eager || !theirs) return most;
  const auto *a = findTensor(*eager, name), *b = findTensor(*theirs, there);
  if (!a || !b) return most;
  const auto found = difference(*a, *b, true);
  return found.failure.empty() ? most + found.deviation : most;
}

bool drawsElsewhere(const Analysis& analysis, bool drawnOnGpu) {
  return (analysis.device.type == Device::Type::cuda) != drawnOnGpu && drawsRandomNumbers(analysis);
}

std::optional<std::string> refusedByCuda(const Analysis& analysis) {
  for (const auto& problem : analysis.problems)
    if (problem.message.find("cuFFT only supports") != std::string::npos) return problem.message;
  for (const auto* ops : {&analysis.computation().trace.ops, &analysis.joint.ops})
    for (const auto op : *ops)
      if (auto reason = refusedTransform(*analysis.document, op)) return reason;
  return std::nullopt;
}

}  // namespace retrograd
