//! `simgate ledger verify` finds every kind of damage, names the row, and says so by its exit code. The damage is
//! done past the program, with the triggers out of the way, and undone again.

use serde_json::{Value, json};
use simgate::ops::{days, ledger};
use simgate::store::Location;

use crate::support::browser::{claim, claim_code, guest};
use crate::support::buying::{id, settle};
use crate::support::command_line::{Told, simgate};
use crate::support::database;
use crate::support::harness::{Gateway, both_databases, check_books};
use crate::support::shapes::ORDERS;

const TABLES: [&str; 10] = [
    "entries",
    "postings",
    "wallets",
    "orders",
    "esims",
    "suppliers",
    "native_moves",
    "partner_days",
    "statement_sums",
    "summed_lines",
];

/// The rows that the damage names.
struct Books {
    order: String,
    cancelled: String,
    failed: String,
    topup: String,
    partner: String,
    first: String,
}

impl Books {
    fn fill(&self, text: &str) -> String {
        let wallet = format!("(SELECT no FROM accounts WHERE id = '{}')", self.partner);
        text.replace("{order}", &self.order)
            .replace("{cancelled}", &self.cancelled)
            .replace("{failed}", &self.failed)
            .replace("{topup}", &self.topup)
            .replace("{wallet}", &wallet)
            .replace("{partner}", &self.partner)
            .replace("{first}", &self.first)
    }
}

/// One order in each state that ends.
async fn keep_books(gateway: &Gateway) -> Books {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let order = gateway.order("JP-1GB-7D").await;
    let path = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
    let topup = gateway.post(&path, json!({ "packageCode": "JP-3GB-30D-TOPUP" })).await.expect(200);
    let cancelled = gateway.order("JP-5GB-30D").await;
    let cancel = format!("{ORDERS}/{}/cancel", cancelled["id"].as_str().unwrap());
    gateway.send_as(&gateway.key, "POST", &cancel, None).await.expect(200);
    gateway.supplier("reject").await;
    gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "f" })).await.problem(502);
    gateway.supplier("ok").await;
    let failed = gateway.get(&format!("{ORDERS}?status=FAILED")).await.expect(200);
    let first = format!(
        "SELECT p.entry FROM postings p JOIN accounts a ON a.no = p.wallet WHERE a.id = '{}' AND p.line = 1",
        gateway.partner
    );
    Books {
        order: text(&order["id"]),
        cancelled: text(&cancelled["id"]),
        failed: text(&failed["orders"][0]["id"]),
        topup: text(&topup["topUpOrder"]["id"]),
        partner: gateway.partner.clone(),
        first: database::rows(&gateway.app.settings.database, &first).remove(0).remove(0),
    }
}

const SUMS: &str = "every entry sums to zero";
const EMPTY: &str = "every entry has postings";
const ENTRY: &str = "every posting has its entry";
const WALLET_ROW: &str = "every posting on a wallet has its wallet";
const ORDER_ROW: &str = "every posting for an order has its order";
const WALLETS: &str = "every wallet equals its postings and is not negative";
const LINES: &str = "every wallet's statement has no gap";
const RUNNING: &str = "every line's balance follows from the one before";
const HELD: &str = "money is held exactly while an order is PROVISIONING";
const SALES: &str = "every delivered order is a sale of what was charged, and no other is";
const COST: &str = "every delivered order has its cost";
const RETURNED: &str = "what comes back of the cost of an order that is kept is at most that";
const ESIM: &str = "every delivered order has its eSIM";
const SUPPLIER: &str = "what a supplier holds was paid in, and goes by what it sold";
const NATIVE: &str = "whatever moves at a supplier of another currency has its bill";
const MOVES: &str = "every move in another currency has its entry, and is no sale";
const RATES: &str = "every order's cost is its bill at its own rate";
const DAYS: &str = "a partner's days add up to its balance after the last line in them";
const STATEMENT_SUMS: &str = "each sum of a partner's statement is the balance after its last line";
const STATEMENT_KINDS: &str = "the sums of a partner's statement have its lines by their types";
const COUNTERS: &str = "every wallet's order counters equal its orders";

const OWED: &str = "what we owe is owed to guests' invoices, and not more than once";
const CLAIMS: &str = "every claim of a guest's invoice went to who claimed it";
const GUESTS: &str = "guests have no wallet";

