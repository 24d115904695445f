#include "core/formats/zip/archive.h"

#include <zip.h>

#include <algorithm>
#include <memory_resource>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/deferred_check.h"

namespace retrograd {
namespace {

constexpr std::uint64_t chunk = 4ULL << 20;
/// Deflate cannot do better than 1032 to 1: a larger claim is a lie, meant to make us allocate.
constexpr std::uint64_t maxDeflateRatio = 1032;

/// libzip's view of an archive in memory; used for what is compressed.
class ZipHandle {
 public:
  explicit ZipHandle(const ByteRegion& bytes) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_buffer_create(bytes.data, bytes.size, 0, &error);
    if (source) handle_ = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (source && !handle_) zip_source_free(source);
    const std::string message = zip_error_strerror(&error);
    zip_error_fini(&error);
    if (!handle_) badInput("not a readable zip archive: " + message);
  }
  ~ZipHandle() { zip_discard(handle_); }
  ZipHandle(const ZipHandle&) = delete;
  ZipHandle& operator=(const ZipHandle&) = delete;
  zip_t* get() const { return handle_; }

 private:
  zip_t* handle_ = nullptr;
};

/// Hands the content of a member on piece by piece; libzip compares the CRC at its end.
template <class Take>
void inflate(const ZipHandle& zip, std::uint64_t index, const ZipEntry& entry, Take&& take) {
  zip_file_t* file = zip_fopen_index(zip.get(), index, 0);
  if (!file) badInput(std::string("cannot be read: ") + zip_strerror(zip.get()), entry.name);
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> closer(file, zip_fclose);
  std::vector<std::byte> buffer(std::min<std::uint64_t>(chunk, entry.size + 1));
  std::uint64_t got = 0;
  for (;;) {
    const auto n = zip_fread(file, buffer.data(), buffer.size());
    if (n < 0) badInput(std::string("is damaged: ") + zip_file_strerror(file), entry.name);
    if (n == 0) break;
    got += static_cast<std::uint64_t>(n);
    if (got > entry.size) badInput("is damaged: longer than it says", entry.name);
    take(std::span<const std::byte>(buffer.data(), n));
  }
  if (got != entry.size) badInput("is damaged: shorter than it says", entry.name);
}

/// Bytes that were inflated, counted for the file that is read.
struct CountedContent {
  CountedMemory memory;
  std::pmr::vector<std::byte> bytes{&memory};
};

[[noreturn]] void failDamaged(const ZipEntry& entry) {
  badInput("is damaged: its checksum (CRC) does not agree", entry.name);
}

void requireWhole(const ZipHandle& zip, std::uint64_t index, const ZipEntry& entry) {
  std::uint32_t crc = 0;
  inflate(zip, index, entry, [&](std::span<const std::byte> piece) { crc = crc32Of(crc, piece); });
  if (crc != entry.crc) failDamaged(entry);
}

}  // namespace

std::shared_ptr<const Archive> Archive::open(const std::string& path, const Progress& progress, Verify verify) {
  return open(mapFile(path), path, progress, verify);
}

std::shared_ptr<const Archive> Archive::open(ByteRegion bytes, const std::string& place, const Progress& progress,
                                             Verify verify) {
  std::shared_ptr<Archive> archive(new Archive);
  archive->place_ = place;
  try {
    archive->load(std::move(bytes), progress, verify);
  } catch (const Error& e) {
    throw e.at(place);
  }
  return archive;
}

void Archive::load(ByteRegion bytes, const Progress& progress, Verify verifyWhen) {
  file_ = std::move(bytes);
  entries_ = readZipDirectory(file_.span());
  later_.assign(entries_.size(), verifyWhen == Verify::onRead);
  requireProportion();
  stripRoot();
  for (std::size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].name, i);
  if (verifyWhen == Verify::weightsLater) defer();
  verify(progress);
}

/// Leaves large weights to a check that runs while the program goes on, where there is enough of them to wait for.
void Archive::defer() {
  std::vector<CheckedRegion> regions;
  std::uint64_t bytes = 0;
  for (const auto& entry : entries_) {
    const bool isWeight = entry.name.starts_with("data/weights/") || entry.name.starts_with("data/constants/");
    if (entry.method != 0 || entry.size < largeMember || !isWeight) continue;
    regions.push_back({entry.name, entry.dataOffset, entry.size, entry.crc});
    bytes += entry.size;
  }
  if (bytes <= deferAbove) return;
  for (const auto& region : regions) later_[index_.at(region.name)] = true;
  deferred_ = std::make_shared<DeferredCheck>(file_, place_, std::move(regions));
}

