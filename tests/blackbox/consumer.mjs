// Plays the published stdio client of the consumer API with plain fetch: its calls in their order, its headers, and the
// fields that it reads, each with its type. consumer.mjs BASE COUPON: a coupon that takes something off.
import assert from 'node:assert/strict';

const [base, coupon] = process.argv.slice(2);
const PLAN = 'JP-10GB-30D';
const email = `stdio-${Date.now()}@example.com`;
let token;

// As the client does: JSON is named as such, a call without a body names nothing, and the failure is `error`.
async function call(method, path, body) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers['Content-Type'] = 'application/json';
  const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
  const told = await answer.json();
  if (!answer.ok) {
    assert.equal(typeof told.error, 'string', `${method} ${path}: ${answer.status} without error`);
    throw new Error(told.error);
  }
  assert.ok(!told.error, `${method} ${path}: error in a success`);
  return told;
}

// fields(OBJECT, {name: type}): every field is there, with its type.
const KINDS = {
  text: (value) => typeof value === 'string' && value.length > 0,
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  date: (value) => typeof value === 'string' && !Number.isNaN(new Date(value).getTime()),
  list: Array.isArray,
  object: (value) => value !== null && typeof value === 'object',
  true: (value) => value === true,
  url: (value) => /^https?:\/\//.test(value),
  volume: (value) => /^[0-9.]+ GB$/.test(value),
};
function fields(object, wanted) {
  for (const [name, kind] of Object.entries(wanted)) {
    assert.ok(KINDS[kind](object[name]), `${name} is ${JSON.stringify(object[name])} and no ${kind}`);
  }
  return object;
}
const refused = async (what, words) => {
  const error = await what.then(() => assert.fail('it was not refused'), (error) => error);
  assert.match(error.message, words);
  return error.message;
};
async function until(what, look) {
  for (let tries = 0; tries < 300; tries++) {
    if (await look()) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.fail(`waited for: ${what}`);
}

const plan = { packageCode: 'text', name: 'text', dataAmount: 'number', dataUnit: 'text', duration: 'number', retailPrice: 'number' };
for (const query of ['', '?country=Japan%2010GB']) {
  const found = fields(await call('GET', `/api/products/search${query}`), { success: 'true', plans: 'list', totalCount: 'number' });
  assert.ok(found.plans.length > 0 && found.plans.length <= 10);
  for (const one of found.plans) {
    fields(one, { ...plan, locationNames: 'list' });
    assert.ok(one.locationNames.every(KINDS.text));
  }
}
fields(await call('GET', '/api/mcp/knowledge'), { content: 'text' });

await refused(call('POST', '/api/discount/validate', { code: coupon, packageCode: PLAN }), /token/);
await call('POST', '/api/auth/otp/send', { email });
const outbox = await (await fetch(`${base}/sandbox/outbox?email=${encodeURIComponent(email)}`)).json();
const code = outbox.emails[0].text.match(/\b\d{6}\b/)[0];
await refused(call('POST', '/api/auth/otp/verify', { email, code: '00000x' }), /code/);
({ token } = fields(await call('POST', '/api/auth/otp/verify', { email, code }), { token: 'text' }));
assert.match(token, /^sgs_/);

await refused(call('POST', '/api/discount/validate', { code: 'NOTHING', packageCode: PLAN }), /code/);
const quote = fields(await call('POST', '/api/discount/validate', { code: coupon, packageCode: PLAN }), { discount: 'number', finalPrice: 'number' });
assert.ok(quote.discount > 0 && quote.finalPrice > 0);
assert.equal(fields(await call('GET', '/api/wallet/balance'), { balance: 'number' }).balance, 0);
assert.deepEqual((await call('GET', '/api/wallet/transactions?page=1&limit=20')).transactions, []);

// Short of money: the person follows the link in the text.
const wish = { packageCode: PLAN, discountCode: coupon, source: 'mcp' };
const told = await refused(call('POST', '/api/orders', wish), /Insufficient wallet balance/);
const link = told.match(/https?:\/\/\S+/)[0];
const form = new URLSearchParams({ amountUsd: '60', means: 'USDC BASE' });
const invoiceId = (await (await fetch(link, { method: 'POST', body: form })).text()).match(/inv_\w+/)[0];
await call('POST', '/sandbox/pay', { invoiceId });
await until('the money', async () => (await call('GET', '/api/wallet/balance')).balance === 60);

async function buy(wish) {
  const order = fields(await call('POST', '/api/orders', wish), {
    status: 'text', orderId: 'text', iccid: 'text', smdpAddress: 'text', matchingId: 'text', lpaUrl: 'text', qrCode: 'url',
  });
  assert.ok(['SUCCESS', 'COMPLETED', 'PROCESSING'].includes(order.status), order.status);
  const image = await fetch(order.qrCode);
  assert.match(image.headers.get('content-type'), /^image\//);
  return order;
}
const first = await buy(wish);
assert.equal((await call('GET', '/api/wallet/balance')).balance, Math.round((60 - quote.finalPrice) * 100) / 100);
const { orders } = fields(await call('GET', '/api/orders?page=1&limit=20'), { orders: 'list' });
assert.equal(orders.length, 1);
fields(orders[0], {
  id: 'text', createdAt: 'date', status: 'text', product: 'object', iccid: 'text', smdpAddress: 'text', matchingId: 'text', qrCode: 'url',
});
assert.ok(KINDS.text(orders[0].product.name));
assert.equal(orders[0].id, first.orderId);

await call('POST', `/api/orders/${first.orderId}/cancel`);
await refused(call('POST', `/api/orders/${first.orderId}/cancel`), /cannot be cancelled/);
assert.equal((await call('GET', '/api/wallet/balance')).balance, 60);

const second = await buy({ packageCode: PLAN, source: 'mcp' });
fields(await call('POST', `/api/esims/${second.orderId}/usage`), { usedVolumeFormatted: 'volume' });
const { packages } = fields(await call('GET', `/api/esims/${second.orderId}/topup`), { packages: 'list' });
packages.forEach((one) => fields(one, plan));
await call('POST', `/api/esims/${second.orderId}/topup`, { packageCode: packages[0].packageCode, source: 'mcp' });
await refused(call('POST', `/api/orders/${second.orderId}/cancel`), /cannot be cancelled/);

const { transactions } = await call('GET', '/api/wallet/transactions?page=1&limit=20');
assert.equal(transactions.length, 5);
for (const line of transactions) {
  fields(line, { createdAt: 'date', type: 'text', amount: 'number', balanceAfter: 'number', description: 'text' });
}
assert.equal(transactions[0].balanceAfter, (await call('GET', '/api/wallet/balance')).balance);

const page = await fetch(`${base}/checkout?plan=${PLAN}&discount=${coupon}`);
assert.equal(page.status, 200);
assert.match(page.headers.get('content-type'), /^text\/html/);

// A body that names no type at all.
const untyped = await fetch(`${base}/api/auth/otp/send`, { method: 'POST', body: new TextEncoder().encode(JSON.stringify({ email: `b-${email}` })) });
assert.equal(untyped.status, 200, await untyped.text());
console.log('every call of the table was answered as its client reads it');
