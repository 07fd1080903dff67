#include "cli/tfrecord_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace headrace::cli {
namespace {

// The empty record as TensorFlow 2.21 writes it: tf.io.TFRecordWriter(path).write(b"").
// CRC-32C of eight zero bytes is 0x8C28B28A (RFC 3720's table has 32 of them; this one is from the same polynomial),
// that of nothing is 0; masked: rotated right by 15, plus 0xA282EAD8.
TEST(TfrecordWriterTest, FramesAnEmptyRecord) {
  const std::string record = FrameRecord("");
  ASSERT_EQ(record.size(), 16u);
  EXPECT_EQ(record.substr(0, 8), std::string(8, '\0'));
  EXPECT_EQ(record.substr(8, 4), "\x29\x03\x98\x07");
  EXPECT_EQ(record.substr(12, 4), "\xD8\xEA\x82\xA2");
}

std::string ReadFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(TfrecordWriterTest, WritesOneExampleForEachValue) {
  const std::string path = testing::TempDir() + "/values.tfrecord";
  ASSERT_TRUE(WriteExamples(path, {5, -1}).ok());
  const std::string file = ReadFile(path);
  // Example{features{feature{key: "x" value{int64_list{value: 5}}}}}, as protoc --encode gives it.
  const std::string five("\x0a\x0c\x0a\x0a\x0a\x01x\x12\x05\x1a\x03\x0a\x01\x05", 14);
  ASSERT_GT(file.size(), 16 + five.size());
  EXPECT_EQ(file.substr(12, five.size()), five);
  EXPECT_EQ(file[0], 14);
  const std::string minus_one = file.substr(16 + five.size() + 12);
  EXPECT_EQ(minus_one.substr(0, minus_one.size() - 4),
            std::string("\x0a\x15\x0a\x13\x0a\x01x\x12\x0e\x1a\x0c\x0a\x0a", 13) + std::string(9, '\xff') + "\x01");
  std::filesystem::remove(path);
}

TEST(TfrecordWriterTest, NoValuesMakeAnEmptyFile) {
  const std::string path = testing::TempDir() + "/empty.tfrecord";
  ASSERT_TRUE(WriteExamples(path, {}).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 0u);
  std::filesystem::remove(path);
}

TEST(TfrecordWriterTest, NamesThePathItCannotWrite) {
  const Status status = WriteExamples("/nonexistent/x.tfrecord", {1});
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("/nonexistent/x.tfrecord"), std::string::npos);
}

}  // namespace
}  // namespace headrace::cli
