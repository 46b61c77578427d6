// A customer's whole journey through the tools, whichever client library makes the calls: search, log in, be short of
// money, pay in by the link, buy, buy again with the same key, top up, look, cancel, read back.
import assert from 'node:assert/strict';

const PLAN = 'JP-1GB-7D';

export async function journey(base, client, name) {
  const email = `${name}-${Date.now()}@example.com`;
  const call = async (tool, args = {}) => {
    const result = await client.callTool({ name: tool, arguments: args });
    assert.equal(typeof result.isError, 'boolean', `${tool}: isError`);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent, `${tool}: text and value`);
    return result;
  };
  const fine = async (tool, args) => {
    const result = await call(tool, args);
    assert.equal(result.isError, false, `${tool}: ${result.content[0].text}`);
    return result.structuredContent;
  };
  const until = async (what, look) => {
    for (let tries = 0; tries < 300; tries++) {
      const found = await look();
      if (found) return found;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`waited for: ${what}`);
  };

  const { tools } = await client.listTools();
  assert.equal(tools.length, 15);
  const found = await fine('get_esim_catalog', { countryCode: 'Japan 1GB 7 days' });
  assert.equal(found.plans[0].packageCode, PLAN);
  assert.ok((await fine('get_knowledge_base', { topic: 'refund' })).articles.length > 0);
  await fine('get_available_coupons');
  assert.match((await fine('get_checkout_url', { packageCode: PLAN })).checkoutUrl, /\/checkout\?plan=JP-1GB-7D$/);
  const stranger = await call('validate_coupon', { code: 'NONE', packageCode: PLAN });
  assert.equal(stranger.isError, true);
  assert.equal(stranger.structuredContent.error.httpStatus, 401);
  assert.match(stranger.content[0].text, /HTTP 401.*send_agent_otp/);

  assert.equal((await fine('send_agent_otp', { email })).sent, true);
  const outbox = await (await fetch(`${base}/sandbox/outbox?email=${encodeURIComponent(email)}`)).json();
  const code = outbox.emails[0].text.match(/\b\d{6}\b/)[0];
  const { token } = await fine('verify_agent_otp', { email, code });
  const wrong = await call('validate_coupon', { code: 'NONE', packageCode: PLAN, token });
  assert.equal(wrong.structuredContent.error.code, 'COUPON_INVALID');

  const purchase = { packageCode: PLAN, token, idempotencyKey: `${name}-1` };
  const short = await fine('purchase_esim_with_wallet', purchase);
  assert.equal(short.purchased, false);
  const form = new URLSearchParams({ amountUsd: '50', means: 'USDC BASE' });
  const page = await (await fetch(short.magicLink, { method: 'POST', body: form })).text();
  const invoiceId = page.match(/inv_\w+/)[0];
  const paid = await fetch(`${base}/sandbox/pay`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ invoiceId }),
  });
  assert.equal(paid.status, 200);
  await until('the money', async () => (await fine('get_wallet_balance', { token })).balanceUsd === 50);

  const preview = await fine('purchase_esim_with_wallet', { ...purchase, dryRun: true });
  assert.equal(preview.sufficient, true);
  const bought = await fine('purchase_esim_with_wallet', purchase);
  assert.equal(bought.order.chargedUsd, preview.priceUsd);
  const again = await fine('purchase_esim_with_wallet', purchase);
  assert.deepEqual([again.orderId, again.replayed], [bought.orderId, true]);
  const orderId = bought.orderId;
  assert.equal((await fine('refresh_esim_usage', { orderId, token })).status, 'NEW');
  const { packages } = await fine('get_topup_packages', { orderId, token });
  const added = await fine('purchase_topup', { orderId, token, packageCode: packages[0].packageCode, idempotencyKey: `${name}-2` });
  assert.equal(added.purchased, true);
  const kept = await call('cancel_order', { orderId, token });
  assert.equal(kept.structuredContent.error.reason, 'TOPPED_UP');

  const second = await fine('purchase_esim_with_wallet', { packageCode: PLAN, token, idempotencyKey: `${name}-3` });
  const cancelled = await fine('cancel_order', { orderId: second.orderId, token, idempotencyKey: `${name}-4` });
  assert.deepEqual([cancelled.status, cancelled.refundedUsd], ['CANCELLED', preview.priceUsd]);
  const orders = await fine('get_user_orders', { token });
  assert.deepEqual(orders.orders.map((order) => order.status), ['CANCELLED', 'FULFILLED']);
  const moves = await fine('get_wallet_transactions', { token });
  assert.deepEqual(moves.transactions.map((move) => move.type), ['CANCELLED', 'ORDER', 'TOPUP', 'ORDER', 'DEPOSIT']);
  assert.equal(moves.transactions[0].balanceAfterUsd, (await fine('get_wallet_balance', { token })).balanceUsd);

  assert.ok((await client.listPrompts()).prompts.length >= 2);
  const { resources } = await client.listResources();
  const read = await client.readResource({ uri: resources[0].uri });
  assert.ok(read.contents[0].text.length > 100);
}
