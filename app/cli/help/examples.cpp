#include "app/cli/help/examples.h"

#include <map>
#include <vector>

namespace retrograd::cli {
namespace {

const std::map<std::string, std::vector<std::string>>& table() {
  static const std::map<std::string, std::vector<std::string>> examples{
      {"bench", {"retrograd bench model.pt2 --repeat 3", "retrograd bench model.pt2 --budget-curve 4"}},
      {"check",
       {"retrograd check model.pt2", "retrograd check model.pt2 other.pt2 --format json",
        "retrograd check --suite models --report report.json"}},
      {"compare",
       {"retrograd compare model.pt2 --seed-b 0", "retrograd compare model.pt2 --dtype-b float64 --tolerance 0.01"}},
      {"debug",
       {"retrograd debug model.pt2", "retrograd debug model.pt2 -c 'break kind gelu' -c continue -c where",
        "retrograd debug model.pt2 -c walk-nan"}},
      {"diff", {"retrograd diff model.pt2 --partition-b min-cut", "retrograd diff model.pt2 --pass dead"}},
      {"export",
       {"retrograd export model.pt2 -o model.txt", "retrograd export model.pt2 --format csv --show backward"}},
      {"memory",
       {"retrograd memory memory.pickle.xz", "retrograd memory memory.pickle.xz --at 757 --by module",
        "retrograd memory memory.pickle.xz --trace gpt.txt --choices 3",
        "retrograd memory memory.pickle.xz checkpointed.pickle.xz"}},
      {"notes",
       {"retrograd notes model.pt2", "retrograd notes model.pt2 --at gelu --comment 'check this in bfloat16'"}},
      {"picture", {"retrograd picture model.pt2 window.png", "retrograd picture model.pt2 graph.png --graph --dark"}},
      {"pipeline check", {"retrograd pipeline check model.pt2 --stages 2 --balance estimate"}},
      {"pipeline launch",
       {"retrograd pipeline launch --ranks 2 -- pipeline run model.pt2 --stages 2 --balance estimate --microbatches 2 "
        "--check"}},
      {"pipeline run",
       {"retrograd pipeline launch --ranks 2 -- pipeline run model.pt2 --stages 2 --balance estimate --schedule GPipe "
        "--microbatches 2"}},
      {"pipeline schedule",
       {"retrograd pipeline schedule 1F1B --ranks 4 --microbatches 8",
        "retrograd pipeline schedule GPipe --ranks 2 --microbatches 4 --format svg -o gpipe.svg"}},
      {"pipeline split",
       {"retrograd pipeline split model.pt2 --stages 2 --balance estimate",
        "retrograd pipeline split model.pt2 --at blocks.1 -o stages"}},
      {"record", {"retrograd record --list", "retrograd record --remove recorded"}},
      {"report", {"retrograd report model.pt2 -o report.html", "retrograd report model.pt2 --no-run -o listings.html"}},
      {"run",
       {"retrograd run model.pt2", "retrograd run model.pt2 --until gelu",
        "retrograd run model.pt2 -o reference.safetensors"}},
      {"save", {"retrograd save model.pt2", "retrograd save model.pt2 --embed --budget 100K -o small.retrograd"}},
      {"trace",
       {"retrograd trace model.pt2 --show backward", "retrograd trace model.pt2 --filter 'role:gradient bytes>1K'",
        "retrograd trace model.pt2 --format json"}},
  };
  return examples;
}

}  // namespace

void addExamples(Parser parser, const std::string& path) {
  const auto found = table().find(path);
  if (found == table().end()) return;
  std::string text = "Examples:\n";
  for (const auto& example : found->second) text += "  " + example + "\n";
  const bool hasText = path != "debug";  // its footer is made by the program, and stays in front of this one
  const auto before = hasText ? parser.footer() : std::string();
  parser.footer(before + (before.empty() || before.ends_with('\n') ? "" : "\n") + (before.empty() ? "" : "\n") + text);
}

}  // namespace retrograd::cli
