#pragma once
#include <QByteArray>
#include <QSettings>
#include <QStringList>
#include <QVariant>

namespace retrograd::views {

/// One thing that is kept from one start of the program to the next: its key in the settings' file, its type, and its
/// value where nothing was kept. An entry of another type counts as not there.
template <class T>
class Setting {
 public:
  explicit Setting(QString key, T usual = {}) : key_(std::move(key)), usual_(std::move(usual)) {}

  T of(const QSettings& settings) const { return of(settings, usual_); }
  T of(const QSettings& settings, const T& usual) const {
    const auto kept = settings.value(key_);
    return kept.isValid() && kept.canConvert<T>() ? kept.value<T>() : usual;
  }
  void keep(QSettings& settings, const T& value) const { settings.setValue(key_, QVariant::fromValue(value)); }
  void forget(QSettings& settings) const { settings.remove(key_); }
  /// For settings that are lists of records (QSettings::beginReadArray).
  const QString& key() const { return key_; }

 private:
  QString key_;
  T usual_;
};

/// All settings of the program. A key is never given another type: older files have it.
namespace kept {
inline const Setting<int> theme(QStringLiteral("theme"), 0);  ///< Theme::Choice
inline const Setting<QByteArray> geometry(QStringLiteral("window/geometry"));
/// Of this kind of file.
inline Setting<QByteArray> arrangement(const QString& kind) {
  return Setting<QByteArray>(QStringLiteral("window/arrangement-") + kind);
}
inline const Setting<bool> shortNames(QStringLiteral("window/short-names"), true);
inline const Setting<bool> opNumbers(QStringLiteral("window/op-numbers"), false);
inline const Setting<int> grouping(QStringLiteral("window/fold"), -1);  ///< Grouping
inline const Setting<QVariantMap> layouts(QStringLiteral("layouts"));   ///< those that a user saved, by name
inline const Setting<QStringList> recentFiles(QStringLiteral("recent"));
inline const Setting<QString> keyPreset(QStringLiteral("keys/preset"));
inline const Setting<QVariantMap> chosenKeys(QStringLiteral("keys/chosen"));  ///< keys by command
inline const Setting<QVariantList> filters(QStringLiteral("filters"));
inline const Setting<QStringList> sourceMappings(QStringLiteral("source/mappings"));
inline const Setting<QString> editor(QStringLiteral("source/editor"));
inline const Setting<QString> exportFolder(QStringLiteral("export/folder"));
inline const Setting<int> threads(QStringLiteral("run/threads"), 0);  ///< of kernels; 0: LibTorch's choice
inline const Setting<qlonglong> historyBytes(QStringLiteral("history/bytes"));
inline const Setting<bool> runsOnOpen(QStringLiteral("run/on-open"), true);
inline const Setting<qlonglong> keptBytes(QStringLiteral("values/bytes"),
                                          qlonglong{2} << 30);  ///< for values of any op
inline const Setting<qlonglong> runningBytes(QStringLiteral("run/bytes"),
                                             -1);  ///< that a run may take; negative: what is free
inline const Setting<qlonglong> openingBytes(QStringLiteral("opening/bytes"),
                                             -1);  ///< that opening may allocate; negative: as it comes
inline const Setting<int> listingColumn(QStringLiteral("window/listing-column"), 3);  ///< OpFigure; norms
inline const Setting<QVariantMap> textColumns(
    QStringLiteral("window/text-columns"));  ///< by column: negative where hidden, else its width in characters
inline const Setting<double> textSize(QStringLiteral("window/text-size"), 0);  ///< points; 0: the system's
inline const Setting<int> graphLines(QStringLiteral("graph/lines"), 0);        ///< LineLabel
inline const Setting<bool> reopensSession(QStringLiteral("session/reopen"), true);
inline const Setting<QVariantList> sessionWindows(QStringLiteral("session/windows"));
inline const Setting<bool> restoringSession(QStringLiteral("session/restoring"), false);
/// What a person arranged in the panel of this name.
inline Setting<QVariantMap> panel(const QString& name) {
  return Setting<QVariantMap>(QStringLiteral("panels/") + name);
}
/// Breakpoints of a file, in words. Paths may hold anything, keys of settings may not: it is known by a hash of its
/// path.
inline Setting<QStringList> breakpoints(const QString& pathHash) {
  return Setting<QStringList>(QStringLiteral("breakpoints/") + pathHash);
}
/// Names of the values that are watched in a file.
inline Setting<QStringList> watches(const QString& pathHash) {
  return Setting<QStringList>(QStringLiteral("watches/") + pathHash);
}
}  // namespace kept

}  // namespace retrograd::views
