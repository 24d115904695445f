#pragma once
#include <QAbstractItemView>
#include <QComboBox>

namespace retrograd::views {

/// Gives a tree or table the command Copy, by Ctrl+C and in its context menu. It puts the selected cells on the
/// clipboard as they show: a row a line, cells separated by tabs. With `column` only that column's text, for tables
/// whose other columns are marks.
void addCopy(QAbstractItemView& view, int column = -1);

/// Lets letters, digits and signs typed without Shift into a list, tree or combo box search in it, where they would
/// otherwise be the keys of the window's commands.
void letTypeAhead(QWidget& widget);

/// The whole text of a row, which a line may have no room for, in a small window over the row until Esc or a click
/// elsewhere. It can be selected and copied.
void showWholeText(QAbstractItemView& view, const QModelIndex& row);

/// Names a combo box for those who hear the window. On Linux, Qt hands on the chosen text as its name, and leaves what
/// the box is for to a label; where there is none, it is said as the description. Letters typed into it choose among
/// its texts.
inline void prepareBox(QComboBox* box, const QString& name) {
  box->setAccessibleName(name);
  box->setAccessibleDescription(name);
  letTypeAhead(*box);
}

/// A combo box with both names: `object` for tests and settings.
inline QComboBox* makeBox(QWidget* parent, const char* object, const QString& name) {
  auto* box = new QComboBox(parent);
  box->setObjectName(object);
  prepareBox(box, name);
  return box;
}

}  // namespace retrograd::views
