#include "views/settings/editor.h"

#include <QProcess>
#include <QStandardPaths>

#include "views/settings/settings.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

/// In one go: a path with a "%l" in it stays as it is.
QString filled(const QString& word, const QString& path, int line) {
  QString text;
  for (qsizetype i = 0; i < word.size(); ++i) {
    const auto next = word[i] == QLatin1Char('%') && i + 1 < word.size() ? word[i + 1] : QChar();
    if (next == QLatin1Char('f')) text += path;
    else if (next == QLatin1Char('l')) text += QString::number(std::max(1, line));
    else if (next == QLatin1Char('%')) text += next;
    else {
      text += word[i];
      continue;
    }
    ++i;
  }
  return text;
}

}  // namespace

std::vector<Editor> installedEditors() {
  static const std::vector<Editor> known{
      {QStringLiteral("Visual Studio Code"), QStringLiteral("code -g %f:%l")},
      {QStringLiteral("VSCodium"), QStringLiteral("codium -g %f:%l")},
      {QStringLiteral("Zed"), QStringLiteral("zed %f:%l")},
      {QStringLiteral("Sublime Text"), QStringLiteral("subl %f:%l")},
      {QStringLiteral("PyCharm"), QStringLiteral("pycharm --line %l %f")},
      {QStringLiteral("Kate"), QStringLiteral("kate -l %l %f")},
      {QStringLiteral("KWrite"), QStringLiteral("kwrite -l %l %f")},
      {QStringLiteral("gedit"), QStringLiteral("gedit +%l %f")},
      {QStringLiteral("Mousepad"), QStringLiteral("mousepad -l %l %f")},
      {QStringLiteral("GVim"), QStringLiteral("gvim +%l %f")},
      {QStringLiteral("Emacs"), QStringLiteral("emacs +%l %f")},
      {QStringLiteral("GNOME Text Editor"), QStringLiteral("gnome-text-editor %f")},
  };
  std::vector<Editor> installed;
  for (const auto& editor : known)
    if (!QStandardPaths::findExecutable(editor.command.section(QLatin1Char(' '), 0, 0)).isEmpty())
      installed.push_back(editor);
  return installed;
}

QString editorCommand(const QSettings& settings) {
  if (const auto chosen = kept::editor.of(settings); !chosen.isEmpty()) return chosen;
  const auto installed = installedEditors();
  return installed.empty() ? QString() : installed.front().command;
}

void setEditorCommand(QSettings& settings, const QString& command) { kept::editor.keep(settings, command.trimmed()); }

QStringList editorArguments(const QString& command, const QString& path, int line) {
  auto words = QProcess::splitCommand(command);
  bool named = false;
  for (qsizetype i = 1; i < words.size(); ++i) {
    named = named || words[i].contains(QStringLiteral("%f"));
    words[i] = filled(words[i], path, line);
  }
  if (!words.isEmpty() && !named) words << path;
  return words;
}

QString openInEditor(const QString& command, const QString& path, int line) {
  auto words = editorArguments(command, path, line);
  if (words.isEmpty() || words.first().isEmpty()) return tr("No editor is chosen: Source Settings names one");
  const auto program = words.takeFirst();
  return QProcess::startDetached(program, words)
             ? QString()
             : tr("The editor '%1' could not be started: Source Settings names another").arg(program);
}

}  // namespace retrograd::views
