#include "views/settings/saved_filters.h"

#include <algorithm>

#include "views/settings/settings.h"

namespace retrograd::views {
namespace {

const QString nameKey = QStringLiteral("name"), wordsKey = QStringLiteral("words");

}  // namespace

std::vector<SavedFilters::Entry> SavedFilters::all() const {
  std::vector<Entry> entries;
  const int count = settings_->beginReadArray(kept::filters.key());
  for (int i = 0; i < count; ++i) {
    settings_->setArrayIndex(i);
    entries.push_back({settings_->value(nameKey).toString(), settings_->value(wordsKey).toString()});
  }
  settings_->endArray();
  return entries;
}

void SavedFilters::set(const Entry& entry) {
  auto entries = all();
  std::erase_if(entries, [&](const Entry& other) { return other.name == entry.name; });
  entries.push_back(entry);
  std::ranges::sort(entries,
                    [](const Entry& a, const Entry& b) { return QString::localeAwareCompare(a.name, b.name) < 0; });
  write(entries);
}

void SavedFilters::remove(const QString& name) {
  auto entries = all();
  std::erase_if(entries, [&](const Entry& other) { return other.name == name; });
  write(entries);
}

void SavedFilters::write(const std::vector<Entry>& entries) {
  settings_->remove(kept::filters.key());
  settings_->beginWriteArray(kept::filters.key(), static_cast<int>(entries.size()));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    settings_->setArrayIndex(static_cast<int>(i));
    settings_->setValue(nameKey, entries[i].name);
    settings_->setValue(wordsKey, entries[i].words);
  }
  settings_->endArray();
}

}  // namespace retrograd::views
