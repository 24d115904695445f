#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/zip/zip_directory.h"

namespace retrograd {

/// A zip archive whose members have all been verified by CRC. Stored members are regions of the mapped file, so that weights of
/// any size cost no memory; deflated ones are inflated on demand.
/// Names are seen without the one folder that PyTorch puts everything in ("model/data/weights/weight_0").
class Archive : public std::enable_shared_from_this<Archive> {
 public:
  /// Inflated members may take this much memory, all in all.
  static constexpr std::uint64_t maxInflated = 4ULL << 30;

  /// Maps and verifies. Throws Error(badInput) naming the file and the member, Error(cancelled).
  static std::shared_ptr<const Archive> open(const std::string& path, const Progress& progress = {});
  /// The same for bytes already in memory, such as an archive within an archive. `place` names them in errors.
  static std::shared_ptr<const Archive> open(ByteRegion bytes, const std::string& place, const Progress& progress = {});

  const std::string& place() const { return place_; }
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Null when there is no such member.
  const ZipEntry* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The content of a member; the region keeps the archive alive. Throws Error(badInput) where there is none of that name.
  ByteRegion read(std::string_view name) const;

 private:
  Archive() = default;
  void load(ByteRegion bytes, const Progress& progress);
  void stripRoot();
  void verify(const Progress& progress) const;
  void verifyStored(const ZipEntry& entry, const Progress& progress, std::uint64_t& done, std::uint64_t total) const;

  std::string place_;
  ByteRegion file_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, std::size_t> index_;
};

}  // namespace retrograd
