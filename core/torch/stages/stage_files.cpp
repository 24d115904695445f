#include "core/torch/stages/stage_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/cut/json.h"
#include "core/formats/files/atomic_file.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/stages/pipeline.h"
#include "core/trace/print/json.h"

namespace retrograd {

void writeStages(ModelFile model, std::shared_ptr<const Analysis> whole, const PipelineSplit& split,
                 const std::vector<std::string>& notes, const std::string& folder, const Progress& progress) {
  makeFolder(folder);
  const auto json = dumpJson(pipelineJson(model, split, notes));  // deriving changes the model's document
  const auto pipeline = derivePipeline(std::move(model), std::move(whole), split, progress);
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s)
    saveSession(*pipeline.stages[s], (std::filesystem::path(folder) / fmt::format("stage_{}.retrograd", s)).string(),
                {.embed = true}, progress);
  writeWholeFile((std::filesystem::path(folder) / "pipeline.json").string(), json + "\n");
}

}  // namespace retrograd
