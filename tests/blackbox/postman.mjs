// The published Postman collection, run by newman from top to bottom.
import assert from "node:assert/strict";
import newman from "newman";

const { API_URL, API_KEY, API_SECRET } = process.env;
assert(API_URL && API_KEY && API_SECRET);
const collection = await (await fetch(`${API_URL}/api/b2b/v1/postman.json`)).json();
const description = await (await fetch(`${API_URL}/api/b2b/v1/openapi.json`)).json();
const operations = Object.values(description.paths).flatMap((path) => Object.values(path));
const sent = new Set(collection.item.map((item) => item.name));
assert.deepEqual(operations.map(({ summary }) => summary).filter((name) => !sent.has(name)), [], "every operation is in it");

const envVar = Object.entries({ apiKey: API_KEY, apiSecret: API_SECRET }).map(([key, value]) => ({ key, value }));
newman.run({ collection, envVar, reporters: "cli", timeoutRequest: 30_000 }, (error, summary) => {
  if (error) throw error;
  const { failures, stats } = summary.run;
  assert.deepEqual(failures.map(({ source, error }) => `${source?.name}: ${error.message}`), []);
  assert.equal(stats.requests.total, collection.item.length);
  assert.equal(stats.assertions.total, collection.item.length);
});
