#pragma once
#include <QApplication>
#include <QTest>

namespace retrograd::views {

/// Runs one class of tests with these arguments of QTest; gives the number of failures.
using RunTests = int (*)(int argc, char** argv);
/// Adds a class to this program, under its name without the namespace. Static objects call it: see WINDOW_TEST.
bool addTests(const char* name, RunTests run);
template <class Test>
extern const bool isAdded;

}  // namespace retrograd::views

/// Makes a class of slots a part of the program of its folder: `test_views_FOLDER Class [FUNCTION...]` runs it.
#define WINDOW_TEST(Class)                                                                                     \
  template <>                                                                                                  \
  const bool retrograd::views::isAdded<Class> = retrograd::views::addTests(#Class, [](int argc, char** argv) { \
    Class test;                                                                                                \
    return QTest::qExec(&test, argc, argv);                                                                    \
  });
