//! What `./test` tells tests by variables: where the servers are, and how much of something is wanted.

/// Where something is that the test needs.
pub fn required(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: ./test sets it"))
}

/// How often, how many or which, where somebody has said so.
pub fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}
