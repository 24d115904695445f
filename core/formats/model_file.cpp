#include "core/formats/model_file.h"

#include <chrono>
#include <new>

#include "core/base/error.h"
#include "core/formats/file_kind.h"
#include "core/formats/pt2.h"
#include "core/formats/text_trace.h"

namespace retrograd {
namespace {

ModelFile readVerified(const ByteRegion& bytes, const std::string& path, const SymbolLookup& lookup, const Progress& progress) {
  if (looksLikeTraces(bytes)) return readTextModel(bytes.text(), path, lookup, progress);
  if (!looksLikeZip(bytes.span())) throw Error(ErrorCode::badInput, describeForeignFile(bytes), path);
  const auto archive = Archive::open(bytes, path, progress);
  if (findModelRecord(*archive).empty()) throw Error(ErrorCode::badInput, describeForeignArchive(*archive), path);
  try {
    return readPt2(archive, lookup, progress);
  } catch (const Error& e) {
    throw e.code() == ErrorCode::cancelled || e.place().starts_with(path) ? e : e.at(path);
  }
}

}  // namespace

ModelFile readModelFile(const std::string& path, const SymbolLookup& lookup, const Progress& progress) {
  try {
    const auto start = std::chrono::steady_clock::now();
    const auto bytes = mapFile(path);
    auto file = readVerified(bytes, path, lookup, progress);
    file.identity = identityOf(bytes);
    file.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return file;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::badInput, "does not fit into memory", path);
  }
}

}  // namespace retrograd
