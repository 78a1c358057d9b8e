// SPDX-License-Identifier: GPL-3.0-or-later
// Files made to break readers. Each must be refused, by file and field.
#pragma once

#include "support/OnnxText.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::test {

struct HostileFile {
    std::string what; ///< what is wrong with it
    std::string name; ///< of the file, which says how it is read
    std::string bytes;
    std::string expected; ///< part of the message
};

inline std::string withHeader(std::string_view header, std::string_view data = {}) {
    std::string bytes;
    for (std::uint64_t length = header.size(); bytes.size() < 8; length >>= 8)
        bytes += static_cast<char>(length & 0xff);
    return bytes.append(header).append(data);
}

inline std::vector<HostileFile> hostileSafetensors() {
    std::vector<HostileFile> files;
    const auto add = [&](const char* what, std::string bytes, const char* expected) {
        files.push_back({what, "x.safetensors", std::move(bytes), expected});
    };
    const auto tensor = [](std::string_view facts, std::size_t data = 4) {
        return withHeader(std::string(R"({"a":{)") + std::string(facts) + "}}", std::string(data, '\0'));
    };
    add("empty", "", "too short");
    add("seven bytes", std::string(7, '\1'), "too short");
    add("header of 2^63 bytes", std::string("\0\0\0\0\0\0\0\x80", 8) + "{}", "9223372036854775808 bytes");
    add("header of 2^64 - 1 bytes", std::string(8, '\xff') + "{}", "18446744073709551615 bytes");
    add("header past the end", std::string("\x40\0\0\0\0\0\0\0", 8) + "{}", "the file ends after 2");
    add("header of 100 MB", std::string("\0\xe1\xf5\x05\0\0\0\0", 8) + "{}", "the file ends after");
    add("no object", withHeader("[]"), "must begin with {");
    add("cut off", withHeader(R"({"a":{"dtype":"F32")"), "not valid JSON");
    add("invalid UTF-8", withHeader("{\"a\xff\":{}}"), "not valid JSON");
    add("not a number", tensor(R"("dtype":"F32","shape":[NaN],"data_offsets":[0,4])"), "not valid JSON");
    add("deep nesting", withHeader("{\"a\":" + std::string(100000, '[')), "a: an array is out of place");
    add("nested shape", tensor(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])"), "a: shape");
    add("text as tensor", withHeader(R"({"a":"F32"})"), "a: text is out of place");
    add("negative extent", tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), "a: shape: -1");
    add("fraction", tensor(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])"), "a: shape: 1.5");
    add("huge extent", tensor(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])"), "a: shape has");
    add("overflowing product",
        tensor(R"("dtype":"F32","shape":[1048576,1048576,1048576,1048576],"data_offsets":[0,4])"), "a: shape has more");
    add("rank 1000",
        tensor("\"dtype\":\"F32\",\"shape\":[1" +
               [] {
                   std::string ones;
                   for (int i = 0; i < 999; ++i)
                       ones += ",1";
                   return ones;
               }() +
               R"(],"data_offsets":[0,4])"),
        "a: shape has more than");
    add("unknown dtype", tensor(R"("dtype":"F128","shape":[1],"data_offsets":[0,4])"), "a: dtype is \"F128\"");
    add("dtype as number", tensor(R"("dtype":32,"shape":[1],"data_offsets":[0,4])"), "a: dtype: a number is out");
    add("no dtype", tensor(R"("shape":[1],"data_offsets":[0,4])"), "a: dtype is missing");
    add("no offsets", tensor(R"("dtype":"F32","shape":[1])"), "a: data_offsets is missing");
    add("one offset", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), "a: data_offsets is missing or");
    add("three offsets", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])"), "a: data_offsets has more");
    add("extra member", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"code":1)"), "a: has \"code\"");
    add("offsets reversed", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), "a: data_offsets 4 to 0");
    add("offsets past the end", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), "a: data_offsets 0 to 8");
    add("offsets beyond 2^53", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,9007199254740993])"),
        "a: data_offsets has");
    add("offsets that do not fit the shape", tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"),
        "a: data_offsets hold 4 bytes, shape and dtype need 8");
    add("bytes that are no tensor's", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", 9), "4 of 9 bytes");
    add("overlapping tensors",
        withHeader(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                   R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                   std::string(8, '\0')),
        "b: data_offsets begin at 4, inside the tensor before");
    add("a hole between tensors",
        withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                   R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                   std::string(12, '\0')),
        "b: data_offsets begin at 8, after a hole");
    add("a tensor twice",
        withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                   R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                   std::string(8, '\0')),
        "has \"a\" twice");
    add("a member twice", tensor(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])"),
        "a: has dtype twice");
    add("no tensors", withHeader(R"({"__metadata__":{"format":"pt"}})"), "holds no parameters");
    add("metadata of lists", withHeader(R"({"__metadata__":{"format":[1]}})"), "out of place");
    add("buffers alone",
        withHeader(R"({"x.inv_freq":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", std::string(4, '\0')),
        "holds no parameters");
    add("an endless name", withHeader("{\"" + std::string(100000, 'n') + "\":{}}"), "a name of 100000");
    return files;
}

