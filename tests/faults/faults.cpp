// A library to preload: lets the n-th call of a kind fail, and starts runs of a program without loading it again.
//
// RETROGRAD_FAULTS=KIND:N[+]:WHAT[:WHO] lets the N-th call of a kind fail (with `+` those after it too). WHAT is the
// name of an errno; EINTR once and SHORT (half of what was asked for) are not failures, and a program goes on after
// them; KILL and KILLED end the process before and after the call. WHO is a part of the command line, behind `rank N `
// in ranks: other processes only count. RETROGRAD_FAULTS_LOG is a folder: each process keeps its counts, where the
// fault came and what ended it in a file there, named by its id (see Log; program.py reads it). RETROGRAD_FAULTS_SERVER
// is a socket: before main() the process waits there for runs, and forks for each, so that loading and initializing
// LibTorch is paid once. Calls before main() neither count nor fail.
//
// Only what the program or a library calls through the dynamic linker is seen: libc's calls of its own are not.
// Standard output is therefore replaced by a stream that calls our write().
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "faults.h"

namespace faults {
namespace {

constexpr const char* kindNames[kinds] = {"read", "write", "sync",   "rename", "mmap",  "truncate",
                                          "open", "spawn", "thread", "close",  "large", "small"};

/// What the driver reads; laid out as program.py unpacks it.
struct Log {
  std::atomic<uint64_t> counts[kinds];
  std::atomic<uint64_t> fired;
  std::atomic<uint64_t> signal;
  char command[256];
  char call[256];    ///< the call that failed
  char where[6144];  ///< the stack there: a line a frame, "library+offset symbol"
  char end[6144];    ///< the stack where a signal ended the process
};

Log unwatched;
Log* entries = &unwatched;
std::atomic<bool> active{false};
__attribute__((tls_model("initial-exec"))) thread_local bool inside = false;

void writeStack(char* to, size_t size) {
  void* frames[48];
  const int count = backtrace(frames, 48);
  size_t used = 0;
  for (int i = 2; i < count && used + 200 < size; ++i) {
    Dl_info info{};
    if (!dladdr(frames[i], &info) || !info.dli_fname) continue;
    const char* slash = strrchr(info.dli_fname, '/');
    const int n = snprintf(to + used, size - used, "%.40s+%#zx %.120s\n", slash ? slash + 1 : info.dli_fname,
                           static_cast<size_t>(static_cast<char*>(frames[i]) - static_cast<char*>(info.dli_fbase)),
                           info.dli_sname ? info.dli_sname : "");
    if (n > 0) used += static_cast<size_t>(n);
  }
}

}  // namespace

Plan plan;

Guard::Guard() : before(inside) { inside = true; }
Guard::~Guard() { inside = before; }

void endProcess() { syscall(SYS_kill, getpid(), SIGKILL); }

bool fails(Kind kind, const char* call, const char* about, long long amount) {
  if (!active.load(std::memory_order_relaxed) || inside) return false;
  const auto n = entries->counts[kind].fetch_add(1) + 1;
  if (plan.kind != kind || n < plan.first || (!plan.on && n != plan.first)) return false;
  const Guard guard;
  if (entries->fired.fetch_add(1) == 0) {
    snprintf(entries->call, sizeof entries->call, "%s %.180s %lld", call, about, amount);
    writeStack(entries->where, sizeof entries->where);
  }
  if (plan.kills && !plan.killsAfter) endProcess();
  errno = plan.error;
  return true;
}

bool isOurs(const char* path) {
  if (!path) return false;
  for (const char* system : {"/proc", "/sys/", "/dev/", "/etc/", "/usr/", "/lib"})
    if (strncmp(path, system, strlen(system)) == 0) return false;
  return strstr(path, ".so") == nullptr;
}

namespace {

/// The path of a file that the program reads or writes, into `path`; false for what is none: sockets, devices,
/// libraries.
bool pathOf(int handle, char (&path)[256], bool pipesToo) {
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
  const auto n = syscall(SYS_readlink, link, path, sizeof path - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  if (strncmp(path, "pipe:", 5) == 0) return pipesToo;
  return path[0] == '/' && isOurs(path);
}

}  // namespace

bool failsAt(Kind kind, const char* call, int handle, size_t size) {
  if (!active.load(std::memory_order_relaxed) || inside) return false;
  char path[256];
  return handle != 2 && pathOf(handle, path, true) && fails(kind, call, path, static_cast<long long>(size));
}

namespace {

int errorNamed(const char* name) {
  struct {
    const char* name;
    int number;
  } const known[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"ENOMEM", ENOMEM}, {"EINTR", EINTR}, {"EMFILE", EMFILE},
                     {"EAGAIN", EAGAIN}, {"EACCES", EACCES}, {"EROFS", EROFS},   {"EPIPE", EPIPE}};
  for (const auto& one : known)
    if (strcmp(one.name, name) == 0) return one.number;
  return EIO;
}

void commandLine(char (&text)[256]) {
  char raw[256] = {};
  const int handle = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY));
  const auto n = handle < 0 ? 0 : syscall(SYS_read, handle, raw, sizeof raw - 16);
  if (handle >= 0) syscall(SYS_close, handle);
  for (long i = 0; i + 1 < n; ++i)
    if (!raw[i]) raw[i] = ' ';
  const char* rank = getenv("RANK");
  snprintf(text, sizeof text, "%s%s%s%.200s", rank ? "rank " : "", rank ? rank : "", rank ? " " : "", raw);
}

