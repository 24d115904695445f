// The library of the stand-in (fake_driver.h).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/torch/execution/cuda/twin.h"
#include "tests/support/fake_driver/control.h"

using namespace retrograd;
using retrograd::cuda::magnitudeCells;

namespace {

constexpr int notFound = 500, notReady = 600, invalid = 1;

struct Function {
  std::string what;
  DType dtype;
};
struct Event {
  int recorded = 0;  // 0: never; else the time at which it is reached
  bool destroyed = false;
};
struct Copy {
  void* to;
  std::uint64_t from;
  std::size_t bytes;
};

struct Fake {
  std::recursive_mutex mutex;
  bool started = false;
  int context = 0, module = 0;  // their addresses are the handles
  std::map<std::uint64_t, std::size_t> live, freed;
  std::map<std::uint64_t, std::size_t> tensors, freedTensors;  // of LibTorch
  std::map<std::string, Function> functions;
  std::map<void*, Event> events;
  std::vector<Copy> copies;
  int time = 0, reached = 0;
  test::DriverCounts counts;
  std::string calls, faults, answer, failing;
  int failure = 0;
};

Fake& fake() {
  static Fake one;
  return one;
}

thread_local void* current = nullptr;

/// A line of the file that RETROGRAD_FAKE_DRIVER_LOG names, for a program that is run as a whole. At once, because a
/// program may end without destructors.
void note(const std::string& line) {
  static std::FILE* const log = [] {
    const char* path = std::getenv("RETROGRAD_FAKE_DRIVER_LOG");
    return path ? std::fopen(path, "a") : nullptr;
  }();
  if (!log) return;
  std::fputs((line + "\n").c_str(), log);
  std::fflush(log);
}

void fault(const std::string& text) {
  fake().faults += text + "\n";
  note("fault: " + text);
}

/// Of one call: notes it, and finds what is wrong with it as such.
class Call {
 public:
  explicit Call(const char* name, bool inContext = true) : lock_(fake().mutex), name_(name) {
    fake().calls += std::string(name) + "\n";
    note(name);
    if (!fake().started) fault(std::string(name) + " before cuInit");
    if (inContext && !current) fault(std::string(name) + " without a context");
  }
  /// The code that failNext() asked for; 0 otherwise.
  int failure() const {
    if (fake().failing != name_) return 0;
    fake().failing.clear();
    return fake().failure;
  }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  std::string name_;
};

bool isIn(const std::map<std::uint64_t, std::size_t>& ranges, std::uint64_t at, std::size_t bytes) {
  auto next = ranges.upper_bound(at);
  if (next == ranges.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return at < begin + size && at + bytes <= begin + size;
}

/// Memory of the driver's; `theirs`: or of somebody else's, as tensors are.
bool reach(const char* who, std::uint64_t at, std::size_t bytes, bool theirs = false) {
  if (isIn(fake().live, at, bytes)) return true;
  if (theirs && isIn(fake().tensors, at, bytes)) return true;
  if (isIn(fake().freed, at, 1) || isIn(fake().freedTensors, at, 1))
    return fault(std::string(who) + ": memory after it was freed"), false;
  if (theirs) return true;
  return fault(std::string(who) + ": memory that was not allocated"), false;
}

void comeToPass() {
  auto& f = fake();
  for (const auto& copy : f.copies)
    if (reach("a copy", copy.from, copy.bytes))
      std::memcpy(copy.to, reinterpret_cast<const void*>(copy.from), copy.bytes);
  f.copies.clear();
  f.reached = f.time;
}

bool readable(const cuda::Tensor& tensor) {
  return tensor.elements == 0 || reach("a kernel", reinterpret_cast<std::uint64_t>(tensor.data), 1, true);
}

void summarise(DType dtype, unsigned columns, unsigned rows, void** parameters) {
  const auto& tasks = *static_cast<const cuda::Tasks*>(parameters[0]);
  const auto scratch = *static_cast<const std::uint64_t*>(parameters[1]);
  if (!reach("a kernel's scratch memory", scratch, sizeof(cuda::Scratch))) return;
  for (unsigned row = 0; row < rows; ++row) {
    const auto& task = tasks.tasks[row];
    if (rows > cuda::mostTasks || task.layout.blocks > static_cast<int>(columns))
      return fault("a grid that is too small");
    if (reinterpret_cast<const cuda::Scratch*>(scratch)->done[row] != 0)
      return fault("scratch memory that is not cleared");
    if (!readable(task.tensor) ||
        !reach("a summary", reinterpret_cast<std::uint64_t>(task.summary), sizeof(cuda::Summary)))
      continue;
    if (task.tensor.dtype != static_cast<int>(dtype)) fault("a kernel of another dtype");
    numbers::withElement(dtype, [&](auto element) {
      *task.summary = cuda::twin::summarise<decltype(element)>(task.tensor, task.layout);
    });
    ++fake().counts.rows;
  }
}

void run(const Function& function, unsigned columns, unsigned rows, void** parameters) {
  if (function.what == "summarise") return summarise(function.dtype, columns, rows, parameters);
  const auto& tensor = *static_cast<const cuda::Tensor*>(parameters[0]);
  const bool linear = function.what == "histogram";
  const auto counts = *static_cast<const std::uint64_t*>(parameters[linear ? 4 : 2]);
  const auto cells = linear ? static_cast<const cuda::LinearCells*>(parameters[2])->cells : magnitudeCells;
  if (!readable(tensor) || !reach("counts", counts, sizeof(std::int64_t) * static_cast<std::size_t>(cells))) return;
  auto* to = reinterpret_cast<std::int64_t*>(counts);
  if (linear) cuda::twin::histogram(tensor, *static_cast<const cuda::LinearCells*>(parameters[2]), to);
  else cuda::twin::magnitudes(tensor, to);
}

}  // namespace

extern "C" {

void fakeCudaReset() {
  auto& f = fake();
  f.counts = {};
  f.calls.clear();
  f.faults.clear();
  f.failing.clear();
}
void fakeCudaCounts(test::DriverCounts* counts) { *counts = fake().counts; }
const char* fakeCudaCalls() { return (fake().answer = fake().calls).c_str(); }
const char* fakeCudaFaults() { return (fake().answer = fake().faults).c_str(); }
void fakeCudaFailNext(const char* function, int code) {
  fake().failing = function;
  fake().failure = code;
}
void fakeCudaLibTorchWaits(const char* who) {
  const std::lock_guard lock(fake().mutex);
  ++fake().counts.libTorchWaits;
  note(std::string("LibTorch waits: ") + who);
  comeToPass();
}
void fakeCudaLibTorchTakes(void* memory, std::size_t bytes) {
  const std::lock_guard lock(fake().mutex);
  const auto at = reinterpret_cast<std::uint64_t>(memory);
  auto& freed = fake().freedTensors;
  freed.erase(freed.lower_bound(at), freed.lower_bound(at + bytes));  // an address is used again
  fake().tensors[at] = bytes;
}
void fakeCudaLibTorchReleases(void* memory) {
  const std::lock_guard lock(fake().mutex);
  if (auto tensor = fake().tensors.extract(reinterpret_cast<std::uint64_t>(memory)); !tensor.empty())
    fake().freedTensors.insert_or_assign(tensor.key(), tensor.mapped());
}

int cuInit(unsigned) {
  fake().started = true;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGetName(char* text, int size, int) {
  std::strncpy(text, "Stand-in", static_cast<std::size_t>(size));
  return 0;
}
int cuDeviceGetAttribute(int* value, int, int) {
  *value = 2;  // processors
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  const Call call("cuDevicePrimaryCtxRetain", false);
  if (device != 0) return 101;
  *context = &fake().context;
  return call.failure();
}
int cuCtxGetCurrent(void** context) {
  *context = current;
  return 0;
}
int cuCtxSetCurrent(void* context) {
  if (context != &fake().context) fault("a context that is not there");
  current = context;
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  const Call call("cuModuleLoadData");
  constexpr std::uint32_t magic = 0xba55ed50;  // of a fat binary
  std::uint32_t begin = 0;
  std::memcpy(&begin, image, sizeof begin);
  if (const int code = call.failure()) return code;
  if (begin != magic) return 200;
  *module = &fake().module;
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  const Call call("cuModuleGetFunction");
  if (module != &fake().module) fault("a module that is not there");
  const std::string text = name, what = text.substr(0, text.find('_'));
  for (int i = 0; i < dtypeCount; ++i)
    for (const char* known : {"summarise", "magnitudes", "histogram"})
      if (what == known && text == what + "_" + std::string(shortName(static_cast<DType>(i)))) {
        *function = &(fake().functions[text] = {what, static_cast<DType>(i)});
        return call.failure();
      }
  fault("a kernel that is not there: " + text);
  return notFound;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, std::size_t) {
  *blocks = 3;
  return 0;
}
int cuLaunchKernel(void* function, unsigned columns, unsigned rows, unsigned depth, unsigned threads, unsigned,
                   unsigned, unsigned, void*, void** parameters, void**) {
  const Call call("cuLaunchKernel");
  if (const int code = call.failure()) return code;
  ++fake().counts.launches;
  ++fake().time;
  if (columns < 1 || rows < 1 || depth != 1 || threads != cuda::threads) fault("a grid that no kernel of ours has");
  for (const auto& [name, known] : fake().functions)
    if (&known == function) return run(known, columns, rows, parameters), 0;
  fault("a function that is not there");
  return invalid;
}
int cuMemAlloc_v2(std::uint64_t* memory, std::size_t bytes) {
  const Call call("cuMemAlloc_v2");
  if (const int code = call.failure()) return code;
  ++fake().counts.allocations;
  void* fresh = std::malloc(bytes);  // never given back: an address is used once
  std::memset(fresh, 0xa5, bytes);
  *memory = reinterpret_cast<std::uint64_t>(fresh);
  fake().live[*memory] = bytes;
  return 0;
}
int cuMemFree_v2(std::uint64_t memory) {
  const Call call("cuMemFree_v2", false);
  ++fake().counts.frees;
  const auto found = fake().live.find(memory);
  if (found == fake().live.end()) return fault("memory that is freed twice, or was never allocated"), invalid;
  comeToPass();
  fake().freed.insert(*found);
  fake().live.erase(found);
  return 0;
}
int cuMemsetD8Async(std::uint64_t memory, unsigned char byte, std::size_t bytes, void*) {
  const Call call("cuMemsetD8Async");
  ++fake().counts.fills;
  if (!reach("a fill", memory, bytes)) return invalid;
  std::memset(reinterpret_cast<void*>(memory), byte, bytes);
  return call.failure();
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void*) {
  const Call call("cuMemcpyDtoHAsync_v2");
  ++fake().counts.copies;
  if (!reach("a copy", from, bytes)) return invalid;
  std::memset(to, 0xcd, bytes);  // until somebody waits
  fake().copies.push_back({to, from, bytes});
  return call.failure();
}
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void*) {
  const Call call("cuMemcpyHtoDAsync_v2");
  ++fake().counts.copies;
  if (!reach("a copy", to, bytes)) return invalid;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return call.failure();
}
int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void*) {
  const Call call("cuMemcpyDtoDAsync_v2");
  ++fake().counts.copies;
  if (!reach("a copy", to, bytes) || !reach("a copy", from, bytes)) return invalid;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return call.failure();
}
int cuStreamSynchronize(void*) {
  const Call call("cuStreamSynchronize");
  ++fake().counts.synchronisations;
  comeToPass();
  return call.failure();
}
int cuEventCreate(void** event, unsigned flags) {
  const Call call("cuEventCreate");
  if (flags != 0) fault("an event that keeps no time");
  ++fake().counts.eventsMade;
  *event = std::malloc(1);  // an address of its own, never given back
  fake().events[*event] = {};
  return call.failure();
}
int cuEventRecord(void* event, void*) {
  const Call call("cuEventRecord");
  ++fake().counts.eventsRecorded;
  const auto found = fake().events.find(event);
  if (found == fake().events.end() || found->second.destroyed) return fault("an event that is not there"), invalid;
  found->second.recorded = ++fake().time;
  return call.failure();
}
int cuEventQuery(void* event) {
  const auto found = fake().events.find(event);
  if (found == fake().events.end() || found->second.destroyed) return fault("an event that is not there"), invalid;
  return found->second.recorded <= fake().reached ? 0 : notReady;
}
int cuEventSynchronize(void* event) {
  const Call call("cuEventSynchronize", false);
  ++fake().counts.eventWaits;
  const auto found = fake().events.find(event);
  if (found == fake().events.end() || found->second.destroyed) return fault("an event that is not there"), invalid;
  comeToPass();
  return call.failure();
}
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  const auto from = fake().events.find(begin), to = fake().events.find(end);
  if (from == fake().events.end() || to == fake().events.end() || from->second.destroyed || to->second.destroyed)
    return fault("an event that is not there"), invalid;
  if (to->second.recorded > fake().reached || from->second.recorded == 0) fault("a time that has not come to pass");
  *milliseconds = static_cast<float>(to->second.recorded - from->second.recorded);
  return 0;
}
int cuEventDestroy_v2(void* event) {
  const Call call("cuEventDestroy_v2", false);
  ++fake().counts.eventsDestroyed;
  const auto found = fake().events.find(event);
  if (found == fake().events.end() || found->second.destroyed) return fault("an event that is not there"), invalid;
  found->second.destroyed = true;
  return 0;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == 700 ? "an illegal memory access was encountered" : code == 2 ? "out of memory" : "an error";
  return 0;
}
}
