// The CRD and ParseInputSpec are two readings of one spec: they must know the same fields and agree on what is valid.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "common/spec/input_spec.h"
#include "tests/operator/yaml_case.h"

namespace headrace {
namespace {

using nlohmann::json;

json Schema() {
  const json crd = testing::LoadYaml(HEADRACE_SOURCE_DIR "/crds/headrace.dev_distributedinputs.yaml");
  return crd.at("/spec/versions/0/schema/openAPIV3Schema/properties/spec"_json_pointer);
}

// A spec in which every field of the schema is set, whatever CEL would say of it; what is required has plausible
// values.
constexpr char kEverything[] = R"({
  "source": {"files": {"format": "TFRecord", "paths": ["s3://b/a"], "compression": "None",
    "objectStore": {"endpoint": "https://a.example", "region": "b", "cache": {"maxBytes": 9}},
    "pipeline": [{"shuffle": {"bufferSize": 1, "seed": 1, "reshuffleEachIteration": false}}, {"repeat": {"count": 1}},
                 {"take": {"count": 1}}, {"skip": {"count": 1}}, {"shard": {"numShards": 2, "index": 1}},
                 {"shard": {"by": "Hint"}}]}},
  "features": [{"name": "x", "dtype": "int64", "shape": [1], "default": [1]}, {"name": "s", "dtype": "string"},
               {"name": "i", "dtype": "string"}, {"name": "r", "dtype": "string"}, {"name": "v", "dtype": "int64", "shape": [-1]}],
  "pipeline": [{"interleave": {"cycleLength": 1, "blockLength": 1, "numParallelCalls": 4,
                "deterministic": false}}, {"cache": {"maxBytes": 9}}, {"shuffle": {"bufferSize": 1, "seed": 1,
                "reshuffleEachIteration": false}}, {"repeat": {"count": 1}}, {"take": {"count": 1}},
               {"skip": {"count": 1}}, {"enumerate": {"start": 1}}, {"filter": {"expression": "x[0] > 1"}},
               {"paddedBatch": {"size": 1, "dropRemainder": true, "paddedShapes": {"v": [4]},
                                "paddingValues": {"v": 1}}}, {"batch": {"size": 1, "dropRemainder": true}},
               {"prefetch": {"bufferSize": 1}}, {"shard": {"numShards": 2, "index": 1}}, {"shard": {"by": "Hint"}},
               {"map": {"feature": "s", "stringToNumber": "int64"}},
               {"map": {"feature": "i", "decodeImage": {"shape": [2, 2, 3], "resize": "Nearest"}}},
               {"map": {"feature": "r", "decodeRaw": {"dtype": "int16", "shape": [2]}}}, {"map": {"feature": "x", "as": "y", "cast": "float32"}},
               {"map": {"feature": "y", "scale": 2, "offset": 1}},
               {"map": {"feature": "y", "scales": [2], "offsets": [1]}}, {"map": {"feature": "y", "transpose": [0]}},
               {"map": {"feature": "x", "reshape": []}},
               {"map": {"feature": "x", "oneHot": {"depth": 2, "dtype": "int8"}}}],
  "distribution": {"strategy": "Mirrored", "autoShardPolicy": "Hint", "rebatch": "PerBatch", "replicasPerWorker": 2,
                   "collective": {"backend": "NCCL", "onError": "Fail", "timeoutSeconds": 9}},
  "delivery": {"memory": "Device", "resourceClaim": "gpu", "prefetchSteps": 2, "maxBatchBytes": 9}
})";

// The paths of all fields, list entries as "[]": "spec.pipeline[].batch.size".
void SchemaFields(const json& schema, const std::string& path, std::set<std::string>& fields) {
  if (schema.contains("items")) SchemaFields(schema["items"], path + "[]", fields);
  if (!schema.contains("properties")) return;
  for (const auto& [name, property] : schema["properties"].items()) {
    fields.insert(path + "." + name);
    // These are the pod's affair: the parser passes them by.
    const std::string full = path + "." + name;
    if (full != "spec.loader" && full != "spec.source.files.volume" && full != "spec.source.function.container" &&
        full != "spec.source.files.objectStore.credentialsSecret" &&
        full != "spec.source.files.objectStore.cache.volume")
      SchemaFields(property, path + "." + name, fields);
  }
}

