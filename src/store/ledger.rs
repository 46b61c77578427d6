//! Writes entries, and proves the books. Entries come from the constructors in `domain::ledger`; here they are stored
//! with the wallet row they move, in one transaction. `check` recomputes everything from postings.

use std::collections::HashSet;

use super::engine::{Sql, Stored, Tx, columns, params, queries, text};
use super::wallet::{self, Line};
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::ledger::{Account, Entry, Posting, trial_name};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::time::Time;
use crate::domain::transfer::TransferId;
use crate::error::{Error, Result};

queries! {
    EXISTS = "SELECT 1 FROM entries WHERE id = ?1";
    KIND = "SELECT kind FROM entries WHERE id = ?1";
    LEGS = "SELECT account, amount, wallet FROM postings WHERE entry = ?1 ORDER BY leg";
    NAMED = text!("SELECT ", Booked::COLUMNS, " FROM entries WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 50");
    ENTRY = "INSERT INTO entries (id, kind, at, actor, note) VALUES (?1, ?2, ?3, ?4, ?5)";
    POSTING = "INSERT INTO postings (entry, leg, account, amount, wallet, line, balance, order_id, transfer, invoice, settles)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    PAID_BACK = "SELECT CAST(COALESCE(-SUM(amount), 0) AS BIGINT) FROM postings WHERE entry >= ?1 AND entry < ?2
                 AND entry <> ?3 AND account IN ('wallet', 'owed', 'receivable')";
    PAID_BY = "SELECT transfer FROM postings WHERE entry = ?1 AND account = 'held'";
    COUNTS = text!("SELECT ", Counts::COLUMNS);
    UNBALANCED = "SELECT entry, CAST(SUM(amount) AS BIGINT) FROM postings GROUP BY entry HAVING SUM(amount) <> 0 LIMIT 10";
    EMPTY_ENTRIES = "SELECT e.id, CAST(0 AS BIGINT) FROM entries e LEFT JOIN postings p ON p.entry = e.id WHERE p.entry IS NULL LIMIT 10";
    LOST_POSTINGS = "SELECT p.entry || ' leg ' || CAST(p.leg AS TEXT), p.amount FROM postings p
        LEFT JOIN entries e ON e.id = p.entry WHERE e.id IS NULL LIMIT 10";
    NO_WALLET = "SELECT p.entry || ' leg ' || CAST(p.leg AS TEXT), p.amount FROM postings p
        LEFT JOIN wallets w ON w.account = p.wallet WHERE p.account = 'wallet' AND w.account IS NULL LIMIT 10";
    NO_ORDER = "SELECT p.entry || ' leg ' || CAST(p.leg AS TEXT), p.amount FROM postings p
        LEFT JOIN orders o ON o.id = p.order_id WHERE p.order_id IS NOT NULL AND o.id IS NULL LIMIT 10";
    WALLETS_OFF = "SELECT a.id, w.balance + COALESCE(s.total, 0) FROM wallets w JOIN accounts a ON a.no = w.account
        LEFT JOIN (SELECT wallet, CAST(SUM(amount) AS BIGINT) AS total FROM postings WHERE wallet IS NOT NULL GROUP BY wallet) s
        ON s.wallet = w.account WHERE w.balance <> -COALESCE(s.total, 0) OR w.balance < 0 LIMIT 10";
    LINES_OFF = "SELECT a.id, CAST(0 AS BIGINT) FROM wallets w JOIN accounts a ON a.no = w.account
        LEFT JOIN (SELECT wallet, COUNT(*) AS n, MAX(line) AS last FROM postings WHERE wallet IS NOT NULL GROUP BY wallet) s
        ON s.wallet = w.account WHERE w.lines <> COALESCE(s.n, 0) OR w.lines <> COALESCE(s.last, 0) LIMIT 10";
    RUNNING_OFF = "SELECT p.entry, p.balance - COALESCE(q.balance, 0) + p.amount FROM postings p
        LEFT JOIN postings q ON q.wallet IS NOT NULL AND q.wallet = p.wallet AND q.line = p.line - 1
        WHERE p.wallet IS NOT NULL AND p.balance <> COALESCE(q.balance, 0) - p.amount LIMIT 10";
    FIRST_LINE_OFF = "SELECT entry, balance + amount FROM postings WHERE wallet IS NOT NULL AND line = 1 AND balance <> -amount LIMIT 10";
    LAST_LINE_OFF = "SELECT a.id, w.balance - p.balance FROM wallets w JOIN accounts a ON a.no = w.account
        JOIN postings p ON p.wallet = w.account AND p.line = w.lines WHERE p.wallet IS NOT NULL AND w.balance <> p.balance LIMIT 10";
    HELD_OFF = "SELECT o.id, CAST(COALESCE(h.total, 0) - CASE WHEN o.status = 'PROVISIONING' THEN -o.price ELSE 0 END AS BIGINT) FROM orders o
        LEFT JOIN (SELECT order_id, SUM(amount) AS total FROM postings WHERE account = 'held' GROUP BY order_id) h ON h.order_id = o.id
        WHERE COALESCE(h.total, 0) <> CASE WHEN o.status = 'PROVISIONING' THEN -o.price ELSE 0 END LIMIT 10";
    SALES_OFF = "SELECT o.id, CAST(COALESCE(h.total, 0) - CASE WHEN o.status IN ('FULFILLED', 'CANCELLING') THEN -o.price - o.spot - o.discount ELSE 0 END AS BIGINT)
        FROM orders o
        LEFT JOIN (SELECT order_id, SUM(amount) AS total FROM postings WHERE account = 'sales' GROUP BY order_id) h ON h.order_id = o.id
        WHERE COALESCE(h.total, 0) <> CASE WHEN o.status IN ('FULFILLED', 'CANCELLING') THEN -o.price - o.spot - o.discount ELSE 0 END LIMIT 10";
    COST_MISSING = "SELECT o.id, CAST(COALESCE(h.total, 0) - o.cost AS BIGINT) FROM orders o
        LEFT JOIN (SELECT order_id, SUM(amount) AS total FROM postings WHERE account LIKE 'cost:%' AND entry <> order_id || '.returned' GROUP BY order_id) h ON h.order_id = o.id
        WHERE o.status IN ('FULFILLED', 'CANCELLING') AND COALESCE(h.total, 0) <> o.cost LIMIT 10";
    RETURNED_OFF = "SELECT o.id, CAST(-p.amount - o.cost AS BIGINT) FROM postings p JOIN orders o ON o.id = p.order_id
        WHERE p.entry = p.order_id || '.returned' AND p.account LIKE 'cost:%' AND (-p.amount > o.cost OR o.status <> 'FULFILLED') LIMIT 10";
    ESIM_MISSING = "SELECT o.id, CAST(0 AS BIGINT) FROM orders o LEFT JOIN esims s ON s.order_id = o.id
        WHERE o.seq IS NOT NULL AND o.status IN ('FULFILLED', 'CANCELLING', 'CANCELLED') AND s.order_id IS NULL LIMIT 10";
    COUNTERS_OFF = "SELECT a.id, CAST(0 AS BIGINT) FROM wallets w JOIN accounts a ON a.no = w.account
        LEFT JOIN (SELECT account, COUNT(*) AS placed, SUM(CASE WHEN status = 'FAILED' THEN 1 ELSE 0 END) AS failed
                   FROM orders WHERE seq IS NOT NULL GROUP BY account) s ON s.account = w.account
        WHERE w.placed <> COALESCE(s.placed, 0) OR w.failed <> COALESCE(s.failed, 0) LIMIT 10";
    TRANSFERS_OFF = "SELECT t.network || ':' || t.tx_hash || ':' || CAST(t.position AS TEXT),
            CAST(COALESCE(s.cash, 0) - CASE WHEN t.state IN ('CREDITED', 'HELD', 'UNMATCHED', 'ASSIGNED', 'WRITTEN_OFF') THEN t.amount ELSE 0 END AS BIGINT)
        FROM transfers t LEFT JOIN (SELECT transfer,
                SUM(CASE WHEN account LIKE 'cash:%' THEN amount ELSE 0 END) AS cash,
                SUM(CASE WHEN account IN ('wallet', 'owed', 'receivable', 'held') THEN -amount ELSE 0 END) AS owner,
                SUM(CASE WHEN account = 'unmatched' THEN -amount ELSE 0 END) AS unmatched
            FROM postings WHERE transfer IS NOT NULL GROUP BY transfer) s
        ON s.transfer = t.network || ':' || t.tx_hash || ':' || CAST(t.position AS TEXT)
        WHERE COALESCE(s.cash, 0) <> CASE WHEN t.state IN ('CREDITED', 'HELD', 'UNMATCHED', 'ASSIGNED', 'WRITTEN_OFF') THEN t.amount ELSE 0 END
           OR COALESCE(s.owner, 0) <> CASE WHEN t.state IN ('CREDITED', 'HELD', 'ASSIGNED') THEN t.amount ELSE 0 END
           OR COALESCE(s.unmatched, 0) <> CASE WHEN t.state = 'UNMATCHED' THEN t.amount ELSE 0 END LIMIT 10";
    TRANSFER_PURSE_OFF = "SELECT p.entry, p.amount FROM postings p JOIN transfers t
        ON p.transfer = t.network || ':' || t.tx_hash || ':' || CAST(t.position AS TEXT)
        WHERE p.transfer IS NOT NULL AND p.account LIKE 'cash:%' AND p.account <> 'cash:' || t.network || ':' || t.currency LIMIT 10";
    TRANSFER_OWNER_OFF = "SELECT p.entry, p.amount FROM postings p JOIN transfers t
        ON p.transfer = t.network || ':' || t.tx_hash || ':' || CAST(t.position AS TEXT)
        LEFT JOIN checkouts c ON c.id = t.invoice
        WHERE p.transfer IS NOT NULL AND p.wallet IS NOT NULL AND p.wallet <> COALESCE(c.claimed_by, t.account, -1) LIMIT 10";
    NO_TRANSFER = "SELECT p.entry || ' leg ' || CAST(p.leg AS TEXT), p.amount FROM postings p LEFT JOIN transfers t
        ON p.transfer = t.network || ':' || t.tx_hash || ':' || CAST(t.position AS TEXT)
        WHERE p.transfer IS NOT NULL AND t.network IS NULL LIMIT 10";
    CASH_FROM_NOWHERE = "SELECT p.entry || ' leg ' || CAST(p.leg AS TEXT), p.amount FROM postings p JOIN entries e ON e.id = p.entry
        WHERE p.account LIKE 'cash:%' AND p.transfer IS NULL AND e.kind NOT IN ('PAYOUT', 'SWEEP') LIMIT 10";
    INVOICES_OFF = "SELECT i.id, CAST(COALESCE(s.total, 0) AS BIGINT) FROM invoices i
        LEFT JOIN (SELECT invoice, SUM(amount) AS total FROM transfers WHERE state = 'CREDITED' AND invoice IS NOT NULL GROUP BY invoice) s
        ON s.invoice = i.id WHERE i.status = 'CONFIRMED' AND COALESCE(s.total, 0) = 0 LIMIT 10";
    SPOT_OFF = "SELECT o.id, CAST(COALESCE(h.total, 0) - CASE WHEN o.status IN ('FULFILLED', 'CANCELLING') AND o.spot > 0 THEN o.spot ELSE 0 END AS BIGINT)
        FROM orders o
        LEFT JOIN (SELECT order_id, SUM(amount) AS total FROM postings WHERE account = 'discount:spot' GROUP BY order_id) h ON h.order_id = o.id
        WHERE COALESCE(h.total, 0) <> CASE WHEN o.status IN ('FULFILLED', 'CANCELLING') AND o.spot > 0 THEN o.spot ELSE 0 END LIMIT 10";
    ROUNDING_OFF = "SELECT o.id, CAST(COALESCE(h.total, 0) - CASE WHEN o.status IN ('FULFILLED', 'CANCELLING') AND o.spot < 0 THEN o.spot ELSE 0 END AS BIGINT)
        FROM orders o
        LEFT JOIN (SELECT order_id, SUM(amount) AS total FROM postings WHERE account = 'rounding' GROUP BY order_id) h ON h.order_id = o.id
        WHERE COALESCE(h.total, 0) <> CASE WHEN o.status IN ('FULFILLED', 'CANCELLING') AND o.spot < 0 THEN o.spot ELSE 0 END LIMIT 10";
    /// Unless the operator assigned it: the exact amount; or, with a slot and no signature, an amount near the price.
    CHECKOUT_FLOOR_OFF = "SELECT c.id, o.price - c.amount FROM checkouts c JOIN orders o ON o.id = c.order_id
        LEFT JOIN postings p ON p.entry = o.id || '.hold' AND p.account LIKE 'cash:%'
        LEFT JOIN transfers t ON p.transfer = t.network || ':' || t.tx_hash || ':' || CAST(t.position AS TEXT)
        WHERE p.entry IS NOT NULL AND o.price <> c.amount
          AND (c.wide = 0 OR t.payment_nonce IS NOT NULL OR t.network IS NULL OR t.network <> c.network OR t.currency <> c.currency
               OR o.price < c.list_price - c.discount - 10000 OR o.price > c.list_price - c.discount + 20000) LIMIT 10";
    CHECKOUT_SHORT_OFF = "SELECT c.id, o.spot - (c.list_price - c.discount - o.price) FROM checkouts c JOIN orders o ON o.id = c.order_id
        WHERE o.spot <> c.list_price - c.discount - o.price LIMIT 10";
    SLOTS_OFF = "SELECT c.id, COALESCE(s.n, 0) FROM checkouts c
        LEFT JOIN (SELECT invoice, COUNT(*) AS n, MIN(bucket) AS low, MAX(bucket) AS high, MIN(address) AS one, MAX(address) AS other
                   FROM slots GROUP BY invoice) s ON s.invoice = c.id
        WHERE c.wide = 1 AND c.released = 0
          AND (s.n IS NULL OR s.n <> 2 OR s.high <> s.low + 1 OR s.low <> (c.list_price - c.discount - 10000) / 50000
               OR s.one <> c.address OR s.other <> c.address) LIMIT 10";
    STRAY_SLOTS = "SELECT s.invoice, s.bucket FROM slots s LEFT JOIN checkouts c ON c.id = s.invoice AND c.wide = 1 AND c.released = 0
        WHERE c.id IS NULL LIMIT 10";
    SLOTS_MIXED = "SELECT c.id, a.serves FROM checkouts c JOIN addresses a ON a.address = c.address
        WHERE c.released = 0 AND ((c.wide = 1 AND a.serves < 0) OR (c.wide = 0 AND a.serves > 0)) LIMIT 10";
    SIGNED_TWICE = "SELECT c.id, c.amount FROM checkouts c JOIN checkouts o ON o.address = c.sign_to AND o.amount = c.amount
        WHERE c.sign_to IS NOT NULL AND c.released = 0 AND o.released = 0 LIMIT 10";
    COUPON_OFF = "SELECT o.id, CAST(COALESCE(h.total, 0) - CASE WHEN o.status IN ('FULFILLED', 'CANCELLING') THEN o.discount ELSE 0 END AS BIGINT)
        FROM orders o
        LEFT JOIN (SELECT order_id, SUM(amount) AS total FROM postings WHERE account = 'discount:coupon' GROUP BY order_id) h ON h.order_id = o.id
        WHERE COALESCE(h.total, 0) <> CASE WHEN o.status IN ('FULFILLED', 'CANCELLING') THEN o.discount ELSE 0 END LIMIT 10";
    COUPONS_OVERUSED = "SELECT code, used - uses FROM coupons WHERE uses IS NOT NULL AND used > uses LIMIT 10";
    COUPON_COUNTS_OFF = "SELECT c.code, CAST(c.used - COALESCE(s.n, 0) AS BIGINT) FROM coupons c
        LEFT JOIN (SELECT code, COUNT(*) AS n, SUM(CASE WHEN state = 'RESERVED' AND account = 0 THEN 1 ELSE 0 END) AS guests
                   FROM coupon_uses WHERE state IN ('RESERVED', 'SPENT') GROUP BY code) s ON s.code = c.code
        WHERE c.used <> COALESCE(s.n, 0) OR c.held_by_guests <> COALESCE(s.guests, 0) LIMIT 10";
    /// A use is reserved only while its checkout is open (an offer has none yet), and spent while its order stands.
    USES_OFF = "SELECT u.holder, CAST(0 AS BIGINT) FROM coupon_uses u LEFT JOIN checkouts c ON c.id = u.holder
        LEFT JOIN orders o ON o.id = u.order_id
        WHERE u.state <> CASE WHEN o.status IN ('PROVISIONING', 'FULFILLED', 'CANCELLING') THEN 'SPENT'
                              WHEN o.id IS NULL AND c.status = 'OPEN' AND u.state = 'RESERVED' THEN 'RESERVED' ELSE 'RETURNED' END
           OR (c.id IS NOT NULL AND (c.account <> u.account OR COALESCE(c.coupon, '') <> u.code))
           OR (o.id IS NOT NULL AND (o.account <> u.account OR COALESCE(o.coupon, '') <> u.code))
           OR (c.id IS NULL AND o.id IS NULL) LIMIT 10";
    NO_USE = "SELECT o.id, o.discount FROM orders o LEFT JOIN coupon_uses u ON u.order_id IS NOT NULL AND u.order_id = o.id
        WHERE (o.coupon IS NOT NULL AND u.holder IS NULL) OR (o.coupon IS NULL AND o.discount <> 0) LIMIT 10";
    NO_CHECKOUT_USE = "SELECT c.id, c.discount FROM checkouts c LEFT JOIN coupon_uses u ON u.holder = c.id
        WHERE (c.coupon IS NOT NULL AND u.holder IS NULL) OR (c.coupon IS NULL AND c.discount <> 0) LIMIT 10";
    CHECKOUTS_OFF = "SELECT c.id, CAST(0 AS BIGINT) FROM checkouts c LEFT JOIN orders o ON o.id = c.order_id
        WHERE (c.status = 'PAID' AND (o.id IS NULL OR o.account <> c.account OR COALESCE(o.esim_order, '') <> COALESCE(c.esim_order, '')
                   OR COALESCE(CASE WHEN c.keyed = 1 THEN o.checkout_no ELSE o.seq END, -1) <> CASE WHEN c.esim_order IS NULL THEN c.seq ELSE -1 END
                   OR (c.esim_order IS NULL AND o.keyed <> c.keyed)))
           OR (c.status <> 'PAID' AND c.order_id IS NOT NULL) LIMIT 10";
    CHECKOUT_PAID_OFF = "SELECT c.id, CAST(COALESCE(h.total, 0) + o.price AS BIGINT) FROM checkouts c JOIN orders o ON o.id = c.order_id
        LEFT JOIN (SELECT order_id, SUM(amount) AS total FROM postings
                   WHERE account = 'held' AND transfer IS NOT NULL GROUP BY order_id) h ON h.order_id = o.id
        WHERE COALESCE(h.total, 0) <> -o.price LIMIT 10";
    HELD_TRANSFERS_OFF = "SELECT t.network || ':' || t.tx_hash || ':' || CAST(t.position AS TEXT), t.amount FROM transfers t
        LEFT JOIN checkouts c ON c.id = t.invoice
        LEFT JOIN (SELECT transfer, MIN(order_id) AS order_id, COUNT(*) AS n, SUM(amount) AS total FROM postings
                   WHERE account = 'held' AND transfer IS NOT NULL GROUP BY transfer) h
        ON h.transfer = t.network || ':' || t.tx_hash || ':' || CAST(t.position AS TEXT)
        WHERE t.state = 'HELD' AND (c.order_id IS NULL OR h.order_id IS NULL OR h.order_id <> c.order_id OR h.n <> 1
                                    OR h.total <> -t.amount) LIMIT 10";
    HELD_ELSEWHERE = "SELECT c.id, t.amount FROM transfers t JOIN checkouts c ON c.id = t.invoice
        WHERE t.state = 'HELD' AND CASE WHEN t.payment_nonce IS NOT NULL
            THEN t.currency <> 'USDC' OR (t.address <> COALESCE(c.sign_to, c.address) AND (c.sign_to IS NOT NULL OR c.network <> 'TRON'))
            ELSE t.network <> c.network OR t.address <> c.address OR t.currency <> c.currency END LIMIT 10";
    SIGNED_OFF = "SELECT a.invoice, a.amount FROM authorizations a WHERE a.state = 'SETTLED' AND NOT EXISTS (
            SELECT 1 FROM transfers t WHERE t.payment_nonce IS NOT NULL AND t.payment_nonce = a.nonce AND t.network = a.network
            AND t.sender = a.payer AND t.address = a.pay_to AND t.amount = a.amount AND t.currency = 'USDC'
            AND t.invoice = a.invoice) LIMIT 10";
    MOVED_TWICE = "SELECT payment_nonce, CAST(SUM(amount) - MAX(amount) AS BIGINT) FROM transfers
        WHERE payment_nonce IS NOT NULL AND state NOT IN ('SEEN', 'ORPHANED', 'REVERSED')
        GROUP BY network, sender, payment_nonce HAVING COUNT(*) > 1 LIMIT 10";
    PAID_BACK_OFF = "SELECT o.id, CAST(s.total - o.price AS BIGINT) FROM orders o JOIN (
            SELECT order_id, -SUM(amount) AS total FROM postings WHERE order_id IS NOT NULL
            AND account IN ('wallet', 'owed', 'receivable') AND entry <> order_id || '.hold' GROUP BY order_id) s
        ON s.order_id = o.id WHERE s.total > o.price LIMIT 10";
    REFUNDED_OFF = "SELECT o.id, CAST(COALESCE(s.total, 0) - COALESCE(o.refunded, o.price) AS BIGINT) FROM orders o LEFT JOIN (
            SELECT order_id, -SUM(amount) AS total FROM postings WHERE account IN ('wallet', 'owed')
            AND entry IN (order_id || '.end', order_id || '.cancel') GROUP BY order_id) s ON s.order_id = o.id
        WHERE o.status IN ('FAILED', 'CANCELLED') AND COALESCE(s.total, 0) <> COALESCE(o.refunded, o.price) LIMIT 10";
    DEBTS_OFF = "SELECT COALESCE(settles, transfer, entry), CAST(SUM(amount) AS BIGINT) FROM postings WHERE account = 'receivable'
        GROUP BY COALESCE(settles, transfer, entry) HAVING SUM(amount) < 0 LIMIT 10";
    /// Paid back after the payment was gone and while it is still owed.
    PAID_BACK_FOR_NOTHING = "WITH debts AS (SELECT COALESCE(settles, transfer) AS id FROM postings WHERE account = 'receivable'
            GROUP BY COALESCE(settles, transfer) HAVING SUM(amount) > 0),
        gone AS (SELECT p.transfer AS id, MAX(e.at) AS at FROM debts d JOIN postings p ON p.transfer IS NOT NULL AND p.transfer = d.id
            JOIN entries e ON e.id = p.entry WHERE p.account = 'receivable' AND p.amount > 0 GROUP BY p.transfer)
        SELECT b.entry, b.amount FROM gone g JOIN postings h ON h.transfer IS NOT NULL AND h.transfer = g.id AND h.account = 'held'
        JOIN postings b ON b.order_id = h.order_id AND b.account IN ('wallet', 'owed') AND b.amount < 0
        JOIN entries e ON e.id = b.entry WHERE e.at > g.at AND e.kind <> 'CLAIMED' LIMIT 10";
    CHECKOUT_AMOUNTS_OFF = "SELECT id, list_price - discount - amount FROM checkouts
        WHERE list_price - discount - amount < 1 OR list_price - discount - amount > 9999 LIMIT 10";
    NUMBERS_OFF = "SELECT a.id, CAST(0 AS BIGINT) FROM wallets w JOIN accounts a ON a.no = w.account
        LEFT JOIN (SELECT account, MAX(seq) AS last FROM orders WHERE seq IS NOT NULL GROUP BY account) o ON o.account = w.account
        LEFT JOIN (SELECT account, MAX(CASE WHEN keyed = 0 THEN seq END) AS last, MAX(CASE WHEN keyed = 1 THEN seq END) AS opened
                   FROM checkouts GROUP BY account) c ON c.account = w.account
        WHERE w.numbers < COALESCE(o.last, 0) OR w.numbers < COALESCE(c.last, 0) OR w.opened < COALESCE(c.opened, 0) LIMIT 10";
    OWED_OFF = "SELECT COALESCE(p.invoice, '(none)'), CAST(SUM(p.amount) AS BIGINT) FROM postings p LEFT JOIN checkouts c ON c.id = p.invoice
        WHERE p.account = 'owed' GROUP BY p.invoice, c.account, c.claimed_by
        HAVING SUM(p.amount) > 0 OR c.account IS NULL OR c.account <> 0 OR (c.claimed_by IS NOT NULL AND SUM(p.amount) <> 0) LIMIT 10";
    CLAIMS_OFF = "SELECT c.id, COALESCE(p.amount, 0) FROM checkouts c
        LEFT JOIN postings p ON p.entry = c.id || '.claim' AND p.account = 'wallet'
        WHERE c.claimed_by IS NOT NULL AND (p.wallet IS NULL OR p.wallet <> c.claimed_by) LIMIT 10";
    GUESTS_OFF = "SELECT a.id, w.balance FROM wallets w JOIN accounts a ON a.no = w.account
        WHERE a.kind = 'GUEST' AND (w.balance <> 0 OR w.lines <> 0) LIMIT 10";
    TRIALS = "SELECT id FROM entries WHERE kind = 'TRIAL'";
    SUPPLIER_FROM_NOWHERE = "SELECT p.entry || ' leg ' || CAST(p.leg AS TEXT), p.amount FROM postings p JOIN entries e ON e.id = p.entry
        WHERE p.account LIKE 'supplier:%' AND e.kind NOT IN ('FULFILLED', 'CANCELLED', 'ORPHAN', 'FUNDED', 'TRIAL', 'TRIAL_RETURNED', 'COST_RETURNED') LIMIT 10";
    /// A sale has what was billed in its order; everything else in its move, in the same direction.
    NATIVE_OFF = "SELECT p.entry, p.amount FROM suppliers s JOIN postings p ON p.account = 'supplier:' || s.name
        JOIN entries e ON e.id = p.entry LEFT JOIN orders o ON o.id = p.order_id
        LEFT JOIN native_moves m ON m.entry = p.entry AND m.supplier = s.name
        WHERE s.currency <> 'USD' AND CASE WHEN e.kind = 'FULFILLED' THEN o.native_cost IS NULL OR o.rate IS NULL
            ELSE m.entry IS NULL OR (m.amount > 0) <> (p.amount > 0) END LIMIT 10";
    NATIVE_FROM_NOWHERE = "SELECT m.entry, CAST(0 AS BIGINT) FROM native_moves m LEFT JOIN entries e ON e.id = m.entry
        WHERE e.id IS NULL OR e.kind = 'FULFILLED' LIMIT 10";
    /// The bill times the rate, rounded up, in steps that stay within 64 bits: whole units first, then millionths.
    RATES_OFF = "SELECT b.id, b.cost - b.dollars FROM (SELECT id, cost, native_cost / 1000000 * rate / 1000
            + (native_cost / 1000000 * rate % 1000 * 1000000 + native_cost % 1000000 * rate + 999999999) / 1000000000 AS dollars
            FROM orders WHERE rate IS NOT NULL AND native_cost IS NOT NULL) b WHERE b.cost <> b.dollars LIMIT 10";
    DAYS_OFF = "SELECT a.id, CAST(COALESCE(s.total, 0) - COALESCE(p.balance, 0) AS BIGINT) FROM summed_lines d JOIN accounts a ON a.no = d.account
        LEFT JOIN (SELECT account, SUM(other - spent + given_back) AS total FROM partner_days GROUP BY account) s ON s.account = d.account
        LEFT JOIN postings p ON p.wallet IS NOT NULL AND p.wallet = d.account AND p.line = d.line
        WHERE COALESCE(s.total, 0) <> COALESCE(p.balance, 0) LIMIT 10";
    STATEMENT_SUMS_OFF = "SELECT a.id, CAST(s.total - COALESCE(p.balance, 0) AS BIGINT)
        FROM (SELECT account, line, SUM(amount) AS total, SUM(lines) AS lines FROM statement_sums GROUP BY account, line) s
        JOIN accounts a ON a.no = s.account
        LEFT JOIN postings p ON p.wallet IS NOT NULL AND p.wallet = s.account AND p.line = s.line
        WHERE s.total <> COALESCE(p.balance, 0) OR s.lines <> s.line LIMIT 10";
    /// The last sum of each has all lines of the others.
    STATEMENT_KINDS_OFF = "SELECT a.id, CAST(SUM(u.amount) AS BIGINT) FROM (
            SELECT s.account, s.kind, s.lines, s.amount FROM statement_sums s
                JOIN (SELECT account, MAX(line) AS line FROM statement_sums GROUP BY account) t ON t.account = s.account AND t.line = s.line
            UNION ALL SELECT t.account, e.kind, -1, p.amount FROM (SELECT account, MAX(line) AS line FROM statement_sums GROUP BY account) t
                JOIN postings p ON p.wallet IS NOT NULL AND p.wallet = t.account AND p.line <= t.line JOIN entries e ON e.id = p.entry
        ) u JOIN accounts a ON a.no = u.account GROUP BY a.id, u.kind HAVING SUM(u.amount) <> 0 OR SUM(u.lines) <> 0 LIMIT 10";
    SUM_OF = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM postings WHERE account = ?1";
}

