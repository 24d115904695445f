// `retrograd` as it is called: reads the command line and, once there is something to do, becomes the program
// (main.cpp). LibTorch and Qt take a third of a second to load, which nobody should wait for who asks for help or
// mistypes a name.
//
// It is linked from the same objects as the program, without LibTorch, Qt and what lies above them. So functions that
// only run what was asked for are left unresolved here; nothing calls them, because all that runs is the two
// subcommands below. tests/app/app_test.py asks every subcommand for help through it.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "app/cli/parsing/program.h"
#include "app/command_line.h"
#include "core/base/error.h"
#include "core/base/installation.h"

namespace retrograd {
namespace {

/// A machine without Fontconfig's settings, a container say, has no fonts that it would find, and all text would be
/// boxes. The archive and the wheel carry some with settings of their own (scripts/bundle).
void bringFonts() {
  std::error_code error;
  if (std::getenv("FONTCONFIG_PATH") || std::filesystem::exists("/etc/fonts/fonts.conf", error)) return;
  if (const auto own = privateFile("fonts/fonts.conf"); !own.empty()) setenv("FONTCONFIG_FILE", own.c_str(), 0);
}

/// The Python package says with which PyTorch the program is to work (python/retrograd/_program.py): a wheel carries a
/// program for each minor version.
std::string programName() {
  const char* torch = std::getenv("RETROGRAD_TORCH");
  return torch ? "torch-" + std::string(torch) + "/retrograd-program" : "retrograd-program";
}

int becomeProgram(char** argv) {
  const auto name = programName();
  const auto program = privateFile(name.c_str());
  if (program.empty()) throw Error(ErrorCode::io, "it should lie where scripts/build or the installation put it", name);
  // LibTorch's threads wait by sleeping: those that spin at the end of each parallel loop take the cores from whatever
  // else runs, and from one another. OpenMP reads this when it is loaded, so it has to be there before the program
  // starts.
  setenv("OMP_WAIT_POLICY", "passive", 0);
  bringFonts();
  execv(program.c_str(), argv);
  throw Error(ErrorCode::io, "cannot be started", program.string());
}

int go(char** argv, const CommandLine& line) {
  if (line.subcommand && (line.subcommand->name() == "help" || line.subcommand->name() == "version"))
    return (*line.run)(Progress());
  return becomeProgram(argv);
}

}  // namespace
}  // namespace retrograd

int main(int argc, char** argv) {
  using namespace retrograd;
  try {
    return runCommandLine(argc, argv, [&](const CommandLine& line) { return go(argv, line); });
  } catch (const cli::NeedsProgram&) {
    return reported([&] { return becomeProgram(argv); });
  }
}
