import assert from "node:assert/strict";
import { test } from "node:test";

import { Pattern, PatternError } from "../src/index.js";

const match = (pattern, ...segments) => new Pattern(pattern).match(segments);

test("pattern: fixed segments", () => {
  assert.deepEqual(match("/about", "about"), {});
  assert.equal(match("/about", "contact"), null);
  assert.equal(match("/about", "about", "us"), null);
  assert.deepEqual(match("/"), {});
});

test("pattern: parameters", () => {
  assert.deepEqual(match("/users/:id", "users", "42"), { id: "42" });
  assert.equal(match("/users/:id", "users"), null);
});

test("pattern: constrained parameters match in full", () => {
  assert.deepEqual(match("/posts/:year(\\d+)", "posts", "2020"), { year: "2020" });
  assert.equal(match("/posts/:year(\\d+)", "posts", "2020a"), null);
});

test("pattern: an optional last segment", () => {
  assert.deepEqual(match("/posts/:page?", "posts"), {});
  assert.deepEqual(match("/posts/:page?", "posts", "2"), { page: "2" });
});

test("pattern: the rest of the path", () => {
  assert.deepEqual(match("/files/*path", "files", "a", "b.txt"), { path: "a/b.txt" });
  assert.equal(match("/files/*path", "files"), null);
});

test("pattern: nonsense is refused", () => {
  for (const text of ["about", "/a/:", "/a/*rest/b", "/a/:x?/b", "/:x/:x"]) {
    assert.throws(() => new Pattern(text), PatternError, text);
  }
});

test("pattern: building encodes", () => {
  assert.equal(new Pattern("/users/:id").build({ id: "a/b c" }), "/users/a%2Fb%20c");
  assert.equal(new Pattern("/files/*path").build({ path: "a b/c" }), "/files/a%20b/c");
  assert.throws(() => new Pattern("/users/:id").build(), PatternError);
});