pub fn exists(tx: &mut Tx, entry: &str) -> Result<bool> {
    tx.any(EXISTS, params![entry])
}

/// Whether the entry that is booked under this id is the same one; `None` when none is.
pub fn is_same(tx: &mut Tx, entry: &Entry) -> Result<Option<bool>> {
    let Some(kind) = tx.opt::<String>(KIND, params![&entry.id])? else { return Ok(None) };
    let booked: Vec<(String, Usd, Option<AccountNo>)> = tx.all(LEGS, params![&entry.id])?;
    let leg = |posting: &Posting| {
        let wallet = match posting.account {
            Account::Wallet(no) => Some(no),
            _ => None,
        };
        (posting.account.name(), posting.amount, wallet)
    };
    let legs: Vec<_> = entry.postings.iter().map(leg).collect();
    Ok(Some(kind == entry.kind.as_str() && booked == legs))
}

/// An entry that carries a name of ours or an operator's.
pub struct Booked {
    pub id: String,
    pub kind: String,
    pub at: Time,
    pub actor: Option<String>,
    pub note: Option<String>,
}

columns! { Booked { id, kind, at, actor, note } }

/// The entries with this name, and those whose names go on after it with a dot.
pub fn named(tx: &mut Tx, name: &str) -> Result<Vec<Booked>> {
    let mut found: Vec<Booked> = tx.all(NAMED, params![name, &format!("{name}/")])?;
    found.retain(|entry| entry.id[name.len()..].is_empty() || entry.id[name.len()..].starts_with('.'));
    Ok(found)
}

