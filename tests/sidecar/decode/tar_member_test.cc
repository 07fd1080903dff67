#include "sidecar/decode/tar_member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/sidecar/tars.h"

namespace headrace::side {
namespace {

using testing::HasSubstr;

Result<TarMember::Found> Read(TarMember* member, const std::string& archive, size_t at = 0) {
  // Of just that size, so that a sanitizer sees one byte too far.
  const std::unique_ptr<uint8_t[]> bytes(new uint8_t[archive.size()]);
  std::copy(archive.begin(), archive.end(), bytes.get());
  return member->Read({bytes.get(), archive.size()}, at);
}

std::string Refusal(const std::string& archive) {
  TarMember member;
  const auto found = Read(&member, archive);
  EXPECT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), Code::kCorrupt);
  return found.status().message();
}

TEST(TarMember, IsReadWhereverItStands) {
  const std::string archive = TarFile("a", "hello") + TarFile("b/c.d", std::string(513, 'x')) + TarEnd();
  TarMember member;
  ASSERT_EQ(*Read(&member, archive), TarMember::Found::kMember);
  EXPECT_EQ(member.path(), "a");
  EXPECT_TRUE(member.is_file());
  EXPECT_EQ(member.begin(), 512u);
  EXPECT_EQ(member.size(), 5u);
  EXPECT_EQ(member.end(), 1024u);
  ASSERT_EQ(*Read(&member, archive, 1024), TarMember::Found::kMember);
  EXPECT_EQ(member.path(), "b/c.d");
  EXPECT_EQ(member.size(), 513u);
  EXPECT_EQ(member.end(), 2560u);
  EXPECT_EQ(*Read(&member, archive, 2560), TarMember::Found::kZeros);
}

TEST(TarMember, AsksForWhatItLacks) {
  const std::string archive =
      TarFile("ignored", "", {.type = 'g'}) + TarFile("long", "name", {.type = 'L'}) + TarFile("a", "hello");
  TarMember member;
  for (size_t size = 0; size < archive.size(); ++size) {
    const bool has_headers = size + 512 >= archive.size();
    ASSERT_EQ(*Read(&member, archive.substr(0, size)),
              has_headers ? TarMember::Found::kCut : TarMember::Found::kIncomplete)
        << size;
    EXPECT_GT(member.end(), size);
    EXPECT_LE(member.end(), archive.size());
    if (!has_headers) continue;
    EXPECT_EQ(member.path(), "name");
  }
  ASSERT_EQ(*Read(&member, archive), TarMember::Found::kMember);
  EXPECT_EQ(member.path(), "name");
}

TEST(TarMember, TakesNamesFromWhereTheyStand) {
  const std::string name(100, 'n');  // no NUL after it
  const std::string prefix(155, 'p');
  TarMember member;
  ASSERT_EQ(*Read(&member, TarFile(name, "", {.prefix = prefix})), TarMember::Found::kMember);
  EXPECT_EQ(member.path(), prefix + "/" + name);
  // GNU's headers and older ones have other things there.
  for (const std::string& magic : {std::string("ustar  \0", 8), std::string(8, '\0')}) {
    ASSERT_EQ(*Read(&member, TarFile("a", "", {.magic = magic, .prefix = "12345"})), TarMember::Found::kMember);
    EXPECT_EQ(member.path(), "a");
  }
  const std::string longer(1000, 'l');
  ASSERT_EQ(*Read(&member, TarFile("x", longer + '\0', {.type = 'L'}) + TarFile("a", "")), TarMember::Found::kMember);
  EXPECT_EQ(member.path(), longer);
  const std::string pax = PaxRecord("mtime", "1.5") + PaxRecord("path", longer + "=\n") + PaxRecord("comment", "");
  ASSERT_EQ(*Read(&member, TarFile("x", pax, {.type = 'x'}) + TarFile("a", "", {.prefix = "b"})),
            TarMember::Found::kMember);
  EXPECT_EQ(member.path(), longer + "=\n");
  // As git archive has it.
  ASSERT_EQ(*Read(&member, TarFile("x", PaxRecord("comment", "c0ffee"), {.type = 'g'}) + TarFile("a", "")),
            TarMember::Found::kMember);
  EXPECT_EQ(member.path(), "a");
  for (const std::string key : {"path", "size"}) {
    EXPECT_THAT(Refusal(TarFile("x", PaxRecord(key, "5"), {.type = 'g'}) + TarFile("a", "")),
                HasSubstr("gives all members the " + key + " \"5\""));
  }
  // An empty value takes back what stands elsewhere.
  ASSERT_EQ(*Read(&member, TarFile("x", PaxRecord("path", ""), {.type = 'x'}) + TarFile("a", "")),
            TarMember::Found::kMember);
  EXPECT_EQ(member.path(), "a");
}