void ValueFields(const json& value, const std::string& path, std::set<std::string>& fields) {
  if (value.is_array()) {
    for (const json& entry : value) ValueFields(entry, path + "[]", fields);
  }
  if (!value.is_object()) return;
  for (const auto& [name, entry] : value.items()) {
    fields.insert(path + "." + name);
    // By feature: what stands below is no field.
    if (name != "paddedShapes" && name != "paddingValues") ValueFields(entry, path + "." + name, fields);
  }
}

TEST(CrdSchema, HasTheFieldsOfTheParser) {
  std::set<std::string> of_schema;
  SchemaFields(Schema(), "spec", of_schema);
  // ToJson writes every field, so a spec of each source and with everything set shows all that the parser knows.
  std::set<std::string> of_parser = {"spec.loader", "spec.source.files.volume",
                                     "spec.source.files.objectStore.credentialsSecret",
                                     "spec.source.files.objectStore.cache.volume", "spec.source.function.container"};
  for (const char* text :
       {kEverything, R"({"source": {"range": {"start": 1, "stop": 9, "step": 2, "dtype": "int32"}}})",
        R"({"source": {"function": {"command": ["a"], "maxElementBytes": 1}}})",
        R"({"source": {"files": {"paths": ["a"]}}, "pipeline": [{"bucketBatch": {"feature": "record", "boundaries": [4],
            "size": 8}}]})",
        R"({"source": {"files": {"paths": ["a"]}}, "pipeline": [{"bucketBatch": {"boundaries": [4], "sizes": [8, 2],
            "dropRemainder": true}}]})",
        R"({"source": {"files": {"paths": ["a"]}}, "features": [{"name": "x", "shape": [-1]}],
            "pipeline": [{"pack": {"length": 8, "features": ["x"], "split": true}}]})",
        R"({"source": {"files": {"format": "FixedLength", "paths": ["a"], "fixedLength": {"recordBytes": 9},
            "pipeline": [{"shuffle": {"scope": "Global"}}]}},
            "features": [{"name": "x"}], "pipeline": [{"shuffle": {"scope": "Global"}}, {"batch": {"size": 1}}],
            "onError": {"policy": "Skip", "maxSkipped": 3}})",
        R"({"source": {"files": {"format": "CSV", "paths": ["a"],
            "csv": {"header": false, "columns": ["a", "b"], "delimiter": ";"}}},
            "features": [{"name": "x", "shape": [2], "columns": ["a", "b"]}]})",
        R"({"source": {"files": {"format": "JSONLines", "paths": ["a"]}}, "features": [{"name": "x", "path": "/a"}]})",
        R"({"source": {"tensors": [{"name": "a", "dtype": "int8", "shape": [1], "values": [1]}]}})"}) {
    const auto spec = ParseInputSpec(json::parse(text));
    ASSERT_TRUE(spec.ok()) << spec.status().ToString();
    ValueFields(ToJson(*spec), "spec", of_parser);
  }
  EXPECT_EQ(of_schema, of_parser);
}

// Pairs of (path, schema) of every node.
void EveryNode(const json& schema, const std::string& path, std::vector<std::pair<std::string, json>>& nodes) {
  nodes.emplace_back(path, schema);
  if (schema.contains("items")) EveryNode(schema["items"], path + "[]", nodes);
  if (schema.contains("additionalProperties")) EveryNode(schema["additionalProperties"], path + "{}", nodes);
  if (!schema.contains("properties")) return;
  for (const auto& [name, property] : schema["properties"].items()) EveryNode(property, path + "." + name, nodes);
}

TEST(CrdSchema, EveryFieldIsDescribedAndBounded) {
  const json crd = testing::LoadYaml(HEADRACE_SOURCE_DIR "/crds/headrace.dev_distributedinputs.yaml");
  const json root = crd.at("/spec/versions/0/schema/openAPIV3Schema/properties"_json_pointer);
  std::vector<std::pair<std::string, json>> nodes;
  EveryNode(root.at("spec"), "spec", nodes);
  EveryNode(root.at("status"), "status", nodes);
  for (const auto& [path, node] : nodes) {
    const bool entry = path.ends_with("[]") || path.ends_with("{}");
    EXPECT_TRUE(entry || node.contains("description")) << path;
    EXPECT_FALSE(node.contains("x-kubernetes-preserve-unknown-fields")) << path;
    if (node.contains("x-kubernetes-int-or-string")) continue;
    const std::string type = node.value("type", "none");
    if (type == "string") {
      EXPECT_TRUE(node.contains("maxLength") || node.contains("enum") || node.contains("format")) << path;
    } else if (type == "array") {
      EXPECT_TRUE(node.contains("maxItems")) << path;
      EXPECT_TRUE(node.contains("x-kubernetes-list-type")) << path;
    } else if (type == "integer") {
      EXPECT_TRUE(node.contains("minimum")) << path;
    } else {
      EXPECT_TRUE(type == "object" || type == "boolean" || type == "number") << path << " has type " << type;
    }
    if (node.contains("additionalProperties")) {
      EXPECT_TRUE(node.contains("maxProperties")) << path;
    }
  }
}