/// What was paid back for an order so far, by failure, cancel or goodwill. Its entries are named after the order, so
/// this reads a short range.
pub fn paid_back(tx: &mut Tx, order: &OrderId) -> Result<Usd> {
    let (from, to, hold) = (format!("{order}."), format!("{order}/"), format!("{order}.hold"));
    tx.one(PAID_BACK, params![&from, &to, &hold])
}

/// The transfer that paid for an order; `None` when a wallet paid.
pub fn paid_by(tx: &mut Tx, order: &OrderId) -> Result<Option<TransferId>> {
    let transfer: Option<String> = tx.one(PAID_BY, params![&format!("{order}.hold")])?;
    let read =
        |id: String| TransferId::parse(&id).ok_or_else(|| Error::fault("a posting with a bad transfer id"));
    transfer.map(read).transpose()
}

/// Who moved the money and why; both are empty for the service's own entries.
#[derive(Clone, Copy, Default)]
pub struct Note<'a> {
    pub actor: Option<&'a str>,
    pub text: Option<&'a str>,
}

/// Moves the entry's wallet and stores the entry. Answers the wallet's new balance. Refuses, before anything is
/// written, what the wallet cannot pay.
pub fn post(tx: &mut Tx, entry: &Entry, at: Time, note: Note) -> Result<Option<Usd>> {
    let line = match entry.wallet_change() {
        Some((account, change)) => Some(wallet::change(tx, account, change)?),
        None => None,
    };
    insert(tx, entry, at, note, line)?;
    Ok(line.map(|line| line.balance))
}

