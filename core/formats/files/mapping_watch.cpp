#include "core/formats/files/mapping_watch.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "core/base/error.h"

namespace retrograd {

/// One mapping. Slots are never freed, only used again, because the handler walks them without a lock.
struct MappingWatch::Slot {
  std::atomic<std::uintptr_t> begin{0}, end{0};  ///< both 0: free
  std::atomic<bool> broken{false};
  Slot* next = nullptr;
  int fd = -1;  ///< from here on: under the table's lock
  std::string path;
  struct stat then{};
};

struct WatchTable {
  using Slot = MappingWatch::Slot;
  std::mutex lock;
  std::atomic<Slot*> first{nullptr};
  std::atomic<int> breaks{0};  ///< mappings that ever broke
  std::string
      ended;  ///< under the lock: of a mapping that is gone and whose file was not the same to the end, its path
  struct sigaction before{};

  Slot* take() {
    for (auto* slot = first.load(); slot; slot = slot->next)
      if (slot->end == 0) return slot;
    auto* slot = new Slot;
    slot->next = first.load();
    first.store(slot, std::memory_order_release);
    return slot;
  }
  Slot* at(std::uintptr_t place) {
    for (auto* slot = first.load(std::memory_order_acquire); slot; slot = slot->next)
      if (place >= slot->begin && place < slot->end) return slot;
    return nullptr;
  }
};

namespace {

/// Never destroyed: mappings may outlive static objects.
WatchTable& table() {
  static auto* one = new WatchTable;
  return *one;
}
WatchTable* handlers = nullptr;  // the same, for the signal handler
std::uintptr_t pageSize = 4096;

std::uintptr_t numberOf(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// Calls only what is safe in a signal handler: mmap() is a plain system call here.
void onBusError(int signal, siginfo_t* info, void* context) {
  const int kept = errno;
  if (auto* slot = handlers->at(numberOf(info->si_addr))) {
    const auto from = numberOf(info->si_addr) / pageSize * pageSize;
    // To the end, not one page: a file cut short would raise a signal for each page of it, and nothing of it is used
    // any more.
    const void* zeros = ::mmap(reinterpret_cast<void*>(from), slot->end - from, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros != MAP_FAILED) {
      if (!slot->broken.exchange(true)) handlers->breaks.fetch_add(1);
      errno = kept;
      return;
    }
  }
  const auto& before = handlers->before;
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  ::signal(signal, SIG_DFL);  // the same instruction raises it again
}

void installHandler() {
  static const bool done = [] {
    handlers = &table();
    pageSize = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action{};
    action.sa_sigaction = onBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &handlers->before);
    return true;
  }();
  static_cast<void>(done);
}

bool sameTime(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

enum class Difference : std::uint8_t { none, lost, changed };

/// Whether the file behind the slot still is what it was. Under the lock.
Difference difference(const WatchTable::Slot& slot) {
  if (slot.broken) return Difference::lost;
  struct stat now{};
  if (::fstat(slot.fd, &now) != 0) return Difference::none;
  if (now.st_size < slot.then.st_size) return Difference::lost;
  return now.st_size != slot.then.st_size || !sameTime(now.st_mtim, slot.then.st_mtim) ? Difference::changed
                                                                                       : Difference::none;
}

[[noreturn]] void fail(const std::string& path, Difference difference) {
  const std::string what = difference == Difference::lost
                               ? "the file lost content while it was open; what was read of it since is not used"
                               : "the file changed while it was open";
  badInput(what + "; open it again to go on with what it holds now", path);
}

void requireSame(const WatchTable::Slot& slot) {
  if (const auto found = difference(slot); found != Difference::none) fail(slot.path, found);
}

}  // namespace

MappingWatch::MappingWatch(const void* address, std::size_t size, int fd, std::string path) {
  installHandler();
  auto& all = table();
  const std::lock_guard guard(all.lock);
  slot_ = all.take();
  slot_->fd = fd;
  slot_->path = std::move(path);
  ::fstat(fd, &slot_->then);
  slot_->broken = false;
  slot_->begin = numberOf(address);
  slot_->end = numberOf(address) + size;
}

MappingWatch::~MappingWatch() {
  auto& all = table();
  const std::lock_guard guard(all.lock);
  if (difference(*slot_) != Difference::none) all.ended = slot_->path;
  slot_->end = 0;
  slot_->begin = 0;
  ::close(slot_->fd);
}

bool isMapped(dev_t device, ino_t inode) {
  auto& all = table();
  const std::lock_guard guard(all.lock);
  for (auto* slot = all.first.load(); slot; slot = slot->next)
    if (slot->end != 0 && slot->then.st_dev == device && slot->then.st_ino == inode) return true;
  return false;
}

void requireUnchanged(const void* data) {
  auto& all = table();
  const std::lock_guard guard(all.lock);
  if (const auto* slot = all.at(numberOf(data))) requireSame(*slot);
}

void requireAllUnchanged() {
  auto& all = table();
  const std::lock_guard guard(all.lock);
  if (!all.ended.empty()) fail(all.ended, Difference::changed);
  for (auto* slot = all.first.load(); slot; slot = slot->next)
    if (slot->end != 0) requireSame(*slot);
}

void FilesInUse::add(const void* data) {
  auto& all = table();
  const std::lock_guard guard(all.lock);
  const auto* slot = all.at(numberOf(data));
  if (!slot) return;
  const auto* place = reinterpret_cast<const void*>(slot->begin.load());
  if (std::find(places_.begin(), places_.end(), place) == places_.end()) places_.push_back(place);
}

void FilesInUse::requireWhole() const {
  auto& all = table();
  if (all.breaks == 0) return;
  const std::lock_guard guard(all.lock);
  for (const auto* place : places_)
    if (const auto* slot = all.at(numberOf(place)); slot && slot->broken) fail(slot->path, Difference::lost);
}

void FilesInUse::requireUnchanged() const {
  for (const auto* place : places_) retrograd::requireUnchanged(place);
}

}  // namespace retrograd
