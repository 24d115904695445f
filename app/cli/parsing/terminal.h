#pragma once
#include <cstdio>
#include <string>
#include <string_view>

#include "app/cli/parsing/parser.h"
#include "core/base/progress.h"

namespace retrograd::cli {

/// How much a subcommand says and how: the options that all of them share.
struct Terminal {
  enum class When { automatic, always, never };
  bool quiet = false;    ///< no notes, no warnings, no progress; what was asked for and errors only
  bool verbose = false;  ///< each stage of the work with its time
  When color = When::automatic, progress = When::automatic;
};

/// As the command line said.
const Terminal& terminal();

/// "-q,--quiet", "-v,--verbose", "--color WHEN", "--progress WHEN".
void addTerminal(Parser parser);

enum class Style { good, bad, warning, added, removed, strong };
/// The text in colour where `stream` is a terminal, or as --color says. NO_COLOR in the environment switches colour
/// off, as no-color.org has it.
std::string styled(std::FILE* stream, Style style, std::string_view text);

/// Shows how far the work is while it lives: after one second, on standard error, a bar that is rewritten in place;
/// with --verbose a line for each stage.
class ProgressDisplay {
 public:
  ProgressDisplay();
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// To be called with each stage and fraction; empty where nothing is shown.
  Progress::Report report() const;
};

/// Takes the bar away, so that other output does not run into it. It comes back with the next report.
void clearProgress();

}  // namespace retrograd::cli
