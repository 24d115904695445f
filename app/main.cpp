// The program: everything but what its front answers (front.cpp).
#include <malloc.h>

#include <cstdlib>

#include "app/cli/parsing/options.h"
#include "app/cli/parsing/output.h"
#include "app/cli/parsing/program.h"
#include "app/cli/parsing/terminal.h"
#include "app/command_line.h"
#include "app/interrupt.h"
#include "app/window.h"
#include "core/torch/grad/library.h"
#include "core/torch/reading/probe.h"
#include "core/torch/script/script.h"

namespace retrograd {
namespace {

int go(int& argc, char** argv, const CommandLine& line) {
  if (!line.subcommand) return showWindow(argc, argv, line.files, line.rules);
  cli::requireOtherFiles(line.parser);
  const Interrupt interrupt;
  const cli::ProgressDisplay display;
  return (*line.run)(Progress(interrupt.token(), display.report()));
}

}  // namespace
}  // namespace retrograd

int main(int argc, char** argv) {
  using namespace retrograd;
  // Without the C library's lists of small free pieces: traces hold millions of these, and whenever a large piece is
  // freed the library walks the lists, which took a quarter of the time that a trace of 100,000 ops needs to open.
  mallopt(M_MXFAST, 0);
  setProbeCommand({"/proc/self/exe", "probe-torchscript"});
  static constexpr cli::ProgramFunctions functions{loadLibrary, DebugScript::commands};
  cli::setProgram(functions);
  const int code = runCommandLine(argc, argv, [&](const CommandLine& line) { return go(argc, argv, line); });
  // All files are closed and standard output is flushed. Destructors of static objects, LibTorch's above all, have
  // nothing to add, and where memory ran short some of them crash: a run that did its work, or said why not, would end
  // by a signal.
  std::_Exit(code);
}
