// Logs of torch.compile: opened from a file, every graph's text taken, every description read, every save plan made.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/formats/jobs/input_sources.h"
#include "core/formats/jobs/save_plan.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("retrograd-fuzz-jobs-" + std::to_string(::getpid()) + ".log"))
          .string();
  auto* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return 0;
  std::fwrite(data, 1, size, file);
  std::fclose(file);
  fuzz::expectReadOrRefusal([&] {
    const auto log = jobs::openJobLog(path);
    for (const auto& process : log.processes) {
      for (const auto& compile : process.compiles) {
        for (const auto& attempt : compile.attempts) {
          jobs::describedInputs(log, attempt);
          jobs::sizeHints(log, attempt);
          for (const auto& graph : attempt.graphs) jobs::payloadText(log, graph.payload);
          fuzz::expectReadOrRefusal([&] { notesOf(savePlanOf(readUnpairedGraphs(log, attempt))); });
        }
      }
    }
  });
  std::remove(path.c_str());
  return 0;
}
