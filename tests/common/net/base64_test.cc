#include "common/net/base64.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Base64Test, MatchesTheVectorsOfRfc4648) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : vectors) {
    EXPECT_EQ(EncodeBase64(plain), encoded);
    EXPECT_EQ(DecodeBase64(encoded), plain);
  }
  const std::string bytes("\x00\xff\xfe\x80", 4);
  EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
}

TEST(Base64Test, RefusesWhatIsNot) {
  for (const char* text : {"Z", "Zg", "Zg=", "Z===", "Zm9v!A==", "Zm9v\n", "=AAA", "A=AA"})
    EXPECT_FALSE(DecodeBase64(text)) << text;
}

}  // namespace
}  // namespace headrace