inline std::vector<HostileFile> hostileIndices() {
    std::vector<HostileFile> files;
    const auto add = [&](const char* what, std::string bytes, const char* expected) {
        files.push_back({what, "model.safetensors.index.json", std::move(bytes), expected});
    };
    add("no map", "{}", "weight_map is missing");
    add("map of a list", R"({"weight_map":[]})", "weight_map must be an object");
    add("path upwards", R"({"weight_map":{"a":"../a.safetensors"}})", "weight_map.a must name a file beside");
    add("absolute path", R"({"weight_map":{"a":"/etc/passwd"}})", "weight_map.a must name a file beside");
    add("path with a zero byte", R"({"weight_map":{"a":"b\u0000c"}})", "weight_map.a must name a file beside");
    add("number as path", R"({"weight_map":{"a":1}})", "weight_map.a must name a file beside");
    add("hidden file", R"({"weight_map":{"a":".."}})", "weight_map.a must name a file beside");
    add("absent shard", R"({"weight_map":{"a":"absent.safetensors"}})", "absent.safetensors: cannot be opened");
    add("the index itself", R"({"weight_map":{"a":"model.safetensors.index.json"}})", "says that its header has");
    add("a tensor twice", R"({"weight_map":{"a":"b","a":"c"}})", "\"a\" twice");
    return files;
}

