//! What can happen in a story, and how stories are made up. A story is a few acts, each a likely way to cheat or to be
//! unlucky, shuffled into each other with some noise between. Steps name places (the second checkout, the first
//! signature), not things: where nothing is, a step does nothing, so any step can be left out when a story is shortened.

use super::chain::{Keep, Mood as Nodes};
use simgate::supplier::sim::SupplierMode as Supplier;

/// Who takes part; guests have no account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    Ann,
    Bob,
    Guest,
}

/// The networks of a story. Signatures count on the first.
pub const NETWORKS: usize = 3;
/// How many checkouts and signatures a story has at most.
pub const PLACES: usize = 4;

/// How much is sent, compared with what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    Exact,
    /// To the cent, as people do: up.
    Rounded,
    /// This many micro-dollars more, or less.
    Off(i64),
    /// A micro-dollar.
    Tiny,
    /// What this other checkout asks for.
    Of(usize),
}

/// Whereto a signature moves the money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Asked,
    /// The deposit address of Bob.
    Bobs,
    Stranger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Valid {
    Now,
    Over,
    NotYet,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Open {
        at: usize,
        who: Who,
        network: usize,
        dear: bool,
        coupon: bool,
        limited: bool,
    },
    /// Ann or Bob asks for a deposit.
    Deposit {
        who: Who,
        network: usize,
    },
    PayDeposit {
        who: Who,
        cents: i64,
        network: usize,
        other_token: bool,
    },
    Pay {
        at: usize,
        sum: Sum,
        other_token: bool,
        other_network: bool,
    },
    /// Two checkouts in one transaction, as exchanges pay out.
    PayBoth {
        first: usize,
        second: usize,
        sum: Sum,
    },
    Sign {
        signature: usize,
        at: usize,
        payer: u8,
        nonce: u64,
        sum: Sum,
        to: To,
        valid: Valid,
        other_token: bool,
    },
    /// Somebody brings the signature onto the chain.
    Mine {
        signature: usize,
    },
    /// Somebody shows the signature at the door, for this checkout.
    Claim {
        signature: usize,
        at: usize,
        who: Who,
    },
    Blocks {
        network: usize,
        count: usize,
    },
    Reorg {
        network: usize,
        depth: usize,
        keep: Keep,
    },
    /// What was dropped is mined again.
    Return {
        network: usize,
    },
    /// The scanner looks once.
    Look {
        network: usize,
    },
    /// So many blocks come that everything is final, and the scanner looks.
    Deep {
        network: usize,
    },
    Nodes {
        network: usize,
        mood: Nodes,
    },
    Supplier(Supplier),
    Recover,
    Minutes(i64),
    Restart,
    Cancel {
        at: usize,
    },
    /// The operator gives this share of the price back.
    Goodwill {
        at: usize,
        percent: i64,
    },
    /// The operator gives an order up.
    Fail {
        at: usize,
    },
    /// Somebody with money of his own claims what is owed to a guest.
    Collect {
        at: usize,
    },
    /// The operator gives the oldest unmatched transfer to a checkout.
    Assign {
        at: usize,
    },
    /// Buys from the wallet.
    Buy {
        who: Who,
    },
}

/// Numbers that look random, and are the same for the same seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ value >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// The story with this number.
pub fn told(seed: u64) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let acts = 1 + dice.below(3);
    let mut threads: Vec<Vec<Step>> = (0..acts).map(|_| act(&mut dice)).collect();
    let noise = (0..dice.below(6)).map(|_| aside(&mut dice)).collect();
    threads.push(noise);
    let mut story = Vec::new();
    while !threads.is_empty() {
        let index = dice.below(threads.len());
        if threads[index].is_empty() {
            threads.swap_remove(index);
        } else {
            story.push(threads[index].remove(0));
        }
    }
    story
}

fn account(dice: &mut Dice) -> Who {
    dice.of(&[Who::Ann, Who::Bob])
}

fn anybody(dice: &mut Dice) -> Who {
    dice.of(&[Who::Ann, Who::Bob, Who::Guest])
}

fn keep(dice: &mut Dice) -> Keep {
    let micros = dice.of(&[-1, 1, 10_000, -500_000]);
    dice.of(&[Keep::Nothing, Keep::Nothing, Keep::Nothing, Keep::Same, Keep::Later, Keep::Changed(micros)])
}

fn sum(dice: &mut Dice) -> Sum {
    let micros = dice.of(&[-1, 1, -10_000, 20_000, -1_000_000, 1_500_000]);
    let other = Sum::Of(dice.below(PLACES));
    dice.of(&[Sum::Exact, Sum::Exact, Sum::Exact, Sum::Rounded, Sum::Off(micros), other])
}

