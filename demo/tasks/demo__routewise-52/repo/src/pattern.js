/**
 * Patterns of paths.
 */

import { join, split } from "./segments.js";

const PARAMETER = /^:([A-Za-z_]\w*)(?:\((.+)\))?(\?)?$/;
const REST = /^\*([A-Za-z_]\w*)$/;

/** How specific each kind of part is; the higher, the earlier it is tried. */
const WEIGHT = { fixed: 3, constrained: 2, parameter: 1, rest: 0 };

export class PatternError extends Error {
  constructor(pattern, reason) {
    super(`${pattern}: ${reason}`);
    this.name = "PatternError";
  }
}

export class Pattern {
  /** @param {string} text such as `/users/:id` */
  constructor(text) {
    if (!text.startsWith("/")) throw new PatternError(text, "must start with a slash");
    this.text = text;
    this.parts = split(text).map((segment) => this.#part(segment));
    this.#check();
  }

  #part(segment) {
    const parameter = PARAMETER.exec(segment);
    if (parameter) {
      const [, name, expression, optional] = parameter;
      return {
        kind: expression ? "constrained" : "parameter",
        name,
        test: expression ? new RegExp(`^(?:${expression})$`) : null,
        optional: optional === "?",
      };
    }
    const rest = REST.exec(segment);
    if (rest) return { kind: "rest", name: rest[1] };
    if (/^[:*]/.test(segment)) throw new PatternError(this.text, `can't read ${segment}`);
    return { kind: "fixed", text: segment };
  }

  #check() {
    const names = this.names;
    if (new Set(names).size < names.length) throw new PatternError(this.text, "a name is used twice");
    this.parts.forEach((part, index) => {
      const last = index === this.parts.length - 1;
      if (part.kind === "rest" && !last) throw new PatternError(this.text, "the rest must come last");
      if (part.optional && !last) throw new PatternError(this.text, "only the last part may be optional");
    });
  }

  /** The names of all parameters, in order. */
  get names() {
    return this.parts.filter((part) => part.name).map((part) => part.name);
  }

  /** Sort key: patterns that compare higher are tried first. */
  get specificity() {
    return this.parts.map((part) => WEIGHT[part.kind]);
  }

  /**
   * The parameters of a path, or null if it does not match.
   * @param {string[]} segments
   */
  match(segments) {
    const params = {};
    for (const [index, part] of this.parts.entries()) {
      if (part.kind === "rest") {
        if (index >= segments.length) return null;
        params[part.name] = segments.slice(index).join("/");
        return params;
      }
      const segment = segments[index];
      if (segment === undefined) {
        if (part.optional) return params;
        return null;
      }
      if (part.kind === "fixed") {
        if (segment !== part.text) return null;
      } else {
        if (part.test && !part.test.test(segment)) return null;
        params[part.name] = segment;
      }
    }
    return segments.length > this.parts.length ? null : params;
  }

  /** A path that this pattern matches with the given parameters. */
  build(params = {}) {
    const segments = [];
    for (const part of this.parts) {
      if (part.kind === "fixed") {
        segments.push(part.text);
        continue;
      }
      const value = params[part.name];
      if (value === undefined || value === "") {
        if (part.optional) continue;
        throw new PatternError(this.text, `needs a value for ${part.name}`);
      }
      if (part.test && !part.test.test(String(value))) {
        throw new PatternError(this.text, `${part.name} may not be ${value}`);
      }
      if (part.kind === "rest") segments.push(...split(String(value)).map(encodeURIComponent));
      else segments.push(encodeURIComponent(value));
    }
    return join(segments);
  }
}

/** Compare two specificities, for sorting the most specific first. */
export function bySpecificity(left, right) {
  const length = Math.max(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const difference = (right[index] ?? -1) - (left[index] ?? -1);
    if (difference) return difference;
  }
  return 0;
}
