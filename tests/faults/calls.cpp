// The calls that are counted and may fail, instead of libc's.
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <pthread.h>

#include "faults.h"

using namespace faults;

// glibc's own allocator, under names that nobody replaces.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

constexpr size_t largeBytes = 64 << 10;

void* allocated(size_t size, void* (*allocate)(size_t, size_t), size_t argument) {
  if (fails(size >= largeBytes ? kLarge : kSmall, "allocation", "", static_cast<long long>(size))) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate(argument, size);
}

}  // namespace

// Reading.
EXPORTED ssize_t read(int handle, void* to, size_t size) {
  REAL(read);
  const bool failed = failsAt(kRead, "read", handle, size);
  return goesOn(failed) ? after(failed, real(handle, to, halved(failed, size))) : -1;
}
EXPORTED ssize_t pread(int handle, void* to, size_t size, off_t at) {
  REAL(pread);
  const bool failed = failsAt(kRead, "pread", handle, size);
  return goesOn(failed) ? after(failed, real(handle, to, halved(failed, size), at)) : -1;
}
EXPORTED ssize_t pread64(int handle, void* to, size_t size, off64_t at) { return pread(handle, to, size, at); }
EXPORTED ssize_t __read_chk(int handle, void* to, size_t size, size_t) { return read(handle, to, size); }
EXPORTED ssize_t __pread_chk(int handle, void* to, size_t size, off_t at, size_t) {
  return pread(handle, to, size, at);
}
EXPORTED ssize_t __pread64_chk(int handle, void* to, size_t size, off64_t at, size_t) {
  return pread(handle, to, size, at);
}
EXPORTED ssize_t readv(int handle, const iovec* parts, int count) {
  REAL(readv);
  const bool failed = failsAt(kRead, "readv", handle, 0);
  return goesOn(failed) ? after(failed, real(handle, parts, failed && plan.isShort ? 1 : count)) : -1;
}

// Writing.
EXPORTED ssize_t write(int handle, const void* from, size_t size) {
  REAL(write);
  const bool failed = failsAt(kWrite, "write", handle, size);
  return goesOn(failed) ? after(failed, real(handle, from, halved(failed, size))) : -1;
}
EXPORTED ssize_t pwrite(int handle, const void* from, size_t size, off_t at) {
  REAL(pwrite);
  const bool failed = failsAt(kWrite, "pwrite", handle, size);
  return goesOn(failed) ? after(failed, real(handle, from, halved(failed, size), at)) : -1;
}
EXPORTED ssize_t pwrite64(int handle, const void* from, size_t size, off64_t at) {
  return pwrite(handle, from, size, at);
}
EXPORTED ssize_t writev(int handle, const iovec* parts, int count) {
  REAL(writev);
  const bool failed = failsAt(kWrite, "writev", handle, 0);
  return goesOn(failed) ? after(failed, real(handle, parts, failed && plan.isShort ? 1 : count)) : -1;
}
EXPORTED int fsync(int handle) {
  REAL(fsync);
  const bool failed = fails(kSync, "fsync");
  return goesOn(failed) ? after(failed, real(handle)) : -1;
}
EXPORTED int fdatasync(int handle) {
  REAL(fdatasync);
  const bool failed = fails(kSync, "fdatasync");
  return goesOn(failed) ? after(failed, real(handle)) : -1;
}
EXPORTED int ftruncate(int handle, off_t size) noexcept {
  REAL(ftruncate);
  const bool failed = fails(kTruncate, "ftruncate", "", size);
  return goesOn(failed) ? after(failed, real(handle, size)) : -1;
}
EXPORTED int ftruncate64(int handle, off64_t size) noexcept { return ftruncate(handle, size); }
EXPORTED int posix_fallocate(int handle, off_t at, off_t size) {
  REAL(posix_fallocate);
  const bool failed = fails(kTruncate, "posix_fallocate", "", size);
  return goesOn(failed) ? after(failed, real(handle, at, size)) : plan.error;
}
EXPORTED int close(int handle) {
  REAL(close);
  const bool failed = failsAt(kClose, "close", handle, 0);
  const int result = real(handle);  // a close that fails has closed
  if (failed && !goesOn(failed)) errno = plan.error;
  return goesOn(failed) ? after(failed, result) : -1;
}

// Names.
EXPORTED int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  const bool failed = fails(kRename, "rename", to);
  return goesOn(failed) ? after(failed, real(from, to)) : -1;
}
EXPORTED int renameat(int a, const char* from, int b, const char* to) noexcept {
  REAL(renameat);
  const bool failed = fails(kRename, "renameat", to);
  return goesOn(failed) ? after(failed, real(a, from, b, to)) : -1;
}
EXPORTED int renameat2(int a, const char* from, int b, const char* to, unsigned flags) noexcept {
  REAL(renameat2);
  const bool failed = fails(kRename, "renameat2", to);
  return goesOn(failed) ? after(failed, real(a, from, b, to, flags)) : -1;
}
EXPORTED int link(const char* from, const char* to) noexcept {
  REAL(link);
  const bool failed = fails(kRename, "link", to);
  return goesOn(failed) ? after(failed, real(from, to)) : -1;
}
EXPORTED int linkat(int a, const char* from, int b, const char* to, int flags) noexcept {
  REAL(linkat);
  const bool failed = fails(kRename, "linkat", to);
  return goesOn(failed) ? after(failed, real(a, from, b, to, flags)) : -1;
}

