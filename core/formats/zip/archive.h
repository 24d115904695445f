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

class DeferredCheck;

/// A zip archive whose members are verified by CRC before they are used. Stored members are regions of the mapped file,
/// so that weights of any size cost no memory; deflated ones are inflated on demand. Names are seen without the one
/// folder that PyTorch puts everything in ("model/data/weights/weight_0").
class Archive : public std::enable_shared_from_this<Archive> {
 public:
  /// Inflated members may take this much memory, all in all.
  static constexpr std::uint64_t maxInflated = 4ULL << 30;

  /// When checksums are compared: of all members before open() returns; of large stored ones later, in the background,
  /// where there is more than `deferAbove` of them, and of each before its first use (deferred_check.h); or of a member
  /// when it is read, for who needs one or two.
  enum class Verify : std::uint8_t { first, weightsLater, onRead };
  static constexpr std::uint64_t deferAbove = 256ULL << 20, largeMember = 1ULL << 20;

  /// Maps and verifies. Throws Error(badInput) naming the file and the member, Error(cancelled).
  static std::shared_ptr<const Archive> open(const std::string& path, const Progress& progress = {},
                                             Verify verify = Verify::first);
  /// The same for bytes already in memory, such as an archive within an archive. `place` names them in errors.
  static std::shared_ptr<const Archive> open(ByteRegion bytes, const std::string& place, const Progress& progress = {},
                                             Verify verify = Verify::first);

  const std::string& place() const { return place_; }
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Null when there is no such member.
  const ZipEntry* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The content of a member, verified; the region keeps the archive alive. Throws Error(badInput) where there is none
  /// of that name, or it is damaged.
  ByteRegion read(std::string_view name) const;
  /// The same before it is verified: who uses the bytes asks requireVerified() first.
  ByteRegion readUnverified(std::string_view name) const;
  /// Null where nothing is left to compare.
  const std::shared_ptr<DeferredCheck>& deferred() const { return deferred_; }

 private:
  Archive() = default;
  void load(ByteRegion bytes, const Progress& progress, Verify verify);
  void stripRoot();
  void requireProportion() const;
  void defer();
  void verify(const Progress& progress) const;
  void verifyStored(const ZipEntry& entry, const Progress& progress, std::uint64_t& done, std::uint64_t total) const;

  std::string place_;
  ByteRegion file_;
  std::vector<bool> later_;  ///< by entry: not verified by open()
  std::shared_ptr<DeferredCheck> deferred_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, std::size_t> index_;
};

}  // namespace retrograd
