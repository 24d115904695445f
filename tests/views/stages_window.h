#pragma once
#include <QDockWidget>
#include <QTest>

#include "tests/support/source_path.h"
#include "tests/views/window_fixture.h"
#include "views/stages/stage_plan.h"

namespace retrograd::views {

inline QString data(const char* name) {
  return QString::fromStdString(sourcePath("tests/data/")) + QLatin1String(name);
}
inline StagePlan& plan(WindowFixture& f) { return *f.window().context().stages; }
/// Waits until the model is cut, or cannot be.
inline bool settled(WindowFixture& f) {
  return QTest::qWaitFor(
      [&] { return !plan(f).busy() && !plan(f).measuring() && (plan(f).cut() || !plan(f).problem().isEmpty()); },
      60000);
}

inline void showDock(WindowFixture& f, const char* name) { f.raise(name); }
inline void showStages(WindowFixture& f) { showDock(f, "dock-stages"); }
template <class Widget>
Widget* find(WindowFixture& f, const char* name) {
  return f.window().findChild<Widget*>(QLatin1String(name));
}

}  // namespace retrograd::views
