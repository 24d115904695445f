#pragma once
#include <QKeySequence>
#include <QList>
#include <QMap>
#include <QObject>
#include <QSettings>
#include <QString>

namespace retrograd::views {

/// A command as the keymap knows it.
struct KeyCommand {
  QString name;        ///< "step-over": represents it in the settings
  QString text, what;  ///< for people
  QKeySequence own;    ///< the key that it comes with; empty: none
};

enum class KeyPreset { retrograd, gdb };

/// Which key runs which command: what the user chose goes before the preset, and the preset before what a command comes
/// with. A key that is taken leaves later commands without one, so no key ever means two things. Kept in the settings,
/// whose windows all share one.
class Keymap : public QObject {
  Q_OBJECT

 public:
  /// Who gave a command its key, or took it.
  enum class Source { own, preset, user };

  struct Binding {
    QKeySequence key;  ///< empty: none
    Source source = Source::own;
    QString lostTo;  ///< name of the command that has the key this one would have; empty: none
  };

  /// The one of these settings, made when first asked for; it lives as long as they do.
  static Keymap& of(QSettings* settings);
  explicit Keymap(QSettings* settings, QObject* parent = nullptr);

  KeyPreset preset() const;
  void setPreset(KeyPreset preset);
  /// An empty key takes the command's key away.
  void choose(const QString& command, const QKeySequence& key);
  /// Back to what the preset or the command itself says.
  void reset(const QString& command);
  void resetAll() { write({}); }
  bool isChosen(const QString& command) const { return chosen().contains(command); }
  bool anyChosen() const { return !chosen().isEmpty(); }

  /// By name, for all of these commands.
  QMap<QString, Binding> resolve(const QList<KeyCommand>& commands) const;
  /// Why no command can have the key, as it is one of those that listings, the graph and line edits have for
  /// themselves; empty where it can.
  static QString whyReserved(const QKeySequence& key);

 Q_SIGNALS:
  void changed();

 private:
  QMap<QString, QKeySequence> chosen() const;
  void write(const QMap<QString, QKeySequence>& chosen);

  QSettings* settings_;
};

/// The keys that the preset gives, by command; empty for the program's own.
QMap<QString, QKeySequence> keysOf(KeyPreset preset);

}  // namespace retrograd::views
