// The journey by the TypeScript SDK 2.x, once in each era of the protocol: node client-v2.mjs BASE
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { journey } from './journey.mjs';

const base = process.argv[2];
for (const [mode, version] of [['auto', '2026-07-28'], ['legacy', '2025-11-25']]) {
  const client = new Client({ name: 'blackbox', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${base}/api/mcp`)));
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  await journey(base, client, `ts2-${mode}`);
  await client.close();
  console.log(`TypeScript SDK 2.x, ${version}: all done`);
}
