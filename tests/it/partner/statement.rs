//! A long statement: any time of it, its months, and all of it as a file.

use std::ops::Range;

use futures_util::StreamExt;
use simgate::domain::ids::AccountNo;
use simgate::domain::ledger::{CreditKind, Entry};
use simgate::domain::money::Usd;
use simgate::domain::time::Time;
use simgate::ops::accounts::month::KindSum;
use simgate::ops::accounts::portions::{Order, Portions};
use simgate::ops::accounts::{self, Month, StatementLine};
use simgate::ops::operator;
use simgate::store::ledger::{self, Note};
use simgate::store::tx::Tx;
use simgate::wire::dates;

use crate::support::harness::{Gateway, both_databases};

const MINUTE_MS: i64 = 60_000;
const ARMED: &str = "=HYPERLINK(\"x\"),1";

async fn account(gateway: &Gateway) -> AccountNo {
    operator::account(&gateway.app, &gateway.partner).await.unwrap().no
}

/// The year and number of the month that so many months after this one is.
fn month_after(gateway: &Gateway, months: u16) -> (u16, u8) {
    let today = dates::date(gateway.app.now());
    let (year, month): (u16, u16) = (today[..4].parse().unwrap(), today[5..7].parse().unwrap());
    let month = month - 1 + months;
    (year + month / 12, (month % 12 + 1) as u8)
}

/// Writes lines: a place for every twenty minutes, from three days before the month after next on. Each says a time that is up to
/// 55 minutes too early, as when it had to wait. The last one's note looks like a formula.
async fn write(gateway: &Gateway, places: Range<i64>) -> Time {
    let account = account(gateway).await;
    let (year, month) = month_after(gateway, 2);
    let began = dates::month(year, month).unwrap().start.plus_days(-3);
    let end = places.end;
    for part in places.collect::<Vec<_>>().chunks(100) {
        let entries: Vec<(Entry, Time, bool)> = part
            .iter()
            .map(|line| {
                let (id, kind) = (gateway.app.new_entry_id(), CreditKind::Promo);
                let amount = Usd::from_micros(1 + line * 1_001 % 7_000);
                let entry = match line % 3 {
                    0 => Entry::operator_debit(&id, kind, account, amount),
                    _ => Entry::operator_credit(&id, kind, account, amount),
                };
                let late = (line * 7_919 + line * line * 31) % 56;
                (entry, began.plus_millis((line * 20 - late) * MINUTE_MS), line + 1 == end)
            })
            .collect();
        let post = move |tx: &mut Tx| {
            entries.iter().try_for_each(|(entry, at, last)| {
                let text = Some(if *last { ARMED } else { "a line" });
                ledger::post(tx, entry, *at, Note { actor: None, text }).map(drop)
            })
        };
        gateway.app.store.write(account.0, post).await.unwrap();
    }
    began
}

async fn walk(gateway: &Gateway, from: Option<Time>, to: Option<Time>, limit: i64) -> Vec<StatementLine> {
    let (account, mut all, mut after) = (account(gateway).await, Vec::new(), None);
    loop {
        let part = accounts::statement(&gateway.app, account, from, to, after, limit).await.unwrap();
        assert!(part.lines.len() as i64 <= limit);
        all.extend(part.lines);
        after = part.next;
        if after.is_none() {
            return all;
        }
    }
}

fn numbers(lines: &[StatementLine]) -> Vec<i64> {
    lines.iter().map(|line| line.line).collect()
}

async fn month(gateway: &Gateway, account: AccountNo, months: u16) -> Month {
    let (year, month) = month_after(gateway, months);
    accounts::month(&gateway.app, account, year, month).await.unwrap()
}

async fn portions(gateway: &Gateway, from: Option<Time>, to: Option<Time>, order: Order) -> Portions {
    Portions::of(&gateway.app, account(gateway).await, from, to, order).await.unwrap()
}

async fn all_of(mut portions: Portions) -> Vec<i64> {
    let mut all = Vec::new();
    while let Some(part) = portions.next().await.unwrap() {
        assert!((1..=500).contains(&part.len()));
        all.extend(numbers(&part));
    }
    all
}

async fn file(portions: Portions) -> String {
    portions.csv().map(Result::unwrap).collect::<Vec<String>>().await.concat()
}