fn open(dice: &mut Dice, at: usize, who: Who, network: usize) -> Step {
    let (dear, coupon) = (dice.one_in(4), dice.one_in(4));
    Step::Open { at, who, network, dear, coupon, limited: who == Who::Ann && dice.one_in(3) }
}

/// One thing that may happen at any time.
fn aside(dice: &mut Dice) -> Step {
    let (network, at) = (dice.below(NETWORKS), dice.below(PLACES));
    match dice.below(16) {
        0 => Step::Nodes {
            network,
            mood: dice.of(&[Nodes::Down, Nodes::Lagging, Nodes::Lying, Nodes::Honest]),
        },
        1 => Step::Nodes { network, mood: Nodes::Honest },
        2 => Step::Supplier(dice.of(&[
            Supplier::Ok,
            Supplier::Reject,
            Supplier::Unavailable,
            Supplier::Malformed,
        ])),
        3 => Step::Supplier(Supplier::Ok),
        4 => Step::Minutes(dice.of(&[1, 20, 31, 40, 700, 1_500])),
        5 => Step::Reorg { network, depth: 1 + dice.below(12), keep: keep(dice) },
        6 => Step::Return { network },
        7 => Step::Recover,
        8 => Step::Cancel { at },
        9 => Step::Goodwill { at, percent: dice.of(&[10, 50, 100]) },
        10 => Step::Buy { who: account(dice) },
        11 => Step::Assign { at },
        12 if dice.one_in(4) => Step::Restart,
        13 => Step::Blocks { network, count: 1 + dice.below(5) },
        _ => Step::Look { network },
    }
}

fn act(dice: &mut Dice) -> Vec<Step> {
    match dice.below(12) {
        0 | 1 => plain(dice),
        2..=4 => signed(dice),
        5 => deposit(dice),
        6 => guest(dice),
        7 => slow(dice),
        8 => refunds(dice),
        9 => quick(dice),
        10 => hoard(dice),
        _ => crowd(dice),
    }
}

/// Somebody checks out and pays, well or badly.
fn plain(dice: &mut Dice) -> Vec<Step> {
    let (at, network, who) = (dice.below(PLACES), dice.below(NETWORKS), anybody(dice));
    let mut steps = vec![open(dice, at, who, network)];
    for _ in 0..1 + dice.below(2) {
        let pay =
            Step::Pay { at, sum: sum(dice), other_token: dice.one_in(8), other_network: dice.one_in(8) };
        steps.push(pay);
        steps.push(dice.of(&[Step::Look { network }, Step::Deep { network }, Step::Minutes(31)]));
    }
    if dice.one_in(2) {
        steps.push(Step::Reorg { network, depth: 1 + dice.below(12), keep: keep(dice) });
        steps.push(Step::Look { network });
    }
    steps.push(dice.of(&[
        Step::Assign { at },
        Step::Return { network },
        Step::Look { network },
        Step::Deep { network },
    ]));
    steps
}

/// Signatures that share a nonce, or are used by others, before or after they are claimed.
fn signed(dice: &mut Dice) -> Vec<Step> {
    let (at, who, payer, nonce) =
        (dice.below(PLACES), account(dice), 1 + dice.below(2) as u8, dice.below(3) as u64);
    let network = if dice.one_in(4) { 2 } else { 0 };
    let (right, wrong) = (dice.below(2), 2 + dice.below(2));
    let mut steps = vec![open(dice, at, who, network)];
    let sign = |signature, sum, to, valid, other_token| Step::Sign {
        signature,
        at,
        payer,
        nonce,
        sum,
        to,
        valid,
        other_token,
    };
    let valid = if dice.one_in(8) { dice.of(&[Valid::Over, Valid::NotYet]) } else { Valid::Now };
    let first = if dice.one_in(6) { sum(dice) } else { Sum::Exact };
    steps.push(sign(right, first, To::Asked, valid, false));
    let mut rest = vec![Step::Claim { signature: right, at, who }, Step::Mine { signature: right }];
    if !dice.one_in(3) {
        let sum = dice.of(&[Sum::Tiny, Sum::Tiny, Sum::Exact, Sum::Off(-1), Sum::Off(1_000_000), Sum::Of(1)]);
        let to = dice.of(&[To::Asked, To::Asked, To::Asked, To::Bobs, To::Stranger]);
        steps.push(sign(wrong, sum, to, Valid::Now, dice.one_in(6)));
        rest.push(Step::Mine { signature: wrong });
        rest.push(Step::Mine { signature: wrong });
    }
    if dice.one_in(3) {
        // Somebody else wants it for his own checkout.
        let (theirs, thief) = ((at + 1) % PLACES, if who == Who::Ann { Who::Bob } else { Who::Ann });
        let network = dice.of(&[0, 2]);
        steps.push(open(dice, theirs, thief, network));
        rest.push(Step::Claim { signature: right, at: theirs, who: thief });
        rest.push(Step::Claim { signature: right, at, who: thief });
    }
    rest.push(Step::Look { network: 0 });
    rest.push(Step::Look { network: 0 });
    if dice.one_in(2) {
        rest.push(Step::Reorg { network: 0, depth: 1 + dice.below(5), keep: keep(dice) });
    }
    while !rest.is_empty() {
        let index = dice.below(rest.len());
        steps.push(rest.swap_remove(index));
    }
    steps.push(Step::Deep { network: 0 });
    steps
}

