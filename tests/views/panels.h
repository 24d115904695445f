#pragma once
#include <QDockWidget>
#include <QStringList>
#include <QTreeView>

#include "tests/views/window_fixture.h"

namespace retrograd::views {

/// The dock of this object name, opened and in front.
QDockWidget* front(WindowFixture& f, const char* name);

/// Types the words into the breakpoints' line and presses Enter.
void addBreakpoint(WindowFixture& f, const QString& words);
const std::vector<Breakpoint>& breakpoints(WindowFixture& f);

/// Every text of a tree, "label: text" a line.
QStringList linesOf(const QAbstractItemModel& model, const QModelIndex& parent = {});
QStringList linesOf(WindowFixture& f, const char* tree);
bool waitForLine(WindowFixture& f, const char* tree, const QString& part);
/// The row of a tree whose label or text contains the part.
QModelIndex rowWith(const QAbstractItemModel& model, const QString& part, const QModelIndex& parent = {});

ValueId outputOf(const Analysis& analysis, BoundSymbolId op);

}  // namespace retrograd::views
