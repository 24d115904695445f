#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "app/cli/look/diff_passes.h"
#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "core/questions/align_ops.h"
#include "core/torch/experiments/counterpart.h"
#include "core/torch/experiments/passes.h"
#include "core/torch/experiments/what_if.h"
#include "core/trace/diff/diff_text.h"

namespace retrograd::cli {
namespace {

struct DiffArguments {
  std::string a, b, show, showB, pass, before, follow, format = "text";
  std::optional<PartitionOptions> partitionB;
  std::optional<DType> precisionB;
  bool sideBySide = false, passes = false;
  std::size_t context = 3, width = 0;
  InputOptions input;
};

/// Two traces and what they live in.
struct Sides {
  std::shared_ptr<const Analysis> a, b;
  PassTraces passes;
  DiffSide left, right;
  std::string leftName, rightName;
};

TraceKind kindNamed(const std::string& text) {
  for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
    if (text == name(kind)) return kind;
  return TraceKind::joint;
}

TraceKind kindFor(const Analysis& analysis, const std::string& asked) {
  if (asked.empty()) return analysis.derived() ? TraceKind::joint : TraceKind::computation;
  return kindNamed(asked);
}

/// The trace of an analysis. Throws Error(badUse) where it was not derived.
DiffSide sideOf(const Analysis& analysis, TraceKind kind) {
  if (kind != TraceKind::computation && !analysis.derived())
    throw Error(ErrorCode::badUse,
                "no joint, forward or backward could be derived (see the problems above); --show computation compares "
                "the computation",
                analysis.file.path);
  const auto* trace = kind == TraceKind::joint      ? &analysis.joint
                      : kind == TraceKind::forward  ? &analysis.forward
                      : kind == TraceKind::backward ? &analysis.backward
                                                    : &analysis.computation().trace;
  return diffSide(analysis, *trace);
}

/// The second side of one file: the first, under the request for the second.
std::shared_ptr<const Analysis> openB(const DiffArguments& arguments, const std::shared_ptr<const Analysis>& a,
                                      const Progress& progress) {
  auto b = a;
  if (!arguments.b.empty()) b = open(arguments.b, arguments.input, progress);
  if (arguments.precisionB)
    b = openCounterpart(*b, {.path = {}, .weights = {}, .precision = arguments.precisionB, .device = {}, .seed = {}},
                        progress);
  if (arguments.partitionB && b->derived()) b = whatIf(*b, *arguments.partitionB, {}, progress).analysis;
  return b;
}

/// "joint of model.pt2, --partition min-cut --recompute h.0"
std::string labelOf(const std::string& path, const DiffArguments& arguments, bool isSecond) {
  auto label = path;
  if (!isSecond) return label;
  if (arguments.precisionB) label += fmt::format(" --dtype-b {}", torchName(*arguments.precisionB));
  if (const auto& partition = arguments.partitionB) {
    if (partition->kind == PartitionOptions::minCut) label += " --partition min-cut";
    if (partition->budget) label += fmt::format(" --budget {}", *partition->budget);
    for (const auto& mark : partition->recompute) label += fmt::format(" --recompute {}", mark);
  }
  return label;
}

void choosePasses(const DiffArguments& arguments, Sides& sides, const Progress& progress) {
  sides.passes = passesOf(*sides.a, progress);
  const auto& passes = sides.passes;
  const auto kind = kindFor(*sides.a, arguments.show);
  const auto at = passes.find(arguments.pass.empty() ? arguments.before : arguments.pass,
                              arguments.pass.empty() ? TraceKind::joint : kind);
  const auto& computation = passes.analysis->computation().trace;
  const auto side = [&](const Trace& trace) {
    return DiffSide{passes.analysis->document.get(), &trace, &computation, nullptr};
  };
  sides.left = side(passes.before(at));
  sides.right = arguments.pass.empty() ? side(*sideOf(*passes.analysis, kind).trace) : side(passes.results[at].trace);
  sides.leftName = fmt::format("{} before {}", arguments.a, passes.results[at].pass);
  sides.rightName =
      arguments.pass.empty() ? arguments.a : fmt::format("{} after {}", arguments.a, passes.results[at].pass);
}

Sides choose(const DiffArguments& arguments, const Progress& progress) {
  Sides sides;
  sides.a = open(arguments.a, arguments.input, progress);
  if (!arguments.pass.empty() || !arguments.before.empty()) {
    choosePasses(arguments, sides, progress);
    return sides;
  }
  sides.b = openB(arguments, sides.a, progress);
  const auto kind = kindFor(*sides.a, arguments.show);
  sides.left = sideOf(*sides.a, kind);
  sides.right = sideOf(*sides.b, arguments.showB.empty() ? kind : kindNamed(arguments.showB));
  sides.leftName = labelOf(arguments.a, arguments, false);
  sides.rightName = labelOf(arguments.b.empty() ? arguments.a : arguments.b, arguments, true);
  return sides;
}

std::size_t terminalWidth() {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 160;
}

int runPasses(const DiffArguments& arguments, const Progress& progress) {
  DiffPassesOptions options{arguments.a,
                            arguments.input.data.compile,
                            arguments.input.data.rank,
                            arguments.pass,
                            arguments.follow,
                            arguments.format,
                            arguments.sideBySide,
                            {}};
  options.text.context = arguments.context;
  options.text.width = arguments.width ? arguments.width : terminalWidth();
  return printPasses(options, progress);
}

int runDiff(const DiffArguments& arguments, const Progress& progress) {
  if (arguments.passes) return runPasses(arguments, progress);
  const bool isOther = !arguments.b.empty() || arguments.partitionB || arguments.precisionB || !arguments.showB.empty();
  const bool isPass = !arguments.pass.empty() || !arguments.before.empty();
  if (!isOther && !isPass)
    throw Error(ErrorCode::badUse,
                "name a second file, or what differs on the second side: --show-b, --partition-b, --budget-b, "
                "--recompute-b, --dtype-b, --pass or --before",
                "diff");
  if (isPass && isOther)
    throw Error(
        ErrorCode::badUse,
        "--pass and --before compare traces of one file; leave out the second file and the options that end in -b",
        "diff");
  const auto sides = choose(arguments, progress);
  bool broken = false;
  for (const auto& analysis : {sides.a, sides.b})
    if (analysis && (analysis != sides.a || analysis == sides.b || !sides.b))
      broken |= reportProblems(analysis->problems);
  const auto diff = diffTraces(sides.left, sides.right, progress);
  const DiffTextOptions options{sides.leftName, sides.rightName, arguments.context,
                                arguments.width ? arguments.width : terminalWidth()};
  const int code = printDiff(diff, options, arguments.format, arguments.sideBySide);
  return broken ? badInputOrUse : code;
}

Run setUpDiff(Parser parser) {
  auto arguments = std::make_shared<DiffArguments>();
  const std::vector<std::string> kinds{"computation", "joint", "forward", "backward"};
  parser.add("a", arguments->a, "a model file or a session").required();
  parser.add("b", arguments->b, "another one (default: the same file, with the options that end in -b)");
  parser
      .add("--show", arguments->show, "the trace to compare: computation, joint, forward or backward (default: joint)")
      .oneOf(kinds);
  parser.add("--show-b", arguments->showB, "the trace of the second side (default: that of the first)").oneOf(kinds);
  addPartitionB(parser, arguments->partitionB);
  addPrecisionB(parser, arguments->precisionB);
  const auto pass = parser.add("--pass", arguments->pass,
                               "what this pass changed: the trace before it against the trace after it (a name or its "
                               "beginning: 'dead', 'recomputation')");
  parser.add("--before", arguments->before, "the trace before this pass against the final trace").excludes(pass);
  const auto passes = parser.flag("--passes", arguments->passes,
                                  "of a job's log: the graphs of a compile as a chain of passes, with what each "
                                  "changed; with --pass, what that one changed");
  parser
      .add("--follow", arguments->follow,
           "with --passes: a value whose op is followed from pass to pass; with --pass, the one of that pass")
      .needs(passes);
  parser.add("-U,--context", arguments->context, "equal lines around each difference").showDefault();
  parser.flag("-y,--side-by-side", arguments->sideBySide, "print two columns");
  parser.add("-W,--width", arguments->width, "columns of --side-by-side (default: the terminal's, or 160)")
      .range(40, 2000);
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  parser.footer(
      "Exit codes: 0 equal, 1 different, 2 bad input or use. --quiet prints nothing. Ops are aligned, not lines of "
      "text (docs/diff.md).");
  return [arguments](const Progress& progress) { return runDiff(*arguments, progress); };
}

const Registration registrationDiff(
    "diff", "compare two traces op by op: of two files, two partitions, before and after a pass", setUpDiff);

}  // namespace
}  // namespace retrograd::cli
