#include "core/torch/execution/warnings.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <string>
#include <vector>

namespace retrograd {
namespace {

class Filter : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const auto isIn = [&](std::string_view text) { return warning.msg().find(text) != std::string::npos; };
    if (next && std::none_of(ignored.begin(), ignored.end(), isIn)) next->process(warning);
  }
  std::vector<std::string_view> ignored;
  c10::WarningHandler* next = nullptr;
};

thread_local Filter filter;

}  // namespace

void ignoreWarnings(std::string_view text) {
  if (std::find(filter.ignored.begin(), filter.ignored.end(), text) == filter.ignored.end())
    filter.ignored.push_back(text);
  if (filter.next) return;
  filter.next = c10::WarningUtils::get_warning_handler();
  c10::WarningUtils::set_warning_handler(&filter);
}

}  // namespace retrograd
