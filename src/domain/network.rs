//! The networks and tokens that money can arrive by: the facts that do not change. Which of them a deployment takes is
//! in its settings.

use super::words::words;

words! {
    /// Where a transfer happens.
    #[derive(PartialOrd, Ord)]
    pub enum Network: ALL, parse {
        Base = "BASE",
        Polygon = "POLYGON",
        Arbitrum = "ARBITRUM",
        Tron = "TRON",
    }
}

impl Network {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Network::Base => "Base",
            Network::Polygon => "Polygon",
            Network::Arbitrum => "Arbitrum",
            Network::Tron => "TRON",
        }
    }

    /// What a node of this network answers to `eth_chainId`.
    pub fn chain_id(self) -> u64 {
        match self {
            Network::Base => 8_453,
            Network::Polygon => 137,
            Network::Arbitrum => 42_161,
            Network::Tron => 728_126_428,
        }
    }

    /// How many blocks, its own included, a transfer waits for. On TRON the solidified block decides.
    pub fn confirmations(self) -> i64 {
        match self {
            Network::Base => 5,
            Network::Polygon => 12,
            Network::Arbitrum => 20,
            Network::Tron => 19,
        }
    }

    /// The name of the token standard there.
    pub fn token_standard(self) -> &'static str {
        match self {
            Network::Base | Network::Arbitrum => "ERC-20",
            Network::Polygon => "PRC-20",
            Network::Tron => "TRC-20",
        }
    }

    /// The page of a transaction at a public explorer of this network.
    pub fn explorer_url(self, tx_hash: &str) -> String {
        let explorer = match self {
            Network::Base => "https://basescan.org/tx/",
            Network::Polygon => "https://polygonscan.com/tx/",
            Network::Arbitrum => "https://arbiscan.io/tx/",
            Network::Tron => "https://tronscan.org/#/transaction/",
        };
        format!("{explorer}{tx_hash}")
    }

    pub fn kind(self) -> AddressKind {
        match self {
            Network::Base | Network::Polygon | Network::Arbitrum => AddressKind::Evm,
            Network::Tron => AddressKind::Tron,
        }
    }
}

words! {
    /// A format of addresses: one key serves all networks of a kind.
    #[derive(PartialOrd, Ord)]
    pub enum AddressKind: ALL, parse {
        Evm = "EVM",
        Tron = "TRON",
    }
}

impl AddressKind {
    /// The account whose extended public key the operator gives us; we derive `/0/i` below it.
    pub fn account_path(self) -> &'static str {
        match self {
            AddressKind::Evm => "m/44'/60'/0'",
            AddressKind::Tron => "m/44'/195'/0'",
        }
    }
}

words! {
    /// A dollar token with six decimals: its base unit is a micro-dollar.
    #[derive(PartialOrd, Ord)]
    pub enum Currency: ALL, parse {
        Usdt = "USDT",
        Usdc = "USDC",
    }
}
