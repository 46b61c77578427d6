// Receives webhooks of simgate: checks each delivery, handles each event once, and answers at once.
//   npm install standardwebhooks
//   PORT=3000 WEBHOOK_SECRET=whsec_… node receiver.ts
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";

type Event = {
  id: string;
  type: string;
  sequence: number;
  data: { id?: string; orderId?: string; invoiceId?: string };
};

const { PORT = "3000", WEBHOOK_SECRET = "" } = process.env;
const webhook = new Webhook(WEBHOOK_SECRET);
const LARGEST = 1_000_000;

// A shop keeps both in its database, and changes them in one transaction with what an event does there.
const seen = new Set<string>();
const highest = new Map<string, number>();

// Only note it down here. Slow work comes after the answer.
function handle(event: Event): void {
  const { id, orderId, invoiceId } = event.data;
  const about = event.type === "webhook.test" ? event.id : id ?? orderId ?? invoiceId ?? "balance";
  // Behind what we know, after a replay for example: do not write an old state over a newer one.
  const late = event.sequence <= (highest.get(about) ?? 0);
  if (!late) highest.set(about, event.sequence);
  console.log(event.type, event.sequence, about, event.id + (late ? " late" : ""));
}

const server = createServer(async (request, response) => {
  try {
    if (!(Number(request.headers["content-length"]) <= LARGEST)) {
      return response.writeHead(413, { connection: "close" }).end();
    }
    // The signature is over these bytes, so they are checked before anything reads them as JSON.
    const body = await buffer(request);
    let event: Event;
    try {
      event = webhook.verify(body, request.headers as Record<string, string>) as Event;
    } catch (error) {
      console.error("refused:", error instanceof Error ? error.message : error);
      return response.writeHead(401).end();
    }
    // A delivery that comes again has the same id. It is accepted, so that it is not sent a third time.
    if (!seen.has(event.id)) {
      handle(event);
      seen.add(event.id);
    }
    response.writeHead(204).end();
  } catch (error) {
    // What could not be handled is not in `seen`, and is sent again.
    console.error("failed:", error);
    response.writeHead(500).end();
  }
});
server.listen(Number(PORT), "127.0.0.1", () => console.error(`listening on 127.0.0.1:${PORT}`));
