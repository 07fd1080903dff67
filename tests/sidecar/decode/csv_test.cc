// Lines of CSV into rows. Expected numbers: strtof's and strtod's of the same text, which glibc rounds correctly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <random>

#include "sidecar/decode/decoder.h"
#include "tests/sidecar/records.h"

namespace headrace::side {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Feature FeatureOf(const std::string& name, DType dtype, std::vector<std::string> columns = {},
                  std::vector<double> default_value = {}) {
  Feature feature;
  feature.name = name;
  feature.dtype = dtype;
  if (!columns.empty()) feature.shape = {static_cast<int64_t>(columns.size())};
  feature.columns = std::move(columns);
  feature.has_default = !default_value.empty();
  feature.default_value = std::move(default_value);
  return feature;
}

// Decodes lines, whose fields are the features' columns in the order of `columns`.
class CsvLines {
 public:
  explicit CsvLines(const std::vector<Feature>& features, std::vector<int32_t> columns, char delimiter = ',')
      : features_(features), columns_(std::move(columns)), decoder_(MakeCsvDecoder(features, delimiter)) {}

  Status Decode(const std::vector<std::string>& lines) {
    records_.clear();
    rows_.clear();
    std::vector<uint8_t*> outs;
    for (const Feature& feature : features_) {
      const size_t values = std::max<size_t>(feature.columns.size(), 1);
      rows_.emplace_back(lines.size() * values * DTypeSize(feature.dtype), uint8_t{0xee});
    }
    for (auto& rows : rows_) outs.push_back(rows.data());
    for (const std::string& line : lines) {
      Record& record = records_.emplace_back(RecordOf(&pool_, {line}));
      auto* const block = static_cast<BytesBlock*>(record.block.get());
      block->origin.first_line = 7;
      block->origin.columns = &columns_;
    }
    return decoder_->Decode(records_, outs);
  }
  std::string ErrorOf(const std::string& line) { return Decode({line}).message(); }

  template <typename T>
  std::vector<T> Values(size_t component = 0) const {
    std::vector<T> values(rows_[component].size() / sizeof(T));
    std::memcpy(values.data(), rows_[component].data(), values.size() * sizeof(T));
    return values;
  }
  std::vector<std::string> Strings(size_t component = 0) const {
    std::vector<std::string> strings;
    for (const BytesRef& value : Values<BytesRef>(component)) {
      strings.emplace_back(reinterpret_cast<const char*>(value.data), value.size);
    }
    return strings;
  }

