#include "views/settings/keymap.h"

#include <algorithm>
#include <array>

#include "views/settings/settings.h"

namespace retrograd::views {
namespace {

const QString gdbName = QStringLiteral("gdb");

}  // namespace

QMap<QString, QKeySequence> keysOf(KeyPreset preset) {
  if (preset == KeyPreset::retrograd) return {};
  const auto shifted = [](Qt::Key key) { return QKeySequence(Qt::SHIFT | key); };
  // gdb's abbreviations of next, step, finish, continue, until, run, break, display, kill; with Shift the
  // reverse-commands.
  return {{QStringLiteral("step-over"), Qt::Key_N},
          {QStringLiteral("step-over-back"), shifted(Qt::Key_N)},
          {QStringLiteral("step-into"), Qt::Key_S},
          {QStringLiteral("step-into-back"), shifted(Qt::Key_S)},
          {QStringLiteral("step-out"), Qt::Key_F},
          {QStringLiteral("step-out-back"), shifted(Qt::Key_F)},
          {QStringLiteral("continue"), Qt::Key_C},
          {QStringLiteral("continue-back"), shifted(Qt::Key_C)},
          {QStringLiteral("to-cursor"), Qt::Key_U},
          {QStringLiteral("restart"), Qt::Key_R},
          {QStringLiteral("breakpoint"), Qt::Key_B},
          {QStringLiteral("watch"), Qt::Key_D},
          {QStringLiteral("stop"), Qt::Key_K},
          {QStringLiteral("pause"), Qt::Key_I},
          {QStringLiteral("listing-computation"), QKeySequence(Qt::CTRL | Qt::Key_5)},
          {QStringLiteral("rename"), Qt::Key_F2}};
}

Keymap& Keymap::of(QSettings* settings) {
  if (auto* keymap = settings->findChild<Keymap*>({}, Qt::FindDirectChildrenOnly)) return *keymap;
  return *new Keymap(settings, settings);
}

Keymap::Keymap(QSettings* settings, QObject* parent) : QObject(parent), settings_(settings) {}

KeyPreset Keymap::preset() const {
  return kept::keyPreset.of(*settings_) == gdbName ? KeyPreset::gdb : KeyPreset::retrograd;
}

void Keymap::setPreset(KeyPreset preset) {
  if (preset == this->preset()) return;
  preset == KeyPreset::gdb ? kept::keyPreset.keep(*settings_, gdbName) : kept::keyPreset.forget(*settings_);
  Q_EMIT changed();
}

QMap<QString, QKeySequence> Keymap::chosen() const {
  QMap<QString, QKeySequence> result;
  const auto all = kept::chosenKeys.of(*settings_);
  for (auto it = all.begin(); it != all.end(); ++it) {
    const auto text = it.value().toString();
    const QKeySequence key(text, QKeySequence::PortableText);
    // A text that is not a key, or names a key that cannot be had, is as if it were not there.
    if (text.isEmpty() || (key.count() == 1 && key[0].key() != Qt::Key_unknown && whyReserved(key).isEmpty()))
      result[it.key()] = key;
  }
  return result;
}

void Keymap::write(const QMap<QString, QKeySequence>& chosen) {
  QVariantMap all;
  for (auto it = chosen.begin(); it != chosen.end(); ++it)
    all[it.key()] = it.value().toString(QKeySequence::PortableText);
  all.isEmpty() ? kept::chosenKeys.forget(*settings_) : kept::chosenKeys.keep(*settings_, all);
  Q_EMIT changed();
}

void Keymap::choose(const QString& command, const QKeySequence& key) {
  auto all = chosen();
  // Two choices of one key: the later one counts.
  for (auto& other : all)
    if (!key.isEmpty() && other == key) other = {};
  all[command] = key;
  write(all);
}

void Keymap::reset(const QString& command) {
  auto all = chosen();
  if (all.remove(command)) write(all);
}

QMap<QString, Keymap::Binding> Keymap::resolve(const QList<KeyCommand>& commands) const {
  const auto chosen = this->chosen(), preset = keysOf(this->preset());
  const auto sourceOf = [&](const QString& name) {
    return chosen.contains(name) ? Source::user : preset.contains(name) ? Source::preset : Source::own;
  };
  QMap<QString, Binding> result;
  QMap<QKeySequence, QString> taken;
  for (auto source : {Source::user, Source::preset, Source::own}) {
    for (const auto& command : commands) {
      if (sourceOf(command.name) != source || result.contains(command.name)) continue;
      const auto key = source == Source::user     ? chosen[command.name]
                       : source == Source::preset ? preset[command.name]
                                                  : command.own;
      const auto other = key.isEmpty() ? QString() : taken.value(key);
      result[command.name] = {other.isEmpty() ? key : QKeySequence(), source, other};
      if (!key.isEmpty() && other.isEmpty()) taken[key] = command.name;
    }
  }
  return result;
}

QString Keymap::whyReserved(const QKeySequence& key) {
  if (key.isEmpty()) return {};
  const auto combination = key[0];
  const bool plain = !(combination.keyboardModifiers() & ~(Qt::ShiftModifier | Qt::KeypadModifier));
  constexpr std::array moving{Qt::Key_Up,       Qt::Key_Down,   Qt::Key_Left,     Qt::Key_Right,     Qt::Key_PageUp,
                              Qt::Key_PageDown, Qt::Key_Home,   Qt::Key_End,      Qt::Key_Plus,      Qt::Key_Minus,
                              Qt::Key_Tab,      Qt::Key_Escape, Qt::Key_Asterisk, Qt::Key_Slash,     Qt::Key_Space,
                              Qt::Key_Return,   Qt::Key_Enter,  Qt::Key_Backtab,  Qt::Key_Backspace, Qt::Key_Delete};
  if (plain && std::ranges::find(moving, combination.key()) != moving.end())
    return tr("%1 moves, folds, opens or leaves wherever the focus is, so no command can have it")
        .arg(key.toString(QKeySequence::NativeText));
  if (key == QKeySequence(Qt::CTRL | Qt::Key_C))
    return tr("%1 copies wherever the focus is, so no command can have it").arg(key.toString(QKeySequence::NativeText));
  return {};
}

}  // namespace retrograd::views