// Opening.
#define MODE                           \
  mode_t mode = 0;                     \
  if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list list;                      \
    va_start(list, flags);             \
    mode = va_arg(list, mode_t);       \
    va_end(list);                      \
  }
EXPORTED int openat(int folder, const char* path, int flags, ...) {
  REAL(openat);
  MODE const bool failed = isOurs(path) && fails(kOpen, "openat", path);
  return goesOn(failed) ? after(failed, real(folder, path, flags, mode)) : -1;
}
EXPORTED int open(const char* path, int flags, ...) {
  REAL(open);
  MODE const bool failed = isOurs(path) && fails(kOpen, "open", path);
  return goesOn(failed) ? after(failed, real(path, flags, mode)) : -1;
}
EXPORTED int open64(const char* path, int flags, ...) { MODE return open(path, flags, mode); }
EXPORTED int openat64(int folder, const char* path, int flags, ...) { MODE return openat(folder, path, flags, mode); }
EXPORTED int __open_2(const char* path, int flags) { return open(path, flags); }
EXPORTED int __open64_2(const char* path, int flags) { return open(path, flags); }
EXPORTED int mkostemp(char* path, int flags) {
  REAL(mkostemp);
  const bool failed = fails(kOpen, "mkostemp", path);
  return goesOn(failed) ? after(failed, real(path, flags)) : -1;
}
EXPORTED int mkostemp64(char* path, int flags) { return mkostemp(path, flags); }
EXPORTED int mkstemp(char* path) { return mkostemp(path, 0); }
EXPORTED int mkstemp64(char* path) { return mkostemp(path, 0); }
EXPORTED FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  const bool failed = isOurs(path) && fails(kOpen, "fopen", path);
  return goesOn(failed) ? after(failed, real(path, mode)) : nullptr;
}
EXPORTED FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

// Memory.
EXPORTED void* mmap(void* address, size_t size, int protection, int flags, int handle, off_t at) noexcept {
  REAL(mmap);
  const bool failed = fails(kMmap, "mmap", flags & MAP_ANONYMOUS ? "memory" : "file", static_cast<long long>(size));
  return goesOn(failed) ? after(failed, real(address, size, protection, flags, handle, at)) : MAP_FAILED;
}
EXPORTED void* mmap64(void* address, size_t size, int protection, int flags, int handle, off64_t at) noexcept {
  return mmap(address, size, protection, flags, handle, at);
}
EXPORTED void* malloc(size_t size) {
  return allocated(size, [](size_t, size_t n) { return __libc_malloc(n); }, 0);
}
EXPORTED void* calloc(size_t count, size_t size) {
  size_t whole = 0;
  if (__builtin_mul_overflow(count, size, &whole)) return errno = ENOMEM, nullptr;
  return allocated(whole, [](size_t, size_t n) { return __libc_calloc(1, n); }, 0);
}
EXPORTED void* realloc(void* before, size_t size) {
  if (size && fails(size >= largeBytes ? kLarge : kSmall, "realloc", "", static_cast<long long>(size)))
    return errno = ENOMEM, nullptr;
  return __libc_realloc(before, size);
}
EXPORTED void* memalign(size_t alignment, size_t size) { return allocated(size, __libc_memalign, alignment); }
EXPORTED void* aligned_alloc(size_t alignment, size_t size) { return allocated(size, __libc_memalign, alignment); }
EXPORTED int posix_memalign(void** result, size_t alignment, size_t size) {
  void* made = allocated(size, __libc_memalign, alignment);
  if (!made) return ENOMEM;
  *result = made;
  return 0;
}

// Processes and threads.
EXPORTED pid_t fork() noexcept {
  REAL(fork);
  const bool failed = fails(kSpawn, "fork");
  return goesOn(failed) ? after(failed, real()) : -1;
}
EXPORTED int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                         const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  REAL(posix_spawn);
  const bool failed = fails(kSpawn, "posix_spawn", path);
  return goesOn(failed) ? after(failed, real(process, path, actions, attributes, arguments, environment)) : plan.error;
}
EXPORTED int posix_spawnp(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                          const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  REAL(posix_spawnp);
  const bool failed = fails(kSpawn, "posix_spawnp", path);
  return goesOn(failed) ? after(failed, real(process, path, actions, attributes, arguments, environment)) : plan.error;
}
EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  REAL(pthread_create);
  const bool failed = fails(kThread, "pthread_create");
  return goesOn(failed) ? after(failed, real(thread, attributes, body, argument)) : EAGAIN;
}
