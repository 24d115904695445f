#pragma once
#include <QSettings>
#include <QStringList>
#include <QVector>

namespace retrograd::views {

/// Sources whose names begin with `from` lie under `to`.
struct PathMapping {
  QString from, to;
  bool operator==(const PathMapping&) const = default;
};

/// Where the source files lie that a model names: it was exported elsewhere, perhaps on another machine.
class SourcePaths {
 public:
  SourcePaths() = default;
  explicit SourcePaths(QVector<PathMapping> mappings) : mappings_(std::move(mappings)) {}

  const QVector<PathMapping>& mappings() const { return mappings_; }
  /// In place of an older one of the same `from`.
  void add(const PathMapping& mapping);
  /// Paths where `file` may lie, the likeliest first: by the mappings (the longest `from` first), where it says, then
  /// in the model's folder with as much of its own folders as there is.
  QStringList candidates(const QString& file, const QString& modelFolder) const;

  static SourcePaths load(const QSettings& settings);
  void save(QSettings& settings) const;

 private:
  QVector<PathMapping> mappings_;
};

/// The mapping under which `file` is found at `chosen`: what differs before the folders that both end in. Of files with
/// different names, just the one represents the other.
PathMapping mappingFor(const QString& file, const QString& chosen);

}  // namespace retrograd::views