both_databases! {
    async fn a_time_is_found_exactly_although_lines_are_not_in_its_order(gateway) {
        let began = write(gateway, 0..300).await;
        let whole = walk(gateway, None, None, 1_000).await;
        assert_eq!(whole.len(), 301);
        assert!(whole.windows(2).any(|pair| pair[0].at < pair[1].at), "the times are in order");
        let edges = (-30..110).step_by(7).map(|hours| began.plus_millis(hours * 60 * MINUTE_MS));
        let on_lines = whole.iter().step_by(41).map(|line| line.at);
        let edges: Vec<Time> = edges.chain(on_lines).collect();
        let both = edges.iter().zip(edges.iter().rev()).map(|(from, to)| (Some(*from), Some(*to)));
        let open = edges.iter().flat_map(|edge| [(Some(*edge), None), (None, Some(*edge))]);
        for (from, to) in both.chain(open) {
            let fits = |line: &&StatementLine| from.is_none_or(|from| line.at >= from) && to.is_none_or(|to| line.at < to);
            let wanted: Vec<i64> = whole.iter().filter(fits).map(|line| line.line).collect();
            assert_eq!(numbers(&walk(gateway, from, to, 90).await), wanted, "{from:?} {to:?}");
        }
    }

    async fn months_add_up_and_join(gateway) {
        write(gateway, 0..400).await;
        let account = account(gateway).await;
        let whole = walk(gateway, None, None, 1_000).await;
        let (mut opening, mut next, mut moved) = (Usd::ZERO, 1, 0);
        for months in 0..5 {
            let month = month(gateway, account, months).await;
            assert_eq!((month.opening, month.lines.start), (opening, next), "it opens as the last one closed");
            let sums: Usd = month.sums.iter().map(|part| part.sum).fold(Usd::ZERO, Usd::plus);
            assert_eq!(month.opening.plus(sums), month.closing);
            let mine = whole.iter().filter(|line| month.lines.contains(&line.line));
            let mut wanted: Vec<KindSum> = Vec::new();
            for line in mine {
                match wanted.iter_mut().find(|part| part.kind == line.kind) {
                    Some(part) => (part.count, part.sum) = (part.count + 1, part.sum.plus(line.change)),
                    None => wanted.push(KindSum { kind: line.kind.clone(), count: 1, sum: line.change }),
                }
            }
            wanted.sort_by(|a, b| a.kind.cmp(&b.kind));
            assert_eq!(month.sums, wanted);
            let early = month.from.plus_millis(-60 * MINUTE_MS);
            let of_time = |line: &StatementLine| line.at >= early && line.at < month.to;
            assert!(whole.iter().filter(|line| month.lines.contains(&line.line)).all(of_time));
            moved += usize::from(!month.lines.is_empty());
            let file = file(Portions::of_month(&gateway.app, account, &month, Order::Oldest)).await;
            assert_eq!(file.lines().count() as i64, 1 + month.lines.end - month.lines.start);
            (opening, next) = (month.closing, month.lines.end);
        }
        assert_eq!((opening.to_string(), next), (gateway.balance().await, 402));
        assert!(moved >= 2, "the lines are of several months");
        let (stranger, _) = gateway.partner("Stranger", Usd::ZERO).await;
        let stranger = operator::account(&gateway.app, &stranger).await.unwrap().no;
        let theirs = month(gateway, stranger, 2).await;
        assert!(theirs.lines.is_empty() && theirs.sums.is_empty());
        assert_eq!((theirs.opening, theirs.closing), (Usd::ZERO, Usd::ZERO));
        for (year, month) in [(2026, 0), (2026, 13), (10_000, 1)] {
            let refused = accounts::month(&gateway.app, account, year, month).await;
            assert!(refused.is_err_and(|error| error.refusal().is_some()), "{year} {month}");
        }
    }

    async fn all_of_it_is_written_in_portions(gateway) {
        let began = write(gateway, 0..1_203).await;
        let oldest: Vec<i64> = (1..=1_204).collect();
        let newest: Vec<i64> = oldest.iter().rev().copied().collect();
        let all = portions(gateway, None, None, Order::Oldest).await;
        // What is written meanwhile does not come.
        write(gateway, 1_203..1_204).await;
        assert_eq!(all_of(all).await, oldest);
        let (from, to) = (began.plus_days(2), began.plus_days(11));
        let wanted = numbers(&walk(gateway, Some(from), Some(to), 1_000).await);
        assert!(wanted.len() > 600);
        let part = portions(gateway, Some(from), Some(to), Order::Newest).await;
        assert_eq!(all_of(part).await, wanted);
        let mut part = all_of(portions(gateway, Some(from), Some(to), Order::Oldest).await).await;
        part.reverse();
        assert_eq!(part, wanted);

        let file = file(portions(gateway, None, None, Order::Newest).await).await;
        let lines: Vec<&str> = file.lines().collect();
        assert_eq!(lines[0], "line,type,amountUsd,balanceUsd,orderId,invoiceId,note,createdAt");
        let named: Vec<i64> = lines[2..].iter().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
        assert_eq!(named, newest);
        let shown = walk(gateway, None, None, 1_000).await;
        let (line, armed) = (&shown[0], "\"'=HYPERLINK(\"\"x\"\"),1\"");
        assert_eq!(lines[1], format!("1205,DEBIT,{},{},,,{armed},{}", line.change, line.balance, dates::iso(line.at)));
        let (stranger, _) = gateway.partner("Stranger", Usd::ZERO).await;
        let stranger = operator::account(&gateway.app, &stranger).await.unwrap().no;
        let theirs = Portions::of(&gateway.app, stranger, None, None, Order::Newest).await.unwrap();
        assert_eq!(theirs.csv().map(Result::unwrap).collect::<Vec<_>>().await, [format!("{}\n", lines[0])]);
    }
}
