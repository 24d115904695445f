#include "views/settings/source_paths.h"

#include <QDir>
#include <algorithm>

#include "views/settings/settings.h"

namespace retrograd::views {
namespace {

/// As Python on any system wrote it, with slashes.
QString cleaned(const QString& path) {
  auto slashed = path;
  return QDir::cleanPath(slashed.replace(QLatin1Char('\\'), QLatin1Char('/')));
}

/// Whole folders only: "/code/a" is not a beginning of "/code/ab".
bool beginsWith(const QString& path, const QString& prefix) {
  return path.startsWith(prefix) &&
         (path.size() == prefix.size() || prefix.endsWith(QLatin1Char('/')) || path[prefix.size()] == QLatin1Char('/'));
}

}  // namespace

void SourcePaths::add(const PathMapping& mapping) {
  const auto same = std::ranges::find_if(mappings_, [&](const PathMapping& one) { return one.from == mapping.from; });
  same == mappings_.end() ? mappings_.append(mapping) : void(*same = mapping);
}

QStringList SourcePaths::candidates(const QString& file, const QString& modelFolder) const {
  const auto path = cleaned(file);
  if (file.isEmpty() || path.contains(QChar(0)) || path.endsWith(QLatin1Char('>')))
    return {};  // "<string>", "<eval_with_key>"
  auto sorted = mappings_;
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.from.size() > b.from.size(); });
  QStringList found;
  const auto add = [&](const QString& candidate) {
    const auto clean = QDir::cleanPath(candidate);
    if (QDir::isAbsolutePath(clean) && !found.contains(clean)) found << clean;
  };
  for (const auto& [from, to] : sorted) {
    const auto prefix = cleaned(from);
    if (!prefix.isEmpty() && !to.isEmpty() && beginsWith(path, prefix))
      add(to + QLatin1Char('/') + path.mid(prefix.size()));
  }
  add(path);
  if (modelFolder.isEmpty()) return found;
  const auto parts = path.split(QLatin1Char('/'), Qt::SkipEmptyParts);
  for (qsizetype first = 0; first < parts.size(); ++first)
    if (!parts.mid(first).contains(QStringLiteral("..")))
      add(modelFolder + QLatin1Char('/') + parts.mid(first).join(QLatin1Char('/')));
  return found;
}

SourcePaths SourcePaths::load(const QSettings& settings) {
  SourcePaths paths;
  const auto all = kept::sourceMappings.of(settings);
  for (qsizetype i = 0; i + 1 < all.size(); i += 2) paths.add({all[i], all[i + 1]});
  return paths;
}

void SourcePaths::save(QSettings& settings) const {
  QStringList all;
  for (const auto& [from, to] : mappings_) all << from << to;
  kept::sourceMappings.keep(settings, all);
}

PathMapping mappingFor(const QString& file, const QString& chosen) {
  const auto there = cleaned(file), here = cleaned(chosen);
  qsizetype common = 0;  // characters that both end in, in whole folders
  for (auto at = there.lastIndexOf(QLatin1Char('/')); at >= 0;
       at = at > 0 ? there.lastIndexOf(QLatin1Char('/'), at - 1) : -1) {
    if (!here.endsWith(there.mid(at))) break;
    common = there.size() - at;
  }
  if (common == 0 || common == there.size() || common == here.size()) return {there, here};
  return {there.left(there.size() - common), here.left(here.size() - common)};
}

}  // namespace retrograd::views
