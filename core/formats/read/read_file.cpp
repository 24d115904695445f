#include "core/formats/read/read_file.h"

#include <chrono>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/kinds/file_kind.h"
#include "core/formats/pt2/pt2.h"
#include "core/formats/text/text_trace.h"

namespace retrograd {
namespace {

std::shared_ptr<const Archive> archiveIn(const ByteRegion& bytes, const std::string& path, const Progress& progress,
                                         Archive::Verify verify) {
  if (!looksLikeZip(bytes.span())) badInput(describeForeignFile(bytes), path);
  return Archive::open(bytes, path, progress, verify);
}

ModelFile readVerified(const ByteRegion& bytes, const std::string& path, const SymbolLookup& lookup,
                       const ArchiveReader& otherwise, const Progress& progress) {
  if (looksLikeTraces(bytes)) return readTextModel(bytes.text(), path, lookup, progress);
  const auto archive = archiveIn(bytes, path, progress, Archive::Verify::weightsLater);
  if (otherwise)
    if (auto file = otherwise(archive)) return std::move(*file);
  if (findModelRecord(*archive).empty()) badInput(describeForeignArchive(*archive), path);
  return readPt2(archive, lookup, progress);
}

}  // namespace

std::shared_ptr<const Archive> openModelArchive(const std::string& path, const Progress& progress,
                                                Archive::Verify verify) {
  return readingFile(path, [&] {
    const auto bytes = mapFile(path);
    const ReadingScope scope(bytes.size);
    return readUnchanged(bytes.data, [&] { return archiveIn(bytes, path, progress, verify); });
  });
}

ModelFile readModelFile(const std::string& path, const SymbolLookup& lookup, const Progress& progress,
                        const ArchiveReader& otherwise) {
  return readingFile(path, [&] {
    const auto start = std::chrono::steady_clock::now();
    const auto bytes = mapFile(path);
    const ReadingScope scope(bytes.size);
    auto file = readUnchanged(bytes.data, [&] { return readVerified(bytes, path, lookup, otherwise, progress); });
    file.identity = identityOf(bytes);
    file.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return file;
  });
}

}  // namespace retrograd
