//! The networks and tokens that money can arrive by. What a deployment has of them is in its settings; here are
//! the facts that do not change.

/// Where a transfer happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Network {
    Base,
    Polygon,
    Arbitrum,
    Tron,
}

impl Network {
    pub const ALL: [Network; 4] = [Network::Base, Network::Polygon, Network::Arbitrum, Network::Tron];

    pub fn as_str(self) -> &'static str {
        match self {
            Network::Base => "BASE",
            Network::Polygon => "POLYGON",
            Network::Arbitrum => "ARBITRUM",
            Network::Tron => "TRON",
        }
    }

    pub fn parse(text: &str) -> Option<Network> {
        Network::ALL.into_iter().find(|network| network.as_str() == text)
    }

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

    /// What tokens are called there.
    pub fn token_standard(self) -> &'static str {
        match self {
            Network::Base | Network::Arbitrum => "ERC-20",
            Network::Polygon => "PRC-20",
            Network::Tron => "TRC-20",
        }
    }

    /// How long a payment usually takes until it counts.
    pub fn typical_seconds(self) -> u32 {
        match self {
            Network::Base => 10,
            Network::Polygon => 30,
            Network::Arbitrum => 15,
            Network::Tron => 60,
        }
    }

    pub fn kind(self) -> AddressKind {
        match self {
            Network::Base | Network::Polygon | Network::Arbitrum => AddressKind::Evm,
            Network::Tron => AddressKind::Tron,
        }
    }
}

/// Whose addresses look alike: one key serves all networks of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressKind {
    Evm,
    Tron,
}

impl AddressKind {
    pub const ALL: [AddressKind; 2] = [AddressKind::Evm, AddressKind::Tron];

    pub fn as_str(self) -> &'static str {
        match self {
            AddressKind::Evm => "EVM",
            AddressKind::Tron => "TRON",
        }
    }

    pub fn parse(text: &str) -> Option<AddressKind> {
        AddressKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The account whose extended public key the operator gives us; we derive `/0/i` below it.
    pub fn account_path(self) -> &'static str {
        match self {
            AddressKind::Evm => "m/44'/60'/0'",
            AddressKind::Tron => "m/44'/195'/0'",
        }
    }
}

/// A dollar token with six decimals: its base unit is a micro-dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Currency {
    Usdt,
    Usdc,
}

impl Currency {
    pub const ALL: [Currency; 2] = [Currency::Usdt, Currency::Usdc];

    pub fn as_str(self) -> &'static str {
        match self {
            Currency::Usdt => "USDT",
            Currency::Usdc => "USDC",
        }
    }

    pub fn parse(text: &str) -> Option<Currency> {
        Currency::ALL.into_iter().find(|currency| currency.as_str() == text)
    }
}
