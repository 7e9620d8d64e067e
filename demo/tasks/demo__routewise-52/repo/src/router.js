/**
 * Routes by method and pattern.
 */

import { bySpecificity, Pattern } from "./pattern.js";
import { formatQuery, parseQuery } from "./query.js";
import { pathOf, queryOf, split } from "./segments.js";

export class MethodNotAllowed extends Error {
  constructor(method, path, allowed) {
    super(`${method} is not allowed on ${path}`);
    this.name = "MethodNotAllowed";
    this.status = 405;
    this.allowed = allowed;
  }
}

export class Router {
  #routes = [];
  #names = new Map();

  /** Add a route. Options: `name`, to build URLs by. */
  add(method, text, handler, { name } = {}) {
    const pattern = new Pattern(text);
    if (name !== undefined) {
      if (this.#names.has(name)) throw new Error(`there already is a route named ${name}`);
      this.#names.set(name, pattern);
    }
    this.#routes.push({ method: method.toUpperCase(), pattern, handler });
    this.#routes.sort((a, b) => bySpecificity(a.pattern.specificity, b.pattern.specificity));
    return this;
  }

  get(text, handler, options) {
    return this.add("GET", text, handler, options);
  }

  post(text, handler, options) {
    return this.add("POST", text, handler, options);
  }

  put(text, handler, options) {
    return this.add("PUT", text, handler, options);
  }

  delete(text, handler, options) {
    return this.add("DELETE", text, handler, options);
  }

  /**
   * The route for a request, or null if no pattern matches.
   * Throws MethodNotAllowed if a pattern matches, but only for other methods.
   */
  match(method, target) {
    const wanted = method.toUpperCase();
    const path = decodeURIComponent(pathOf(target));
    const segments = split(path);
    const allowed = new Set();
    for (const { method: own, pattern, handler } of this.#routes) {
      const params = pattern.match(segments);
      if (params === null) continue;
      if (own === wanted || (wanted === "HEAD" && own === "GET")) {
        return { handler, params, query: parseQuery(queryOf(target)), pattern: pattern.text };
      }
      allowed.add(own);
    }
    if (allowed.size) throw new MethodNotAllowed(wanted, path, [...allowed].sort());
    return null;
  }

  /** The URL of a named route. */
  build(name, params = {}, query = {}) {
    const pattern = this.#names.get(name);
    if (!pattern) throw new Error(`there is no route named ${name}`);
    const search = formatQuery(query);
    return pattern.build(params) + (search ? `?${search}` : "");
  }
}
