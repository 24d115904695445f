#include "tests/fuzz/programs/trial.h"

#include <fmt/format.h>

#include <cctype>
#include <chrono>

#include "tests/fuzz/programs/judge.h"
#include "tests/fuzz/programs/oracle.h"
#include "tests/fuzz/programs/subject.h"

namespace retrograd::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string firstLine(const std::string& text) {
  auto line = text.substr(0, text.find('\n'));
  if (line.size() > 300) line.resize(300);
  return line;
}

class Trial {
 public:
  explicit Trial(const Program& program) : program_(program) {}

  Verdict run() {
    if (!at("plain", program_.size)) return verdict_;
    const auto other = program_.mode.otherSize;
    if (!other) return verdict_;
    // What is a view at one size may be a copy at another (reshape), so that other inputs are written to.
    if (settleInputs(program_, other)) at(fmt::format("s0 = {}", *other), *other);
    else end(Verdict::Kind::skipped, "eager does not run it at the other size");
    return verdict_;
  }

 private:
  /// Plainly and in the mode, at this size. False where there is nothing more to say.
  bool at(const std::string& where, std::int64_t size) {
    verdict_.where = where;
    inputs_ = drawInputs(program_, size);
    Subject subject(program_, inputs_, size);
    if (!one(where, 1, size, true, [&] { return subject.plain(); })) return false;
    const auto& mode = program_.mode;
    if (mode.minCut || mode.recomputeAll || mode.order > 1) {
      const auto name = mode.minCut ? "min-cut" : mode.recomputeAll ? "recompute all" : "order 2";
      if (!one(name, mode.order, size, true, [&] { return subject.inMode(); })) return false;
    }
    if (!mode.cuts.empty() && !one("stages", 1, size, false, [&] { return subject.inStages(); })) return false;
    return true;
  }

  template <class Run>
  bool one(const std::string& where, int order, std::int64_t size, bool generator, Run&& run) {
    verdict_.where = where;
    SubjectRun mine;
    const auto start = Clock::now();
    try {
      mine = run();
    } catch (const std::exception& e) {
      verdict_.subjectSeconds += since(start);
      return end(eagerRuns(order, size) ? Verdict::Kind::failed : Verdict::Kind::skipped, firstLine(e.what()));
    }
    verdict_.subjectSeconds += since(start);
    if (where == "plain") verdict_.steps = mine.steps;
    if (mine.status == SubjectRun::Status::notCut) return end(Verdict::Kind::notCut, firstLine(mine.message));
    if (mine.status == SubjectRun::Status::refused) {
      if (eagerRuns(order, size)) return end(Verdict::Kind::refused, firstLine(mine.message));
      return end(Verdict::Kind::skipped, eager_);
    }
    Outcome expected;
    const auto begin = Clock::now();
    OracleOptions options;
    options.size = size;
    options.order = order;
    try {
      expected = runOracle(program_, inputs_, mine.cotangents, options);
    } catch (const std::exception& e) {
      verdict_.oracleSeconds += since(begin);
      return end(Verdict::Kind::skipped, firstLine(e.what()));
    }
    Judge judge(program_, inputs_, mine.cotangents, options);
    if (auto difference = judge.compare(expected, mine.outcome, generator); !difference.empty()) {
      // Eager that does not give the same twice cannot be a judge.
      const auto again = runOracle(program_, inputs_, mine.cotangents, options);
      Judge twice(program_, inputs_, mine.cotangents, options);
      if (!twice.compare(expected, again, true).empty())
        return end(Verdict::Kind::skipped, "eager gives something else each time");
      return end(Verdict::Kind::different, std::move(difference));
    }
    verdict_.noisy += judge.noisy();
    verdict_.oracleSeconds += since(begin);
    return true;
  }

  bool eagerRuns(int order, std::int64_t size) {
    OracleOptions options;
    options.size = size;
    options.order = order;
    try {
      runOracle(program_, inputs_, {}, options);
      return true;
    } catch (const std::exception& e) {
      eager_ = firstLine(e.what());
      return false;
    }
  }

  bool end(Verdict::Kind kind, std::string message) {
    verdict_.kind = kind;
    verdict_.message = std::move(message);
    return false;
  }

  Program program_;
  std::vector<at::Tensor> inputs_;
  std::string eager_;
  Verdict verdict_;
};

}  // namespace

std::string name(Verdict::Kind kind) {
  constexpr const char* names[] = {"same", "skipped", "refused", "not cut there", "different", "failed"};
  return names[static_cast<int>(kind)];
}

Verdict tryProgram(const Program& program) { return Trial(program).run(); }

std::string familyOf(const std::string& message) {
  std::string family;
  bool digits = false;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) family += digits ? "#" : word;
    word.clear();
    digits = false;
  };
  for (char c : message) {
    const bool part = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (part) {
      word += c;
      digits |= std::isdigit(static_cast<unsigned char>(c)) != 0;
    } else {
      flush();
      family += c;
    }
  }
  flush();
  if (family.size() > 160) family.resize(160);
  return family;
}

}  // namespace retrograd::fuzz
