#include "core/torch/stages/merge.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/cut/batch.h"
#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

at::Tensor concatenated(const std::vector<at::Tensor>& parts, std::int64_t dim) {
  return parts.front().dim() == 0 ? at::stack(parts) : at::cat(parts, dim);
}

at::Tensor added(const std::vector<at::Tensor>& parts) {
  auto sum = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) sum = at::add(sum, parts[i]);
  return sum;
}

at::Tensor onlyOne(const std::vector<at::Tensor>& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (!parts[i].equal(parts.front()))
      throw Error(ErrorCode::badUse, fmt::format("it is not the same in all microbatches: {} has another than 0", i));
  return parts.front();
}

at::Tensor merged(const std::vector<at::Tensor>& parts, const Merge& merge) {
  switch (merge.kind) {
    case Merge::Kind::concatenate: return concatenated(parts, merge.dim);
    case Merge::Kind::sum: return added(parts);
    case Merge::Kind::mean: return at::mul(added(parts), 1.0 / static_cast<double>(parts.size()));
    case Merge::Kind::same: return onlyOne(parts);
  }
  return {};
}

}  // namespace

TensorData mergeOutputs(const std::string& name, const std::vector<TensorData>& parts, const Merge& merge) {
  std::vector<at::Tensor> tensors;
  for (const auto& part : parts) tensors.push_back(borrowTensor(part));
  try {
    return keepTensor(merged(tensors, merge).contiguous());
  } catch (const c10::Error& error) {
    throw Error(ErrorCode::badUse,
                std::string("the microbatches' results do not go together: ") + error.what_without_backtrace(),
                "output " + name);
  } catch (const Error& error) {
    throw error.at("output " + name);
  }
}

std::vector<TensorMap> cutCotangents(const TensorMap& cotangents, std::size_t microbatches,
                                     const std::map<std::string, Merge>& merges) {
  std::vector<TensorMap> parts(microbatches);
  for (const auto& [output, tensor] : cotangents) {
    const auto merge = mergeOf(merges, output);
    if (merge.kind == Merge::Kind::concatenate && !tensor.meta.sizes.empty()) {
      const auto cut = cutBatch({{output, tensor}}, static_cast<std::int64_t>(microbatches), {{output, merge.dim}});
      if (!cut.fewerBecause.empty())
        throw Error(ErrorCode::badUse,
                    fmt::format("there are {} microbatches, and {}; a cotangent is cut as its output is put together",
                                microbatches, cut.fewerBecause),
                    "cot." + output);
      for (std::size_t i = 0; i < microbatches; ++i)
        parts[i].insert(cut.microbatches[i].begin(), cut.microbatches[i].end());
    } else {
      const auto each =
          merge.kind == Merge::Kind::mean ? scaledTensor(tensor, 1.0 / static_cast<double>(microbatches)) : tensor;
      for (auto& part : parts) part.emplace(output, each);
    }
  }
  return parts;
}

TensorData scaledTensor(const TensorData& tensor, double factor) {
  return keepTensor(at::mul(borrowTensor(tensor), factor));
}

}  // namespace retrograd
