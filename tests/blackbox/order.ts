// A partner's first program, on the types that openapi-typescript made: it must compile strictly and buy an eSIM.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const { API_URL, API_KEY, API_SECRET } = process.env;
assert(API_URL && API_KEY && API_SECRET);
const api = createClient<paths>({
  baseUrl: API_URL,
  headers: { "X-B2B-Key": API_KEY, "X-B2B-Secret": API_SECRET },
});

const plans = await api.GET("/api/b2b/v1/plans", { params: { query: { country: "FR" } } });
assert(plans.data, `plans: ${JSON.stringify(plans.error)}`);
const plan = plans.data.plans[0];
assert(plan, "no plan for FR");

const partnerRefId = `typescript-${Date.now()}`;
const bought = await api.POST("/api/b2b/v1/orders", { body: { packageCode: plan.packageCode, partnerRefId } });
assert(bought.data, `order: ${JSON.stringify(bought.error)}`);
assert.equal(bought.response.status, 200);
assert.equal(bought.data.order.chargedUsd, plan.priceUsd);

const read = await api.GET("/api/b2b/v1/orders/{id}", { params: { path: { id: bought.data.order.id } } });
assert(read.data?.order, `read: ${JSON.stringify(read.error)}`);
assert.equal(read.data.order.partnerRefId, partnerRefId);
assert.equal(read.data.order.status, "FULFILLED");
assert.equal(read.data.order.iccid, bought.data.order.iccid);
