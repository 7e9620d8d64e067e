import assert from "node:assert/strict";
import { test } from "node:test";

import { MethodNotAllowed, Router } from "../src/index.js";

function router() {
  return new Router()
    .get("/users/:id", "show", { name: "user" })
    .get("/users/new", "form")
    .post("/users", "create")
    .get("/posts/:year(\\d+)/:slug?", "posts", { name: "posts" })
    .get("/files/:name/meta", "meta", { name: "meta" })
    .get("/files/*path", "file");
}

test("router: the more specific route wins, whatever the order", () => {
  assert.equal(router().match("GET", "/users/new").handler, "form");
  assert.equal(router().match("GET", "/users/42").handler, "show");
  assert.equal(router().match("GET", "/files/x/meta").handler, "meta");
});

test("router: parameters and query", () => {
  const match = router().match("GET", "/users/42?tab=posts&tag=a&tag=b#top");
  assert.deepEqual(match.params, { id: "42" });
  assert.deepEqual(match.query, { tab: "posts", tag: ["a", "b"] });
});

test("router: HEAD is answered by GET", () => {
  assert.equal(router().match("HEAD", "/users/42").handler, "show");
});

test("router: a wrong method is told from a wrong path", () => {
  assert.equal(router().match("GET", "/nowhere"), null);
  assert.throws(() => router().match("DELETE", "/users/42"), (error) => {
    assert.ok(error instanceof MethodNotAllowed);
    assert.deepEqual(error.allowed, ["GET"]);
    return true;
  });
});

test("router: slashes at the end and doubled slashes don't count", () => {
  assert.equal(router().match("GET", "/users//42/").handler, "show");
});

test("router: parameters are decoded", () => {
  assert.deepEqual(router().match("GET", "/users/J%C3%B6rg%20B").params, { id: "Jörg B" });
});

test("router: building", () => {
  assert.equal(router().build("posts", { year: 2020 }), "/posts/2020");
  assert.equal(router().build("user", { id: 7 }, { b: 1, a: [2, 3] }), "/users/7?a=2&a=3&b=1");
  assert.throws(() => router().build("nobody"), /no route named/);
});
