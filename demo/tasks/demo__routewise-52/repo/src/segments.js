/**
 * Paths and their segments.
 */

/** The path of a request target: without the query and the fragment. */
export function pathOf(target) {
  const end = target.search(/[?#]/);
  return end < 0 ? target : target.slice(0, end);
}

/** The query of a request target, without the question mark. */
export function queryOf(target) {
  const start = target.indexOf("?");
  if (start < 0) return "";
  const end = target.indexOf("#", start);
  return target.slice(start + 1, end < 0 ? undefined : end);
}

/** The segments of a path. A slash at the end and doubled slashes don't count. */
export function split(path) {
  return path.split("/").filter((segment) => segment !== "");
}

/** A path from segments. */
export function join(segments) {
  return "/" + segments.join("/");
}
