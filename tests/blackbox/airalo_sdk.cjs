// The vendor's SDK for Node.js makes the journey of our adapter against our fake, and says what it understood.
//   airalo_sdk.cjs URL CLIENT SECRET BASE TOPUP ORDER_ID TOPUP_ID FOLDER
// The SDK speaks TLS only: key.pem and cert.pem in FOLDER serve it here, and the bytes go on to the fake.
// NODE_EXTRA_CA_CERTS names the certificate, AIRALO_SDK_CACHE_PATH an empty folder.
const fs = require('node:fs');
const net = require('node:net');
const tls = require('node:tls');

const [url, client_id, client_secret, base, topup, orderId, topupId, folder] = process.argv.slice(2);
const fake = new URL(url);

async function journey(port) {
  require('airalo-sdk/src/constants/ApiConstants').BASE_URL.production = `https://localhost:${port}/v2/`;
  const { Airalo } = require('airalo-sdk');
  const airalo = new Airalo({ client_id, client_secret });
  await airalo.initialize();
  const local = await airalo.getLocalPackages(true, 1000);
  const global = await airalo.getGlobalPackages(true, 1000);
  const order = await airalo.order(base, 1, orderId);
  const { iccid } = order.data.sims[0];
  const filled = await airalo.topup(topup, iccid, topupId);
  const usage = await airalo.getSimUsage(iccid);
  const others = {
    topups: await airalo.getSimTopups(iccid),
    history: await airalo.getSimPackageHistory(iccid),
    instructions: await airalo.getSimInstructions(iccid, 'en'),
  };
  let refusal = '';
  await airalo.order('no-such-package', 1, orderId).catch((error) => (refusal = error.message));
  console.log(JSON.stringify({ local, global, order, filled, usage, others, refusal }));
}

const key = fs.readFileSync(`${folder}/key.pem`);
const cert = fs.readFileSync(`${folder}/cert.pem`);
const door = tls.createServer({ key, cert }, (socket) => {
  const line = net.connect(Number(fake.port), fake.hostname);
  socket.pipe(line).pipe(socket);
  for (const end of [socket, line]) end.on('error', () => {});
});
door.listen(0, 'localhost', () => {
  journey(door.address().port).then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
});
