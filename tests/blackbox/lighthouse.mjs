// Lighthouse on the pages where buyers pay, as it sees them on a phone and at a desk: nobody is kept out, and how fast they are
// is told. The address of the gateway is API_URL, and PORT one that is free.
import assert from "node:assert/strict";
import lighthouse, { desktopConfig } from "lighthouse";
import { chromium } from "playwright-core";
import { PLAN, checkOut, order } from "./states.mjs";

const { API_URL, CHROMIUM, PORT } = process.env;
assert(API_URL && CHROMIUM && PORT);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: [`--remote-debugging-port=${PORT}`] });
const made = await order();
const flags = {
  port: Number(PORT),
  onlyCategories: ["accessibility", "performance"],
  disableFullPageScreenshot: true,
  logLevel: "error",
};
const wrong = [];
try {
  for (const path of [`/checkout?plan=${PLAN}`, `/pay/${await checkOut()}`, made.path]) {
    for (const [place, config] of [["phone", undefined], ["desk", desktopConfig]]) {
      const { lhr } = await lighthouse(API_URL + path, flags, config);
      const { accessibility, performance } = lhr.categories;
      console.log(`${path}, ${place}: accessibility ${accessibility.score * 100}, performance ${performance.score * 100}`);
      if (accessibility.score === 1) continue;
      const failed = accessibility.auditRefs.map(({ id }) => lhr.audits[id]).filter(({ score }) => score !== null && score < 1);
      wrong.push(`${path}, ${place}: ${lhr.runtimeError?.message ?? failed.map(({ title }) => title).join("; ")}`);
    }
  }
} finally {
  await browser.close();
}
assert.equal(wrong.length, 0, `\n${wrong.join("\n")}`);
