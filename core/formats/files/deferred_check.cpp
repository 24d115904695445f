#include "core/formats/files/deferred_check.h"

#include <libdeflate.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/formats/files/mapping_watch.h"

namespace retrograd {
namespace {

constexpr std::uint64_t chunk = 4ULL << 20;

/// All checks that are not through, and what they have found. Never destroyed: checks may outlive static objects.
struct Checks {
  std::mutex lock;
  std::vector<DeferredCheck*> all;
  std::vector<std::string> damaged;
  std::atomic<int> unsettled{0};  ///< checks of files that are not known to be whole
};

Checks& checks() {
  static auto* one = new Checks;
  return *one;
}

thread_local int later = 0;

constexpr const char* damageText = "is damaged: its checksum (CRC) does not agree";

}  // namespace

std::uint32_t crc32Of(std::uint32_t crc, std::span<const std::byte> bytes) {
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

DeferredCheck::DeferredCheck(ByteRegion file, std::string place, std::vector<CheckedRegion> regions)
    : file_(std::move(file)),
      place_(std::move(place)),
      regions_(std::move(regions)),
      states_(regions_.size(), State::open) {
  std::sort(regions_.begin(), regions_.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  for (const auto& region : regions_) total_ += region.size;
  {
    auto& known = checks();
    const std::lock_guard guard(known.lock);
    known.all.push_back(this);
    ++known.unsettled;
  }
  thread_ = std::jthread([this](const std::stop_token& stop) {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);  // of this thread alone
    runAll(stop);
  });
}

DeferredCheck::~DeferredCheck() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  auto& known = checks();
  const std::lock_guard guard(known.lock);
  std::erase(known.all, this);
  if (checked_ < total_ || damage()) --known.unsettled;
}

void DeferredCheck::runAll(const std::stop_token& stop) {
  for (std::size_t i = 0; i < regions_.size() && !stop.stop_requested(); ++i) check(i, stop);
  if (checked_ < total_ || damage()) return;
  auto& known = checks();
  const std::lock_guard guard(known.lock);
  --known.unsettled;
}

/// Compares a region unless that was done or is being done, which is waited for.
DeferredCheck::State DeferredCheck::check(std::size_t index, const std::stop_token& stop) {
  const auto& region = regions_[index];
  {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [&] { return states_[index] != State::running; });
    if (states_[index] != State::open) return states_[index];
    states_[index] = State::running;
  }
  std::uint32_t crc = 0;
  bool stopped = false;
  for (std::uint64_t at = 0; at < region.size && !stopped; at += chunk) {
    const auto n = static_cast<std::size_t>(std::min(chunk, region.size - at));
    crc = crc32Of(crc, file_.span().subspan(region.offset + at, n));
    releasePages(file_, region.offset + at, n);  // or 26 GB of weights would count as ours
    checked_ += n;
    stopped = stop.stop_requested();
    if (stopped) checked_ -= at + n;
  }
  const auto found = stopped ? State::open : crc == region.crc ? State::whole : State::damaged;
  if (found == State::damaged) {
    auto& known = checks();
    const std::lock_guard guard(known.lock);
    known.damaged.push_back(place_ + ": " + region.name + ": " + damageText);
  }
  {
    const std::lock_guard guard(lock_);
    states_[index] = found;
  }
  changed_.notify_all();
  return found;
}

void DeferredCheck::fail(const CheckedRegion& region) const {
  requireUnchanged(file_.data);  // a file that changed meanwhile is the better reason
  throw Error(ErrorCode::badInput, damageText, region.name).at(place_);
}

void DeferredCheck::require(const std::byte* data) {
  if (data < file_.data || data >= file_.data + file_.size) return;
  const auto offset = static_cast<std::uint64_t>(data - file_.data);
  auto next = std::upper_bound(regions_.begin(), regions_.end(), offset,
                               [](std::uint64_t o, const CheckedRegion& r) { return o < r.offset; });
  if (next == regions_.begin()) return;
  const auto index = static_cast<std::size_t>(next - regions_.begin()) - 1;
  const auto& region = regions_[index];
  if (offset < region.offset + region.size && check(index, {}) == State::damaged) fail(region);
}

void DeferredCheck::wait() {
  for (std::size_t i = 0; i < regions_.size(); ++i)
    if (check(i, {}) == State::damaged) fail(regions_[i]);
}

std::optional<std::string> DeferredCheck::damage() const {
  const std::lock_guard guard(lock_);
  const auto bad = std::find(states_.begin(), states_.end(), State::damaged);
  return bad == states_.end() ? std::nullopt : std::optional(regions_[bad - states_.begin()].name + ": " + damageText);
}

bool anyUnverified() { return checks().unsettled.load(std::memory_order_relaxed) != 0; }

void requireVerified(const void* data) {
  if (!anyUnverified()) return;
  auto& known = checks();
  DeferredCheck* found = nullptr;
  {
    const std::lock_guard guard(known.lock);
    for (auto* check : known.all)
      if (check->holds(data)) found = check;
  }
  // Whoever uses the bytes keeps the archive alive, and with it the check.
  if (found) found->require(static_cast<const std::byte*>(data));
}

VerifyLater::VerifyLater() { ++later; }
VerifyLater::~VerifyLater() { --later; }
void requireVerifiedUnlessLater(const void* data) {
  if (later == 0) requireVerified(data);
}

VerificationStatus verificationStatus() {
  auto& known = checks();
  const std::lock_guard guard(known.lock);
  VerificationStatus status;
  status.damaged = known.damaged;
  for (const auto* check : known.all) {
    status.bytes += check->bytes();
    status.checked += check->checkedBytes();
    if (check->checkedBytes() < check->bytes()) status.files.push_back(check->place());
  }
  return status;
}

void requireNoDamage() {
  auto& known = checks();
  const std::lock_guard guard(known.lock);
  if (!known.damaged.empty()) badInput(known.damaged.front());
}

}  // namespace retrograd
