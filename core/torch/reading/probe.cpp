#include "core/torch/reading/probe.h"

#include <fmt/format.h>
#include <string.h>

#include <chrono>
#include <filesystem>
#include <new>

#include "core/formats/model/model_file.h"
#include "core/formats/read/read_file.h"
#include "core/process/child.h"
#include "core/torch/torchscript/trace_torchscript.h"

namespace retrograd {
namespace {

constexpr int refused = 2, outOfMemory = 3;
constexpr double baseSeconds = 60, bytesPerSecond = 20e6;
constexpr std::uint64_t maxMemory = std::uint64_t{8} << 30;

std::vector<std::string>& probeCommand() {
  static std::vector<std::string> command;
  return command;
}

/// Verifying takes time in proportion to the file; compiling does not.
double secondsFor(const std::string& path) {
  std::error_code ignored;
  return baseSeconds + static_cast<double>(std::filesystem::file_size(path, ignored)) / bytesPerSecond;
}

}  // namespace

void setProbeCommand(std::vector<std::string> command) { probeCommand() = std::move(command); }

void probe(const std::string& path, const Progress& progress) {
  auto command = probeCommand();
  if (command.empty()) return;
  command.push_back(path);
  progress.at("trying the compiler", 0);
  const auto seconds = secondsFor(path);
  ChildOptions options{
      .endsWithThread = true, .memory = maxMemory, .cpuSeconds = static_cast<std::uint64_t>(seconds) + 1};
  const auto ending = Child(command, options).await(std::chrono::duration<double>(seconds), progress);
  if (!ending)
    throw Error(ErrorCode::badInput,
                fmt::format("LibTorch's compiler was still busy with its code after {:.0f} s", seconds), path);
  if (ending->isSignal())
    throw Error(ErrorCode::badInput,
                fmt::format("LibTorch's compiler crashes on its code ({}); the file is damaged or hostile",
                            strsignal(ending->signal())),
                path);
  if (ending->exitCode() == outOfMemory)
    throw Error(ErrorCode::badInput,
                fmt::format("LibTorch's compiler wants more than {} GiB of memory for its code", maxMemory >> 30),
                path);
  if (!ending->good() && ending->exitCode() != refused)
    throw Error(ErrorCode::internal, fmt::format("the program that tries it {}", ending->text()), path);
}

int runProbe(const std::string& path) {
  try {
    checkTorchScript(openModelArchive(path));
    return 0;
  } catch (const std::bad_alloc&) {
    return outOfMemory;
  } catch (const std::exception&) {
    return refused;
  }
}

}  // namespace retrograd
