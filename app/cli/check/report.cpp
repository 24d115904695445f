#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/output.h"
#include "app/cli/parsing/terminal.h"
#include "core/base/byte_size.h"
#include "core/formats/files/atomic_file.h"
#include "core/torch/page/gather_page.h"
#include "core/trace/print/json.h"

namespace fs = std::filesystem;

namespace retrograd::cli {
namespace {

struct ReportArguments {
  std::string file, out, format = "text";
  bool noRun = false, strict = false;
  InputOptions input;
};

std::string placeFor(const ReportArguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  auto name = fs::path(arguments.file).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  return name.filename().string() + ".html";
}

int runReport(const ReportArguments& arguments, const Progress& progress) {
  requireFile(arguments.file);
  if (!arguments.noRun) requireToRun(arguments.input.device);
  auto request = arguments.input;
  request.path = arguments.file;
  const auto gathered = gatherPage(request, !arguments.noRun, arguments.strict, progress);
  const auto& page = gathered.page;
  const auto out = placeFor(arguments);
  const auto text = pageText(page, progress);
  writeText(out, text);
  clearProgress();
  const auto word = page.decision ? std::string(name(page.decision->verdict)) : "no verdict";
  if (arguments.format == "json") {
    nlohmann::ordered_json json{{"file", arguments.file}, {"page", out}, {"bytes", text.size()}, {"verdict", word}};
    json["report"] = page.decision ? toJson(page.report, *page.decision) : nlohmann::ordered_json();
    fmt::print("{}\n", dumpJson(json, 2));
  } else if (!terminal().quiet && !isStandardOutput(out)) {
    fmt::print("{}  {}: {} finding{}, {}\n", word, out, page.report.claims.size(),
               page.report.claims.size() == 1 ? "" : "s", bytesText(static_cast<std::int64_t>(text.size())));
  }
  return page.decision ? exitCode(page.decision->verdict) : allWell;
}

Run setUpReport(Parser parser) {
  auto arguments = std::make_shared<ReportArguments>();
  parser
      .add("file", arguments->file,
           "a model, a recorded step, a job's log, a snapshot of CUDA's allocator, or a .retrograd session")
      .required();
  addOutput(parser, "-o,--output", arguments->out,
            "the page to write (default: the file's name with .html, here; -: standard output)");
  parser.flag("--no-run", arguments->noRun, "run nothing: no verdict and no numbers, listings and memory only");
  parser.flag("--strict", arguments->strict, "a suspicion fails, too");
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  return [arguments](const Progress& progress) { return runReport(*arguments, progress); };
}

const Registration registrationReport(
    "report", "write one page to send: verdict, findings, timeline, values, memory and both listings", setUpReport);

}  // namespace
}  // namespace retrograd::cli
