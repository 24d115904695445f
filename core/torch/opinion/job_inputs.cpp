#include "core/torch/opinion/job_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/user_choice.h"
#include "core/formats/jobs/given_tensors.h"
#include "core/torch/opinion/earlier_graphs.h"

namespace retrograd {
namespace {

/// The sizes of a type as the job met them; nothing where the log does not say one.
std::optional<std::vector<std::int64_t>> sizesOf(const fx::Type& type, const SizeBindings& bindings) {
  std::vector<std::int64_t> sizes;
  for (const auto& text : type.sizes) {
    const auto size = evaluateSize(text, bindings);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

std::string typeText(DType dtype, const std::vector<std::string>& sizes) {
  return fmt::format("{}[{}]", shortName(dtype), fmt::join(sizes, ", "));
}

class Binder {
 public:
  Binder(const jobs::JobLog& log, const jobs::GraphChoice& choice, const JobGraphs& graphs,
         const SecondOpinionRequest& request, const Progress& progress)
      : log_(log),
        choice_(choice),
        graphs_(graphs),
        request_(request),
        progress_(progress),
        files_(request.weights, request.batch) {}

  JobInputs bind() {
    const bool drawsAll = request_.weights.empty() && request_.batch.empty();
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < graphs_.forward.inputs.size(); ++i) {
      const auto& input = graphs_.forward.inputs[i];
      const auto* type = input.type == fx::noIndex ? nullptr : &graphs_.forward.types[input.type];
      if (type == nullptr || type->kind != fx::Type::Kind::tensor || input.dropped) continue;
      ++inputs_.drawn;
      if (!drawsAll && !bindByName(i, *type)) open.push_back(i);
    }
    for (const auto i : open) bindOtherwise(i);
    refuseMissing();
    return std::move(inputs_);
  }

 private:
  const fx::Type& typeOf(std::size_t i) const { return graphs_.forward.types[graphs_.forward.inputs[i].type]; }

  void give(std::size_t i, const TensorData& tensor) {
    inputs_.given.emplace(graphs_.forward.inputs[i].name, tensor);
    --inputs_.drawn;
  }

  bool bindByName(std::size_t i, const fx::Type& type) {
    const auto& source = graphs_.sources[i];
    const auto* found = source ? files_.find(*source) : nullptr;
    if (found == nullptr) return false;
    const auto sizes = sizesOf(type, graphs_.sizes);
    if (!sizes || *sizes == found->meta.sizes) {
      give(i, *found);
    } else {
      missing_.push_back(fmt::format("{} {}[{}] (given as {}[{}])", programNameOf(graphs_, i), shortName(type.dtype),
                                     fmt::join(*sizes, ", "), shortName(found->meta.dtype),
                                     fmt::join(found->meta.sizes, ", ")));
    }
    return true;
  }

  /// What no file has a name for.
  void bindOtherwise(std::size_t i) {
    const auto& source = graphs_.sources[i];
    const auto& type = typeOf(i);
    const auto name = programNameOf(graphs_, i);
    const auto text = fmt::format("{} {}", name, typeText(type.dtype, type.sizes));
    const auto sizes = sizesOf(type, graphs_.sizes);
    if (source && sizes) {
      TensorMeta meta;
      meta.dtype = type.dtype;
      meta.sizes = *sizes;
      std::string of;
      const auto* found = isBetweenGraphs(*source) ? nullptr : files_.findByType(*source, meta, of);
      if (found != nullptr) {
        inputs_.notes.push_back(fmt::format("{} is taken to be {}, the only one of this type in the batch", text, of));
        return give(i, *found);
      }
      if (const auto earlier = earlierResult(log_, choice_, *source, meta, request_, progress_)) {
        inputs_.notes.push_back(fmt::format("{} is what compile {} gives", text, earlier->compile));
        return give(i, earlier->value);
      }
      if (isBetweenGraphs(*source)) {
        inputs_.notes.push_back(
            text + " is drawn: the program computed it between its compiled functions, and a log does not hold it");
        inputs_.drawsBetween = true;
        return;
      }
    }
    missing_.push_back(text);
    if (source && source->kind != jobs::InputSource::Kind::input) missingWeights_.push_back(name);
  }

  void refuseMissing() {
    if (missing_.empty()) return;
    if (request_.useWhatBinds) {
      for (const auto& text : missing_) inputs_.notes.push_back(text + " is drawn");
      return;
    }
    constexpr std::size_t shown = 4;
    auto holders = files_.holdersOf(missingWeights_);
    std::string way;
    if (!holders.empty()) {
      const auto first = holders.front();
      const bool isMore = holders.size() > shown;
      holders.resize(std::min(holders.size(), shown));
      way = fmt::format("; the weights have {} below {}{}: {} {} takes those of one",
                        missingWeights_.size() == 1 ? missingWeights_.front() : "them", fmt::join(holders, ", "),
                        isMore ? " and more" : "", nameOf(UserChoice::weightsUnder), first);
    }
    throw Error(ErrorCode::badUse,
                fmt::format("not given by the weights or the batch: {}{}; {} draws them", fmt::join(missing_, ", "),
                            way, nameOf(UserChoice::partialWeights)),
                "inputs");
  }

  const jobs::JobLog& log_;
  const jobs::GraphChoice& choice_;
  const JobGraphs& graphs_;
  const SecondOpinionRequest& request_;
  const Progress& progress_;
  jobs::GivenTensors files_;
  JobInputs inputs_;
  std::vector<std::string> missing_, missingWeights_;
};

}  // namespace

std::string programNameOf(const JobGraphs& graphs, std::size_t input) {
  const auto& source = graphs.sources[input];
  return source ? jobs::plainName(source->name) : graphs.forward.inputs[input].name;
}

JobInputs jobInputs(const jobs::JobLog& log, const jobs::GraphChoice& choice, const JobGraphs& graphs,
                    const SecondOpinionRequest& request, const Progress& progress) {
  return Binder(log, choice, graphs, request, progress).bind();
}

}  // namespace retrograd