/// Stores an entry whose wallet row was moved already.
pub fn insert(tx: &mut Tx, entry: &Entry, at: Time, note: Note, line: Option<Line>) -> Result<()> {
    tx.execute(ENTRY, params![&entry.id, entry.kind.as_str(), at, note.actor, note.text])?;
    let transfer = entry.transfer.as_ref().map(ToString::to_string);
    for (leg, posting) in (1i64..).zip(&entry.postings) {
        let (wallet, line) = match posting.account {
            Account::Wallet(account) => (Some(account), line),
            _ => (None, None),
        };
        let invoice = match &posting.account {
            Account::Owed(invoice) => Some(invoice.as_str()),
            _ => None,
        };
        let settles = match &posting.account {
            Account::Receivable(transfer) => Some(transfer.to_string()),
            _ => None,
        };
        let (no, balance) = (line.map(|line| line.no), line.map(|line| line.balance));
        let account = posting.account.name();
        tx.execute(
            POSTING,
            params![
                &entry.id,
                leg,
                &account,
                posting.amount,
                wallet,
                no,
                balance,
                &entry.order,
                &transfer,
                invoice,
                &settles
            ],
        )?;
    }
    Ok(())
}

/// What the books say lies on our addresses, on one network and in one token.
pub fn cash(tx: &mut Tx, network: Network, currency: Currency) -> Result<Usd> {
    sum_of(tx, &Account::Cash(network, currency))
}

