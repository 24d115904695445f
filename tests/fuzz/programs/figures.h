#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace retrograd::fuzz {

/// What one program had and what became of it, as a line that crosses a pipe.
struct Record {
  int kind = 0;  ///< Verdict::Kind; -1: the seed gave no program
  std::size_t ops = 0;
  int noisy = 0;                                   ///< Verdict::noisy
  std::vector<std::size_t> features;               ///< indices into allFeatures()
  std::vector<std::size_t> used;                   ///< indices into the names of ops, once an occurrence
  double generating = 0, subject = 0, oracle = 0;  ///< seconds
  std::string where, message;

  std::string line() const;
  static Record of(const std::string& line);
};

/// Sums over all programs, and what is promised of them.
class Figures {
 public:
  Figures(std::vector<std::string> opNames, std::vector<std::string> features);
  void add(const Record& record);
  void print(double seconds) const;
  /// What is not held (median of ops, writes through views, ops, features); only said of 20,000 programs and more.
  std::vector<std::string> broken() const;
  std::uint64_t findings() const { return findings_; }

 private:
  std::vector<std::string> opNames_, featureNames_;
  std::vector<std::uint64_t> ops_, features_, refusedFeatures_, failedFeatures_;
  std::map<std::size_t, std::uint64_t> lengths_;
  std::map<std::string, std::uint64_t> refused_, skipped_, notCut_;
  std::map<int, std::uint64_t> kinds_;
  std::uint64_t programs_ = 0, none_ = 0, findings_ = 0, noisy_ = 0;
  double generating_ = 0, subject_ = 0, oracle_ = 0;
};

}  // namespace retrograd::fuzz