/// A signed payment counts at once, its block is replaced, and the signature is mined again, or not.
fn quick(dice: &mut Dice) -> Vec<Step> {
    let (at, who, network) = (dice.below(PLACES), account(dice), 0);
    let (signature, payer, nonce) = (dice.below(2), 1 + dice.below(2) as u8, 3 + dice.below(3) as u64);
    let mine = Step::Mine { signature };
    let mut steps = vec![
        Step::Open { at, who, network, dear: false, coupon: false, limited: false },
        Step::Sign {
            signature,
            at,
            payer,
            nonce,
            sum: Sum::Exact,
            to: To::Asked,
            valid: Valid::Now,
            other_token: false,
        },
    ];
    if !dice.one_in(3) {
        steps.push(Step::Claim { signature, at, who });
    }
    if dice.one_in(4) {
        steps.push(Step::Supplier(Supplier::Malformed));
    }
    steps.extend([mine.clone(), Step::Look { network }]);
    steps.push(Step::Reorg { network, depth: 1 + dice.below(3), keep: Keep::Nothing });
    let mut rest = vec![Step::Look { network }, Step::Look { network }, Step::Cancel { at }, Step::Recover];
    rest.push(dice.of(&[mine.clone(), mine, Step::Return { network }, Step::Fail { at }]));
    rest.push(dice.of(&[
        Step::Buy { who },
        Step::Goodwill { at, percent: 50 },
        Step::Supplier(Supplier::Ok),
    ]));
    if dice.one_in(3) {
        rest.push(Step::Reorg { network, depth: 1 + dice.below(3), keep: Keep::Nothing });
    }
    while !rest.is_empty() {
        let index = dice.below(rest.len());
        steps.push(rest.swap_remove(index));
    }
    steps.extend([Step::Deep { network }, Step::Return { network }, Step::Deep { network }]);
    steps
}

fn deposit(dice: &mut Dice) -> Vec<Step> {
    let (who, network) = (account(dice), dice.below(NETWORKS));
    let mut steps = vec![Step::Deposit { who, network }];
    for _ in 0..1 + dice.below(2) {
        let cents = dice.of(&[1, 99, 1_000, 2_500, 30_000]);
        let network = if dice.one_in(4) { dice.below(2) } else { network };
        steps.push(Step::PayDeposit { who, cents, network, other_token: dice.one_in(4) });
        steps.push(dice.of(&[Step::Look { network }, Step::Deep { network }]));
    }
    if dice.one_in(2) {
        steps.push(Step::Buy { who });
    }
    steps.push(Step::Reorg { network, depth: 1 + dice.below(14), keep: keep(dice) });
    steps.push(Step::Look { network });
    if dice.one_in(2) {
        steps.push(Step::Return { network });
    }
    steps.push(Step::Deep { network });
    steps
}

/// A guest's money: owed, claimed, gone.
fn guest(dice: &mut Dice) -> Vec<Step> {
    let (at, network) = (dice.below(PLACES), dice.below(NETWORKS));
    let pay = |sum| Step::Pay { at, sum, other_token: false, other_network: false };
    let mut steps = vec![open(dice, at, Who::Guest, network)];
    if dice.one_in(2) {
        steps.push(Step::Supplier(Supplier::Reject));
    }
    steps.push(pay(Sum::Exact));
    steps.push(Step::Deep { network });
    if dice.one_in(2) {
        steps.push(pay(Sum::Exact));
        steps.push(Step::Deep { network });
    } else {
        steps.push(Step::Goodwill { at, percent: dice.of(&[10, 50]) });
    }
    steps.push(Step::Collect { at });
    if dice.one_in(3) {
        steps.push(pay(Sum::Exact));
    }
    steps.push(Step::Reorg {
        network,
        depth: 3 + dice.below(25),
        keep: dice.of(&[Keep::Nothing, Keep::Later]),
    });
    steps.push(Step::Look { network });
    steps.push(Step::Collect { at });
    if dice.one_in(2) {
        steps.push(Step::Return { network });
    }
    steps.push(Step::Supplier(Supplier::Ok));
    steps
}

