#include "core/torch/execution/reproducible.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>

namespace retrograd {
namespace {

/// Hands on all but the warnings that an op has no deterministic kernel: they would come with every call.
class WithoutDeterminism : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("deterministic") == std::string::npos && next) next->process(warning);
  }
  c10::WarningHandler* next = nullptr;
};

thread_local WithoutDeterminism quiet;

}  // namespace

DeterministicScope::DeterministicScope(Mode mode)
    : on_(at::globalContext().deterministicAlgorithms()),
      warnOnly_(at::globalContext().deterministicAlgorithmsWarnOnly()),
      fill_(at::globalContext().deterministicFillUninitializedMemory()),
      handler_(c10::WarningUtils::get_warning_handler()) {
  if (handler_ != &quiet) {
    quiet.next = handler_;
    c10::WarningUtils::set_warning_handler(&quiet);
  }
  at::globalContext().setDeterministicAlgorithms(mode != Mode::off, mode != Mode::strict);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

DeterministicScope::~DeterministicScope() {
  c10::WarningUtils::set_warning_handler(handler_);
  at::globalContext().setDeterministicAlgorithms(on_, warnOnly_);
  at::globalContext().setDeterministicFillUninitializedMemory(fill_);
}

}  // namespace retrograd