void readPlan(const char* text) {
  char copy[160];
  snprintf(copy, sizeof copy, "%s", text ? text : "");
  char* rest = copy;
  const char* kind = strsep(&rest, ":");
  const char* n = strsep(&rest, ":");
  const char* what = strsep(&rest, ":");
  if (!what || (rest && *rest && !strstr(entries->command, rest))) return;
  Plan made;
  for (int k = 0; k < kinds; ++k)
    if (strcmp(kindNames[k], kind) == 0) made.kind = k;
  made.first = strtoull(n, nullptr, 10);
  made.on = strchr(n, '+') != nullptr;
  made.isShort = strcmp(what, "SHORT") == 0;
  made.killsAfter = strcmp(what, "KILLED") == 0;
  made.kills = made.killsAfter || strcmp(what, "KILL") == 0;
  made.error = errorNamed(what);
  plan = made;
}

void openLog(const char* folder) {
  if (!folder || !*folder) return;
  char path[256];
  snprintf(path, sizeof path, "%s/%d", folder, getpid());
  const int handle = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (handle < 0 || syscall(SYS_ftruncate, handle, sizeof(Log)) != 0) return;
  const auto address = syscall(SYS_mmap, nullptr, sizeof(Log), PROT_READ | PROT_WRITE, MAP_SHARED, handle,
                               0L);  // an int would leave half of the last word as it was
  syscall(SYS_close, handle);
  if (address != -1) entries = reinterpret_cast<Log*>(address);
}

