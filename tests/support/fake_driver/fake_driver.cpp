#include "tests/support/fake_driver/fake_driver.h"

#include <dlfcn.h>

#include <sstream>

#include "core/base/error.h"
#include "core/base/installation.h"
#include "tests/support/fake_driver/control.h"

namespace retrograd::test {
namespace {

constexpr const char* fileName = "libretrograd_fake_cuda.so";

/// One for the process: GPUs are known by their driver.
const cuda::Driver& fake() {
  static const cuda::Driver one(privateFile(fileName).c_str());
  return one;
}

template <class Function>
Function* control(const char* name) {
  static void* const library = dlopen(privateFile(fileName).c_str(), RTLD_NOW);
  auto* found = reinterpret_cast<Function*>(library ? dlsym(library, name) : nullptr);
  if (!found) throw Error(ErrorCode::internal, "the stand-in for the driver was not built", name);
  return found;
}

std::vector<std::string> lines(const char* text) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) found.push_back(line);
  return found;
}

}  // namespace

FakeDriver::FakeDriver() : inPlace_(std::make_unique<cuda::DriverInPlace>(fake())) { reset(); }
FakeDriver::~FakeDriver() = default;

const cuda::Driver& FakeDriver::driver() const { return fake(); }
void FakeDriver::reset() { control<decltype(fakeCudaReset)>("fakeCudaReset")(); }

DriverCounts FakeDriver::counts() const {
  DriverCounts counts;
  control<decltype(fakeCudaCounts)>("fakeCudaCounts")(&counts);
  return counts;
}

std::vector<std::string> FakeDriver::calls() const {
  return lines(control<decltype(fakeCudaCalls)>("fakeCudaCalls")());
}

std::vector<std::string> FakeDriver::faults() const {
  return lines(control<decltype(fakeCudaFaults)>("fakeCudaFaults")());
}

void FakeDriver::failNext(const char* function, int code) {
  control<decltype(fakeCudaFailNext)>("fakeCudaFailNext")(function, code);
}

}  // namespace retrograd::test
