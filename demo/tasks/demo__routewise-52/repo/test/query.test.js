import assert from "node:assert/strict";
import { test } from "node:test";

import { formatQuery, parseQuery } from "../src/index.js";

test("query: repeated names make lists", () => {
  assert.deepEqual(parseQuery("a=1&b=2&a=3&a=4"), { a: ["1", "3", "4"], b: "2" });
});

test("query: names of object members are just names", () => {
  assert.deepEqual(parseQuery("toString=1"), { toString: "1" });
});

test("query: formatting sorts and leaves out undefined", () => {
  assert.equal(formatQuery({ b: "x y", a: [1, 2], c: undefined }), "a=1&a=2&b=x+y");
});
