#pragma once
#include <QFileInfo>
#include <QPlainTextEdit>
#include <QTabWidget>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include "tests/support/source_path.h"
#include "tests/views/window_fixture.h"
#include "views/jobs/job_dock.h"
#include "views/jobs/job_graphs_window.h"

namespace retrograd::views {

/// A sample among the artefacts of jobs; those next to the checkout may not be there.
inline QString job(const char* name) {
  return QString::fromStdString(sourcePath((std::string("../shared/cases/jobs/") + name).c_str()));
}

/// The action of that name in the window.
inline QAction* command(WindowFixture& f, const char* name) {
  return f.window().findChild<QAction*>(QStringLiteral("action-") + QLatin1String(name));
}

/// A log that is open, with the panel Job in front.
struct OpenJob {
  explicit OpenJob(const QString& path) : f(liveEngine()) {
    opened = f.open(path);
    f.raise("dock-job");
    tree = f.window().findChild<QTreeView*>(QStringLiteral("job"));
    findings = f.window().findChild<QTreeView*>(QStringLiteral("job-opinion"));
    opened = opened && QTest::qWaitFor([this] { return tree->model()->rowCount() > 0; }, 30000);
  }
  QModelIndex row(const QAbstractItemModel& model, const QString& text) const {
    const auto found = model.match(model.index(0, 0), Qt::DisplayRole, text, 1, Qt::MatchExactly | Qt::MatchRecursive);
    return found.isEmpty() ? QModelIndex() : found.front();
  }
  QString detail(const QString& what) const {
    return row(*findings->model(), what).siblingAtColumn(1).data().toString();
  }
  QString summary() { return f.window().panel<JobDock>().summary(); }
  /// The window of the job's own graphs, once its text is there.
  JobGraphsWindow* graphs() {
    JobGraphsWindow* window = nullptr;
    const auto there = [&] {
      window = f.window().findChild<JobGraphsWindow*>();
      return window && text(*window) && !text(*window)->toPlainText().isEmpty();
    };
    return QTest::qWaitFor(there, 30000) ? window : nullptr;
  }
  static QPlainTextEdit* text(JobGraphsWindow& window) {
    return qobject_cast<QPlainTextEdit*>(window.findChild<QTabWidget*>(QStringLiteral("job-texts"))->currentWidget());
  }
  static void picture(QWidget& window, const char* name) {
    const auto folder = qEnvironmentVariable("RETROGRAD_TEST_PICTURES");
    if (!folder.isEmpty() && standsStill(window))
      window.grab().save(QStringLiteral("%1/%2.png").arg(folder, QLatin1String(name)));
  }
  /// Presses the button of the panel and waits for its answer.
  bool ask() {
    for (auto* button : f.window().panel<JobDock>().findChildren<QToolButton*>())
      if (button->defaultAction() == command(f, "second-opinion")) QTest::mouseClick(button, Qt::LeftButton);
    return QTest::qWaitFor(
        [this] { return !summary().isEmpty() && !summary().startsWith(QStringLiteral("Comparing")); }, 60000);
  }

  WindowFixture f;
  QTreeView* tree = nullptr;
  QTreeView* findings = nullptr;
  bool opened = false;
};

}  // namespace retrograd::views