json Specs(const char* list) { return testing::LoadYaml(HEADRACE_SOURCE_DIR "/tests/crds/specs.yaml").at(list); }

TEST(CrdSchema, ParserAcceptsWhatTheSchemaAccepts) {
  for (const json& item : Specs("accepted")) {
    EXPECT_TRUE(ParseInputSpec(item.at("spec")).ok())
        << item["about"] << ": " << ParseInputSpec(item["spec"]).status().ToString();
  }
}

TEST(CrdSchema, ParserRefusesWhatTheSchemaRefuses) {
  for (const json& item : Specs("refused")) {
    EXPECT_FALSE(ParseInputSpec(item.at("spec")).ok()) << item["about"];
  }
}

TEST(CrdSchema, EnumsAreTheParsers) {
  const json schema = Schema();
  const auto check = [](const json& values, const std::string& field,
                        const std::function<json(const json&)>& spec_with) {
    for (const json& value : values) {
      EXPECT_TRUE(ParseInputSpec(spec_with(value)).ok())
          << field << " " << value << ": " << ParseInputSpec(spec_with(value)).status().ToString();
    }
  };
  const auto range = [](json more) {
    more["source"]["range"]["stop"] = 1;
    return more;
  };
  const json& properties = schema.at("properties");
  const json& distribution = properties.at("distribution").at("properties");
  for (const char* field : {"strategy", "autoShardPolicy"}) {
    check(distribution.at(field).at("enum"), field, [&](const json& value) {
      return range({{"distribution", {{field, value}}}});
    });
  }
  check(distribution.at("rebatch").at("enum"), "rebatch", [&](const json& value) {
    return range({{"distribution", {{"rebatch", value}, {"autoShardPolicy", "Off"}}}});
  });
  check(properties.at("/delivery/properties/memory/enum"_json_pointer), "memory", [&](const json& value) {
    return range({{"delivery", {{"memory", value}}}});
  });
  check(properties.at("/features/items/properties/dtype/enum"_json_pointer), "dtype", [](const json& value) {
    return json{{"source", {{"files", {{"paths", {"a"}}}}}}, {"features", {{{"name", "x"}, {"dtype", value}}}}};
  });
  const json& map = properties.at("/pipeline/items/properties/map/properties"_json_pointer);
  check(map.at("/cast/enum"_json_pointer), "cast", [&](const json& value) {
    return range({{"pipeline", {{{"map", {{"cast", value}}}}}}});
  });
  check(map.at("/stringToNumber/enum"_json_pointer), "stringToNumber", [](const json& value) {
    return json{{"source", {{"files", {{"paths", {"a"}}}}}},
                {"features", {{{"name", "x"}, {"dtype", "string"}}}},
                {"pipeline", {{{"map", {{"stringToNumber", value}}}}}}};
  });
  check(map.at("/decodeImage/properties/resize/enum"_json_pointer), "resize", [](const json& value) {
    return json{{"source", {{"files", {{"paths", {"a"}}}}}},
                {"features", {{{"name", "x"}, {"dtype", "string"}}}},
                {"pipeline", {{{"map", {{"decodeImage", {{"shape", {2, 2, 1}}, {"resize", value}}}}}}}}};
  });
  const json& files = properties.at("/source/properties/files/properties"_json_pointer);
  for (const char* field : {"format", "compression"}) {
    check(files.at(field).at("enum"), field, [&](const json& value) {
      // A line of text is a string.
      const char* const dtype = value == "Text" ? "string" : "float32";
      return json{{"source", {{"files", {{"paths", {"a"}}, {field, value}}}}},
                  {"features", {{{"name", "x"}, {"dtype", dtype}}}}};
    });
  }
}

}  // namespace
}  // namespace headrace