void Archive::stripRoot() {
  if (entries_.empty()) return;
  const auto slash = entries_.front().name.find('/');
  if (slash == std::string::npos) return;
  const std::string root = entries_.front().name.substr(0, slash + 1);
  const bool common =
      std::all_of(entries_.begin(), entries_.end(), [&](const ZipEntry& e) { return e.name.starts_with(root); });
  if (!common) return;
  // An archive that some other tool packed without the folder may hold a graph and nothing else.
  const auto isNested = [&](const ZipEntry& e) { return e.name.starts_with("models/models/"); };
  if (root == "models/" && std::none_of(entries_.begin(), entries_.end(), isNested)) return;
  for (auto& entry : entries_) entry.name.erase(0, root.size());
}

/// Refuses what would inflate to more than a file of this size has a right to.
void Archive::requireProportion() const {
  std::uint64_t inflated = 0;
  for (const auto& entry : entries_) {
    if (entry.method == 0) continue;
    if (entry.size / maxDeflateRatio > entry.compressedSize) badInput("claims an impossible size", entry.name);
    inflated += entry.size;
  }
  const auto proportionate = MemoryAccount(file_.size).limit();
  if (inflated > proportionate)
    badInput("its compressed records would take " + std::to_string(inflated >> 20) + " MiB, out of proportion to its " +
             std::to_string(file_.size >> 10) + " KiB (" + std::to_string(proportionate >> 20) + " MiB at most)");
  if (inflated > maxInflated)
    badInput(
        "holds more compressed content than fits in memory; write the archive with torch.export.save, which "
        "compresses nothing");
}

void Archive::verify(const Progress& progress) const {
  std::uint64_t total = 1, done = 0;
  bool anyDeflated = false;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!later_[i]) total += entries_[i].compressedSize;
    anyDeflated |= entries_[i].method != 0;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].method == 0 && !later_[i]) verifyStored(entries_[i], progress, done, total);
  if (!anyDeflated) return;
  const ZipHandle zip(file_);
  if (static_cast<std::uint64_t>(zip_get_num_entries(zip.get(), 0)) != entries_.size())
    badInput("the zip archive is damaged: its directory can be read in two ways");
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].method == 0 || later_[i]) continue;
    progress.at("Verify", static_cast<double>(done) / static_cast<double>(total));
    requireWhole(zip, i, entries_[i]);
    done += entries_[i].compressedSize;
  }
}

void Archive::verifyStored(const ZipEntry& entry, const Progress& progress, std::uint64_t& done,
                           std::uint64_t total) const {
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < entry.size; at += chunk) {
    progress.at("Verify", static_cast<double>(done) / static_cast<double>(total));
    const std::size_t n = std::min(chunk, entry.size - at);
    crc = crc32Of(crc, file_.span().subspan(entry.dataOffset + at, n));
    if (entry.size > chunk) releasePages(file_, entry.dataOffset + at, n);  // or 26 GB of weights would count as ours
    done += n;
  }
  if (crc != entry.crc) failDamaged(entry);
}

const ZipEntry* Archive::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

ByteRegion Archive::read(std::string_view name) const {
  const ZipEntry* entry = find(name);
  if (entry && later_[entry - entries_.data()]) {
    if (deferred_) deferred_->require(file_.data + entry->dataOffset);
    else if (entry->method != 0)
      requireWhole(ZipHandle(file_), static_cast<std::uint64_t>(entry - entries_.data()), *entry);
    else {
      std::uint64_t done = 0;
      verifyStored(*entry, {}, done, entry->size + 1);
    }
  }
  return readUnverified(name);
}

ByteRegion Archive::readUnverified(std::string_view name) const {
  const ZipEntry* entry = find(name);
  if (!entry) badInput("the archive lacks this record", place_ + ": " + std::string(name));
  if (entry->method == 0)
    return {file_.data + entry->dataOffset, static_cast<std::size_t>(entry->size), shared_from_this()};
  auto content = std::make_shared<CountedContent>();
  content->bytes.reserve(entry->size);
  const ZipHandle zip(file_);
  inflate(zip, static_cast<std::uint64_t>(entry - entries_.data()), *entry, [&](std::span<const std::byte> piece) {
    content->bytes.insert(content->bytes.end(), piece.begin(), piece.end());
  });
  const auto* data = content->bytes.data();
  const auto size = content->bytes.size();
  return {data, size, std::move(content)};
}

}  // namespace retrograd
