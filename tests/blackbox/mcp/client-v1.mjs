// The journey by the TypeScript SDK 1.x: node client-v1.mjs BASE
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { journey } from './journey.mjs';

const base = process.argv[2];
const client = new Client({ name: 'blackbox', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(`${base}/api/mcp`)));
assert.equal(client.getServerVersion().name, 'simgate');
await journey(base, client, 'ts1');
await client.close();
console.log('TypeScript SDK 1.x: all done');
