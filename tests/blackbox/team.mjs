// What the journeys and the hostile texts of the portal share: how somebody joins a team, and a receiver of webhooks.
import { createServer } from "node:http";
import { goTo } from "./browser.mjs";
import { mailed } from "./states.mjs";

export const CODE = /code is: (\w+)/;
export const form = (path) => `form[method=post][action="${path}"]`;
export const headline = (page, text) => page.locator("h1", { hasText: text }).waitFor();

// Signs in by an invitation; answers the code that was mailed.
export async function joined(page, hand, email) {
  await goTo(page, new URL(await mailed(email, /(http\S+\/portal\/join\/\S+)/)).pathname);
  await headline(page, "Join the team of");
  await hand.send(page, {}, form("/portal/code"));
  await headline(page, "Enter your code");
  const code = await mailed(email, CODE);
  await hand.send(page, { code }, form("/portal/sign-in"));
  await headline(page, "Overview");
  return code;
}

// Refuses whatever comes with this text until it is mended, and keeps the ids of what came.
export async function receiver(text) {
  const heard = { ids: [], answer: 500 };
  const server = createServer((request, answer) => {
    heard.ids.push(request.headers["webhook-id"]);
    request.resume().on("end", () => answer.writeHead(heard.answer).end(text));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  heard.url = `http://127.0.0.1:${server.address().port}/hooks`;
  heard.close = () => server.close();
  return heard;
}
