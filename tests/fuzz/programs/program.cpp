#include "tests/fuzz/programs/program.h"

namespace retrograd::fuzz {

void forEachArg(const Arg& arg, const std::function<void(const Arg&)>& visit) {
  visit(arg);
  for (const auto& item : arg.items) forEachArg(item, visit);
}

void forEachArg(Arg& arg, const std::function<void(Arg&)>& visit) {
  visit(arg);
  for (auto& item : arg.items) forEachArg(item, visit);
}

namespace {

void visitCalls(const Program& program, const std::vector<Call>& calls, const std::function<void(const Call&)>& visit) {
  for (const auto& call : calls) {
    for (const auto& arg : call.args)
      if (arg.kind == Arg::Kind::body)
        visitCalls(program, program.bodies[static_cast<std::size_t>(arg.integer)].calls, visit);
    visit(call);
  }
}

}  // namespace

void forEachCall(const Program& program, const std::function<void(const Call&)>& visit) {
  visitCalls(program, program.main.calls, visit);
}

std::size_t opCount(const Program& program) {
  std::size_t count = 0;
  forEachCall(program, [&](const Call& call) { count += !call.isHigherOrder(); });
  return count;
}

}  // namespace retrograd::fuzz
