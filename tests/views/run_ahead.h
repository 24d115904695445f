// A window whose numbers come from a run ahead over the real engine.
#pragma once
#include <QAction>
#include <QTest>

#include "tests/support/source_path.h"
#include "tests/views/window_fixture.h"
#include "views/text/run_numbers.h"

namespace retrograd::views {

inline QString modelFile(const char* path) { return QString::fromStdString(sourcePath(path)); }
inline void trigger(WindowFixture& f, const char* name) {
  f.window().findChild<QAction*>(QStringLiteral("action-") + QLatin1String(name))->trigger();
}
inline RunNumbers& numbers(WindowFixture& f) { return f.controller().ahead().numbers(); }
inline bool allKnown(WindowFixture& f) {
  return QTest::qWaitFor([&] { return numbers(f).size() > 0 && numbers(f).known() == numbers(f).size(); }, 30000);
}

}  // namespace retrograd::views