TEST(TarMember, TakesSizesInEveryNotation) {
  const auto with_size = [](const std::string& size) {
    return TarHeader("a", 0, {.size = size}) + TarContent("12345");
  };
  TarMember member;
  for (const std::string& size :
       {std::string("00000000005\0", 12), std::string("         5 \0", 12), std::string("5\0__________", 12),
        std::string("000000000005", 12), std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12)}) {
    const auto found = Read(&member, with_size(size));
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(member.size(), 5u);
  }
  ASSERT_TRUE(Read(&member, with_size(std::string(12, ' '))).ok());
  EXPECT_EQ(member.size(), 0u);
  const std::string pax = TarFile("x", PaxRecord("size", "5"), {.type = 'x'});
  ASSERT_TRUE(Read(&member, pax + with_size("77777777777")).ok()) << "which eight gibibytes are";
  EXPECT_EQ(member.size(), 5u);
  EXPECT_THAT(Refusal(with_size("0000000000x")), HasSubstr("no number of bytes"));
  EXPECT_THAT(Refusal(with_size("0000000000-1")), HasSubstr("no number of bytes"));
  EXPECT_THAT(Refusal(with_size(std::string(12, '\xff'))), HasSubstr("no number of bytes"));
  EXPECT_THAT(Refusal(with_size("77777777777")), HasSubstr("says that its member holds 8589934591 bytes, more than"));
}

TEST(TarMember, TellsFilesFromTheRest) {
  TarMember member;
  for (const char type : {'0', '\0', '7'}) {
    ASSERT_TRUE(Read(&member, TarFile("a", "x", {.type = type})).ok());
    EXPECT_TRUE(member.is_file()) << type;
  }
  for (const char type : {'1', '2', '3', '4', '5', '6', 'V', 'A'}) {
    ASSERT_TRUE(Read(&member, TarFile("a", "x", {.type = type})).ok());
    EXPECT_FALSE(member.is_file()) << type;
    EXPECT_EQ(member.end(), type <= '6' ? 512u : 1024u) << type;  // a link has the size of what it links to
  }
  ASSERT_TRUE(Read(&member, TarFile("a/", "", {.type = '\0'})).ok());
  EXPECT_FALSE(member.is_file()) << "an old folder";
  EXPECT_THAT(Refusal(TarFile("a", "x", {.type = 'S'})), HasSubstr("sparse"));
  EXPECT_THAT(Refusal(TarFile("x", PaxRecord("GNU.sparse.major", "1"), {.type = 'x'}) + TarFile("a", "x")),
              HasSubstr("sparse"));
}

TEST(TarMember, ChecksTheChecksum) {
  const std::string good = TarFile("a", "x");
  for (size_t at = 0; at < 512; ++at) {
    if (at == 154 || at == 155) continue;  // the NUL and the blank that end the sum
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_THAT(Refusal(bad), HasSubstr("checksum")) << at;
  }
  // Of bytes that are signed, as writers of old had it: a name with one of 0xff counts 256 less.
  std::string old = TarHeader("\xff", 0);
  old = old.replace(148, 6, [&] {
    char text[8];
    std::snprintf(text, sizeof text, "%06o", static_cast<unsigned>(std::stoi(old.substr(148, 6), nullptr, 8)) - 256);
    return std::string(text);
  }());
  TarMember member;
  EXPECT_TRUE(Read(&member, old).ok());
}

TEST(TarMember, RefusesPaxHeadersThatAreNone) {
  for (const std::string pax : {"x", "5 a=b", "99 a=b\n", "6 a=bc\n", "3 \n", "7 abcd\n", "-7 a=b\n", "0 a=b\n"}) {
    EXPECT_THAT(Refusal(TarFile("x", pax, {.type = 'x'}) + TarFile("a", "")), HasSubstr("a pax header that cannot"))
        << pax;
  }
  EXPECT_THAT(Refusal(TarFile("x", PaxRecord("size", "5x"), {.type = 'x'}) + TarFile("a", "")),
              HasSubstr("whose size is no number"));
  EXPECT_THAT(Refusal(TarHeader("x", 2000000, {.type = 'L'})),
              HasSubstr("holds 2000000 bytes, more than is read: 1 MiB"));
  EXPECT_THAT(Refusal(TarFile("x", "name", {.type = 'L'}) + TarEnd()), HasSubstr("is the archive's last"));
}

// The expected values are those of webdataset 1.0.2: base_plus_ext, and what tar_file_iterator leaves out. But for
// hidden files within folders, which it takes for fields of a sample "dir/".
TEST(SampleName, IsThatOfWebDataset) {
  const auto name = [](std::string_view path) {
    const SampleName found = SampleNameOf(path);
    return std::string(found.key) + " | " + std::string(found.field);
  };
  EXPECT_EQ(name("a.jpg"), "a | jpg");
  EXPECT_EQ(name("a.seg.png"), "a | seg.png");
  EXPECT_EQ(name("dir.x/sub/a.jpg"), "dir.x/sub/a | jpg");
  EXPECT_EQ(name("./a.jpg"), "./a | jpg");
  EXPECT_EQ(name("a."), "a | ");
  EXPECT_EQ(name("a"), " | ");
  EXPECT_EQ(name(".a.jpg"), " | ");
  EXPECT_EQ(name("dir.x/a"), " | ");
  EXPECT_EQ(name("dir/.a"), " | ");
  EXPECT_EQ(name(""), " | ");
  EXPECT_EQ(name("__meta__"), " | ");
  EXPECT_EQ(name("__x__/a.jpg"), " | ");
  EXPECT_EQ(name("a/__x__/b.jpg"), "a/__x__/b | jpg");
  EXPECT_EQ(name("__a__.jpg"), "__a__ | jpg");
  EXPECT_EQ(name("__a.jpg"), "__a | jpg");
}

}  // namespace
}  // namespace headrace::side