/// What was bought to try a supplier.
pub fn trials(tx: &mut Tx, supplier: &str) -> Result<HashSet<OrderId>> {
    let begins = trial_name("", supplier);
    let names: Vec<String> = tx.all(TRIALS, &[])?;
    Ok(names.iter().filter_map(|name| name.strip_prefix(&begins)).map(OrderId::from_text).collect())
}

/// The debits of an account less its credits.
pub fn sum_of(tx: &mut Tx, account: &Account) -> Result<Usd> {
    tx.one(SUM_OF, params![&account.name()])
}

/// A row that breaks a law.
pub struct Breach {
    pub law: &'static str,
    pub row: String,
    /// By how much, with its unit.
    pub off_by: String,
}

pub struct Counts {
    pub entries: i64,
    pub postings: i64,
    pub wallets: i64,
    pub orders: i64,
    pub transfers: i64,
}

columns! {
    Counts {
        entries = "(SELECT COUNT(*) FROM entries)",
        postings = "(SELECT COUNT(*) FROM postings)",
        wallets = "(SELECT COUNT(*) FROM wallets)",
        orders = "(SELECT COUNT(*) FROM orders)",
        transfers = "(SELECT COUNT(*) FROM transfers)",
    }
}

/// The unit of a law's difference.
#[derive(Clone, Copy)]
enum Unit {
    Usd,
    Rows,
}

