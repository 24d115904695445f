#include "tests/views/panels.h"

#include <QLabel>
#include <QLineEdit>

namespace retrograd::views {

QDockWidget* front(WindowFixture& f, const char* name) { return f.raise(name); }

void addBreakpoint(WindowFixture& f, const QString& words) {
  front(f, "dock-breakpoints");
  auto* line = f.window().findChild<QLineEdit*>(QStringLiteral("breakpoint-words"));
  line->setFocus();
  QTest::keyClicks(line, words);
  QTest::keyClick(line, Qt::Key_Return);
  const auto* problem = f.window().findChild<QLabel*>(QStringLiteral("breakpoint-problem"));
  if (!QTest::qWaitFor([&] { return line->text().isEmpty() || problem->isVisible(); }))
    qFatal("the words are not answered");
}

const std::vector<Breakpoint>& breakpoints(WindowFixture& f) { return f.window().context().execution->breakpoints(); }

QStringList linesOf(const QAbstractItemModel& model, const QModelIndex& parent) {
  QStringList lines;
  for (int row = 0; row < model.rowCount(parent); ++row) {
    const auto label = model.index(row, 0, parent);
    lines << label.data().toString() + QStringLiteral(": ") + label.siblingAtColumn(1).data().toString();
    lines << linesOf(model, label);
  }
  return lines;
}

QStringList linesOf(WindowFixture& f, const char* tree) {
  return linesOf(*f.window().findChild<QTreeView*>(QLatin1String(tree))->model());
}

bool waitForLine(WindowFixture& f, const char* tree, const QString& part) {
  return QTest::qWaitFor([&] { return linesOf(f, tree).join(QLatin1Char('\n')).contains(part); }, 5000);
}

QModelIndex rowWith(const QAbstractItemModel& model, const QString& part, const QModelIndex& parent) {
  for (int row = 0; row < model.rowCount(parent); ++row) {
    const auto label = model.index(row, 0, parent);
    if (label.data().toString().contains(part) || label.siblingAtColumn(1).data().toString().contains(part))
      return label;
    if (const auto below = rowWith(model, part, label); below.isValid()) return below;
  }
  return {};
}

ValueId outputOf(const Analysis& analysis, BoundSymbolId op) { return analysis.document->outputs(op)[0]; }

}  // namespace retrograd::views
