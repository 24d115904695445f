#include "tests/fuzz/programs/figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "tests/fuzz/programs/trial.h"

namespace retrograd::fuzz {

std::string Record::line() const {
  auto text = message;
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", kind, ops, noisy, fmt::join(features, " "),
                     fmt::join(used, " "), generating, subject, oracle, where, text);
}

Record Record::of(const std::string& line) {
  std::istringstream stream(line);
  std::string field;
  const auto next = [&] { return std::getline(stream, field, '\t') ? field : std::string(); };
  const auto numbers = [](const std::string& text) {
    std::istringstream words(text);
    std::vector<std::size_t> found;
    for (std::size_t n; words >> n;) found.push_back(n);
    return found;
  };
  Record record;
  record.kind = std::stoi(next());
  record.ops = std::stoul(next());
  record.noisy = std::stoi(next());
  record.features = numbers(next());
  record.used = numbers(next());
  record.generating = std::stod(next());
  record.subject = std::stod(next());
  record.oracle = std::stod(next());
  record.where = next();
  record.message = next();
  return record;
}

Figures::Figures(std::vector<std::string> opNames, std::vector<std::string> features)
    : opNames_(std::move(opNames)),
      featureNames_(std::move(features)),
      ops_(opNames_.size()),
      features_(featureNames_.size()),
      refusedFeatures_(featureNames_.size()),
      failedFeatures_(featureNames_.size()) {}

void Figures::add(const Record& record) {
  generating_ += record.generating;
  if (record.kind < 0) {
    ++none_;
    return;
  }
  const auto kind = static_cast<Verdict::Kind>(record.kind);
  subject_ += record.subject;
  oracle_ += record.oracle;
  ++kinds_[record.kind];
  if (kind == Verdict::Kind::skipped) {
    ++skipped_[familyOf(record.message)];
    return;
  }
  ++programs_;
  noisy_ += static_cast<std::uint64_t>(record.noisy);
  ++lengths_[record.ops];
  for (auto op : record.used) ++ops_[op];
  const bool refused = kind == Verdict::Kind::refused,
             failed = kind == Verdict::Kind::different || kind == Verdict::Kind::failed;
  findings_ += failed;
  for (auto feature : record.features) {
    ++features_[feature];
    refusedFeatures_[feature] += refused;
    failedFeatures_[feature] += failed;
  }
  if (refused) ++refused_[familyOf(record.message)];
  if (kind == Verdict::Kind::notCut) ++notCut_[familyOf(record.message)];
}

namespace {

void printTop(const char* title, const std::map<std::string, std::uint64_t>& counts, std::size_t most) {
  if (counts.empty()) return;
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [text, count] : counts) sorted.emplace_back(count, text);
  std::sort(sorted.rbegin(), sorted.rend());
  fmt::print("{}\n", title);
  for (std::size_t i = 0; i < sorted.size() && i < most; ++i)
    fmt::print("  {:>8}  {}\n", sorted[i].first, sorted[i].second);
}

}  // namespace

void Figures::print(double seconds) const {
  const auto kind = [&](Verdict::Kind k) {
    const auto it = kinds_.find(static_cast<int>(k));
    return it == kinds_.end() ? std::uint64_t{0} : it->second;
  };
  const auto skipped = kind(Verdict::Kind::skipped);
  fmt::print(
      "{} programs: {} the same as eager, {} refused, {} not cut there, {} different, {} failed; {} skipped, as eager "
      "refuses them; {} seeds without a "
      "program\n",
      programs_, kind(Verdict::Kind::same), kind(Verdict::Kind::refused), kind(Verdict::Kind::notCut),
      kind(Verdict::Kind::different), kind(Verdict::Kind::failed), skipped, none_);
  const double all = std::max<double>(1, static_cast<double>(programs_ + skipped));
  fmt::print("{:.0f} s; a program takes {:.2f} ms to make, {:.2f} ms in Retrograd, {:.2f} ms in eager LibTorch\n",
             seconds, 1e3 * generating_ / all, 1e3 * subject_ / all, 1e3 * oracle_ / all);
  std::uint64_t passed = 0;
  std::size_t median = 0;
  for (const auto& [length, count] : lengths_)
    if ((passed += count) * 2 >= programs_) {
      median = length;
      break;
    }
  fmt::print("{} ops; median of {} a program; {} tensors are noise in eager itself and were not compared\n",
             opNames_.size(), median, noisy_);
  fmt::print("feature                     programs    refused     failed\n");
  for (std::size_t i = 0; i < featureNames_.size(); ++i)
    fmt::print("  {:<24} {:>9} {:>10} {:>10}\n", featureNames_[i], features_[i], refusedFeatures_[i],
               failedFeatures_[i]);
  printTop("refused", refused_, 10);
  printTop("not cut there", notCut_, 5);
  printTop("skipped", skipped_, 5);
}

std::vector<std::string> Figures::broken() const {
  std::vector<std::string> found;
  if (programs_ < 20000) return found;
  std::uint64_t passed = 0;
  for (const auto& [length, count] : lengths_)
    if ((passed += count) * 2 >= programs_) {
      if (length < 15) found.push_back(fmt::format("the median program has {} ops, not 15", length));
      break;
    }
  for (std::size_t i = 0; i < featureNames_.size(); ++i) {
    const auto share = static_cast<double>(features_[i]) / static_cast<double>(programs_);
    if (share < 0.01)
      found.push_back(fmt::format("{} is in {:.2f} % of the programs, not in 1 %", featureNames_[i], 100 * share));
    if (featureNames_[i] == "write through a view" && share < 0.5)
      found.push_back(fmt::format("{:.1f} % of the programs write through a view, not half of them", 100 * share));
  }
  std::string rare;
  for (std::size_t i = 0; i < opNames_.size(); ++i)
    if (static_cast<double>(ops_[i]) < static_cast<double>(programs_) / 1000)
      rare += fmt::format("{}{} ({})", rare.empty() ? "" : ", ", opNames_[i], ops_[i]);
  if (!rare.empty()) found.push_back("less than once in a thousand programs: " + rare);
  return found;
}

}  // namespace retrograd::fuzz
