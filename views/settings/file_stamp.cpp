#include "views/settings/file_stamp.h"

#include <sys/stat.h>
#include <QFile>

namespace retrograd::views {

FileStamp stampOf(const QString& path) {
  struct stat status{};
  if (path.isEmpty() || stat(QFile::encodeName(path).constData(), &status) != 0) return {};
  return {true,
          static_cast<quint64>(status.st_dev),
          static_cast<quint64>(status.st_ino),
          static_cast<qint64>(status.st_size),
          static_cast<qint64>(status.st_mtim.tv_sec),
          static_cast<qint64>(status.st_mtim.tv_nsec)};
}

}  // namespace retrograd::views