inline std::vector<HostileFile> hostileOnnx() {
    using namespace onnx_text;
    std::vector<HostileFile> files;
    const auto add = [&](const char* what, std::string bytes, const char* expected) {
        files.push_back({what, "x.onnx", std::move(bytes), expected});
    };
    const std::string product = node("MatMul", {"x", "w"}, {"y"}) + input("x", {2, 4}) + output("y");
    const auto withTensor = [&](const std::string& weight) { return model(product + weight); };
    add("empty", "", "graph: has no nodes");
    add("text", "this is no graph", "is not an ONNX graph");
    add("zeros", std::string(4096, '\0'), "is not an ONNX graph");
    add("no graph", number(1, 8), "graph: has no nodes");
    add("no nodes", model(""), "graph: has no nodes");
    add("length past the end", varint(7 << 3 | 2) + varint(1 << 20) + "x", "is not an ONNX graph");
    add("length of 2^31", varint(7 << 3 | 2) + varint(std::uint64_t{1} << 31), "is not an ONNX graph");
    add("inner length past the outer", text(7, varint(5 << 3 | 2) + varint(100) + "x"), "is not an ONNX graph");
    add(
        "deep nesting",
        [] {
            std::string bytes;
            for (int i = 0; i < 2000; ++i) // node, attribute, graph, node, ...
                bytes = text(1, text(5, text(6, bytes)));
            return model(bytes);
        }(),
        "graph: nothing in it is computed");
    add(
        "two million empty nodes",
        [] {
            std::string bytes;
            for (int i = 0; i < (2 << 20); ++i)
                bytes += std::string("\x0a\0", 2);
            return model(bytes);
        }(),
        "graph: has more than 1048576 parts");
    add("a node of 33 MiB", model(node("Relu", {"x"}, {"y"}, std::string(33U << 20, 'n')) + input("x", {1})),
        "or more than 33554432 bytes beside");
    add(
        "a million empty attributes",
        [] {
            std::string bytes;
            for (int i = 0; i < (1 << 20) + 1; ++i)
                bytes += std::string("\x2a\0", 2);
            return model(text(1, bytes));
        }(),
        "graph: has more than 1048576 parts");
    add(
        "a shape of a million axes",
        [] {
            std::string bytes;
            for (int i = 0; i < (1 << 20) + 1; ++i)
                bytes += std::string("\x0a\0", 2);
            return model(node("Relu", {"x"}, {"y"}) + text(11, text(1, "x") + text(2, text(1, text(2, bytes)))));
        }(),
        "graph: has more than 1048576 parts");
    add("negative extent", withTensor(tensor("w", {-4, 8}, {})), "initializer w: dims");
    add("overflowing extents", withTensor(tensor("w", {1 << 30, 1 << 30, 1 << 30}, {})), "initializer w: dims");
    add("elements that do not fit", withTensor(tensor("w", {4, 8}, std::string(100, '\0'))),
        "initializer w: has 100 bytes");
    add("an initialiser twice", withTensor(tensor("w", {0}, {}) + tensor("w", {0}, {})),
        "initializer w: is there twice");
    add("external path upwards", withTensor(tensor("w", {4, 8}, {}, 1, external("../w.data"))),
        "w: external_data location");
    add("absolute external path", withTensor(tensor("w", {4, 8}, {}, 1, external("/etc/passwd"))),
        "w: external_data location");
    add("hidden external path", withTensor(tensor("w", {4, 8}, {}, 1, external("a/../../w"))),
        "w: external_data location");
    add("no external path", withTensor(tensor("w", {4, 8}, {}, 1, number(14, 1))), "w: external_data location");
    add("external offset as text", withTensor(tensor("w", {4, 8}, {}, 1, external("w.data", "many"))),
        "w: external_data offset is \"many\"");
    add("negative external offset", withTensor(tensor("w", {4, 8}, {}, 1, external("w.data", "-8"))),
        "w: external_data offset is \"-8\"");
    add("external length", withTensor(tensor("w", {4, 8}, {}, 1, external("w.data", "0", "64"))),
        "w: external_data length is 64");
    add("external data past its end", withTensor(tensor("w", {4, 8}, {}, 1, external("x.onnx", "1000000"))),
        "w: external_data offset 1000000");
    add("a cycle",
        model(node("Add", {"x", "b"}, {"a"}, "first") + node("Add", {"a", "x"}, {"b"}, "second") + input("x", {1})),
        "graph.node[0] first: reads \"b\"");
    add("a node that reads itself", model(node("Add", {"x", "y"}, {"y"}, "loop") + input("x", {1})),
        "graph.node[0] loop: reads \"y\"");
    add("a value made twice", model(node("Relu", {"x"}, {"y"}) + node("Relu", {"x"}, {"y"}, "again") + input("x", {1})),
        "graph.node[1] again: makes \"y\"");
    add("an input that is not there", model(node("Relu", {"x"}, {"y"}, "lost")), "graph.node[0] lost: reads \"x\"");
    add("a negative input",
        model(node("Relu", {"x"}, {"y"}) +
              text(11, text(1, "x") + text(2, text(1, number(1, 1) + text(2, text(1, number(1, -5))))))),
        "input x: axis 0 is -5");
    add("a node named by other bytes", model(node("Relu", {"x"}, {"y"}, "\xff\xfe") + input("x", {1})),
        "graph.node[0].name: is not valid UTF-8");
    add("an endless name", model(node("Relu", {"x"}, {"y"}, std::string(5000, 'n')) + input("x", {1})),
        "graph.node[0].name: has 5000 bytes");
    add("an input named by other bytes", model(node("Relu", {"\xc0\x80"}, {"y"}) + input("\xc0\x80", {1})),
        "graph.node[0].input[0]: is not valid UTF-8");
    add("an output named by other bytes", model(node("Relu", {"x"}, {"\xed\xa0\x80"}) + input("x", {1})),
        "graph.node[0].output[0]: is not valid UTF-8");
    add("an initialiser named by other bytes", withTensor(tensor("\xf4\x90\x80\x80", {1}, std::string(4, '\0'))),
        "graph.initializer[0].name: is not valid UTF-8");
    add("an input of no tensor", model(node("Relu", {"x"}, {"y"}) + text(11, text(1, "x"))), "input x: is no tensor");
    add("a product beyond all sizes",
        model(node("Relu", {"x"}, {"y"}) + input("x", {1, std::int64_t{1} << 39, std::int64_t{1} << 39}) + output("y")),
        "too large to plan");
    return files;
}

