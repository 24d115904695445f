#include "app/cli/pipeline/pipeline_batch.h"

#include <fmt/format.h>

#include "core/base/number_text.h"

namespace retrograd::cli {
namespace {

std::int64_t parseDim(const std::string& text, const std::string& all, const char* choices) {
  const auto dim = numberIn<std::int64_t>(text);
  if (!dim) refuseValue(all, fmt::format("is not of the form NAME={}", choices));
  return *dim;
}

BatchDim parseBatchDim(const std::string& text, const std::string& all) {
  if (text == "replicate") return std::nullopt;
  return parseDim(text, all, "DIM or NAME=replicate");
}

Merge parseMerge(const std::string& text, const std::string& all) {
  if (text == "sum") return {Merge::Kind::sum, 0};
  if (text == "mean") return {Merge::Kind::mean, 0};
  if (text == "same") return {Merge::Kind::same, 0};
  return {Merge::Kind::concatenate, parseDim(text, all, "DIM, sum, mean or same")};
}

/// NAME=..., each repeatable.
template <class Map, class Parse>
void addNamed(Parser parser, const std::string& option, Map& map, Parse parse, const std::string& help) {
  parser
      .add(option, help,
           [&map, parse](const std::vector<std::string>& all) {
             for (const auto& text : all) {
               const auto equals = text.find('=');
               map.insert_or_assign(text.substr(0, equals),
                                    parse(equals == std::string::npos ? "" : text.substr(equals + 1), text));
             }
           })
      .repeatable();
}

}  // namespace

void BatchOptions::addTo(Parser parser) {
  const auto batch = parser.add(
      "--batch", file,
      "safetensors file with a batch of inputs (in.NAME or NAME) and of cotangents (cot.N): cut into microbatches");
  batch.excludes("--inputs").excludes("--shape");
  addNamed(parser, "--batch-dim", dims, parseBatchDim,
           "NAME=DIM: the dimension along which an input of the batch is cut (default 0); NAME=replicate: every "
           "microbatch gets all of it; repeatable");
  addNamed(parser, "--merge", merges, parseMerge,
           "N=DIM|sum|mean|same: how output N of the microbatches becomes the batch's (default: put together along 0, "
           "losses as a list); repeatable");
  parser.flag("--scale-gradients", scaleGradients,
              "divide gradients by the number of microbatches, as a loss that is a mean over the batch asks for");
}

Reference OpenBatch::with(const TensorMap& inputs, const TensorMap& cotangents) const {
  Reference reference;
  reference.path = whole.path;
  reference.inputs = inputs;
  reference.cotangents = cotangents;
  reference.seed = whole.seed;
  reference.requiresGrad = whole.requiresGrad;
  return reference;
}

OpenBatch openBatch(const BatchOptions& options, std::int64_t microbatches) {
  OpenBatch batch{readReference(options.file), {}, {}, {}};
  try {
    auto cut = cutBatch(batch.whole.inputs, microbatches, options.dims);
    batch.inputs = std::move(cut.microbatches);
    batch.cotangents = cutCotangents(batch.whole.cotangents, batch.inputs.size(), options.merges);
    if (!cut.fewerBecause.empty())
      batch.note =
          fmt::format("the batch makes {} microbatch{}, not {}: {} (--batch-dim {}=replicate gives all of it to each)",
                      batch.inputs.size(), batch.inputs.size() == 1 ? "" : "es", microbatches, cut.fewerBecause,
                      cut.fewerBecause.substr(0, cut.fewerBecause.find(' ')));
  } catch (const Error& error) {
    throw error.at(options.file);
  }
  return batch;
}

}  // namespace retrograd::cli
