#include "views/settings/samples.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include "core/base/installation.h"

namespace retrograd::views {

QList<Sample> samplesIn(const QString& folder) {
  QList<Sample> result;
  QFile list(QDir(folder).filePath(QStringLiteral("samples.json")));
  if (folder.isEmpty() || !list.open(QIODevice::ReadOnly)) return result;
  for (const auto& entry : QJsonDocument::fromJson(list.readAll()).array()) {
    const auto object = entry.toObject();
    const auto name = object[QStringLiteral("file")].toString();
    const auto path = QDir(folder).filePath(name);
    if (!name.isEmpty() && QFile::exists(path))
      result.append({path, object[QStringLiteral("title")].toString(), object[QStringLiteral("text")].toString(),
                     object[QStringLiteral("panels")].toVariant().toStringList()});
  }
  return result;
}

QList<Sample> samples() { return samplesIn(QString::fromStdString(sharedFile("samples").string())); }

}  // namespace retrograd::views