const LAWS: &[(&str, Unit, Sql)] = &[
    ("every entry sums to zero", Unit::Usd, UNBALANCED),
    ("every entry has postings", Unit::Rows, EMPTY_ENTRIES),
    ("every posting has its entry", Unit::Usd, LOST_POSTINGS),
    ("every posting on a wallet has its wallet", Unit::Usd, NO_WALLET),
    ("every posting for an order has its order", Unit::Usd, NO_ORDER),
    ("every wallet equals its postings and is not negative", Unit::Usd, WALLETS_OFF),
    ("every wallet's statement has no gap", Unit::Rows, LINES_OFF),
    ("every statement begins at zero", Unit::Usd, FIRST_LINE_OFF),
    ("every line's balance follows from the one before", Unit::Usd, RUNNING_OFF),
    ("every statement ends at the wallet's balance", Unit::Usd, LAST_LINE_OFF),
    ("money is held exactly while an order is PROVISIONING", Unit::Usd, HELD_OFF),
    ("every delivered order is a sale of what was charged, and no other is", Unit::Usd, SALES_OFF),
    ("every delivered order has its cost", Unit::Usd, COST_MISSING),
    ("what comes back of the cost of an order that is kept is at most that", Unit::Usd, RETURNED_OFF),
    ("every delivered order has its eSIM", Unit::Rows, ESIM_MISSING),
    ("every wallet's order counters equal its orders", Unit::Rows, COUNTERS_OFF),
    ("every final transfer is booked once, with its exact amount, and no other is", Unit::Usd, TRANSFERS_OFF),
    ("every transfer is booked on its own network and token", Unit::Usd, TRANSFER_PURSE_OFF),
    ("every transfer is booked to its owner", Unit::Usd, TRANSFER_OWNER_OFF),
    ("every posting for a transfer has its transfer", Unit::Usd, NO_TRANSFER),
    ("cash comes from transfers, and goes by payouts and sweeps", Unit::Usd, CASH_FROM_NOWHERE),
    ("what a supplier holds was paid in, and goes by what it sold", Unit::Usd, SUPPLIER_FROM_NOWHERE),
    ("whatever moves at a supplier of another currency has its bill", Unit::Usd, NATIVE_OFF),
    ("every move in another currency has its entry, and is no sale", Unit::Rows, NATIVE_FROM_NOWHERE),
    ("every order's cost is its bill at its own rate", Unit::Usd, RATES_OFF),
    ("every confirmed invoice has a credited transfer", Unit::Usd, INVOICES_OFF),
    ("what was taken off a delivered order's price is booked, and nothing else is", Unit::Usd, SPOT_OFF),
    ("what was paid above a delivered order's price is booked, and nothing else is", Unit::Usd, ROUNDING_OFF),
    (
        "what a coupon took off a delivered order's price is booked, and nothing else is",
        Unit::Usd,
        COUPON_OFF,
    ),
    ("no coupon is used more often than it allows", Unit::Rows, COUPONS_OVERUSED),
    ("every coupon's count equals its uses", Unit::Rows, COUPON_COUNTS_OFF),
    (
        "a coupon's use is reserved only while its checkout is open, spent while its order stands",
        Unit::Rows,
        USES_OFF,
    ),
    ("every discounted order has its coupon's use", Unit::Usd, NO_USE),
    ("every discounted checkout has its coupon's use", Unit::Usd, NO_CHECKOUT_USE),
    ("every paid checkout has its order, and no other has one", Unit::Rows, CHECKOUTS_OFF),
    ("every checkout's order is paid by transfers, exactly", Unit::Usd, CHECKOUT_PAID_OFF),
    ("every held transfer pays for its checkout's order, once", Unit::Usd, HELD_TRANSFERS_OFF),
    ("every held transfer came as it was asked for", Unit::Usd, HELD_ELSEWHERE),
    ("every signature that was settled moved exactly what was signed", Unit::Usd, SIGNED_OFF),
    ("every signature moved money once", Unit::Usd, MOVED_TWICE),
    ("what is paid back for an order is at most its price", Unit::Usd, PAID_BACK_OFF),
    ("every failed or cancelled order says what was given back for it", Unit::Usd, REFUNDED_OFF),
    ("nobody gave back more for a transfer that is gone than it was", Unit::Usd, DEBTS_OFF),
    (
        "nothing is paid back for an order whose payment is gone, but what it owes",
        Unit::Usd,
        PAID_BACK_FOR_NOTHING,
    ),
    ("every checkout asks for less than a cent below its price", Unit::Usd, CHECKOUT_AMOUNTS_OFF),
    ("every checkout was paid what it takes, or by the operator's word", Unit::Usd, CHECKOUT_FLOOR_OFF),
    (
        "what a checkout's payment fell short of its price, or was above it, is its order's",
        Unit::Usd,
        CHECKOUT_SHORT_OFF,
    ),
    ("every wide checkout holds the two buckets of its price", Unit::Rows, SLOTS_OFF),
    ("every slot is held by a wide checkout that may still be paid", Unit::Rows, STRAY_SLOTS),
    ("wide and exact amounts share no address", Unit::Rows, SLOTS_MIXED),
    ("no two checkouts are signed for with one amount at one address", Unit::Usd, SIGNED_TWICE),
    ("every order number was given out by its wallet", Unit::Rows, NUMBERS_OFF),
    ("what we owe is owed to guests' invoices, and not more than once", Unit::Usd, OWED_OFF),
    ("every claim of a guest's invoice went to who claimed it", Unit::Usd, CLAIMS_OFF),
    ("guests have no wallet", Unit::Usd, GUESTS_OFF),
    ("a partner's days add up to its balance after the last line in them", Unit::Usd, DAYS_OFF),
    ("each sum of a partner's statement is the balance after its last line", Unit::Usd, STATEMENT_SUMS_OFF),
    ("the sums of a partner's statement have its lines by their types", Unit::Usd, STATEMENT_KINDS_OFF),
];

pub fn check(tx: &mut Tx) -> Result<(Counts, Vec<Breach>)> {
    let counts = tx.one(COUNTS, &[])?;
    let mut breaches = Vec::new();
    for &(law, unit, sql) in LAWS {
        for (row, difference) in tx.all::<(String, i64)>(sql, &[])? {
            let off_by = match unit {
                Unit::Usd => format!("{} USD", Usd::from_micros(difference)),
                Unit::Rows => difference.to_string(),
            };
            breaches.push(Breach { law, row, off_by });
        }
    }
    Ok((counts, breaches))
}
