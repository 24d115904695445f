// Commands of the program, each in a child of a process that has loaded LibTorch: loading it takes several times as
// long as checking a small job. A line of standard input is the file for the child's output, the one for its errors,
// and the arguments, with tabs between them. A line of standard output is the exit code, or the negative number of a
// signal.
#include <fcntl.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "app/cli/parsing/program.h"
#include "app/command_line.h"
#include "core/torch/grad/library.h"
#include "core/torch/script/script.h"

namespace retrograd {
namespace {

std::vector<std::string> fieldsOf(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

/// The exit code of the program for these arguments.
int commandOf(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "retrograd");
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return runCommandLine(static_cast<int>(arguments.size()), pointers.data(), [](const CommandLine& line) {
    return line.subcommand ? (*line.run)(Progress()) : EXIT_FAILURE;
  });
}

/// Writes to a stream go to the file from now on.
bool redirect(int stream, const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  return file >= 0 && dup2(file, stream) == stream;
}

[[noreturn]] void runInChild(std::vector<std::string> fields) {
  if (fields.size() < 3 || !redirect(STDOUT_FILENO, fields[0]) || !redirect(STDERR_FILENO, fields[1])) std::_Exit(127);
  fields.erase(fields.begin(), fields.begin() + 2);
  std::_Exit(commandOf(std::move(fields)));
}

}  // namespace
}  // namespace retrograd

int main() {
  using namespace retrograd;
  mallopt(M_MXFAST, 0);  // as the program does
  static constexpr cli::ProgramFunctions functions{loadLibrary, DebugScript::commands};
  cli::setProgram(functions);
  std::string line;
  while (std::getline(std::cin, line)) {
    const pid_t child = fork();
    if (child < 0) return EXIT_FAILURE;
    if (child == 0) runInChild(fieldsOf(line));
    int status = 0;
    if (waitpid(child, &status, 0) != child) return EXIT_FAILURE;
    std::cout << (WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)) << std::endl;
  }
}
