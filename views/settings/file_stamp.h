#pragma once
#include <QString>

namespace retrograd::views {

/// What the system says of a file's contents without reading them. Two that are equal are of the same contents, but for
/// a writer that covers its tracks.
struct FileStamp {
  bool exists = false;
  quint64 device = 0, inode = 0;  ///< a file that another one took the place of is another inode; who has it open goes
                                  ///< on with the old contents
  qint64 size = 0;
  qint64 seconds = 0, nanoseconds = 0;  ///< of the last change of the contents
  bool operator==(const FileStamp&) const = default;
};

FileStamp stampOf(const QString& path);

}  // namespace retrograd::views
