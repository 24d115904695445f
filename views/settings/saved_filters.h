#pragma once
#include <QSettings>
#include <vector>

namespace retrograd::views {

/// Filters that are kept under a name, in the settings, for all windows and files.
class SavedFilters {
 public:
  struct Entry {
    QString name, words;
    bool operator==(const Entry&) const = default;
  };

  explicit SavedFilters(QSettings* settings) : settings_(settings) {}
  /// By name.
  std::vector<Entry> all() const;
  /// Takes the place of one of the same name.
  void set(const Entry& entry);
  void remove(const QString& name);

 private:
  void write(const std::vector<Entry>& entries);

  QSettings* settings_;
};

}  // namespace retrograd::views