/// What is done, which law it breaks, and the row that must be named.
const DAMAGE: &[(&str, &str, &str)] = &[
    (
        "UPDATE postings SET account = 'supplier:sim' WHERE entry = '{first}' AND leg = 1",
        SUPPLIER,
        "{first} leg 1",
    ),
    (
        "INSERT INTO entries (id, kind, at) VALUES ('{cancelled}.returned', 'COST_RETURNED', 0);
         INSERT INTO postings (entry, leg, account, amount, order_id) VALUES ('{cancelled}.returned', 1, 'cost:sim', -1, '{cancelled}'),
            ('{cancelled}.returned', 2, 'supplier:sim', 1, '{cancelled}')",
        RETURNED,
        "{cancelled}",
    ),
    ("UPDATE wallets SET balance = balance + 1 WHERE account = {wallet}", WALLETS, "{partner}"),
    ("UPDATE wallets SET balance = balance - 1000000 WHERE account = {wallet}", WALLETS, "{partner}"),
    ("UPDATE wallets SET lines = lines + 1 WHERE account = {wallet}", LINES, "{partner}"),
    ("UPDATE wallets SET placed = placed + 1 WHERE account = {wallet}", COUNTERS, "{partner}"),
    ("UPDATE wallets SET failed = failed - 1 WHERE account = {wallet}", COUNTERS, "{partner}"),
    ("DELETE FROM wallets WHERE account = {wallet}", WALLET_ROW, "{order}.hold leg 1"),
    (
        "UPDATE postings SET amount = amount - 1 WHERE entry = '{order}.hold' AND leg = 2",
        SUMS,
        "{order}.hold",
    ),
    ("UPDATE postings SET amount = amount + 1 WHERE entry = '{first}' AND leg = 1", SUMS, "{first}"),
    (
        "UPDATE postings SET amount = CASE leg WHEN 1 THEN amount + 1 ELSE amount - 1 END WHERE entry = '{order}.hold'",
        RUNNING,
        "{order}.hold",
    ),
    (
        "UPDATE postings SET amount = CASE leg WHEN 1 THEN amount + 1 ELSE amount - 1 END WHERE entry = '{order}.hold'",
        WALLETS,
        "{partner}",
    ),
    (
        "UPDATE postings SET amount = CASE leg WHEN 1 THEN amount + 1 ELSE amount - 1 END WHERE entry = '{order}.hold'",
        HELD,
        "{order}",
    ),
    (
        "UPDATE postings SET balance = balance + 1 WHERE entry = '{order}.hold' AND leg = 1",
        RUNNING,
        "{order}.hold",
    ),
    ("UPDATE postings SET balance = balance + 1 WHERE wallet = {wallet}", RUNNING, "{first}"),
    ("UPDATE postings SET line = 999 WHERE entry = '{order}.hold' AND leg = 1", LINES, "{partner}"),
    (
        "UPDATE postings SET wallet = NULL, line = NULL WHERE entry = '{order}.hold' AND leg = 1",
        WALLETS,
        "{partner}",
    ),
    (
        "UPDATE postings SET wallet = 1, line = 999 WHERE entry = '{order}.hold' AND leg = 1",
        WALLETS,
        "{partner}",
    ),
    (
        "UPDATE postings SET order_id = '{cancelled}' WHERE entry = '{order}.end' AND account = 'sales'",
        SALES,
        "{order}",
    ),
    (
        "UPDATE postings SET account = 'promo' WHERE entry = '{order}.end' AND account = 'sales'",
        SALES,
        "{order}",
    ),
    ("DELETE FROM postings WHERE entry = '{order}.end' AND leg = 3", SUMS, "{order}.end"),
    ("DELETE FROM postings WHERE entry = '{order}.end' AND leg IN (3, 4)", COST, "{order}"),
    ("DELETE FROM postings WHERE entry = '{topup}.end' AND leg IN (3, 4)", COST, "{topup}"),
    ("DELETE FROM postings WHERE entry = '{order}.end'", EMPTY, "{order}.end"),
    ("DELETE FROM entries WHERE id = '{order}.end'", ENTRY, "{order}.end leg 1"),
    (
        "DELETE FROM postings WHERE entry = '{order}.end'; DELETE FROM entries WHERE id = '{order}.end'",
        HELD,
        "{order}",
    ),
    (
        "DELETE FROM postings WHERE entry = '{cancelled}.cancel'; DELETE FROM entries WHERE id = '{cancelled}.cancel'",
        SALES,
        "{cancelled}",
    ),
    ("INSERT INTO entries (id, kind, at) VALUES ('ent_forged', 'CREDIT', 0)", EMPTY, "ent_forged"),
    ("UPDATE orders SET status = 'FAILED' WHERE id = '{order}'", SALES, "{order}"),
    ("UPDATE orders SET status = 'CANCELLED' WHERE id = '{order}'", SALES, "{order}"),
    (
        "UPDATE orders SET status = 'PROVISIONING', ask_until = 9000000000000000000 WHERE id = '{order}'",
        HELD,
        "{order}",
    ),
    ("UPDATE orders SET status = 'FULFILLED' WHERE id = '{cancelled}'", SALES, "{cancelled}"),
    ("UPDATE orders SET status = 'FULFILLED' WHERE id = '{failed}'", SALES, "{failed}"),
    ("UPDATE orders SET status = 'FAILED' WHERE id = '{cancelled}'", COUNTERS, "{partner}"),
    ("UPDATE orders SET price = price + 1 WHERE id = '{order}'", SALES, "{order}"),
    ("UPDATE orders SET price = price + 1 WHERE id = '{topup}'", SALES, "{topup}"),
    ("UPDATE orders SET cost = cost - 1 WHERE id = '{order}'", COST, "{order}"),
    ("DELETE FROM orders WHERE id = '{topup}'", ORDER_ROW, "{topup}.hold leg 1"),
    ("DELETE FROM orders WHERE id = '{failed}'", COUNTERS, "{partner}"),
    ("DELETE FROM esims WHERE order_id = '{order}'", ESIM, "{order}"),
    (
        "INSERT INTO suppliers (name, enabled, turn, currency) VALUES ('acme', 0, 0, 'EUR');
         UPDATE postings SET account = 'supplier:acme' WHERE entry = '{order}.end' AND account = 'supplier:sim'",
        NATIVE,
        "{order}.end",
    ),
    (
        "INSERT INTO suppliers (name, enabled, turn, currency) VALUES ('acme', 0, 0, 'EUR');
         INSERT INTO native_moves (entry, supplier, amount) VALUES ('{cancelled}.cancel', 'acme', -1);
         UPDATE postings SET account = 'supplier:acme' WHERE entry = '{cancelled}.cancel' AND account = 'supplier:sim'",
        NATIVE,
        "{cancelled}.cancel",
    ),
    ("INSERT INTO native_moves (entry, supplier, amount) VALUES ('{order}.end', 'sim', 1)", MOVES, "{order}.end"),
    ("INSERT INTO native_moves (entry, supplier, amount) VALUES ('nowhere', 'sim', 1)", MOVES, "nowhere"),
    // At 1.1 dollars, too much and too little by the last digit.
    (
        "UPDATE orders SET rate = 1100000000, native_cost = (cost + 1) * 10 / 11 + 1 WHERE id = '{order}'",
        RATES,
        "{order}",
    ),
    ("UPDATE orders SET rate = 1100000000, native_cost = cost * 10 / 11 - 1 WHERE id = '{order}'", RATES, "{order}"),
    ("UPDATE partner_days SET spent = spent + 1 WHERE account = {wallet}", DAYS, "{partner}"),
    (
        "INSERT INTO statement_sums (account, line, kind, lines, amount)
         SELECT wallet, line, 'CREDIT', line, balance + 1 FROM postings WHERE wallet = {wallet} AND line = 3",
        STATEMENT_SUMS,
        "{partner}",
    ),
    (
        "INSERT INTO statement_sums (account, line, kind, lines, amount)
         SELECT wallet, line, 'CREDIT', line + 1, balance FROM postings WHERE wallet = {wallet} AND line = 3",
        STATEMENT_SUMS,
        "{partner}",
    ),
    (
        "INSERT INTO statement_sums (account, line, kind, lines, amount)
         SELECT wallet, line, 'CREDIT', line, balance FROM postings WHERE wallet = {wallet} AND line = 3",
        STATEMENT_KINDS,
        "{partner}",
    ),
];

