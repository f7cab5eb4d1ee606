// Parses TraceQL: takes a JSON array of queries on standard input, prints for each where it is no TraceQL.
// The folder with the parser is the first argument.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.argv[2], "package.json"));
const found = require.resolve("@grafana/lezer-traceql").replace("index.cjs", "index.es.js");
const { parser } = await import(pathToFileURL(found).href);

const queries = JSON.parse(readFileSync(0, "utf8"));
const wrong = queries.map((query) => {
  const places = [];
  parser.parse(query).iterate({
    enter: (node) => {
      if (node.type.isError) places.push(node.from);
    },
  });
  return places;
});
console.log(JSON.stringify(wrong));