inline std::vector<HostileFile> hostileGraphs() {
    std::vector<HostileFile> files;
    const auto add = [&](const char* what, std::string bytes, const char* expected) {
        files.push_back({what, "x.graph.json", std::move(bytes), expected});
    };
    const auto graph = [](const std::string& operators, const std::string& more = {}) {
        return R"({"format":"shardscope-graph","version":1,"name":"x","family":"x","sequence":8)" + more +
               R"(,"operators":[)" + operators + "]}";
    };
    const auto op = [](const std::string& name, const std::string& shape, const std::string& more = {}) {
        return R"({"name":")" + name + R"(","kind":"linear","tensors":[{"name":"weight","shape":)" + shape +
               R"(}],"flops_forward":1,"kept":[])" + more + "}";
    };
    add("another version", R"({"format":"shardscope-graph","version":2})", "version is 2");
    add("an endless text that is cut off", "{\"a\":\"" + std::string(1U << 20, 'x'), "missing closing quote");
    add("an endless number", R"({"format":"shardscope-graph","version":)" + std::string(1U << 20, '9') + "}",
        "number overflow");
    add("an endless key twice", "{\"" + std::string(1U << 20, 'k') + "\":0,\"" + std::string(1U << 20, 'k') + "\":0}",
        "kkk...\" twice");
    add("an endless choice", R"({"format":")" + std::string(4096, 'x') + "\"}", "known are shardscope-graph");
    add("another format", R"({"format":"shardscope-plan"})", "format is \"shardscope-plan\"");
    add("no operators", graph(""), "operators is empty");
    add("neither operators nor architecture",
        R"({"format":"shardscope-graph","version":1,"name":"x","family":"x","sequence":8})", "operators is missing");
    add("sequence of zero", R"({"format":"shardscope-graph","version":1,"name":"x","family":"x","sequence":0})",
        "sequence is 0");
    add("sequence beyond the context", graph(op("a", "[1]"), R"(,"maximum_sequence":4)"), "sequence 8 is more than");
    add("a name twice", graph(op("a", "[1]") + "," + op("a", "[1]")), "operators[1].name \"a\" is given twice");
    add("an empty name", graph(op("", "[1]")), "operators[0].name is empty");
    add("negative extent", graph(op("a", "[-1]")), "operators[0].tensors[0].shape[0] is -1");
    add("overflowing extents", graph(op("a", "[1048576,1048576,1048576,1048576]")),
        "operators[0].tensors[0].shape has");
    add("tied to nothing", graph(op("a", "[1]", R"(,"tied_to":"b")")), "operators[0].tied_to \"b\" must be");
    add("tied to itself", graph(op("a", "[1]", R"(,"tied_to":"a")")), "operators[0].tied_to");
    add("tied in a circle", graph(op("a", "[1]", R"(,"tied_to":"b")") + "," + op("b", "[1]", R"(,"tied_to":"a")")),
        "operators[0].tied_to");
    add("a name outside its block", graph(op("a", "[1]", R"(,"block":"h.0")")), "must continue its block");
    add("a torn block",
        graph(op("h.0.a", "[1]", R"(,"block":"h.0")") + "," + op("b", "[1]") + "," +
              op("h.0.c", "[1]", R"(,"block":"h.0")")),
        "operators[2].block \"h.0\" is in two places");
    add("more active experts", graph(op("a", "[1]", R"(,"experts":{"count":2,"active":3})")),
        "operators[0].experts.active is 3");
    add("infinite work", graph(R"({"name":"a","kind":"linear","tensors":[],"flops_forward":1e400,"kept":[]})"),
        "not valid JSON");
    add("unknown kind", graph(R"({"name":"a","kind":"code","tensors":[],"flops_forward":1,"kept":[]})"),
        "operators[0].kind is \"code\"");
    add("rows that do not divide",
        graph(R"({"name":"a","kind":"linear","tensors":[{"name":"w","shape":[4],"rows":3}],)"
              R"("flops_forward":1,"kept":[]})"),
        "operators[0].tensors[0].rows 3 does not");
    add("endless activations",
        graph(
            R"({"name":"a","kind":"linear","tensors":[],"flops_forward":1,"kept":[{"name":"x","elements":9007199254740991}]})"),
        "operators[0].kept[0].elements is 9007199254740991");
    return files;
}