fn disarm(location: &Location) {
    let sql = match location {
        Location::Sqlite(_) => {
            "DROP TRIGGER entries_stay; DROP TRIGGER entries_last; DROP TRIGGER postings_stay; DROP TRIGGER postings_last;
             DROP TRIGGER native_moves_stay; DROP TRIGGER native_moves_last"
        }
        Location::Postgres(_) => {
            "ALTER TABLE entries DISABLE TRIGGER USER; ALTER TABLE postings DISABLE TRIGGER USER;
             ALTER TABLE native_moves DISABLE TRIGGER USER"
        }
    };
    database::execute(location, sql).unwrap();
}

both_databases! {
    async fn every_damage_is_found_and_named(gateway) {
        let books = keep_books(gateway).await;
        let location = &gateway.app.settings.database;
        let sound = simgate(gateway, &["ledger", "verify", "--json"]).document(0);
        assert_eq!((&sound["ok"], &sound["breaches"]), (&json!(true), &json!([])));
        for count in ["entries", "postings", "wallets", "orders"] {
            assert!(sound[count].as_i64().unwrap() > 0, "{count}");
        }
        disarm(location);
        // A job adds the last lines to the days; then nothing moves any more.
        days::of(&gateway.app, crate::support::desk::account(gateway).await, 1).await.unwrap();
        for table in TABLES {
            database::execute(location, &format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).unwrap();
        }
        for (damage, law, row) in DAMAGE {
            let (damage, row) = (books.fill(damage), books.fill(row));
            database::execute(location, &format!("BEGIN; {damage}; COMMIT")).unwrap_or_else(|error| panic!("{damage}: {error}"));
            let told: Told = simgate(gateway, &["--json", "ledger", "verify"]);
            let verdict = told.document(1);
            assert_eq!(verdict["ok"], false, "{damage}");
            let breaches = verdict["breaches"].as_array().unwrap();
            let named = breaches.iter().any(|breach| breach["law"] == *law && breach["row"] == row.as_str());
            assert!(named, "{damage}: {law}: {row} is not among {breaches:#?}");
            let restore: String = TABLES.iter().map(|t| format!("DELETE FROM {t}; INSERT INTO {t} SELECT * FROM kept_{t};")).collect();
            database::execute(location, &format!("BEGIN; {restore} COMMIT")).unwrap();
        }
        let told = simgate(gateway, &["ledger", "verify"]);
        assert_eq!(told.exit, 0, "{}", told.stderr);
        assert!(told.stdout.contains("Every law of the ledger holds."), "{}", told.stdout);
        database::execute(location, &books.fill("UPDATE wallets SET balance = balance + 1 WHERE account = {wallet}")).unwrap();
        let told = simgate(gateway, &["ledger", "verify"]);
        assert_eq!(told.exit, 1);
        for part in [WALLETS, gateway.partner.as_str(), "0.000001"] {
            assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
        }
        database::execute(location, &books.fill("UPDATE wallets SET balance = balance - 1 WHERE account = {wallet}")).unwrap();
    }

    /// One signature, two transactions: each on a branch of its own, and never both in the books.
    async fn a_signature_that_counts_twice_is_found(gateway) {
        let location = &gateway.app.settings.database;
        for hash in ["0x1", "0x2"] {
            let row = format!(
                "INSERT INTO transfers (network, tx_hash, position, currency, sender, address, amount, block, block_hash, block_time,
                     state, account, payment_nonce, round, seen_at, updated_at)
                 VALUES ('POLYGON', '{hash}', 0, 'USDC', '0xa', '0xb', 1000000, 1000000000, '0xc', 0, 'CREDITED', 1, '0xd', 0, 0, 0)"
            );
            database::execute(location, &row).unwrap();
        }
        let verdict = ledger::verify(&gateway.app).await.unwrap();
        let law = "every signature moved money once";
        assert!(verdict.breaches.iter().any(|breach| breach.law == law && breach.row == "0xd"));
        database::execute(location, "DELETE FROM transfers").unwrap();
    }

    async fn damage_to_what_is_owed_is_found(gateway) {
        let (owed, claimed) = (guest(gateway, "kid@example.com").await, guest(gateway, "kid@example.com").await);
        gateway.supplier("reject").await;
        for checkout in [&owed, &claimed] {
            settle(gateway, checkout, "FAILED").await;
        }
        let otp = claim_code(gateway, id(&claimed), "mum@example.com").await;
        assert_eq!(claim(gateway, id(&claimed), "mum@example.com", &otp).await.status, 200);
        check_books(&gateway.app).await;
        let location = &gateway.app.settings.database;
        disarm(location);
        let (owed, claimed) = (id(&owed), id(&claimed));
        for (damage, law, row, repair) in [
            (
                format!("UPDATE postings SET invoice = '{owed}' WHERE entry = '{claimed}.claim' AND account = 'owed'"),
                OWED,
                claimed,
                format!("UPDATE postings SET invoice = '{claimed}' WHERE entry = '{claimed}.claim' AND account = 'owed'"),
            ),
            (
                format!("UPDATE checkouts SET claimed_by = 1 WHERE id = '{owed}'"),
                CLAIMS,
                owed,
                format!("UPDATE checkouts SET claimed_by = NULL WHERE id = '{owed}'"),
            ),
            (
                format!("UPDATE postings SET invoice = NULL WHERE entry = '{claimed}.claim'"),
                OWED,
                "(none)",
                format!("UPDATE postings SET invoice = '{claimed}' WHERE entry = '{claimed}.claim' AND account = 'owed'"),
            ),
            ("UPDATE wallets SET lines = 1 WHERE account = 0".into(), GUESTS, "guests", "UPDATE wallets SET lines = 0 WHERE account = 0".into()),
        ] {
            database::execute(location, &damage).unwrap();
            let verdict = ledger::verify(&gateway.app).await.unwrap();
            let named = verdict.breaches.iter().any(|breach| breach.law == law && breach.row == row);
            assert!(named, "{damage}");
            database::execute(location, &repair).unwrap();
        }
    }
}
