/**
 * Query strings as objects.
 */

/** Values by name; a name that comes more than once has a list of values. */
export function parseQuery(text) {
  const query = {};
  for (const [name, value] of new URLSearchParams(text)) {
    if (!Object.hasOwn(query, name)) query[name] = value;
    else if (Array.isArray(query[name])) query[name].push(value);
    else query[name] = [query[name], value];
  }
  return query;
}

/** The inverse of parseQuery, with sorted names. Undefined values are left out. */
export function formatQuery(query) {
  const search = new URLSearchParams();
  for (const name of Object.keys(query).sort()) {
    for (const value of [query[name]].flat()) {
      if (value !== undefined) search.append(name, value);
    }
  }
  return search.toString();
}