/// A right cluster of two nodes, in which `from` is replaced by `to`.
inline std::string clusterText(std::string_view from = {}, std::string_view to = {}) {
    std::string text =
        R"({"format":"shardscope-cluster","version":1,"name":"x","title":"X","nodes":2,"devices_per_node":4,)"
        R"("device":{"name":"d","kind":"gpu","memory_bytes":17179869184,"flops":{"fp32":1e13,"bf16":1e14},)"
        R"("peak_flops":{"fp32":2e13,"bf16":2e14},"memory_bandwidth":1e12},)"
        R"("links":{"inside":{"latency_seconds":1e-6,"bytes_per_second":1e11},)"
        R"("between":{"latency_seconds":1e-5,"bytes_per_second":1e10}},)"
        R"("host_seconds_per_collective":1e-5,"overlap_efficiency":0.9,)"
        R"("reserve":[{"what":"context","bytes":536870912,"source":"assumed"}],"source":"here","measured":null})";
    return from.empty() ? text : text.replace(text.find(from), from.size(), to);
}

/// Files for --cluster.
inline std::vector<HostileFile> hostileClusters() {
    std::vector<HostileFile> files;
    const auto add = [&](const char* what, std::string bytes, const char* expected) {
        files.push_back({what, "x.cluster.json", std::move(bytes), expected});
    };
    const auto with = [&](const char* what, std::string_view from, std::string_view to, const char* expected) {
        add(what, clusterText(from, to), expected);
    };
    add("zeros", std::string(4096, '\0'), "not valid JSON");
    add("another kind of file", R"({"model_type":"gpt2"})", "format is missing");
    add("deep nesting", "{\"format\":" + std::string(100000, '['), "nested deeper");
    add("deep nesting where anything may stand", clusterText("null", std::string(100, '[') + std::string(100, ']')),
        "nested deeper");
    add(
        "eighty thousand keys",
        [] {
            std::string members;
            for (int i = 0; i < 80000; ++i)
                members += "\"k" + std::to_string(i) + "\":0,";
            return "{" + members + R"("format":"shardscope-cluster"})";
        }(),
        "version is missing");
    add("a file of a mebibyte", clusterText("null", "\"" + std::string(1U << 20, 'x') + "\""), "more than the 1048576");
    with("invalid UTF-8", R"("X")", "\"\xff\"", "not valid JSON");
    with("a key twice", R"("nodes":2)", R"("nodes":2,"nodes":3)", "\"nodes\" twice");
    with("another version", R"("version":1)", R"("version":2)", "version is 2");
    with("a version as text", R"("version":1)", R"("version":"1")", "version must be an integer");
    with("an endless name", R"("name":"x")", "\"name\":\"" + std::string(5000, 'n') + "\"", "name has 5000 characters");
    with("no nodes", R"("nodes":2)", R"("nodes":0)", "nodes is 0");
    with("nodes as a fraction", R"("nodes":2)", R"("nodes":2.5)", "nodes is 2.5");
    with("2^64 nodes", R"("nodes":2)", R"("nodes":18446744073709551616)", "nodes is 1.8446744073709552e+19");
    with("2^63 devices", R"("devices_per_node":4)", R"("devices_per_node":9223372036854775808)",
         "devices_per_node is 9223372036854775808");
    with("a product of 2^40 devices", R"("nodes":2,"devices_per_node":4)",
         R"("nodes":1048576,"devices_per_node":1048576)", "nodes times devices_per_node");
    with("a device that is a list", R"("device":{)", R"("device":[],"other":{)", "device must be an object");
    with("no device", R"("device":{)", R"("other":{)", "device is missing");
    with("an unknown kind", R"("gpu")", R"("tpu")", "device.kind is \"tpu\"");
    with("no memory", "17179869184", "0", "device.memory_bytes is 0");
    with("negative memory", "17179869184", "-1", "device.memory_bytes is -1");
    with("memory as text", "17179869184", R"("16GiB")", "device.memory_bytes must be an integer");
    with("memory of an exabyte", "17179869184", "1152921504606846976", "device.memory_bytes is 1152921504606846976");
    with("memory as a fraction", "17179869184", "1.7e10", "device.memory_bytes is 1");
    with("no rate", R"("fp32":1e13,)", "", "device.flops.fp32 is missing");
    with("a rate of nothing", R"("fp32":1e13)", R"("fp32":0)", "device.flops.fp32 is 0");
    with("an infinite rate", R"("fp32":1e13)", R"("fp32":1e999)", "not valid JSON");
    with("a rate beyond all machines", R"("fp32":1e13)", R"("fp32":1e300)", "device.flops.fp32 is 1e+300");
    with("a rate that is not a number", R"("fp32":1e13)", R"("fp32":NaN)", "not valid JSON");
    with("a rate of text", R"("bf16":1e14)", R"("bf16":"fast")", "device.flops.bf16 must be a number");
    with("a negative rate", R"("bf16":1e14)", R"("bf16":-1)", "device.flops.bf16 is -1");
    with("a peak below the rate", R"("fp32":2e13)", R"("fp32":1e12)", "device.peak_flops is below");
    with("peaks without fp32", R"("fp32":2e13,)", "", "device.peak_flops.fp32 is missing");
    with("no bandwidth of memory", R"("memory_bandwidth":1e12)", R"("memory_bandwidth":0)", "device.memory_bandwidth");
    with("no links", R"("links":{)", R"("link":{)", "links is missing (there is \"link\")");
    with("links of text", R"("inside":{"latency_seconds":1e-6,"bytes_per_second":1e11})", R"("inside":"NVLink")",
         "links.inside must be an object");
    with("no link between two nodes", R"(,"between":{"latency_seconds":1e-5,"bytes_per_second":1e10})", "",
         "links.between is missing");
    with("a negative latency", R"("latency_seconds":1e-6)", R"("latency_seconds":-1e-6)",
         "links.inside.latency_seconds is -1e-06");
    with("a link that moves nothing", R"("bytes_per_second":1e10)", R"("bytes_per_second":0)",
         "links.between.bytes_per_second is 0");
    with("an endless latency", R"("latency_seconds":1e-5)", R"("latency_seconds":1e9)",
         "links.between.latency_seconds is 1000000000");
    with("a launch that takes forever", R"("host_seconds_per_collective":1e-5)",
         R"("host_seconds_per_collective":1e308)", "host_seconds_per_collective is 1e+308");
    with("more overlap than there is", "0.9", "1.5", "overlap_efficiency is 1.5");
    with("overlap as text", "0.9", R"("most")", "overlap_efficiency must be a number");
    with("a reserve that is a number", R"("reserve":[)", R"("reserve":0,"other":[)", "reserve must be an array");
    add(
        "a reserve of a thousand lines",
        [] {
            std::string lines = R"({"what":"x","bytes":1,"source":"assumed"})";
            for (int i = 0; i < 999; ++i)
                lines += R"(,{"what":"x","bytes":1,"source":"assumed"})";
            return clusterText(R"({"what":"context","bytes":536870912,"source":"assumed"})", lines);
        }(),
        "reserve has 1000 elements");
    with("a line of the reserve that is a number", R"({"what":"context","bytes":536870912,"source":"assumed"})", "1",
         "reserve[0] must be an object");
    with("negative reserve", R"("bytes":536870912)", R"("bytes":-536870912)", "reserve[0].bytes is -536870912");
    with("a source that is not known", R"("assumed")", R"("guessed")", "reserve[0].source is \"guessed\"");
    return files;
}

inline const std::vector<HostileFile>& hostileFiles() {
    static const std::vector<HostileFile> made = [] {
        std::vector<HostileFile> all;
        for (auto& group : {hostileSafetensors(), hostileIndices(), hostileOnnx(), hostileGraphs()})
            all.insert(all.end(), group.begin(), group.end());
        return all;
    }();
    return made;
}

} // namespace shardscope::test
