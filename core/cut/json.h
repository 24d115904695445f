#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/cut/pipeline_split.h"
#include "core/formats/model/model_file.h"

namespace retrograd {

/// A value on its way, for people and files. Anything but a tensor counts as an int64.
struct EdgeDescription {
  std::string name;   ///< as in the file's graph; a model input: its argument name; a parameter: its full name
  std::string dtype;  ///< "torch.float32"
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
};
EdgeDescription describeEdge(const ModelFile& model, const PipelineEdge& edge);

/// A parameter or buffer of a stage, by the name it has there.
struct StageWeight {
  std::string name;
  std::int64_t bytes = 0;
};
std::vector<StageWeight> stageParameters(const ModelFile& model, const PipelineSplit& split, std::size_t stage);
std::vector<StageWeight> stageBuffers(const ModelFile& model, const PipelineSplit& split, std::size_t stage);

/// The document of `retrograd pipeline split --format json` (docs/pipeline.md).
nlohmann::ordered_json pipelineJson(const ModelFile& model, const PipelineSplit& split,
                                    const std::vector<std::string>& notes);

}  // namespace retrograd
