export { Pattern, PatternError } from "./pattern.js";
export { Router, MethodNotAllowed } from "./router.js";
export { parseQuery, formatQuery } from "./query.js";
