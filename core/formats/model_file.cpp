#include "core/formats/model_file.h"

#include <new>

#include "core/base/error.h"
#include "core/formats/file_kind.h"
#include "core/formats/pt2.h"

namespace retrograd {
namespace {

template <class Read>
auto withinMemory(const std::string& path, Read&& read) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::badInput, "does not fit into memory", path);
  }
}

}  // namespace

std::shared_ptr<const Archive> openModelArchive(const std::string& path, const Progress& progress) {
  return withinMemory(path, [&] {
    const ByteRegion bytes = mapFile(path);
    if (!looksLikeZip(bytes.span())) throw Error(ErrorCode::badInput, describeForeignFile(bytes), path);
    return Archive::open(bytes, path, progress);
  });
}

ModelFile readModelFile(const std::shared_ptr<const Archive>& archive, const SymbolLookup& lookup, const Progress& progress) {
  const auto& path = archive->place();
  if (findModelRecord(*archive).empty()) throw Error(ErrorCode::badInput, describeForeignArchive(*archive), path);
  return withinMemory(path, [&] {
    try {
      return readPt2(archive, lookup, progress);
    } catch (const Error& e) {
      throw e.code() == ErrorCode::cancelled || e.place().starts_with(path) ? e : e.at(path);
    }
  });
}

ModelFile readModelFile(const std::string& path, const SymbolLookup& lookup, const Progress& progress) {
  return readModelFile(openModelArchive(path, progress), lookup, progress);
}

}  // namespace retrograd
