#include "sidecar/remote/xml.h"

#include <charconv>
#include <cstring>
#include <pugixml.hpp>

#include "sidecar/remote/url.h"

namespace headrace::side {

Result<ListPage> ParseListPage(const std::string& xml) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!parsed || !root) return Corrupt("the reply to a listing is not ListBucketResult");
  const bool encoded = std::strcmp(root.child_value("EncodingType"), "url") == 0;
  const auto name = [&](const char* text) { return encoded ? PercentDecode(text) : std::string(text); };
  ListPage page;
  for (const pugi::xml_node object : root.children("Contents")) {
    ListedObject& listed = page.objects.emplace_back();
    listed.key = name(object.child_value("Key"));
    listed.version = object.child_value("ETag");
    const std::string_view size = object.child_value("Size");
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), listed.size);
    if (error != std::errc() || end != size.data() + size.size() || listed.key.empty()) {
      return Corrupt("a listing holds an object without key or size");
    }
  }
  for (const pugi::xml_node prefix : root.children("CommonPrefixes")) {
    page.prefixes.push_back(name(prefix.child_value("Prefix")));
  }
  page.truncated = std::strcmp(root.child_value("IsTruncated"), "true") == 0;
  page.next_token = root.child_value("NextContinuationToken");
  if (page.truncated && page.next_token.empty()) return Corrupt("a listing is cut without saying where it goes on");
  return page;
}

StoreError ParseStoreError(const std::string& xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return {};
  const pugi::xml_node root = document.child("Error");
  return {root.child_value("Code"), root.child_value("Message"), root.child_value("Region")};
}

std::string XmlText(const std::string& xml, const char* name) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return {};
  return document.find_node([&](const pugi::xml_node& node) { return std::strcmp(node.name(), name) == 0; })
      .child_value();
}

}  // namespace headrace::side