/// The supplier leaves an order in doubt, and the payment vanishes meanwhile.
fn slow(dice: &mut Dice) -> Vec<Step> {
    let (at, network, who) = (dice.below(PLACES), dice.below(NETWORKS), anybody(dice));
    let doubt = if dice.one_in(8) { Supplier::Slow } else { Supplier::Malformed };
    let mut steps = vec![
        open(dice, at, who, network),
        Step::Pay { at, sum: Sum::Exact, other_token: false, other_network: false },
        Step::Supplier(doubt),
        Step::Deep { network },
        Step::Reorg { network, depth: 8 + dice.below(6), keep: Keep::Nothing },
        Step::Look { network },
        Step::Supplier(dice.of(&[Supplier::Ok, Supplier::Ok, Supplier::Reject, Supplier::Unavailable])),
        Step::Recover,
    ];
    let end = [Step::Return { network }, Step::Fail { at }, Step::Recover];
    steps.push(dice.of(&end));
    steps.push(Step::Look { network });
    steps.push(Step::Recover);
    steps
}

/// Money back for one order, in every way at once.
fn refunds(dice: &mut Dice) -> Vec<Step> {
    let (at, network, who) = (dice.below(PLACES), dice.below(NETWORKS), account(dice));
    let mut steps = vec![
        open(dice, at, who, network),
        Step::Pay { at, sum: Sum::Exact, other_token: false, other_network: false },
        Step::Deep { network },
    ];
    let mut rest = vec![
        Step::Goodwill { at, percent: dice.of(&[10, 50, 100]) },
        Step::Goodwill { at, percent: dice.of(&[10, 50, 100]) },
        Step::Cancel { at },
    ];
    if dice.one_in(2) {
        rest.push(Step::Reorg { network, depth: 8 + dice.below(4), keep: Keep::Nothing });
        rest.push(Step::Look { network });
    }
    if dice.one_in(2) {
        rest.push(Step::Supplier(Supplier::Malformed));
        rest.push(Step::Recover);
    }
    while !rest.is_empty() {
        let index = dice.below(rest.len());
        steps.push(rest.swap_remove(index));
    }
    steps.push(dice.of(&[Step::Return { network }, Step::Look { network }, Step::Recover]));
    steps
}

/// Somebody opens checkout after checkout and pays for one at most; another pays as people do.
fn hoard(dice: &mut Dice) -> Vec<Step> {
    let (network, hoarder, buyer) = (dice.below(NETWORKS), anybody(dice), anybody(dice));
    let (theirs, at) = (0, 1 + dice.below(PLACES - 1));
    let pay = |at, sum| Step::Pay { at, sum, other_token: false, other_network: false };
    let mut steps = Vec::new();
    for _ in 0..3 + dice.below(5) {
        let dear = dice.one_in(4);
        steps.push(Step::Open { at: theirs, who: hoarder, network, dear, coupon: false, limited: false });
    }
    steps.push(open(dice, at, buyer, network));
    steps.push(pay(at, dice.of(&[Sum::Exact, Sum::Rounded, Sum::Rounded, Sum::Off(-1_000_000)])));
    steps.push(dice.of(&[Step::Look { network }, Step::Deep { network }]));
    steps.push(dice.of(&[
        pay(theirs, Sum::Rounded),
        pay(at, Sum::Rounded),
        Step::Assign { at },
        Step::Minutes(31),
    ]));
    steps.push(Step::Deep { network });
    steps
}

/// Several checkouts at once, that are paid together, in each other's place, or not at all.
fn crowd(dice: &mut Dice) -> Vec<Step> {
    let network = dice.below(NETWORKS);
    let who = anybody(dice);
    let count = 2 + dice.below(PLACES - 1);
    let mut steps: Vec<Step> = (0..count)
        .map(|at| {
            let who = if dice.one_in(2) { who } else { anybody(dice) };
            let network = if dice.one_in(4) { dice.below(NETWORKS) } else { network };
            Step::Open { at, who, network, dear: false, coupon: dice.one_in(6), limited: who == Who::Ann }
        })
        .collect();
    for at in 0..count {
        match dice.below(4) {
            0 => steps.push(Step::PayBoth { first: at, second: (at + 1) % count, sum: sum(dice) }),
            1 => {}
            _ => {
                let pay = Step::Pay { at, sum: sum(dice), other_token: false, other_network: dice.one_in(8) };
                steps.push(pay);
            }
        }
    }
    steps.push(Step::Deep { network });
    steps.push(Step::Assign { at: dice.below(count) });
    steps
}
