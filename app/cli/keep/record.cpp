#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/terminal.h"
#include "core/base/error.h"
#include "core/formats/recording/recording_store.h"
#include "core/trace/print/json.h"

namespace retrograd::cli {
namespace {

struct RecordArguments {
  std::optional<std::string> list;
  std::vector<std::string> remove;
  std::string format = "text";
};

std::string sizeText(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double size = static_cast<double>(bytes) / 1024;
  for (const auto* unit : {"KiB", "MiB"}) {
    if (size < 1024) return fmt::format("{:.1f} {}", size, unit);
    size /= 1024;
  }
  return fmt::format("{:.1f} GiB", size);
}

std::string updatesText(const StoredRecording& stored) {
  if (stored.updates.empty()) return "no update";
  const auto [least, most] = std::minmax_element(stored.updates.begin(), stored.updates.end());
  return *least == *most ? fmt::format("update {}", *least) : fmt::format("updates {} to {}", *least, *most);
}

void list(const std::string& folder, const std::string& format) {
  const auto found = recordingsBelow(folder);
  if (format == "json") {
    auto json = nlohmann::ordered_json::array();
    for (const auto& one : found)
      json.push_back({{"path", one.path},
                      {"bytes", one.bytes},
                      {"updates", one.updates},
                      {"ops", one.ops},
                      {"complete", one.complete},
                      {"made", one.made}});
    fmt::print("{}\n", dumpJson(json, 1));
    return;
  }
  std::uint64_t all = 0;
  for (const auto& one : found) {
    fmt::print("{:>10}  {:>8} ops  {}  {}{}\n", sizeText(one.bytes), one.ops, one.path, updatesText(one),
               one.complete ? "" : "  (cut off, or still running)");
    all += one.bytes;
  }
  fmt::print("{} recording{}, {}\n", found.size(), found.size() == 1 ? "" : "s", sizeText(all));
}

int runRecord(const RecordArguments& arguments) {
  if (arguments.list.has_value() == !arguments.remove.empty())
    badUse(
        "give one of --list and --remove; a step is recorded from Python, with retrograd.record "
        "(docs/python.md)",
        "record");
  if (arguments.list) {
    const auto folder = arguments.list->empty() ? std::string(".") : *arguments.list;
    if (std::error_code ignored; !std::filesystem::is_directory(folder, ignored))
      badUse("there is no such folder", folder);
    list(folder, arguments.format);
    return allWell;
  }
  for (const auto& path : arguments.remove) {
    const auto freed = removeRecording(path);
    if (!terminal().quiet) fmt::print("removed {} ({})\n", path, sizeText(freed));
  }
  return allWell;
}

Run setUpRecord(Parser parser) {
  auto arguments = std::make_shared<RecordArguments>();
  parser
      .add("--list", "list the recordings in this folder and below it, with their sizes (default: .)",
           [arguments](const std::string& folder) { arguments->list = folder; })
      .optionalValue();
  parser.add("--remove", arguments->remove, "remove this recording; can be given several times").repeatable();
  addFormat(parser, arguments->format);
  return [arguments](const Progress&) { return runRecord(*arguments); };
}

const Registration registrationRecord("record", "list or remove recorded steps (retrograd.record in Python makes them)",
                                      setUpRecord);

}  // namespace
}  // namespace retrograd::cli
