#include "app/cli/parsing/output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>

#include "app/cli/parsing/terminal.h"
#include "core/base/error.h"
#include "core/formats/files/atomic_file.h"
#include "core/formats/kinds/file_kind.h"

namespace fs = std::filesystem;

namespace retrograd::cli {
namespace {

/// Options that name files to write, and whether each may be the session that is read.
std::map<Option, bool>& outputs() {
  static std::map<Option, bool> all;
  return all;
}

bool isSameFile(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return !b.empty() && fs::equivalent(a, b, ignored);
}

/// Before anything is computed: whether a file can be made where this one is to appear.
void requirePlace(const std::string& path) {
  auto folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(ErrorCode::io, std::string("cannot write: ") + std::strerror(errno), path);
}

void requireOther(Parser parser, Option output, bool ownSession) {
  for (const auto& path : output.values()) {
    if (isStandardOutput(path)) continue;
    requirePlace(path);
    for (const auto option : parser.options()) {
      if (option == output) continue;
      const bool isOutput = outputs().contains(option);  // two that are not there yet have the same name only
      for (const auto& other : option.values())
        if ((isSameFile(path, other) || (isOutput && path == other)) && !(ownSession && isSessionFile(other)))
          throw Error(ErrorCode::badUse,
                      std::string(isOutput ? "would be written twice" : "is both read and written") +
                          ": name another file to write",
                      path);
    }
  }
}

}  // namespace

Option addOutput(Parser parser, const std::string& names, std::string& path, const std::string& help, bool ownSession) {
  const auto option = parser.add(names, path, help);
  outputs().insert_or_assign(option, ownSession);
  return option;
}

void addOldOutput(Parser parser, const std::string& names, std::string& path) {
  addOutput(parser, names, path, "", /*ownSession=*/true).hidden();
}

void requireOtherFiles(Parser parser) {
  for (const auto option : parser.options())
    if (const auto output = outputs().find(option); output != outputs().end())
      requireOther(parser, option, output->second);
  if (const auto chosen = parser.chosen()) requireOtherFiles(*chosen);
}

void writeText(const std::string& path, std::string_view text) {
  if (!isStandardOutput(path)) return writeWholeFile(path, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  flushOutput();
}

void prepareStandardStreams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0)
      ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest free one; using it fails
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

namespace {

bool readerMayLeave = false;

/// The process ends as other programs do, by the signal.
[[noreturn]] void endQuietly() {
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
  std::_Exit(128 + SIGPIPE);
}

}  // namespace

void letReaderLeave() { readerMayLeave = true; }

void flushOutput() {
  clearProgress();
  std::cout.flush();
  errno = 0;
  const bool failed = std::fflush(stdout) != 0;
  if (!failed && !std::ferror(stdout)) return;
  int why = failed ? errno : 0;
  if (!why && ::write(STDOUT_FILENO, "\n", 1) < 0)
    why = errno;  // an earlier write failed, whose reason is lost: another one reports it
  if (why == EPIPE && readerMayLeave) endQuietly();
  const auto reason = why ? std::string(": ") + std::strerror(why) : std::string();
  std::clearerr(stdout);
  throw Error(ErrorCode::io, "cannot be written" + reason, "standard output");
}

}  // namespace retrograd::cli
