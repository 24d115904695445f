#include "core/checking/bench.h"

#include <fmt/format.h>

#include <memory>

#include "app/cli/command.h"
#include "app/cli/options.h"
#include "core/trace/json.h"

namespace retrograd::cli {
namespace {

struct BenchArguments {
  std::string file, format = "text";
  int repeat = 5;
  InputOptions input;
};

void print(const BenchReport& report) {
  fmt::print("{:<16} {:>12}\n", "step", "ms (median)");
  for (const auto& [step, seconds] : report.seconds()) fmt::print("{:<16} {:>12.3f}\n", step, seconds * 1e3);
  fmt::print("ops              computation {}, joint {}, forward {}, backward {}, recomputed {}\n", report.ops.computation, report.ops.joint,
             report.ops.forward, report.ops.backward, report.recomputedOps);
  fmt::print("saved            {} bytes in {} bytes of storage\npeak             {} bytes\n", report.savedBytes, report.savedStorageBytes,
             report.peakBytes);
}

Run setup(CLI::App& app) {
  auto arguments = std::make_shared<BenchArguments>();
  app.add_option("file", arguments->file, "a .pt2 archive")->required();
  app.add_option("--repeat", arguments->repeat, "repeats the medians are taken over")->check(CLI::PositiveNumber)->capture_default_str();
  addFormat(app, arguments->format);
  arguments->input.addTo(app);
  return [arguments](const Progress& progress) {
    const auto file = readFile(arguments->file, progress);
    const auto report = bench(arguments->file, arguments->input.forFile(file), arguments->repeat, progress);
    if (arguments->format == "json")
      fmt::print("{}\n", dumpJson(toJson(report), 1));
    else
      print(report);
    return allWell;
  };
}

const Registration registration("bench", "measure reading, deriving and running beside LibTorch's eager autograd", setup);

}  // namespace
}  // namespace retrograd::cli
