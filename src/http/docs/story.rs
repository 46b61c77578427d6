//! The order in which the documentation tells of the operations: what a newcomer does first comes first.

/// One API as a story, on a page of its own.
pub struct Story {
    /// The last part of the page's address: `/docs/{page}`. The first one is at `/docs` itself.
    pub page: &'static str,
    pub name: &'static str,
    /// Where its description is served.
    pub description: &'static str,
    pub chapters: &'static [Chapter],
    /// The parameters that are sent in samples, beside those that are required.
    pub sampled: &'static [&'static str],
    /// The operations that move money.
    pub spending: &'static [&'static str],
}

pub struct Chapter {
    pub title: &'static str,
    pub operations: &'static [&'static str],
}

const fn chapter(title: &'static str, operations: &'static [&'static str]) -> Chapter {
    Chapter { title, operations }
}

pub const PARTNER: Story = Story {
    page: "",
    name: "Partner API",
    description: "/api/b2b/v1/openapi.json",
    chapters: &[
        chapter("Look into the wallet", &["getBalance"]),
        chapter("Fund it", &["openDeposit", "getDeposit", "verifyDeposit", "getDepositAddress"]),
        chapter("Choose a plan", &["listPlans"]),
        chapter("Buy it", &["placeOrder", "getOrder", "listOrders"]),
        chapter("See what is used", &["getUsage"]),
        chapter("Top it up", &["listTopUpPlans", "topUp"]),
        chapter("Give another one back", &["cancelOrder", "withdrawCancel"]),
        chapter("Check the statement", &["listTransactions"]),
        chapter("Hear what happens", &["listEvents"]),
        chapter(
            "Have it sent to you",
            &[
                "createWebhook",
                "testWebhook",
                "listWebhooks",
                "changeWebhook",
                "listDeliveries",
                "redeliver",
                "replayWebhook",
                "rotateWebhookSecret",
                "deleteWebhook",
            ],
        ),
    ],
    sampled: &["country"],
    spending: &["placeOrder", "topUp", "cancelOrder"],
};

pub const AGENTIC: Story = Story {
    page: "agentic",
    name: "Agentic API",
    description: "/api/agentic/openapi.json",
    chapters: &[
        chapter("Find a plan", &["searchProducts"]),
        chapter("Log in", &["requestOtp", "verifyOtp"]),
        chapter("Buy it", &["checkout", "getPurchase"]),
        chapter("Look back", &["getWallet", "listPurchases", "listEvents"]),
        chapter("Look after tokens", &["listTokens", "revokeToken"]),
    ],
    sampled: &["country", "Idempotency-Key"],
    spending: &["checkout"],
};

pub const CONSUMER: Story = Story {
    page: "consumer",
    name: "Consumer API",
    description: "/api/consumer/openapi.json",
    chapters: &[
        chapter("Find a plan", &["searchProducts", "getKnowledge"]),
        chapter("Log in", &["sendCode", "verifyCode"]),
        chapter("Look into the wallet", &["getBalance", "listTransactions"]),
        chapter("Buy it", &["validateCoupon", "placeOrder", "listOrders"]),
        chapter("Use it", &["refreshUsage", "listTopUps", "topUp"]),
        chapter("Give another one back", &["cancelOrder", "withdrawCancel"]),
    ],
    sampled: &["country", "Idempotency-Key"],
    spending: &["placeOrder", "topUp", "cancelOrder"],
};

/// Told in a sandbox only.
pub const SANDBOX: Story = Story {
    page: "sandbox",
    name: "Sandbox helpers",
    description: "/sandbox/openapi.json",
    chapters: &[
        chapter("Play the customer", &["payInvoice", "readOutbox", "moveUsage"]),
        chapter("Tell of something", &["makeEvent"]),
        chapter("Play the supplier", &["setSupplier", "getSupplier"]),
        chapter("Play the chains", &["setChain", "getChains"]),
        chapter("Break a job", &["setJob"]),
    ],
    sampled: &["email"],
    spending: &[],
};

impl Story {
    pub fn operations(&self) -> impl Iterator<Item = &'static str> {
        self.chapters.iter().flat_map(|chapter| chapter.operations.iter().copied())
    }

    pub fn address(&self) -> String {
        if self.page.is_empty() { "/docs".into() } else { format!("/docs/{}", self.page) }
    }
}
