// The published Postman collection, run by newman from top to bottom. What was topped up cannot be cancelled, so the
// cancel has an order of its own.
import assert from "node:assert/strict";
import newman from "newman";

const { API_URL, API_KEY, API_SECRET } = process.env;
assert(API_URL && API_KEY && API_SECRET);
const collection = await (await fetch(`${API_URL}/api/b2b/v1/postman.json`)).json();
const description = await (await fetch(`${API_URL}/api/b2b/v1/openapi.json`)).json();
const name = (id) => {
  const operations = Object.values(description.paths).flatMap((path) => Object.values(path));
  return operations.find((operation) => operation.operationId === id).summary;
};

function run(folder) {
  const envVar = Object.entries({ apiKey: API_KEY, apiSecret: API_SECRET }).map(([key, value]) => ({ key, value }));
  return new Promise((resolve, reject) => {
    newman.run({ collection, folder, envVar, reporters: "cli", timeoutRequest: 30_000 }, (error, summary) => {
      if (error) return reject(error);
      const { failures, stats } = summary.run;
      assert.deepEqual(failures.map(({ source, error }) => `${source?.name}: ${error.message}`), []);
      assert.equal(stats.requests.total, folder.length);
      assert.equal(stats.assertions.total, folder.length);
      resolve();
    });
  });
}

const all = collection.item.map((item) => item.name);
const operations = Object.values(description.paths).flatMap((path) => Object.keys(path));
assert.equal(all.length, operations.length, "every operation is in the collection");
await run(all.filter((one) => one !== name("cancelOrder")));
await run([name("placeOrder"), name("cancelOrder")]);