void onDeath(int number) {
  active = false;
  entries->signal = static_cast<uint64_t>(number);
  writeStack(entries->end, sizeof entries->end);
  signal(number, SIG_DFL);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

/// On a stack of its own: an overflow has none left.
void watchSignals() {
  static char stack[256 << 10];
  const stack_t other{stack, 0, sizeof stack};
  sigaltstack(&other, nullptr);
  struct sigaction action{};
  action.sa_handler = onDeath;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigaction(number, &action, nullptr);
}

void replaceStandardOutput() {
  cookie_io_functions_t functions{};
  functions.write = [](void*, const char* bytes, size_t size) -> ssize_t {
    size_t done = 0;
    while (done < size) {
      const auto n = ::write(1, bytes + done, size - done);
      if (n < 0 && errno == EINTR) continue;  // libc's streams end there: nothing a program can do about it
      if (n <= 0) return static_cast<ssize_t>(done);
      done += static_cast<size_t>(n);
    }
    return static_cast<ssize_t>(done);
  };
  if (FILE* stream = fopencookie(nullptr, "w", functions)) stdout = stream;
}

using Main = int (*)(int, char**, char**);
Main program = nullptr;

/// What a process does before main(), in the server's children and wherever else the library is loaded.
void prepare() {
  void* warm[2];
  backtrace(warm, 2);  // loads what unwinding needs
  openLog(getenv("RETROGRAD_FAULTS_LOG"));
  commandLine(entries->command);
  readPlan(getenv("RETROGRAD_FAULTS"));
  watchSignals();
  replaceStandardOutput();
}

struct Request {
  char text[1 << 16];
  char* fields[1024];
  int count = 0;
};
Request request;

/// The process of one run: NAME=VALUE fields are its environment, @in, @out, @err, @cwd and @memory (bytes) its
/// surroundings, the rest arguments.
int child(Main run, char* name, char** environment) {
  static char* arguments[1024];
  int count = 0;
  arguments[count++] = name;
  const auto redirect = [](const char* path, int to, int flags) {
    const int handle = ::open(path, flags | O_CLOEXEC, 0600);
    if (handle >= 0) dup2(handle, to);
  };
  for (int i = 0; i < request.count; ++i) {
    char* field = request.fields[i];
    if (strncmp(field, "@in=", 4) == 0) redirect(field + 4, 0, O_RDONLY);
    else if (strncmp(field, "@out=", 5) == 0) redirect(field + 5, 1, O_WRONLY | O_CREAT | O_TRUNC);
    else if (strncmp(field, "@err=", 5) == 0) redirect(field + 5, 2, O_WRONLY | O_CREAT | O_TRUNC);
    else if (strncmp(field, "@cwd=", 5) == 0) {
      if (chdir(field + 5) != 0) _exit(126);
    } else if (strncmp(field, "@memory=", 8) == 0) {
      const rlimit most{strtoull(field + 8, nullptr, 10), RLIM_INFINITY};
      setrlimit(RLIMIT_DATA, &most);
    } else if (strncmp(field, "@env=", 5) == 0) putenv(field + 5);
    else arguments[count++] = field;
  }
  arguments[count] = nullptr;
  prepare();
  snprintf(entries->command, sizeof entries->command, "first");
  for (int i = 1; i < count; ++i)
    strncat(strncat(entries->command, " ", 200 - strlen(entries->command)), arguments[i],
            200 - strlen(entries->command) - 1);
  plan = Plan();
  readPlan(getenv("RETROGRAD_FAULTS"));
  (void)environment;
  active = true;
  return run(count, arguments, environ);
}

/// Ends what a run has left behind, and says how many processes that were.
int reapStrays() {
  for (int tries = 0; tries < 150; ++tries) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return 0;
    usleep(20000);
  }
  int strays = 0;
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  const int handle = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY));
  const auto n = handle < 0 ? 0 : syscall(SYS_read, handle, text, sizeof text - 1);
  if (handle >= 0) syscall(SYS_close, handle);
  text[n > 0 ? n : 0] = '\0';
  for (char* rest = text; const char* id = strsep(&rest, " ");)
    if (const int process = atoi(id); process > 0) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
      ++strays;
    }
  return strays;
}

int serve(int socket, char* name, char** environment) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  unsetenv("RETROGRAD_FAULTS_SERVER");
  for (;;) {
    const auto n = recv(socket, request.text, sizeof request.text - 1, 0);
    if (n <= 0) _exit(0);
    request.text[n] = '\0';
    request.count = 0;
    for (char* field = request.text; field < request.text + n && request.count < 1000; field += strlen(field) + 1)
      request.fields[request.count++] = field;
    timespec begin{};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    const auto process = ::fork();
    if (process == 0) {
      close(socket);
      setpgid(0, 0);
      return child(program, name, environment);
    }
    char answer[128];
    auto length = snprintf(answer, sizeof answer, "%d", process);
    send(socket, answer, static_cast<size_t>(length), MSG_NOSIGNAL);
    int status = 0;
    rusage use{};
    while (wait4(process, &status, 0, &use) < 0 && errno == EINTR) {
    }
    timespec end{};
    clock_gettime(CLOCK_MONOTONIC, &end);
    const int strays = reapStrays();
    length = snprintf(
        answer, sizeof answer, "%d %ld %.6f %d", status, use.ru_maxrss,
        static_cast<double>(end.tv_sec - begin.tv_sec) + 1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec),
        strays);
    send(socket, answer, static_cast<size_t>(length), MSG_NOSIGNAL);
  }
}

int startedMain(int count, char** arguments, char** environment) {
  if (const char* server = getenv("RETROGRAD_FAULTS_SERVER")) return serve(atoi(server), arguments[0], environment);
  prepare();
  active = true;
  return program(count, arguments, environment);
}

}  // namespace
}  // namespace faults

EXPORTED int __libc_start_main(faults::Main main, int count, char** arguments, void (*init)(), void (*fini)(),
                               void (*loader)(), void* stack) {
  using Start = int (*)(faults::Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  faults::program = main;
  const auto real = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return real(faults::startedMain, count, arguments, init, fini, loader, stack);
}
