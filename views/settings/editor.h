#pragma once
#include <QSettings>
#include <QStringList>

namespace retrograd::views {

/// The program that a person opens sources in. It is never the desktop's choice for a file: that may be to run it, as
/// Debian's for Python.
struct Editor {
  QString name, command;
};

/// Editors whose way to take a line is known and whose program is installed.
std::vector<Editor> installedEditors();

/// The command that was chosen, else that of the first editor that is installed; empty where there is none.
QString editorCommand(const QSettings& settings);
void setEditorCommand(QSettings& settings, const QString& command);

/// The program and its arguments. %f is the path and %l the line in arguments, never in the program;
/// without %f the path comes last. No shell reads it: quotes only keep words together, and the path is part of one
/// argument whatever is in it.
QStringList editorArguments(const QString& command, const QString& path, int line);

/// Starts the editor by itself; returns why it could not, or an empty text.
QString openInEditor(const QString& command, const QString& path, int line);

}  // namespace retrograd::views
