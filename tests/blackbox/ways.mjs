// The ways in which somebody goes through the pages: on a phone and at a desk by pointer, by keyboard alone, and without scripts.
import { open, wrong } from "./browser.mjs";
import { keyboard, pointer } from "./hands.mjs";

const ways = [
  ["on a phone", pointer, { width: 390 }],
  ["at a desk", pointer, { width: 1280 }],
  ["at a desk, by keyboard", keyboard, { width: 1280 }],
  ["on a phone, without scripts", pointer, { width: 390, scripts: false }],
];
let visitors = 0;
const mailbox = (journey, name) => `${journey.name}-${name.replace(/\W+/g, "-")}@example.com`;

// Goes through a journey in every way, all at once: each visitor has an address and a mailbox, and as many windows as `another`
// opens.
export async function everyWay(journey) {
  const since = Date.now();
  const went = ways.map(async ([name, hand, { width, scripts = true }]) => {
    const windows = [];
    const another = async () => {
      visitors += 1;
      const extraHTTPHeaders = { "x-forwarded-for": `10.0.${visitors}.1` };
      windows.push(await open({ scripts, viewport: { width, height: 800 }, extraHTTPHeaders }));
      return windows.at(-1);
    };
    try {
      await journey(await another(), hand, scripts, mailbox(journey, name), another);
    } catch (error) {
      const page = windows.at(-1);
      wrong.push(`${journey.name} ${name}, at ${page.url()}: ${error.stack}\n${await page.locator("h1").innerText()}`);
    }
    for (const page of windows) await page.context().close();
  });
  await Promise.all(went);
  console.log(`${journey.name}: ${((Date.now() - since) / 1000).toFixed(1)} s`);
}
