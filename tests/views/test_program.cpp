// The test program of a folder: `test_views_FOLDER Class [FUNCTION...]` runs a class in this process, without a name
// each class in a process of its own, so that none sees settings or windows that another left.
#include "tests/views/test_program.h"

#include <QProcess>
#include <cstdio>
#include <map>
#include <string>

namespace retrograd::views {
namespace {

std::map<std::string, RunTests>& classes() {
  static std::map<std::string, RunTests> all;
  return all;
}

int runAll(const char* program) {
  int failed = 0;
  for (const auto& [name, run] : classes())
    if (QProcess::execute(QString::fromLocal8Bit(program), {QString::fromStdString(name)}) != 0) ++failed;
  return failed;
}

}  // namespace

bool addTests(const char* name, RunTests run) {
  const std::string full = name;
  return classes().emplace(full.substr(full.rfind(':') + 1), run).second;
}

}  // namespace retrograd::views

int main(int argc, char** argv) {
  using namespace retrograd::views;
  if (argc < 2) return runAll(argv[0]);
  const auto found = classes().find(argv[1]);
  if (found == classes().end()) {
    std::fprintf(stderr, "%s has no class %s; it has:", argv[0], argv[1]);
    for (const auto& [name, run] : classes()) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  argv[1] = argv[0];
  ++argv, --argc;
  QCoreApplication::setAttribute(Qt::AA_Use96Dpi, true);
  QApplication application(argc, argv);
  QApplication::setCursorFlashTime(0);  // a window at rest has no blinking cursor
  return found->second(argc, argv);
}