 private:
  const std::vector<Feature> features_;
  const std::vector<int32_t> columns_;
  BytesBlockPool pool_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<Record> records_;
  std::vector<std::vector<uint8_t>> rows_;
};

TEST(Csv, PutsEachColumnIntoItsPlace) {
  CsvLines csv({FeatureOf("x", DType::kFloat32, {"a", "b", "c"}), FeatureOf("y", DType::kInt16)}, {3, -1, 2, 0, 1});
  ASSERT_TRUE(csv.Decode({"7,skipped,3,1,2", "-8,,3.5,1.5,2.5"}).ok());
  EXPECT_THAT(csv.Values<float>(0), ElementsAre(1, 2, 3, 1.5, 2.5, 3.5));
  EXPECT_THAT(csv.Values<int16_t>(1), ElementsAre(7, -8));
}

TEST(Csv, ReadsNumbersAsPandasDoes) {
  CsvLines csv({FeatureOf("x", DType::kFloat64)}, {0});
  ASSERT_TRUE(
      csv.Decode({"+1.5", " 2 ", "-3e2", "4E-1", ".5", "6.", "inf", "-Infinity", "1e999", "-1e-999", "\"7\"", "-0"})
          .ok());
  EXPECT_THAT(csv.Values<double>(), ElementsAre(1.5, 2, -300, 0.4, 0.5, 6, INFINITY, -INFINITY, INFINITY, 0, 7, 0));
  EXPECT_TRUE(std::signbit(csv.Values<double>()[9]));
  EXPECT_TRUE(std::signbit(csv.Values<double>()[11]));
  ASSERT_TRUE(csv.Decode({"nan"}).ok());
  EXPECT_TRUE(std::isnan(csv.Values<double>()[0]));
}

TEST(Csv, RefusesWhatIsNoNumber) {
  CsvLines csv({FeatureOf("x", DType::kFloat32)}, {0});
  for (const char* text : {"a", "1a", "1 2", "--1", "+-1", "1..2", "1.2.3", "-", "+", ".", "-.", "e5", "1e", "0x10",
                           "1,0", "1_000", " ", "12345678901234567.8.9", "1234567890123456a"}) {
    EXPECT_FALSE(csv.Decode({text}).ok()) << text;
  }
}

TEST(Csv, IntegersAreWithinTheirRange) {
  CsvLines bytes({FeatureOf("x", DType::kInt8)}, {0});
  ASSERT_TRUE(bytes.Decode({"127", "-128", "+5", " 6", "0007"}).ok());
  EXPECT_THAT(bytes.Values<int8_t>(), ElementsAre(127, -128, 5, 6, 7));
  for (const char* text : {"128", "-129", "1.0", "1.", "1e2", "99999999999999999999"}) {
    EXPECT_FALSE(bytes.Decode({text}).ok()) << text;
  }
  CsvLines large({FeatureOf("x", DType::kInt64), FeatureOf("y", DType::kUint64)}, {0, 1});
  ASSERT_TRUE(large.Decode({"-9223372036854775808,18446744073709551615", "1234567890123456,9999999999999999"}).ok());
  EXPECT_THAT(large.Values<int64_t>(0), ElementsAre(INT64_MIN, 1234567890123456));
  EXPECT_THAT(large.Values<uint64_t>(1), ElementsAre(UINT64_MAX, 9999999999999999u));
  EXPECT_FALSE(large.Decode({"9223372036854775808,0"}).ok());
  EXPECT_FALSE(large.Decode({"0,-1"}).ok());
}

TEST(Csv, ReadsTruthAndHalfPrecision) {
  CsvLines csv({FeatureOf("b", DType::kBool), FeatureOf("h", DType::kFloat16), FeatureOf("f", DType::kBfloat16)},
               {0, 1, 2});
  ASSERT_TRUE(csv.Decode({"true,1,1", "False,65504,-2", "1,0.5,0", " FALSE ,-2,3"}).ok());
  EXPECT_THAT(csv.Values<uint8_t>(0), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(csv.Values<uint16_t>(1), ElementsAre(0x3c00, 0x7bff, 0x3800, 0xc000));
  EXPECT_THAT(csv.Values<uint16_t>(2), ElementsAre(0x3f80, 0xc000, 0, 0x4040));
  EXPECT_FALSE(csv.Decode({"2,1,1"}).ok());
  EXPECT_FALSE(csv.Decode({"yes,1,1"}).ok());
}

TEST(Csv, DeliversStringsWithoutTheirQuotes) {
  CsvLines csv({FeatureOf("s", DType::kString), FeatureOf("n", DType::kInt32)}, {0, 1}, ';');
  ASSERT_TRUE(csv.Decode({"a,b;1", R"("x;""y""";2)", ";3", R"("";4)", R"(6" pipe;5)"}).ok());
  EXPECT_THAT(csv.Strings(0), ElementsAre("a,b", R"(x;"y")", "", "", R"(6" pipe)"));
  EXPECT_THAT(csv.Values<int32_t>(1), ElementsAre(1, 2, 3, 4, 5));
}

TEST(Csv, AnEmptyFieldIsTheDefault) {
  CsvLines csv({FeatureOf("x", DType::kFloat32, {"a", "b"}, {1.5, 2.5}), FeatureOf("n", DType::kInt64, {}, {-7}),
                FeatureOf("t", DType::kBool, {}, {1})},
               {0, 1, 2, 3});
  ASSERT_TRUE(csv.Decode({",,,", "3,,4,0", R"("","5",,"")"}).ok());
  EXPECT_THAT(csv.Values<float>(0), ElementsAre(1.5, 2.5, 3, 2.5, 1.5, 5));
  EXPECT_THAT(csv.Values<int64_t>(1), ElementsAre(-7, 4, -7));
  EXPECT_THAT(csv.Values<uint8_t>(2), ElementsAre(1, 0, 1));
}

TEST(Csv, ErrorsSayWhereWhatAndTheRemedy) {
  CsvLines csv({FeatureOf("x", DType::kFloat32, {"a", "b"}), FeatureOf("age", DType::kUint8)}, {0, 1, 2});
  EXPECT_EQ(csv.ErrorOf("1,oops,3"),
            "a.tfrecord: line 7: column \"b\" holds \"oops\", which is no float32; correct the line, or the dtype of "
            "feature \"x\"");
  EXPECT_THAT(csv.ErrorOf("1,2,300"), HasSubstr("column \"age\" holds \"300\", which is no uint8"));
  EXPECT_EQ(csv.ErrorOf("1,,3"),
            "a.tfrecord: line 7: column \"b\" is empty; give feature \"x\" a default, or correct the line");
  EXPECT_EQ(csv.ErrorOf("1,2"),
            "a.tfrecord: line 7: 2 fields, and the file has 3 columns; correct the line, or "
            "spec.source.files.csv.delimiter, which is \",\"");
  EXPECT_THAT(csv.ErrorOf("1,2,3,4"), HasSubstr("4 fields, and the file has 3 columns"));
  EXPECT_THAT(csv.ErrorOf("1,\"2\"x,3"),
              HasSubstr("line 7: field 2 has text after its closing quote; quote as RFC 4180"));
}

// A number as some writer may have written it; some close to the middle of two floats, where rounding is hard.
std::string RandomNumber(std::mt19937_64& random) {
  char text[512];
  const auto magnitude = static_cast<int>(random() % 12) - 4;
  const double value = std::ldexp(static_cast<double>(random() >> 11), -53) * std::pow(10, magnitude);
  const auto digits = static_cast<int>(random() % 20);
  switch (random() % 6) {
    case 0: std::snprintf(text, sizeof text, "%.*f", digits, value); break;
    case 1: std::snprintf(text, sizeof text, "%.*g", digits, value); break;
    case 2: {
      const auto below = static_cast<float>(value);
      const double middle = (static_cast<double>(below) + static_cast<double>(std::nextafter(below, INFINITY))) / 2;
      std::snprintf(text, sizeof text, "%.*f", 8 + digits, middle);
      break;
    }
    case 3:
      std::snprintf(text, sizeof text, "%.*e", digits, std::ldexp(value, static_cast<int>(random() % 2200) - 1100));
      break;
    case 4: std::snprintf(text, sizeof text, "%lu", random() >> (random() % 64)); break;
    default: {
      std::string plain;
      for (int i = 0; i <= digits; ++i) plain += static_cast<char>('0' + random() % 10);
      if (random() % 4 != 0) plain.insert(random() % (plain.size() + 1), ".");
      return (random() % 2 == 0 ? "-" : "") + plain;
    }
  }
  return (random() % 2 == 0 ? "-" : "") + std::string(text);
}

TEST(Csv, RoundsAsStrtodDoes) {
  constexpr size_t kColumns = 8;
  constexpr size_t kLines = 20000;
  std::vector<std::string> columns(kColumns);
  for (size_t c = 0; c < kColumns; ++c) columns[c] = std::to_string(c);
  CsvLines singles({FeatureOf("x", DType::kFloat32, columns)}, {0, 1, 2, 3, 4, 5, 6, 7});
  CsvLines doubles({FeatureOf("x", DType::kFloat64, columns)}, {0, 1, 2, 3, 4, 5, 6, 7});
  std::mt19937_64 random(1);
  std::vector<std::string> numbers;
  std::vector<std::string> lines;
  for (size_t i = 0; i < kLines; ++i) {
    std::string line;
    for (size_t c = 0; c < kColumns; ++c) {
      numbers.push_back(RandomNumber(random));
      // Lines with quotes go another way than those without.
      const bool quoted = i % 2 == 1 && c == i % kColumns;
      line += (c > 0 ? "," : "") + (quoted ? '"' + numbers.back() + '"' : numbers.back());
    }
    lines.push_back(line);
  }
  ASSERT_TRUE(singles.Decode(lines).ok());
  ASSERT_TRUE(doubles.Decode(lines).ok());
  const auto floats = singles.Values<uint32_t>();
  const auto wide = doubles.Values<uint64_t>();
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(floats[i], std::bit_cast<uint32_t>(std::strtof(numbers[i].c_str(), nullptr))) << numbers[i];
    ASSERT_EQ(wide[i], std::bit_cast<uint64_t>(std::strtod(numbers[i].c_str(), nullptr))) << numbers[i];
  }
}

}  // namespace
}  // namespace headrace::side
